"""What people ask about, by domain: topics written by hand from general knowledge, copied from no data set."""

from __future__ import annotations


def _listed(text: str) -> tuple[str, ...]:
    return tuple(topic for line in text.split("\n") for topic in (part.strip() for part in line.split(";")) if topic)


MEDICAL = _listed("""
asthma; type 2 diabetes; high blood pressure; a migraine; pneumonia; a urinary tract infection; eczema; psoriasis
gout; rheumatoid arthritis; osteoporosis; a heart attack; a stroke; atrial fibrillation; heart failure; anaemia
leukaemia; breast cancer; prostate cancer; a colonoscopy; chemotherapy; radiotherapy; a biopsy; an MRI scan
a blood transfusion; kidney stones; chronic kidney disease; dialysis; cirrhosis; hepatitis B; gallstones; acid reflux
a peptic ulcer; irritable bowel syndrome; Crohn's disease; celiac disease; lactose intolerance; constipation
diarrhoea; food poisoning; depression; panic attacks; bipolar disorder; schizophrenia; insomnia; ADHD medication
dementia; Parkinson's disease; epilepsy; multiple sclerosis; a concussion; a herniated disc; sciatica
carpal tunnel syndrome; a sprained ankle; a broken wrist; a torn ligament; plantar fasciitis; back pain; chest pain
shortness of breath; a persistent cough; a sore throat; tonsillitis; an ear infection; sinusitis; hay fever
a peanut allergy; anaphylaxis; hives; shingles; measles; chickenpox; whooping cough; tetanus; malaria; dengue fever
tuberculosis; HIV; herpes; chlamydia; HPV; the flu vaccine; a booster shot; antibiotics; antidepressants; insulin
metformin; ibuprofen; paracetamol; aspirin; statins; blood thinners; warfarin; beta blockers; corticosteroids
antihistamines; opioids; birth control pills; an IUD; pregnancy; morning sickness; pre-eclampsia; a miscarriage
breastfeeding; labour contractions; menopause; hot flushes; endometriosis; polycystic ovaries; infertility treatment
a vasectomy; erectile dysfunction; low testosterone; an underactive thyroid; Graves' disease; cortisol levels
vitamin D deficiency; iron supplements; dietary fibre; saturated fat and cholesterol; obesity and body mass index
protein intake in elderly patients; dehydration in infants; fever in a toddler; colic; jaundice in newborns
growth charts; autism screening; Down syndrome; cystic fibrosis; sickle cell disease; haemophilia
an autosomal recessive disorder; a gene mutation that runs in families; the cranial nerves; the femoral artery
the pituitary gland; the mitral valve; the small intestine; the rotator cuff; the cerebellum and balance; tooth decay
root canal treatment; gum disease; cataracts; glaucoma; macular degeneration; hearing loss with age; tinnitus; vertigo
a skin rash; a suspicious mole; melanoma; acne; hair loss; a burn blister; wound dressing; stitches; sepsis
intravenous fluids; a catheter; a tracheostomy; palliative care; hospice; CPR; pulse oximetry; an electrocardiogram
liver function tests; a full blood count; creatinine; blood sugar readings; drug interactions; side effects
an overdose; withdrawal from alcohol; nicotine patches; physiotherapy; a pacemaker; hip replacement; appendicitis
a hernia; bariatric surgery; general anaesthesia; a viral infection; influenza strains; antiviral drugs; retroviruses
how viruses replicate in host cells; life expectancy and frailty; falls among the elderly; sexual arousal disorders
contraception; sexually transmitted infections; puberty; oral contraceptives; bed sores; a nurse taking vital signs
triage; a clinical trial; a randomised trial of a drug; a patient's medical history
""")

LEGAL = _listed("""
an eviction notice; a security deposit that the landlord keeps; breaking a lease; a tenant's right to repairs
squatters; child custody; visitation rights; child support; divorce; a prenuptial agreement; alimony; adoption
guardianship; a restraining order; a will; probate; a living trust; power of attorney; intestate succession
an executor's duties; wrongful termination; unpaid overtime; discrimination at work; a non-compete clause
a severance agreement; whistleblowing; sexual harassment at the workplace; workers' compensation; a union contract
maternity leave rights; notice periods; a speeding ticket; drunk driving charges; a hit and run; a suspended licence
reckless driving; a traffic court hearing; small claims court; a civil lawsuit; a class action; filing a complaint
a summons; a subpoena; a deposition; discovery; summary judgment; a motion to dismiss; an appeal; a default judgment
hearsay evidence; admissible testimony; attorney-client privilege; a public defender; bail; a plea bargain; probation
parole; expungement of a record; a felony; a misdemeanour; burglary; larceny; robbery; arson; manslaughter
murder in the first degree; self-defence; assault and battery; kidnapping; conspiracy; an accomplice's liability
entrapment; the insanity defence; double jeopardy; a search warrant; unlawful arrest; the exclusionary rule
the right to remain silent; due process; equal protection; free speech and the first amendment; the commerce clause
judicial review; the supremacy clause; habeas corpus; breach of contract; consideration; offer and acceptance
a void contract; misrepresentation; specific performance; liquidated damages; the statute of frauds
a third-party beneficiary; promissory estoppel; a warranty; a consumer's refund right; negligence; duty of care
strict liability; product liability; defamation; libel; slander; trespass; nuisance; a slip and fall injury
medical malpractice lawsuits; wrongful death claims; a waiver of liability; punitive damages; an easement
adverse possession; a property line dispute; joint tenancy; a deed; a covenant that runs with the land; zoning
eminent domain; a homeowners association rule; a building permit dispute; foreclosure procedure; a mechanic's lien
copyright; fair use; a trademark; a patent; a trade secret; a cease and desist letter; a licence agreement
plagiarism suits; a non-disclosure agreement; terms of service; privacy law; data protection duties; cookies consent
the right to be forgotten; an asylum claim; a visa denial; deportation; a green card; citizenship; a work permit
an immigration hearing; filing for bankruptcy in court; debt collectors' legal limits; identity theft charges
a cheque fraud prosecution; incorporation documents; bylaws; fiduciary duty of directors; shareholder rights
piercing the corporate veil; partnership law; antitrust law; insider trading charges; securities law
a regulatory fine; a consent decree; administrative law; treaties; state sovereignty
the international court of justice; customary international law; diplomatic immunity; the law of the sea; extradition
war crimes tribunals; humanitarian law; jus cogens; treaty reservations; state responsibility; natural law theory
legal positivism; the rule of law; statutory interpretation; precedent; critical legal studies; a judge's discretion
jury selection; a mistrial; jurisdiction; venue; standing to sue; res judicata; burden of proof; reasonable doubt
an injunction; a notary; an affidavit; a witness statement; perjury; contempt of court; a settlement offer; mediation
arbitration; a statute of limitations
""")

FINANCIAL = _listed("""
a savings account; a checking account; an overdraft fee; a bounced check; direct deposit; a wire transfer; an IBAN
a credit card; a declined card; a card that was stolen; contactless payment; my PIN; a chargeback; a cash withdrawal
an ATM fee; a pending payment; a duplicate charge; a refund to my card; topping up my account; exchange rates
currency conversion; a mortgage; refinancing; a down payment; closing costs; adjustable rates; home equity; a car loan
a student loan; payday loans; my credit score; a credit report; debt consolidation; minimum payments; interest charges
annual percentage rate; a credit limit; compound interest; inflation; deflation; the consumer price index
interest rates and the central bank; quantitative easing; bond yields; government bonds; corporate bonds
treasury bills; municipal bonds; junk bonds; the yield curve; the stock market; shares; an index fund; a mutual fund
an exchange traded fund; dividend stocks; growth stocks; a hedge fund; short selling; margin trading; call options
put options; futures contracts; derivatives; currency trading; bitcoin; ether; stablecoins; gold as an investment
portfolio diversification; asset allocation; rebalancing; market volatility; a bear market; a recession
price-earnings ratios; a retirement account; a pension; an annuity; an individual retirement account
social security payments; early retirement savings; life insurance premiums; car insurance quotes
health insurance deductibles; an insurance payout; liability cover premiums; income tax brackets; a tax refund
a tax deduction; capital gains tax; value added tax; withholding; estimated taxes; inheritance tax; a household budget
an emergency fund; paying off debt; saving for college; living on one income; renting against buying a home
accounts receivable; accounts payable; a balance sheet; an income statement; cash flow; depreciation; amortisation
goodwill; an audit opinion; internal controls over reporting; accrual accounting; inventory valuation; a ledger
invoices; payroll; cost of goods sold; gross margin; break-even analysis; net present value; internal rate of return
working capital; return on equity; earnings per share; an initial public offering; venture capital
a start-up's valuation; a merger premium; a dividend payout; a share buyback; stock splits; supply and demand
price elasticity; marginal cost; marginal revenue; a monopoly's profit; perfect competition; oligopoly pricing
gross domestic product; aggregate demand; fiscal policy; monetary policy; the money supply; the multiplier effect
unemployment and inflation; the trade deficit; tariffs; comparative advantage; a currency's depreciation
the budget deficit; national debt; the reserve requirement; a linear regression of asset returns; heteroskedasticity
autocorrelation in time series of returns; unit root tests; volatility models; market segmentation; brand positioning
pricing strategy; a distribution channel; customer loyalty in retail; advertising spend; the marketing mix
corporate social responsibility; stakeholders of a company; corporate governance; executive pay
management by objectives; a company's organisational structure; product life cycles; consumer behaviour and brands
market research surveys; sponsorship deals; a sales force; business-to-business selling
business ethics and corporate codes; whistle-blowing policies of firms; fair trade labels; outsourcing
quality management; leadership styles of managers; strategic planning; the division of labour in factories
cooperatives; microcredit; crowd funding; a company's annual report; shareholder value; my bill is due
paying my electricity bill; how much I spent on groceries; when my next payday is; a W-2 form; my tax return
rewards points; a new debit card; an expired card; a frozen account; card limits; my routing number
money sent to the wrong person; transfer of 50 dollars to savings; my bank balance; a bank statement
closing my account; a joint account; online banking; a mobile payment app; a money order; transfer limits
""")

OTHER = _listed("""
a quadratic equation; prime numbers; a group homomorphism; the derivative of a function; eigenvalues
probability of two dice; a triangle's area; Newton's laws; electric fields; thermodynamics; a pendulum
the speed of light; semiconductors; a resistor circuit; nuclear fusion; magnetism; the periodic table; acids and bases
a chemical bond; reaction rates; oxidation; organic polymers; crystal lattices; the boiling point of water
photosynthesis; natural selection; ecosystems; cell division in plants; migratory birds; whales; dinosaurs; insects
the food chain; mosses; black holes; the planets; a telescope; the moon landing; comets; galaxies; the big bang
a solar eclipse; space rockets; satellites; the Roman empire; the French revolution; the cold war; the civil war
ancient Egypt; the Silk Road; the Renaissance; feudal Japan; Vikings; Stone Age tools; pottery of early farmers
cave paintings; early humans in Africa; archaeology of the Maya; the pyramids; Mesopotamia; bog bodies
a president's election; political parties; foreign policy; the United Nations; a dictatorship; nuclear deterrence
terrorism studies; propaganda; Buddhism; Islam; Hinduism; the Reformation; a monastery; the Talmud; Zen meditation
angels; a pilgrimage; festivals of the gods; Kant's ethics; utilitarianism; free will; Plato's cave; existentialism
logical fallacies; the meaning of life; scepticism; animal rights as an ethical question; personality traits
memory and attention; classical conditioning; child development stages; group behaviour; intelligence tests
motivation; social roles; gender roles; urbanisation; social class; family structure; religion in society
migration patterns; population growth; rivers and mountains; a Python function; a null pointer; sorting algorithms
a database index; regular expressions; neural networks; operating systems; a web server; a JavaScript framework
a firewall; password hashing; phishing mails; cloud computing; an API; machine learning models; a compiler
git branches; a poem about autumn; a short story about a dragon; a screenplay; a limerick; the plot of a novel
a haiku; a fairy tale; song lyrics; a pun; Shakespeare; impressionist painting; jazz; a symphony; the violin
photography; film directors; a theatre play; sculpture; architecture; comics; chess openings; football scores
the world cup; a tennis court; basketball players; the Olympics; marathon running; cycling; swimming; golf
a chocolate cake; pasta sauce; vegetarian dinner; sourdough bread; soup stock; grilling; cocktails; coffee beans
knives for the kitchen; a trip to Japan; flights to Rome; hotels in Lisbon; hiking trails; packing a suitcase
a road trip; camping gear; museums in Berlin; trains; planting tomatoes; pruning roses; house plants; a lawn mower
painting a wall; a leaking tap; a squeaky door; wooden shelves; a bike chain; dog training; cats that scratch
a fish tank; horses; a birthday party; wedding speeches; a gift for my sister; baby names; dating; friendship
a cover letter; an email to my boss; a job interview; a presentation; time management; learning Spanish; grammar
a translation; synonyms; the weather tomorrow; an alarm at seven; my calendar; play some music; turn off the lights
the traffic on the way home; a reminder; a timer; smartphones; laptops; headphones; a video game boss
health points in a role-playing game; a car engine; tyres; electric cars; a used bicycle; fashion; a leather jacket
shoes; make-up; hairstyles; celebrities; television series; social media posts; viral videos; memes; astrology
climate change; solar panels; recycling; earthquakes; volcanoes; hurricanes; deserts; rain forests; ocean currents
glaciers; wildfires; the balance of power between states; humanitarian intervention; alliances; military strategy
drone warfare; migration policy debates; federalism; voters' opinions; interest groups in politics
the two chambers of a parliament; the cabinet; party primaries; bureaucracy; public opinion polls; press releases
crisis communication; media ethics; public relations campaigns; journalism; newspapers in the 19th century; rhetoric
debate clubs; abortion as a moral question; the ethics of war; moral relativism; virtue; duties to future generations
the death penalty as a moral question; euthanasia debates; standard deviation; confidence intervals; random sampling
correlation; hypothesis tests; voltage; transformers; capacitors; digital logic; antennas; genes of fruit flies
cell membranes; enzymes; chromosomes in plants; mitochondria; bacteria in soil; evolution of finches; pollination
protein folding; fossils; attachment theory; cognitive dissonance; perception; language acquisition; aggression
stereotypes; group therapy theories; test validity; Freud; learning theory; city names in Asia; capitals of the world
population pyramids; maps; languages of Africa; trivia about presidents; famous inventors; world records; flags
what song is playing; tell me a joke; what is your name; change the volume; the distance to Chicago; roll a die
flip a coin; spell a word; call my mother; my lost phone; the battery of my car; a shopping list; gas mileage
oil change; restaurant reservations; recipes with rice; calories as units of energy; moral judgement of a friend's lie
a trolley problem; a promise that was broken; whether it is wrong to lie to a friend; bullying at school
the law of gravity; the laws of thermodynamics; the bank of a river; Moore's law; the court of Louis XIV
a cell in a spreadsheet; blood in films; a doctor in a television series; a lawyer in a novel; a patient teacher
the trial of a new recipe; interest in art; the balance of a bicycle; stock photos
""")

TOPICS = {"none": OTHER, "medical": MEDICAL, "legal": LEGAL, "financial": FINANCIAL}
