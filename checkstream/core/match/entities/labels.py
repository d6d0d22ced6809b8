"""Words before a value that say what the value is (`passport no.`, `Geburtsdatum`, `acct #`).

Only the nearest label speaks for a value: in `Passport: X1234567, account 12345678` the second number is an
account number and nothing else. Labels are matched on case-folded text, as whole words.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from checkstream.core.match.engine import compile_regex
from checkstream.core.match.entities.entity import LEFT_CHARS

_WORDS = {
    "phone": """phone|phones|telephone|tel|tél|telefon|telefono|téléfono|teléfono|téléphone|telefone|telefoon|mobile|
        mobil|móvil|movil|cellulare|celular|cell|cellphone|handy|portable|whatsapp|signal|sms|text me|call|calling|
        fax|hotline|helpline|toll-free|dial|contact number|callback|rufnummer|numéro de téléphone|phone_number|
        phonenumber|handynummer|mobilnummer|mobilfunknummer|telefonnummer|telefoonnummer|numer telefonu|komórka|
        telefonszám|телефон|тел|電話|电话|手机|전화|هاتف""",
    "phone_weak": """reached at|reach me at|reach us at|reach him at|reach her at|reach them at|ring me on|
        joindre au|erreichbar unter|erreichen mich unter|mich unter|localizarme en|raggiungere al|bereiken op""",
    "ssn": """ssn|ssns|social security|social-security|social security number|soc sec|nss|social sec""",
    "itin": """itin|taxpayer id|tax id|taxpayer identification|individual taxpayer|tin""",
    "nhs": """nhs|national health|nhs number|nhs no""",
    "passport": """passport|passports|passport number|passport no|passeport|reisepass|passnummer|reisepassnummer|
        pasaporte|passaporto|passaporte|paspoort|paszport|паспорт|护照|旅券|パスポート|여권""",
    "licence": """driver license|driver licence|driver's license|driver\u2019s license|drivers license|driving license|
        driving licence|driver's licence|driver\u2019s licence|drivers licence|driver_license|driverlicense|dl|dln|d.l|
        dl number|license number|licence number|license no|licence no|drivers_license|
        permis de conduire|führerschein|führerscheinnummer|fuehrerschein|carnet de conducir|permiso de conducir|
        licencia de conducir|patente di guida|numero patente|rijbewijs|prawo jazdy|carta de condução|
        водительское удостоверение|運転免許|驾驶证|驾照""",
    "account": """bank account|account number|account no|account num|acct|acct no|acct number|
        account_number|accountnumber|bank_account|acc no|a/c|a/c no|checking account|savings account|checking|savings|
        beneficiary account|konto|kontonummer|konto-nr|numéro de compte|compte bancaire|número de cuenta|
        cuenta bancaria|cuenta|numero di conto|conto corrente|rekeningnummer|número da conta|conta bancária|
        numer konta|номер счета|银行账号|账号|口座番号|계좌번호""",
    "account_weak": """account|accounts|compte|conto|conta|rekening""",
    "sort_code": """sort code|sort-code|sortcode|sort_code|s/c|bankleitzahl|blz|bsb|bsb number""",
    "routing": """routing|routing number|routing no|aba|aba number|rtn|routing_number|transit number|
        bank routing""",
    "birth": """dob|d.o.b|date of birth|birth date|birthdate|birth_date|date_of_birth|dateofbirth|birthday|
        born|geboren|geboren am|geb|geburtsdatum|geburtstag|né|née|né le|née le|date de naissance|naissance|
        fecha de nacimiento|nacido|nacida|nació|data di nascita|nato|nata|nato il|nata il|data de nascimento|
        nascido|nascida|nasceu|geboortedatum|geboortedag|data urodzenia|urodzony|urodzona|födelsedatum|
        дата рождения|родился|родилась|生年月日|出生日期|生日|생년월일|تاريخ الميلاد|born on""",
    "medical": """mrn|mrns|medical record|medical record number|medical record no|patient id|
        patient number|patient no|patient identifier|patient_id|patientid|chart number|chart no|
        health id|health card|health card number|
        hospital number|hospital no|health record|medical_record_number|med rec|med rec no|record number|
        numéro de dossier médical|dossier médical|dossier patient|krankenakte|patientennummer|patienten-id|
        historia clínica|número de historia|cartella clinica|病历号|カルテ番号""",
    "identity_card": """personalausweis|personalausweisnummer|ausweis|ausweisnummer|ausweis-nr|identity card|
        id card|national id|national identity|id number|carte d'identité|dni|nie|nif|documento de identidad|
        carta d'identità|steuer-id|steuerid|steuer-idnr|steueridentifikationsnummer|idnr|identifikationsnummer""",
    "card": """credit card|debit card|card number|card no|card|visa|mastercard|amex""",
    "other": """order|order number|invoice|ticket|tracking|tracking number|case|docket|isbn|issn|serial|model|
        version|sku|item|part|part number|zip|postcode|postal code|reference|ref|expires|expiry|expiration|
        expiration date|issued|issue date|date of issue|due|ein|vin|imei|iban|swift|bic|flight|room|employee id|
        policy|policy number|claim|amount|total|price|ndc|ean|gtin|upc|
        salary|doi|pmid|population|id of the commit|commit|admitted""",
}


# `phone_number`, `phone-number` and `phone number` are one label.
_JOINERS = str.maketrans("_-\n", "   ")


def _is_unspaced(label: str) -> bool:
    """Say whether `label` is of a script that puts no spaces between words."""
    return min(label) >= "\u0e00"


def _spaced(word: str) -> str:
    """Return a label as it is compared: single spaces between its words."""
    return " ".join(word.translate(_JOINERS).split())


def _spaced_labels() -> Mapping[str, tuple[tuple[str, str], ...]]:
    """Return the last word of each label -> the labels that end so, longest first, each with its kind."""
    index: dict[str, list[tuple[str, str]]] = {}
    for kind, words in _WORDS.items():
        for word in words.split("|"):
            label = _spaced(word)
            if label and not _is_unspaced(label):
                index.setdefault(_runs(label)[-1][1], []).append((label, kind))
    return MappingProxyType({last: tuple(sorted(set(ends), key=_longest_first)) for last, ends in index.items()})


def _longest_first(pair: tuple[str, str]) -> tuple[int, tuple[str, str]]:
    return -len(pair[0]), pair


def _runs(text: str) -> list[tuple[int, str]]:
    """Return the runs of letters in `text`, each with where it ends."""
    runs: list[tuple[int, str]] = []
    begin = -1
    for place, char in enumerate(text):
        if char.isalpha():
            begin = place if begin < 0 else begin
        elif begin >= 0:
            runs.append((place, text[begin:place]))
            begin = -1
    if begin >= 0:
        runs.append((len(text), text[begin:]))
    return runs


_LETTERS_ALONE = str.maketrans({code: " " for code in range(128) if not chr(code).isalpha()})
_SPACED = _spaced_labels()
_SUFFIXES = ("", "number", "no")
_LAST_WORDS = frozenset(word + suffix for word in _SPACED for suffix in _SUFFIXES)
"""What a label can end with; text without any of it has none."""
_UNSPACED = tuple(
    (label, kind)
    for kind, words in _WORDS.items()
    for label in (word.strip() for word in words.split("|"))
    if _is_unspaced(label)
)
_FILLER_WORDS = """
a an the is are was will be as of for number no nr num # id it its it's my your his her their our to on at in by code
value listed under and me us reach line numero número numéro n° est es è ist lautet le la el il am war
"""
_FILLERS = frozenset(_FILLER_WORDS.split())


SEVERAL: Final = "[\u00df\u1e9e\ufb00-\ufb06]"
"""Characters that are several letters in a label's shape (`Reisepa\u00df`)."""
_QUOTED = str.maketrans({char: f"\\{char}" for char in "./+()"} | {" ": r"[ _\-\n]"})


def words_of(*kinds: str) -> str:
    """Return RE2 syntax that matches from wherever a label of one of these kinds begins, and maybe from elsewhere."""
    words = {word for kind in kinds for word in _WORDS[kind].split("|")}
    labels = {word.strip() if _is_unspaced(word.strip()) else _spaced(word) for word in words}
    spelled = "|".join(label.translate(_QUOTED) for label in sorted(labels))
    return f"(?i:{spelled})|{SEVERAL}"


_ANY: Final = compile_regex(words_of(*_WORDS))


def left_of(text: str, start: int) -> str:
    """Return the case-folded text before `start` that a validator may read."""
    return text[max(0, start - LEFT_CHARS) : start].casefold()


def _ends_with_label(context: str, end: int, run: str) -> str:
    """Return the kind of the longest label that ends at `end`, where the run of letters `run` ends."""
    # `passportNumber` has been case-folded to one run.
    for suffix in _SUFFIXES:
        word, stop = (run.removesuffix(suffix), end - len(suffix)) if suffix and run.endswith(suffix) else (run, end)
        for label, kind in _SPACED.get(word, ()):
            begin = stop - len(label)
            if context.endswith(label, 0, stop) and not (begin > 0 and context[begin - 1].isalpha()):
                return kind
    return ""


def nearest_label(text: str, start: int) -> tuple[str, str]:
    """Return the kind of the label nearest before `start` and the text between the two.

    Returns:
        (kind, gap); ("", "") when no label stands in reach.
    """
    if not start or _ANY.search(text, max(0, start - LEFT_CHARS), start) is None:
        return "", ""
    return _nearest(left_of(text, start))


@lru_cache(maxsize=256)
def _nearest(context: str) -> tuple[str, str]:
    """Return the last label in `context` and what stands behind it: many entities ask about the same place."""
    best, kind = -1, ""
    joined = context.translate(_JOINERS)
    plain = joined.isascii() and _LAST_WORDS.isdisjoint(joined.translate(_LETTERS_ALONE).split())
    for end, run in () if plain else reversed(_runs(joined)):
        kind = _ends_with_label(joined, end, run)
        if kind:
            best = end
            break
    if max(context) >= "\u0e00":
        for label, other in _UNSPACED:
            found = context.rfind(label)
            if found >= 0 and found + len(label) > best:
                best, kind = found + len(label), other
    return (kind, context[best:]) if best >= 0 else ("", "")


def is_labelled(text: str, start: int, kind: str, *, reach: int = 40) -> bool:
    """Say whether the nearest label before `start` is of `kind`, at most `reach` characters away.

    A label speaks for the first value after it: with other digits between the two it says nothing.
    """
    label, gap = nearest_label(text, start)
    if label != kind or len(gap) > reach or _breaks_off(gap):
        return False
    return sum("0" <= char <= "9" for char in gap) < 4


def tight_label(text: str, start: int) -> str:
    """Return the kind of the label before `start` with nothing between but filler words and signs, or none."""
    label, gap = nearest_label(text, start)
    return label if only_filler(gap) else ""


def only_filler(gap: str) -> bool:
    """Say whether `gap` says nothing of its own (`number is: `, ` no. #`)."""
    words = gap.replace("_", " ").replace(".", " ").replace(":", " ").replace("#", " # ").split()
    return all(word in _FILLERS or not any(char.isalnum() for char in word) for word in words) and len(words) <= 6


def _breaks_off(gap: str) -> bool:
    """Say whether a sentence ends between a label and a value; `no.` and `Nr.` end none."""
    stripped = gap.lstrip()
    for abbreviation in ("no.", "nr.", "num.", "n."):
        if stripped.startswith(abbreviation):
            return ". " in stripped[len(abbreviation) :]
    if stripped.startswith("."):
        return not only_filler(stripped)  # `tel. 030`, `geb. am 12.`
    return ". " in stripped
