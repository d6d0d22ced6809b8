"""Generated prose with values that patterns find, and with lookalikes that they must leave alone.

Values are Faker's, of ten locales, so that their forms and check digits are none that the patterns' authors chose.
Nothing is trained on these texts: they measure what `entities` finds where every value is right and every
lookalike is known, which no labelled source tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from random import Random
from types import MappingProxyType

from faker import Faker

from models.training.ner.generate import joined
from models.training.ner.marked import Marked, Span

ENTITIES = (
    *("EMAIL", "PHONE", "US_SSN", "IP_ADDRESS", "MAC_ADDRESS", "CREDIT_CARD", "IBAN"),
    *("BANK_ACCOUNT", "DATE_OF_BIRTH", "MEDICAL_RECORD_NUMBER", "PASSPORT"),
)
"""What is marked."""

_SENTENCES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "en_US": (
            "Call me at {PHONE} or write to {EMAIL}.",
            "Her SSN is {US_SSN} and she was born on {DATE_OF_BIRTH}.",
            "ssn: {US_SSN}, dob: {DATE_OF_BIRTH}, phone: {PHONE}",
            "Please charge card {CREDIT_CARD}.",
            "The patient (MRN: {MEDICAL_RECORD_NUMBER}) can be reached at {PHONE}.",
            "Checking account number {BANK_ACCOUNT}, passport no. {PASSPORT}.",
            "Login from {IP_ADDRESS} (MAC {MAC_ADDRESS}) by {EMAIL}.",
            "Wire it to {IBAN} today.",
        ),
        "en_GB": (
            "My mobile is {PHONE}, my e-mail {EMAIL}.",
            "Date of birth: {DATE_OF_BIRTH}. Passport number: {PASSPORT}.",
            "Account number: {BANK_ACCOUNT}, IBAN {IBAN}",
            "She paid with {CREDIT_CARD} from {IP_ADDRESS}.",
            "Patient ID: {MEDICAL_RECORD_NUMBER}, telephone {PHONE}",
            "Device {MAC_ADDRESS} leased {IP_ADDRESS}.",
        ),
        "de_DE": (
            "Sie erreichen mich unter Tel. {PHONE} oder {EMAIL}.",
            "Geburtsdatum: {DATE_OF_BIRTH}, Reisepass {PASSPORT}",
            "Bitte überweisen Sie auf {IBAN}.",
            "Kontonummer {BANK_ACCOUNT}, Karte {CREDIT_CARD}.",
            "Der Rechner {IP_ADDRESS} hat die Adresse {MAC_ADDRESS}.",
            "Meine Handynummer ist {PHONE}; geboren am {DATE_OF_BIRTH}.",
        ),
        "fr_FR": (
            "Vous pouvez me joindre au {PHONE} ou à {EMAIL}.",
            "Né le {DATE_OF_BIRTH}, passeport n° {PASSPORT}.",
            "Mon IBAN est {IBAN}, ma carte {CREDIT_CARD}.",
            "Numéro de compte : {BANK_ACCOUNT}. Téléphone : {PHONE}.",
            "Connexion depuis {IP_ADDRESS}, carte réseau {MAC_ADDRESS}.",
        ),
        "es_ES": (
            "Mi teléfono es {PHONE} y mi correo {EMAIL}.",
            "Fecha de nacimiento: {DATE_OF_BIRTH}. Pasaporte: {PASSPORT}.",
            "Transfiera el dinero a {IBAN}.",
            "Número de cuenta {BANK_ACCOUNT}, tarjeta {CREDIT_CARD}.",
            "Conexión desde {IP_ADDRESS} con {MAC_ADDRESS}.",
        ),
        "it_IT": (
            "Il mio telefono è {PHONE}, la mail {EMAIL}.",
            "Nata il {DATE_OF_BIRTH}, passaporto {PASSPORT}.",
            "Faccia il bonifico su {IBAN}.",
            "Conto corrente {BANK_ACCOUNT}, carta {CREDIT_CARD}.",
            "Accesso da {IP_ADDRESS} con {MAC_ADDRESS}.",
        ),
        "pt_BR": (
            "Meu telefone é {PHONE} e meu e-mail {EMAIL}.",
            "Data de nascimento: {DATE_OF_BIRTH}. Passaporte: {PASSPORT}.",
            "Conta bancária {BANK_ACCOUNT}, cartão {CREDIT_CARD}.",
            "Transferência para {IBAN} do IP {IP_ADDRESS} ({MAC_ADDRESS}).",
        ),
        "nl_NL": (
            "Mijn telefoon is {PHONE}, mijn mail {EMAIL}.",
            "Geboortedatum: {DATE_OF_BIRTH}, paspoort {PASSPORT}.",
            "Maak het over naar {IBAN}.",
            "Rekeningnummer {BANK_ACCOUNT}, kaart {CREDIT_CARD}.",
            "Verbinding van {IP_ADDRESS} met {MAC_ADDRESS}.",
        ),
        "pl_PL": (
            "Mój telefon: {PHONE}, mail {EMAIL}.",
            "Data urodzenia: {DATE_OF_BIRTH}, paszport {PASSPORT}.",
            "Proszę przelać na {IBAN}.",
            "Numer konta {BANK_ACCOUNT}, karta {CREDIT_CARD}.",
            "Połączenie z {IP_ADDRESS}, karta sieciowa {MAC_ADDRESS}.",
        ),
        "sv_SE": (
            "Min mobil är {PHONE}, min e-post {EMAIL}.",
            "Födelsedatum: {DATE_OF_BIRTH}.",
            "Betala till {IBAN} eller med kort {CREDIT_CARD}.",
            "Inloggning från {IP_ADDRESS} med {MAC_ADDRESS}.",
        ),
    }
)
LOCALES = tuple(_SENTENCES)

_INNOCENT = (
    "Order {digits10} shipped, tracking {tracking}.",
    "Invoice {digits12} of {date} over {money}.",
    "Order number {wrong_card} was cancelled.",
    "Release {version} fixes build {version}.",
    "Firmware version {version} is out.",
    "The book has the ISBN {isbn13}; the old one {isbn10}.",
    "EAN {ean} is sold out.",
    "The job began at {stamp} and ended at unix time {epoch}.",
    "Commit {sha1} changed {md5}.",
    "Request {uuid} took 1234.5678 ms.",
    "The sum is {wrong_iban} in our test of false check digits.",
    "Researcher {orcid} wrote it, doi 10.1000/{digits8}.",
    "The parcel lies at {position}.",
    "From 1990-1995 to 2001-2004 the score was 102-98.",
    "Fingerprint {fingerprint}",
    "Use logo@2x.png and npm i @scope/pkg@1.2.3 please.",
    "Admitted on {date}, due {date}, expires {date}.",
    "Drug code NDC {ndc}, lot {digits8}; metformin (NDC-{ndc}).",
    "The number {void_ssn} was never issued.",
    "Serial {serial}, part {part}, model {part}.",
    "See section 4.3.2.1 and rows[10::20] of std::vector.",
    "Mask 255.255.255.0 and the address 300.12.400.1 are none.",
    "The population grew from 1 234 567 to 2 345 678.",
    "Ticket {digits8} is ready; case {digits10} is closed.",
    "pi is 3.14159265358979 and e is 2.71828182845905.",
    "The meeting is on {date} at 10:30:45 in room 101 102.",
    "id={digits12}&page=2&t={epoch}",
    "Color #1a2b3c, size 1920x1080, ratio 16:9:4:3.",
)
_MONTH_DATES = ("{day} {month} {year}", "{day}. {month} {year}", "{month} {day}, {year}")
_NUMBER_DATES = (
    *("{year}-{number:02}-{day:02}", "{day:02}.{number:02}.{year}", "{day:02}/{number:02}/{year}"),
    *("{day}.{number}.{year}", "{year}/{number:02}/{day:02}"),
)


class Values:
    """Makes values of one locale."""

    def __init__(self, locale: str, random: Random) -> None:
        """Take every choice from `random`."""
        self._random = random
        self._locale = locale
        self._faker = Faker(locale)
        self._faker.seed_instance(random.randrange(1 << 30))
        self._makers: Mapping[str, Callable[[], str]] = {
            "EMAIL": lambda: str(self._faker.email()),
            "PHONE": lambda: str(self._faker.phone_number()),
            "US_SSN": lambda: str(self._faker.ssn()),
            "IP_ADDRESS": self._address,
            "MAC_ADDRESS": lambda: str(self._faker.mac_address()).replace(":", random.choice(":-")),
            "CREDIT_CARD": self._card,
            "IBAN": self._iban,
            "BANK_ACCOUNT": lambda: self._digits(random.randint(7, 12)),
            "DATE_OF_BIRTH": self._birth,
            "MEDICAL_RECORD_NUMBER": lambda: random.choice(("", "MRN-", "PT-")) + self._digits(random.randint(6, 9)),
            "PASSPORT": lambda: str(self._faker.passport_number()),
            "tracking": lambda: f"1Z{self._digits(3)}AA1{self._digits(10)}",
            "date": lambda: self._date(2016, 2026, _NUMBER_DATES),
            "money": lambda: f"{self._digits(1)},{self._digits(3)},{self._digits(3)}.00",
            "version": lambda: ".".join(str(random.randint(1, 30)) for _ in range(random.randint(3, 4))),
            "isbn13": lambda: str(self._faker.isbn13()),
            "isbn10": lambda: str(self._faker.isbn10()),
            "ean": lambda: str(self._faker.ean13()),
            "stamp": lambda: f"2024-0{random.randint(1, 9)}-1{random.randint(0, 9)}T10:3{random.randint(0, 9)}:00Z",
            "epoch": lambda: str(random.randint(1_500_000_000, 1_790_000_000)),
            "sha1": lambda: str(self._faker.sha1()),
            "md5": lambda: str(self._faker.md5()),
            "uuid": lambda: str(self._faker.uuid4()),
            "wrong_card": lambda: _wrong_last(str(self._faker.credit_card_number("visa16"))),
            "wrong_iban": lambda: _wrong_check(str(self._faker.iban())),
            "orcid": lambda: f"0000-000{random.randint(1, 3)}-{self._digits(4)}-{self._digits(4)}",
            "position": lambda: (
                f"{random.randint(10, 80)}.{self._digits(4)}, {random.randint(10, 80)}.{self._digits(5)}"
            ),
            "fingerprint": lambda: ":".join(f"{random.randrange(256):02x}" for _ in range(20)),
            "ndc": lambda: f"0{self._digits(3)}-{self._digits(4)}-{self._digits(2)}",
            "void_ssn": lambda: (
                f"{random.choice(('000', '666'))}-{random.randint(10, 49)}-{random.randint(1000, 9999)}"
            ),
            "serial": lambda: f"SN{self._digits(9)}",
            "part": lambda: f"{random.choice('ABKX')}{self._digits(3)}-{self._digits(4)}",
            "digits8": lambda: self._digits(8),
            "digits10": lambda: self._digits(10),
            "digits12": lambda: self._digits(12),
        }

    def make(self, slot: str) -> str:
        """Return a value for a slot."""
        return self._makers[slot]()

    def _digits(self, count: int) -> str:
        return str(self._random.randint(10 ** (count - 1), 10**count - 2))

    def _address(self) -> str:
        return str(self._faker.ipv4_public() if self._random.random() < 0.6 else self._faker.ipv6())

    def _card(self) -> str:
        digits = str(self._faker.credit_card_number(self._random.choice(("visa16", "mastercard", "amex", "discover"))))
        draw = self._random.random()
        if draw < 0.4:
            return digits
        cuts = (0, 4, 10, 15) if len(digits) == 15 else (0, 4, 8, 12, 16)
        between = " " if draw < 0.7 else "-"
        return between.join(digits[first:last] for first, last in pairwise(cuts))

    def _iban(self) -> str:
        compact = str(self._faker.iban())
        if self._random.random() < 0.5:
            return compact
        return " ".join(compact[first : first + 4] for first in range(0, len(compact), 4))

    def _birth(self) -> str:
        return self._date(1931, 2012, (*_NUMBER_DATES, *_MONTH_DATES))

    def _date(self, first: int, last: int, forms: tuple[str, ...]) -> str:
        number = self._random.randint(1, 12)
        return self._random.choice(forms).format(
            day=self._random.randint(1, 28),
            number=number,
            month=str(self._faker.month_name()),
            year=self._random.randint(first, last),
        )


def _wrong_last(digits: str) -> str:
    return digits[:-1] + str((int(digits[-1]) + 1) % 10)


def _wrong_check(iban: str) -> str:
    return f"{iban[:2]}{(int(iban[2:4]) - 1) % 97 + 2:02}{iban[4:]}"


def _filled(form: str, values: Values) -> Marked:
    text, spans = "", []
    for number, part in enumerate(form.replace("}", "{").split("{")):
        if number % 2 == 0:
            text += part
            continue
        value = values.make(part)
        if part in ENTITIES:
            spans.append(Span(len(text), len(text) + len(value), part))
        text += value
    return Marked(text, tuple(spans))


def texts(count: int, seed: int) -> Iterator[tuple[str, Marked]]:
    """Yield (locale, text), `count` texts a locale: sentences with values among sentences with lookalikes."""
    random = Random(seed)
    for locale, sentences in _SENTENCES.items():
        values = Values(locale, random)
        for _ in range(count):
            forms = random.sample(sentences, random.randint(1, 3)) + random.sample(_INNOCENT, random.randint(1, 3))
            random.shuffle(forms)
            yield locale, joined([_filled(form, values) for form in forms], random.choice((" ", "\n")))
