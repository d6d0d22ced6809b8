"""Generated texts with marked entities: sentences of `prose`, names of Faker's locales and of `gazetteer`.

Every choice comes from one `Random`, and Faker is seeded from it: a recipe repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from random import Random

from faker import Faker
from faker.providers.geo import Provider as Geography

from models.training.ner import gazetteer
from models.training.ner.marked import Marked, Span
from models.training.ner.prose import ENGLISH, HEADINGS, KEYS, OTHERS

LATIN_LOCALES = (
    "en_US",
    "en_GB",
    "de_DE",
    "fr_FR",
    "es_ES",
    "it_IT",
    "pt_BR",
    "nl_NL",
    "pl_PL",
    "tr_TR",
    "sv_SE",
    "en_IN",
    "es_MX",
    "fi_FI",
    "cs_CZ",
    "hu_HU",
    "ro_RO",
    "hr_HR",
    "da_DK",
    "no_NO",
    "vi_VN",
    "id_ID",
    "en_NG",
)
LOCALES = (*LATIN_LOCALES, "zh_CN", "ja_JP", "ko_KR", "ru_RU", "ar_AA", "hi_IN")

_ENTITIES = {
    "PERSON": "PERSON",
    "FIRST": "PERSON",
    "LAST": "PERSON",
    "LOC": "LOCATION",
    "ORG": "ORGANIZATION",
    "ADDRESS": "STREET_ADDRESS",
    "DOB": "DATE_OF_BIRTH",
    "CONDITION": "MEDICAL_CONDITION",
    "ACCOUNT": "ACCOUNT",
}
_DATES = (
    "%Y-%m-%d",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%B %d, %Y",
    "%d %B %Y",
    "%b %d %Y",
    "%d %b %Y",
    "%m-%d-%Y",
    "%d-%m-%y",
)
_TITLES = ("Mr.", "Mrs.", "Ms.", "Dr.", "Prof.", "Mr", "Mrs", "Miss", "Sir", "Judge")
_DRUGS = (
    "Metformin 500mg",
    "Lisinopril 10mg",
    "ibuprofen",
    "Sertraline",
    "Atorvastatin 20 mg",
    "insulin",
    "Omeprazole",
)
_JOBS = (
    "Software Engineer",
    "Sales Director",
    "Nurse",
    "Project Manager",
    "CEO",
    "Accountant",
    "Teacher",
    "Data Analyst",
)
_THINGS = (
    "budget",
    "quarterly report",
    "project plan",
    "travel policy",
    "marketing campaign",
    "user manual",
    "meeting",
    "Contract",
)
_PRODUCTS = (
    "iPhone 15",
    "Windows 11",
    "PlayStation 5",
    "Galaxy S24",
    "Photoshop",
    "Model 3",
    "Kindle",
    "Chrome",
    "Excel",
    "Echo Dot",
)
_NAMED_AFTER_PLACES = (
    "University of {}",
    "{} University",
    "{} FC",
    "{} United",
    "{} General Hospital",
    "{} City Council",
    "Bank of {}",
    "{} Police Department",
    "{} High School",
    "{} Times",
    "{} Airways",
    "Ministry of Health of {}",
    "St. Mary's Hospital",
    "Royal {} Society",
    "{} Railways",
    "{} Chamber of Commerce",
)
_REGISTERS = ("EMP", "MRN", "NID", "DL", "CASE", "REF", "TR", "CLM", "NH", "TAX", "BIO", "RX", "SN")
_SITES = ("gmail.com", "yahoo.com", "outlook.com", "web.de", "company.com", "example.org", "orange.fr")
_RECORDS = 0.25
"""Share of generated texts that are records."""
_LAYOUTS = (
    ("", ": ", "\n"),
    ("", ": ", ", "),
    ("", ": ", ". "),
    ("", "=", "&"),
    ("- ", ": ", "\n"),
    ("", " - ", " - "),
    ('"', '": "', ", "),
    ("  ", ": ", "\n"),
    ("", " | ", "\n"),
)
"""What stands before a field's name, behind it, and between two fields."""
_KIN = ("mother", "father", "sister", "brother", "wife", "husband", "son", "daughter")
_NATIONALITIES = (
    "American",
    "German",
    "French",
    "Chinese",
    "Nigerian",
    "Brazilian",
    "Polish",
    "Indian",
    "British",
    "Turkish",
)
_LANGUAGES = ("English", "German", "Spanish", "Chinese", "Arabic", "Hindi")


class Cast:
    """Invents names of every kind."""

    def __init__(self, random: Random) -> None:
        """Take every choice from `random`."""
        self._random = random
        self._seeds = {locale: random.randrange(1 << 30) for locale in LOCALES}
        self._fakers: dict[str, Faker] = {}
        self._english = self._of("en_US")
        self._named = "Sam Carter"
        self._cities = sorted({str(place[2]) for place in Geography.land_coords})

    def _of(self, locale: str) -> Faker:
        """Return the Faker of a locale; making one takes a tenth of a second."""
        if locale not in self._fakers:
            self._fakers[locale] = Faker(locale)
            self._fakers[locale].seed_instance(self._seeds[locale])
        return self._fakers[locale]

    def faker(self, home: str | None = None) -> Faker:
        """Return a Faker: of the text's own locale mostly, else of any."""
        draw = self._random.random()
        if home is not None and draw < 0.6:
            return self._of(home)
        return self._of(self._random.choice(LATIN_LOCALES if draw < 0.93 else LOCALES))

    def first(self, home: str | None = None) -> str:
        """Return a given name."""
        if self._random.random() < 0.08:
            return self._random.choice(gazetteer.NAMES_THAT_ARE_WORDS)
        return str(self.faker(home).first_name())

    def last(self, home: str | None = None) -> str:
        """Return a family name."""
        draw = self._random.random()
        if draw < 0.08:
            return self._random.choice(gazetteer.SURNAMES_THAT_ARE_WORDS)
        name = str(self.faker(home).last_name())
        return f"{name}-{self.faker(home).last_name()}" if draw > 0.96 else name

    def person(self, home: str | None = None) -> str:
        """Return a person's name in one of the ways that names are written."""
        faker, draw = self.faker(home), self._random.random()
        if draw < 0.12:
            return f"{self.first(home)} {self.last(home)}"
        given, family = str(faker.first_name()), str(faker.last_name())
        if draw < 0.66:
            return f"{given} {family}"
        if draw < 0.74:
            return f"{given} {self._random.choice('ABCDEFGHJKLMRSTW')}. {family}"
        if draw < 0.80:
            return f"{given[0]}. {family}"
        if draw < 0.85:
            return f"{given} {faker.first_name()} {family}"
        if draw < 0.90:
            return f"{family}, {given}"
        if draw < 0.93:
            return f"{given} {self._random.choice(('van', 'de', 'von', 'al', 'bin', 'di', 'Mc', 'O'))} {family}"
        return given if draw < 0.97 else f"{given} {family[0]}."

    def place(self, home: str | None = None) -> str:
        """Return a city, region, country, river or quarter; real ones mostly."""
        draw = self._random.random()
        if draw < 0.45:
            return self._random.choice(gazetteer.PLACES)
        if draw < 0.75:
            return self._random.choice(self._cities)
        if draw < 0.85:
            return str(self._english.country()).partition(" (")[0]
        if draw < 0.90:
            return str(self._english.state())
        faker = self.faker(home)
        # Faker draws Italian cities from a set: they would differ from run to run.
        return self._random.choice(self._cities) if faker is self._fakers.get("it_IT") else str(faker.city())

    def organization(self, home: str | None = None) -> str:
        """Return a company, authority, club, school or newspaper; half of them invented."""
        pick, draw = self._random.choice, self._random.random()
        if draw < 0.34:
            return pick(gazetteer.ORGANIZATIONS)
        if draw < 0.48:
            return str(self.faker(home).company())
        if draw < 0.60:
            second = pick((*gazetteer.FIRM_WORDS, self.last(home)))
            return f"{pick(gazetteer.FIRM_WORDS)} {second} {pick(gazetteer.FIRM_KINDS)}"
        if draw < 0.68:
            made = "".join(self._random.sample(gazetteer.SYLLABLES, self._random.randint(2, 3))).capitalize()
            return f"{made} {pick(gazetteer.FIRM_KINDS)}" if self._random.random() < 0.6 else made
        if draw < 0.74:
            return f"{self.last(home)} & {pick((self.last(home), 'Sons', 'Partners', 'Co.'))}"
        if draw < 0.80:
            return f"{self.last(home)} {pick(gazetteer.FIRM_KINDS)}"
        if draw < 0.84:
            return "".join(self._random.choices("ABCDEFGHIKLMNOPRSTUW", k=self._random.randint(3, 4)))
        place = self.place(home).removeprefix("the ")
        return pick(_NAMED_AFTER_PLACES).format(place)

    def address(self, home: str | None = None) -> str:
        """Return a street address: all of it on one line, or the street and number alone."""
        faker = self.faker(home) if self._random.random() < 0.5 else self._english
        draw = self._random.random()
        if draw < 0.2:
            return str(faker.street_address()).replace("\n", ", ")
        separator = ", " if draw < 0.9 else "\n"
        return str(faker.address()).replace("\n", separator)

    def birth_date(self) -> str:
        """Return a date of birth in one of many formats."""
        return self._date(1931, 2024)

    def _date(self, first: int, last: int) -> str:
        """Return a day of some years; Faker's own dates would count from today and not repeat."""
        days = (date(first, 1, 1).toordinal(), date(last, 12, 31).toordinal())
        return date.fromordinal(self._random.randint(*days)).strftime(self._random.choice(_DATES))

    def account(self) -> str:
        """Return the number of a bank, customer or insurance account."""
        draw = self._random.random()
        if draw < 0.45:
            return "".join(self._random.choices("0123456789", k=self._random.randint(6, 12)))
        if draw < 0.60:
            return str(self.faker().iban()) if self._random.random() < 0.5 else str(self._english.iban())
        digits = "".join(self._random.choices("0123456789", k=self._random.randint(6, 9)))
        if draw < 0.80:
            return f"{self._random.choice(('POL', 'INS', 'ACC', 'AC', 'CUST', 'MBR', 'POLICY'))}-{digits}"
        return f"{digits[:4]}-{digits[4:]}" if draw < 0.92 else f"{digits[:2]} {digits[2:4]} {digits[4:]}"

    def _remembered(self, name: str) -> str:
        self._named = name
        return name

    def email(self) -> str:
        """Return an e-mail address, more often than not of the person that was named last."""
        draw = self._random.random()
        if draw < 0.3:
            return str(self._english.email())
        parts = [part.strip(".,").lower() for part in self._named.split()]
        name = self._random.choice((".", "_", "")).join(parts) if draw < 0.85 else parts[0][:1] + parts[-1]
        site = self._random.choice(_SITES)
        return f"{name}{self._random.choice(('', str(self._random.randint(1, 99))))}@{site}"

    def code(self) -> str:
        """Return an identifier that is no account."""
        digits = "".join(self._random.choices("0123456789", k=self._random.randint(4, 9)))
        letters = "".join(self._random.choices("ABCDEFGHJKLMNPRSTUVWXYZ", k=8))
        forms = (
            f"{self._random.choice(_REGISTERS)}-{digits}",
            f"{letters[0]}{digits}",
            f"{letters[:2]}-{digits}",
            f"{letters[:3]}-{digits[:4]}",
            letters,
            f"DL-{letters[0]}{digits[:5]}-{digits[:2]}",
            f"sk-{self._english.password(length=24, special_chars=False)}",
            str(self._english.md5()),
            str(self._english.uuid4()),
            f"0x{self._english.sha1()[:36]}",
            f"{self._random.randint(1, 9)}:{digits[:2]}-cv-{digits}-{letters[:3]}",
            str(self._english.ssn()),
            f"{digits[:2]}-{digits}",
        )
        return self._random.choice(forms)

    def neutral(self, slot: str) -> str:
        """Return a filler that is no entity of this model."""
        pick, number = self._random.choice, self._random.randint(2, 99)
        makers: dict[str, Callable[[], str]] = {
            "title": lambda: pick(_TITLES),
            "thing": lambda: pick(_THINGS),
            "Thing": lambda: pick(_THINGS).capitalize(),
            "email": self.email,
            "code": self.code,
            "mac": lambda: str(self._english.mac_address()),
            "phone": lambda: str(self.faker().phone_number()),
            "date": lambda: self._date(2016, 2027),
            "weekday": lambda: str(self._english.day_of_week()),
            "month": lambda: str(self._english.month_name()),
            "year": lambda: str(self._random.randint(1850, 2026)),
            "id": lambda: (
                f"{pick(('INV', 'ORD', 'CASE', 'TCK', 'LH', 'EMP', 'MRN'))}-{self._random.randint(100, 9_999_999)}"
            ),
            "money": lambda: f"{pick(('$', 'EUR ', '£'))}{number},{self._random.randint(100, 999)}",
            "number": lambda: str(number),
            "product": lambda: pick(_PRODUCTS),
            "drug": lambda: pick(_DRUGS),
            "kin": lambda: pick(_KIN),
            "user": lambda: str(self._english.user_name()),
            "tag": lambda: pick(("fail", "win", "nowplaying", "worldcup", "love", "tbt")),
            "url": lambda: "http://t.co/" + "".join(self._random.choices("abcdefghXYZ0123456789", k=8)),
            "job": lambda: pick(_JOBS),
            "ssn": lambda: str(self._english.ssn()),
            "ip": lambda: str(self._english.ipv4()),
            "stamp": lambda: f"2024-{number % 12 + 1:02}-{number % 28 + 1:02}T{number % 24:02}:{number % 60:02}:00Z",
            "nationality": lambda: pick(_NATIONALITIES),
            "language": lambda: pick(_LANGUAGES),
        }
        return makers[slot]()

    def entity(self, slot: str, home: str | None) -> str:
        """Return a name for an entity's slot."""
        makers: dict[str, Callable[[], str]] = {
            "PERSON": lambda: self._remembered(self.person(home)),
            "FIRST": lambda: self.first(home),
            "LAST": lambda: self.last(home),
            "LOC": lambda: self.place(home),
            "ORG": lambda: self.organization(home),
            "ADDRESS": lambda: self.address(home),
            "DOB": self.birth_date,
            "CONDITION": lambda: self._random.choice(gazetteer.CONDITIONS),
            "ACCOUNT": self.account,
        }
        return makers[slot]()


def filled(form: str, cast: Cast, home: str | None) -> Marked:
    """Fill the slots of one sentence."""
    text, spans, at = "", [], 0
    while at < len(form):
        sign = form[at]
        if form[at : at + 2] in {"{{", "}}"}:
            text, at = text + sign, at + 2
        elif sign == "{":
            slot = form[at + 1 : form.index("}", at)]
            at += len(slot) + 2
            kind = slot.partition(".")[0]
            if kind in _ENTITIES:
                name = cast.entity(slot, home)
                article = 4 if name.startswith("the ") else 0
                spans.append(Span(len(text) + article, len(text) + len(name), _ENTITIES[kind]))
            else:
                name = cast.neutral(slot)
            text += name
        else:
            text, at = text + sign, at + 1
    return Marked(text, tuple(spans))


def joined(parts: list[Marked], between: str) -> Marked:
    """Write marked texts one after another."""
    text, spans = "", []
    for number, part in enumerate(parts):
        text += between if number else ""
        spans += [Span(span.start + len(text), span.end + len(text), span.entity) for span in part.spans]
        text += part.text
    return Marked(text, tuple(spans))


def record(cast: Cast, random: Random, home: str | None) -> Marked:
    """Return fields with their names, as forms, logs, tables and code hold them."""
    fields = random.sample(list(KEYS), random.randint(2, 7))
    before, after, between = random.choice(_LAYOUTS)
    lines = [before + random.choice(KEYS[field]) + after + field for field in fields]
    if random.random() < 0.4:
        lines.insert(0, random.choice(HEADINGS))
    closing = '"' if after.endswith('"') else ""
    return joined([filled(line + closing, cast, home) for line in lines], between)


def documents(count: int, random: Random) -> Iterator[Marked]:
    """Yield generated texts: records, and one to four sentences of one kind; every fourth in another language."""
    cast = Cast(random)
    kinds = list(ENGLISH)
    for _ in range(count):
        if random.random() < _RECORDS:
            yield record(cast, random, random.choice((None, "en_US", random.choice(tuple(OTHERS)))))
            continue
        if random.random() < 0.25:
            home: str | None = random.choice(tuple(OTHERS))
            forms = OTHERS[home or ""]
        else:
            home = random.choice((None, "en_US", "en_GB"))
            forms = ENGLISH[random.choice(kinds)] if random.random() < 0.9 else ENGLISH["none"]
        chosen = random.sample(forms, min(len(forms), random.choice((1, 1, 2, 3, 4))))
        yield joined([filled(form, cast, home) for form in chosen], random.choice((" ", " ", "\n", "\n\n")))
