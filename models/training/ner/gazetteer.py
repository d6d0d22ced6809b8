"""Names of what has no generator: written by hand from general knowledge, copied from no data set."""

from __future__ import annotations


def _listed(text: str) -> tuple[str, ...]:
    return tuple(name for line in text.split("\n") for name in (part.strip() for part in line.split(";")) if name)


PLACES = _listed("""
London; Paris; Berlin; Madrid; Rome; Vienna; Prague; Warsaw; Lisbon; Dublin; Athens; Oslo; Stockholm; Helsinki
Copenhagen; Brussels; Amsterdam; Zurich; Geneva; Munich; Hamburg; Cologne; Frankfurt; Lyon; Marseille; Barcelona
Seville; Milan; Naples; Turin; Venice; Moscow; Kyiv; Istanbul; Ankara; Tehran; Baghdad; Damascus; Beirut; Jerusalem
Cairo; Tripoli; Tunis; Algiers; Lagos; Nairobi; Accra; Cape Town; Johannesburg; Addis Ababa; Mumbai; Delhi; Kolkata
Chennai; Bangalore; Karachi; Lahore; Dhaka; Colombo; Kathmandu; Kabul; Beijing; Shanghai; Hong Kong; Tokyo; Osaka
Kyoto; Seoul; Busan; Taipei; Bangkok; Hanoi; Manila; Jakarta; Singapore; Kuala Lumpur; Sydney; Melbourne; Perth
Auckland; New York; NYC; Los Angeles; LA; Chicago; Houston; Dallas; Miami; Boston; Seattle; Denver; Detroit
San Francisco; Washington; Washington DC; Philadelphia; Atlanta; Las Vegas; New Orleans; Toronto; Montreal; Vancouver
Mexico City; Havana; Bogota; Lima; Santiago; Buenos Aires; Rio de Janeiro; Sao Paulo; Caracas; Quito; Manchester
Liverpool; Leeds; Glasgow; Edinburgh; Cardiff; Belfast; Birmingham; Bristol; Newcastle; Oxford; Cambridge; Brighton
Nottingham; Texas; California; Florida; Ohio; Georgia; Virginia; Alaska; Hawaii; Michigan; Oregon; Nevada; Utah
Arizona; Bavaria; Tuscany; Catalonia; Brittany; Scotland; Wales; England; Ireland; Britain; UK; U.K.; USA; US; U.S.
America; United States; United Kingdom; Europe; Africa; Asia; Germany; France; Spain; Italy; Portugal; Poland; Greece
Turkey; Russia; Ukraine; China; Japan; India; Pakistan; Iran; Iraq; Israel; Syria; Egypt; Nigeria; Kenya; South Africa
Brazil; Argentina; Chile; Peru; Mexico; Canada; Cuba; Australia; New Zealand; Indonesia; Vietnam; Thailand; Korea
North Korea; South Korea; Saudi Arabia; Qatar; Dubai; Afghanistan; Switzerland; Austria; Sweden; Norway; Denmark
Finland; the Nile; the Alps; the Rhine; the Thames; the Pacific; the Atlantic; Lake Victoria; Mount Everest
the Sahara; the Amazon; Sicily; Brooklyn; Manhattan; Queens; Harlem; Soho; Camden; Times Square; Central Park
Hyde Park; Wall Street; Hollywood; Silicon Valley; Heathrow; Wembley; Trafalgar Square; Disneyland; the Eiffel Tower
the White House; the Middle East; Latin America; the Balkans
""")

ORGANIZATIONS = _listed("""
Google; Microsoft; Apple; Amazon; Facebook; Twitter; Netflix; IBM; Intel; Oracle; Samsung; Sony; Nokia; Siemens; Bosch
Toyota; Honda; Ford; General Motors; BMW; Volkswagen; Boeing; Airbus; Lufthansa; Ryanair; Starbucks; McDonald's
Walmart; Tesco; Ikea; Nike; Adidas; Nestle; Unilever; Pfizer; Bayer; Shell; BP; Exxon; Goldman Sachs; JP Morgan
Morgan Stanley; HSBC; Barclays; Deutsche Bank; Santander; Visa; PayPal; Citigroup; the World Bank; the IMF
the United Nations; UN; NATO; the EU; European Union; WHO; UNICEF; the Red Cross; Greenpeace; FBI; CIA; NASA; NSA
the FDA; the EPA; the Senate; Congress; the House of Commons; Parliament; the Supreme Court; the Pentagon; NHS
the Labour Party; the Republican Party; Democrats; GOP; Hamas; Taliban; ISIS; the Vatican; Interpol; Scotland Yard
BBC; CNN; Reuters; Fox News; the New York Times; The Guardian; Washington Post; Sky News; Al Jazeera; ESPN; MTV; HBO
Disney; Warner Bros; Universal; FIFA; UEFA; NFL; NBA; MLB; NHL; Arsenal; Chelsea; Manchester United; Real Madrid
Barcelona FC; Juventus; Bayern; Liverpool FC; Celtic; Ajax; Lakers; Yankees; Red Sox; Cowboys; Steelers; Packers
Giants; Bulls; Celtics; Patriots; Harvard; Yale; MIT; Stanford University; Oxford University; UCLA
Cambridge University; the Beatles; Coldplay; One Direction; Metallica; Nirvana; Radiohead; Amnesty International
Oxfam; Salvation Army; Boy Scouts; YouTube; Instagram; Uber; Airbnb; Tesla; SpaceX; Huawei; Tencent; Alibaba; Tata
Infosys; Accenture; Deloitte; KPMG; PwC; McKinsey
""")

CONDITIONS = _listed("""
asthma; type 2 diabetes; type 1 diabetes; diabetes mellitus; hypertension; high blood pressure; migraine
chronic migraine; pneumonia; bronchitis; COPD; chronic obstructive pulmonary disease; emphysema; eczema; psoriasis
gout; rheumatoid arthritis; osteoarthritis; osteoporosis; lupus; myocardial infarction; a heart attack; stroke
atrial fibrillation; congestive heart failure; coronary artery disease; angina; anemia; leukemia; lymphoma
breast cancer; lung cancer; prostate cancer; colon cancer; melanoma; pancreatic cancer; ovarian cancer; a brain tumour
kidney stones; chronic kidney disease; renal failure; cirrhosis; hepatitis B; hepatitis C; gallstones; GERD
acid reflux; peptic ulcer; irritable bowel syndrome; Crohn's disease; ulcerative colitis; celiac disease; appendicitis
diverticulitis; depression; major depression; anxiety disorder; panic disorder; generalized anxiety disorder
bipolar disorder; schizophrenia; PTSD; ADHD; OCD; anorexia; bulimia; insomnia; sleep apnea; dementia
Alzheimer's disease; Parkinson's disease; epilepsy; multiple sclerosis; ALS; a concussion; sciatica
carpal tunnel syndrome; fibromyalgia; hypothyroidism; hyperthyroidism; Graves' disease; Cushing syndrome; obesity
high cholesterol; hyperlipidemia; deep vein thrombosis; pulmonary embolism; sepsis; meningitis; tuberculosis; malaria
HIV; HIV infection; AIDS; herpes; syphilis; chlamydia; gonorrhea; COVID-19; influenza; shingles; measles; Lyme disease
sickle cell disease; cystic fibrosis; hemophilia; Down syndrome; autism; cerebral palsy; glaucoma; cataracts
macular degeneration; hearing loss; tinnitus; vertigo; endometriosis; polycystic ovary syndrome; infertility
preeclampsia; gestational diabetes; erectile dysfunction; alcohol dependence; opioid use disorder; substance abuse
chronic fatigue syndrome; peripheral neuropathy; scoliosis; iron deficiency; vitamin D deficiency; a peanut allergy
anaphylaxis; chronic back pain; urinary tract infection; end-stage renal disease; bronchial asthma
""")

NAMES_THAT_ARE_WORDS = _listed("""
Will; Mark; Grace; Hope; Rose; May; April; June; Bill; Jack; Faith; Joy; Art; Rich; Pat; Dawn; Ivy; Lily; Daisy; Ruby
Pearl; Amber; Rob; Chase; Grant; Drew; Frank; Ray; Gene; Guy; Miles; Chance; Hunter; Mason; Carter; Summer; Autumn
Melody; Harmony; Chip; Dean; Earl; Duke; Victor; Sky
""")
SURNAMES_THAT_ARE_WORDS = _listed("""
Young; King; Baker; Stone; Brown; White; Green; Long; Price; Rivers; Woods; Banks; Ford; Park; Cook; Bell; Wood; Hill
Fields; Page; Bush; Rice; Fox; Wolf; Crane; Swift; Sharp; Short; Little; Small; Best; Love; Sweet; Moody; Waters; Snow
Winters; Summers; Day; Knight; Pope; Bishop; Abbott
""")

FIRM_WORDS = _listed("""
Blue; Harbor; Summit; Global; United; Northern; Pacific; Atlas; Pioneer; Silver; Golden; Evergreen; Nova; Quantum
Stellar; Apex; Zenith; Cedar; Falcon; Horizon; Iron; Liberty; Metro; Prime; Royal; Titan; Vertex; Vista; Bright; Clear
Delta; Omega; Eagle; Granite; Coastal; River
""")
FIRM_KINDS = _listed("""
Technologies; Systems; Labs; Group; Holdings; Partners; Industries; Corp; Corporation; Inc; Inc.; LLC; Ltd; Ltd.; GmbH
AG; S.A.; Foods; Airlines; Media; Bank; Insurance; Consulting; Logistics; Energy; Motors; Pharma; Solutions; Software
Robotics; Capital; Ventures; Healthcare; Studios; Analytics; Records
""")
SYLLABLES = _listed("""
zen; tri; vex; lo; mar; qui; nor; dal; sy; plex; ora; cor; vita; neo; ly; tek; ser; ona; bri; dex; fy; gen; hal; io
kor; lum; mo; pax; rux; tha; umbra; wave
""")
