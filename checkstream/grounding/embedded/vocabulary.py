"""Closed classes of words in English, German, French, Spanish and Hebrew, without case and accents.

Written from grammars, not counted from any corpus.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType


def _set(written: str) -> frozenset[str]:
    return frozenset(written.split())


FUNCTION_WORDS = _set(
    # English
    "a an the and or but nor so yet if then than as at by for from in into of on onto to up out off over "
    "under with within about after before between during through against among until while although "
    "though because since is are was were be been being am do does did done have has had having will "
    "would shall should can could may might must i me my mine we us our ours you your yours he him his "
    "she her hers it its they them their theirs this that these those there here who whom whose which "
    "what when where why how also just very too such some any each other another both own same more most "
    "much many few s t re ve ll d m yes oh well it's that's he's she's there's i'm you're they're we're "
    "i've i'd i'll you'll "
    # German
    "der die das den dem des ein eine einer eines einem einen und oder aber denn als wie wenn weil dass "
    "ob um zu von vom zum zur bei beim mit nach aus auf an am im ins fur uber unter vor hinter neben "
    "zwischen durch gegen bis seit ist sind war waren sei sein wird werden wurde wurden worden hat haben "
    "hatte hatten kann konnen konnte muss mussen soll sollen darf durfen ich du er sie es wir ihr mich "
    "dich sich uns euch ihn ihm ihnen mein dein unser euer dieser diese dieses diesem diesen jener welche "
    "welcher was wer wo wann warum auch noch nur schon sehr so da dort hier man mehr "
    # French
    "le la les l un une des du de d au aux et ou mais donc or car que qui quoi dont ce cet cette ces c "
    "est sont etait etaient etre ete a ont avait avaient avoir eu sera seront fut je tu il elle on nous "
    "vous ils elles se s me te lui leur leurs mon ma mes ton ta tes son sa ses notre nos votre vos y en "
    "dans par pour sur sous avec chez vers entre comme si quand tres plus aussi bien tout tous toute "
    "toutes "
    # Spanish
    "el los las lo una unos unas del al y e o u pero que quien cual cuyo como cuando donde porque si es "
    "son era eran ser sido fue fueron esta estan estaba estar ha han habia haber yo ella ello nosotros "
    "ellos ellas se me te le les su sus mi mis tu tus nuestro este esta esto estos estas ese esa eso por "
    "para con en entre sobre hasta desde muy mas tambien ya todo todos toda todas "
    # Hebrew
    "של את על אל עם כי גם או אם אבל זה זו זאת אלה הוא היא הם הן אני אנחנו אתה אתם היה היתה הייתה היו יהיה "
    "תהיה יש כל כמו רק עוד אשר מה מי איך לפי בין עד כן כדי כאשר לאחר"
)
"""Say little by themselves."""

NEGATORS = _set(
    "not no never none nobody nothing nowhere neither nor without cannot cant fail fails failed failing "
    "lack lacks lacked lacking unable hardly barely rarely seldom refuse refuses refused deny denies "
    "denied nicht kein keine keiner keines keinem keinen nie niemals niemand nichts ohne weder ne n pas "
    "jamais aucun aucune sans rien personne nunca jamas ningun ninguna ninguno nada sin tampoco לא אין "
    "אינו אינה אינם אינן בלי ללא מעולם אף"
)
"""Turn what follows into its opposite. `personne` and `rien` do so in answers; as nouns they are rare in claims."""

OPPOSITES_WRITTEN = (
    "increase/decrease/decline/reduce/fall/fell/fallen/drop/shrink/shrank rise/fall/drop/decline/decrease/shrink "
    "rose/fell/dropped/declined/decreased/shrank risen/fallen/dropped/declined/decreased/shrunk "
    "grow/shrink/fall/drop/decline/decrease grew/shrank/fell/dropped/declined/decreased "
    "grown/shrunk/fallen/dropped/declined/decreased climb/fall/fell/drop/decline/decrease up/down "
    "more/less/fewer high/low higher/lower highest/lowest before/after first/last win/lose won/lost "
    "open/closed open/close start/end begin/end began/ended accept/reject/refuse allow/ban/prohibit/forbid "
    "permit/prohibit male/female man/woman men/women boy/girl mother/father son/daughter brother/sister "
    "husband/wife king/queen north/south east/west northern/southern eastern/western young/old younger/older "
    "best/worst better/worse big/small large/small larger/smaller largest/smallest long/short longer/shorter "
    "longest/shortest hot/cold good/bad positive/negative true/false legal/illegal alive/dead buy/sell "
    "bought/sold always/never all/none inside/outside day/night early/late earlier/later left/right "
    "success/failure succeed/fail improve/worsen above/below majority/minority maximum/minimum most/least "
    "gain/loss gained/lost enable/disable approve/deny/reject support/oppose strong/weak "
    "safe/dangerous/unsafe easy/difficult/hard rich/poor promote/inhibit activate/inhibit "
    "upregulate/downregulate sit/stand indoor/outdoor indoors/outdoors empty/full asleep/awake "
    "married/divorced/single free/paid mandatory/optional required/optional public/private profit/loss "
    "import/export include/exclude guilty/innocent arrive/depart fast/slow faster/slower heavy/light wet/dry "
    "ancient/modern major/minor senior/junior upper/lower internal/external domestic/foreign "
    "temporary/permanent steigen/sinken gestiegen/gesunken mehr/weniger hoch/niedrig gross/klein "
    "offen/geschlossen gut/schlecht alt/jung augmenter/diminuer haut/bas grand/petit ouvert/ferme bon/mauvais "
    "avant/apres aumentar/disminuir alto/bajo grande/pequeno abierto/cerrado bueno/malo antes/despues עלה/ירד "
    "גדול/קטן פתוח/סגור מותר/אסור לפני/אחרי"
)
"""Words that exclude each other, with `/` between."""

NEGATING_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non")
"""With one of these a word may be the opposite of the word without."""

_ENGLISH = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
)
_UNITS = f"{_ENGLISH} eighteen nineteen".split()
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_ORDINALS = (
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
)
NUMBER_WORDS: Mapping[str, int] = MappingProxyType(
    {word: number for number, word in enumerate(_UNITS)}
    | {word: 10 * number for number, word in enumerate(_TENS, 2)}
    | {"dozen": 12, "zwei": 2, "drei": 3, "vier": 4, "funf": 5, "sechs": 6, "sieben": 7, "acht": 8, "zehn": 10}
    | {"deux": 2, "trois": 3, "quatre": 4, "cinq": 5, "sept": 7, "huit": 8, "neuf": 9, "dix": 10}
    | {"dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7, "ocho": 8, "nueve": 9, "diez": 10}
    | {"שתי": 2, "שני": 2, "שלושה": 3, "שלוש": 3, "ארבעה": 4, "ארבע": 4, "חמישה": 5, "חמש": 5, "עשרה": 10, "עשר": 10}
)
ORDINAL_WORDS: Mapping[str, int] = MappingProxyType({word: number for number, word in enumerate(_ORDINALS, 1)})
MULTIPLIERS: Mapping[str, float] = MappingProxyType(
    {"hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6, "m": 1e6, "mio": 1e6, "millionen": 1e6}
    | {"millions": 1e6, "billion": 1e9, "bn": 1e9, "b": 1e9, "billions": 1e9, "mrd": 1e9, "milliarde": 1e9}
    | {"milliarden": 1e9, "milliard": 1e9, "milliards": 1e9, "trillion": 1e12, "tn": 1e12, "tausend": 1e3, "mille": 1e3}
    | {"mil": 1e3, "millon": 1e6, "millones": 1e6, "אלף": 1e3, "אלפים": 1e3, "מיליון": 1e6, "מיליארד": 1e9}
)
MONTHS: Mapping[str, int] = MappingProxyType(
    {
        word: number
        for number, words in enumerate(
            (
                "january jan januar janner janvier enero ינואר",
                "february feb februar fevrier febrero פברואר",
                "march mar marz mars marzo מרץ",
                "april apr avril abril אפריל",
                "may mai mayo מאי",
                "june jun juni juin junio יוני",
                "july jul juli juillet julio יולי",
                "august aug aout agosto אוגוסט",
                "september sep sept septembre septiembre ספטמבר",
                "october oct oktober okt octobre octubre אוקטובר",
                "november nov novembre noviembre נובמבר",
                "december dec dezember dez decembre diciembre דצמבר",
            ),
            1,
        )
        for word in words.split()
    }
)
UNITS: Mapping[str, tuple[str, float]] = MappingProxyType(
    {
        word: (dimension, factor)
        for dimension, sizes in {
            "length": "mm:.001 millimeter:.001 millimetre:.001 cm:.01 centimeter:.01 centimetre:.01 m:1 "
            "meter:1 metre:1 metres:1 meters:1 km:1000 kilometer:1000 kilometre:1000 "
            "kilometers:1000 kilometres:1000 inch:.0254 inches:.0254 foot:.3048 feet:.3048 ft:.3048 "
            "yard:.9144 yards:.9144 mile:1609.344 miles:1609.344",
            "mass": "mg:1e-6 g:.001 gram:.001 grams:.001 kg:1 kilogram:1 kilograms:1 kilo:1 kilos:1 ton:1000 "
            "tons:1000 tonne:1000 tonnes:1000 pound:.45359237 pounds:.45359237 lb:.45359237 "
            "lbs:.45359237",
            "time": "second:1 seconds:1 sec:1 minute:60 minutes:60 min:60 minuten:60 hour:3600 hours:3600 "
            "h:3600 stunde:3600 stunden:3600 heures:3600 horas:3600 שעות:3600 day:86400 days:86400 "
            "tag:86400 tage:86400 tagen:86400 jours:86400 dias:86400 ימים:86400 יום:86400 week:604800 "
            "weeks:604800 woche:604800 wochen:604800 semaines:604800 semanas:604800 שבועות:604800",
            "months": "month:1 months:1 monat:1 monate:1 monaten:1 mois:1 meses:1 חודשים:1 year:12 years:12 "
            "jahr:12 jahre:12 jahren:12 ans:12 annees:12 anos:12 שנים:12 שנה:12 decade:120 "
            "decades:120 century:1200 centuries:1200",
            "volume": "ml:.001 liter:1 litre:1 liters:1 litres:1 l:1 gallon:3.785411784 gallons:3.785411784",
            "data": "kb:1e3 mb:1e6 gb:1e9 tb:1e12",
            "percent": "percent:1 percentage:1 prozent:1 pourcent:1 אחוז:1 אחוזים:1",
            "usd": "dollar:1 dollars:1 usd:1 cent:.01 cents:.01",
            "eur": "euro:1 euros:1 eur:1",
            "gbp": "gbp:1 sterling:1",
            "ils": "shekel:1 shekels:1 nis:1 ils:1 שקל:1 שקלים:1 שח:1",
            "chf": "chf:1 francs:1 franken:1",
            "jpy": "yen:1 jpy:1",
        }.items()
        for word, _, written in (size.partition(":") for size in sizes.split())
        for factor in (float(written),)
    }
)
"""Word behind a number -> what it measures, and how many of the smallest one it is."""

SYMBOLS: Mapping[str, str] = MappingProxyType(
    {"$": "usd", "€": "eur", "£": "gbp", "₪": "ils", "¥": "jpy", "%": "percent"}
)
