"""When two texts are the same thing: `John@Example.com` and `john [at] example.com`, `555 010 4477` and `+15550104477`.

A value is remembered under keys and looked for under others, since a number that is written for one country and for the
whole world is the same number, and two numbers of the world with different countries never are. A form is told of what
shows its value: of letters that stand for figures, as in Base64, most would be left out, and two values would be one.
"""

from __future__ import annotations

import ipaddress
import unicodedata
from collections.abc import Callable, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from checkstream.core.match.entities.calling_codes import calling_code
from checkstream.core.match.entities.entity import only_digits
from checkstream.core.match.escapes import unescaped
from checkstream.core.match.markup import Unmarked

_MIN_NATIONAL = 7
"""Fewest digits of a telephone number that may be the same without its country."""
_MAX_CHARS = 1_000
"""What is longer is compared as it stands."""
_EXTENSIONS = ("extension", "extn", "ext", "x", "#")
_FULL_STOPS = dict.fromkeys(map(ord, "\u3002\uff0e\uff61"), ".")
"""What stands between the labels of a domain name besides a full stop (RFC 3490 3.1)."""
_LONGEST_LABEL = 63
"""What is longer is no domain's (RFC 1035 2.3.4), and took half a second to be written as it would be sent."""
_DOTS = ("[dot]", "(dot)", "[.]", "(.)")
_IN_A_SCHEME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.")
_SPACE, _FIGURE, _LETTER, _SIGN = range(4)
_HEX = frozenset("0123456789abcdefABCDEF")
_EMPHASIS = dict.fromkeys(map(ord, "*`~"))
"""Markdown's signs that no address has."""
_ATS = ("%40", "[at]", "(at)", "[@]", "(@)")


class Keys(NamedTuple):
    """How one value is told to be the same as another."""

    known: tuple[str, ...]
    """Under which it is remembered."""
    asked: tuple[str, ...]
    """Under which it is looked for: one of these is among the keys of what it is the same as."""


def keys(entity: str, text: str) -> Keys:
    """Return the keys of what was found as `entity`."""
    if len(text) > _MAX_CHARS:
        return _one(text)
    return _FORMS.get(entity, _exact)(_plain(text))


def domain_of(entity: str, text: str) -> str:
    """Return the domain of an e-mail address or a web address, in its ASCII form; empty: it has none."""
    plain = _plain(text[:_MAX_CHARS])
    if entity == "EMAIL":
        return _email_address(plain).rpartition("@")[2]
    if entity == "URL":
        scheme, _, behind = plain.partition("://")
        rest = behind if behind and _IN_A_SCHEME.issuperset(scheme) else plain
        host = rest.replace("\\", "/").partition("/")[0].partition("?")[0].partition("#")[0].rpartition("@")[2]
        return ascii_domain(host.partition(":")[0])
    return ""


def ascii_domain(name: str) -> str:
    """Return a domain name in lower case, with labels of other scripts as they are sent (`xn--...`).

    Letters that could be sent as others and are not any more (RFC 5894 4.4: `\u00df`) are letters of their own.
    """
    folded = name.translate(_FULL_STOPS).lower().strip(".")
    if folded.isascii():
        return folded
    folded = unicodedata.normalize("NFKC", folded).lower()
    return ".".join(label if label.isascii() else _as_sent(label) for label in folded.split("."))


def _as_sent(label: str) -> str:
    try:
        return f"xn--{label.encode('punycode').decode()}" if len(label) <= _LONGEST_LABEL else label
    except UnicodeError:  # half of a character
        return label


def _one(key: str) -> Keys:
    return Keys((key,), (key,))


def _plain(text: str) -> str:
    """Return a text without invisible characters and in the plain form of its letters and digits."""
    if text.isascii():
        return text.strip()
    shown = "".join(char for char in unicodedata.normalize("NFKC", text) if unicodedata.category(char) != "Cf")
    return "".join(str(unicodedata.decimal(char, char)) for char in shown).strip()


def _exact(text: str) -> Keys:
    return _one(text)


def _shown(text: str) -> str:
    """Return what a value is told in, without escapes and without tags of HTML, whose letters are none of its own."""
    plain = unescaped(text)
    if "<" not in plain:
        return plain
    return Unmarked().read(plain, range(len(plain)), range(1, len(plain) + 1), ended=True).text


def _digits(text: str) -> Keys:
    shown = _shown(text)
    return _exact(text) if _has_letters(shown) else _one(only_digits(shown))


def _alphanumeric(text: str) -> Keys:
    shown = "".join(char for char in _shown(text) if char.isalnum())
    return _one(shown.casefold() if shown.isupper() or shown.islower() or _HEX.issuperset(shown) else shown)


def _date(text: str) -> Keys:
    """Tell a date by its parts: `11/2/1980` and `1/12/1980` have the same figures, however they are set apart."""
    shown = _shown(text).casefold()
    if any(_kind_of(char) == _SIGN for char in shown):
        shown = "".join(shown.split())
    parts = ("".join(chars) for kind, chars in groupby(shown, _kind_of) if kind in (_FIGURE, _LETTER))
    return _one("-".join(part.lstrip("0") or "0" for part in parts))


def _kind_of(char: str) -> int:
    return _FIGURE if "0" <= char <= "9" else _LETTER if char.isalpha() else _SPACE if char.isspace() else _SIGN


def _has_letters(text: str) -> bool:
    return any(char.isalpha() for char in text)


def _web(text: str) -> Keys:
    return _one(unescaped(text))


def _email(text: str) -> Keys:
    return _one(_email_address(text))


def _email_address(text: str) -> str:
    folded = unescaped(text).translate(_EMPHASIS).lower()
    for mark in _ATS:
        folded = folded.replace(mark, "@")
    for mark in _DOTS:
        folded = folded.replace(mark, ".")
    local, at, domain = "".join(folded.split()).partition("@")
    return f"{local}{at}{ascii_domain(domain)}" if at else text


def _phone(text: str) -> Keys:
    """Tell an international number by all of its digits, a national one by those behind the trunk's zero."""
    body = _without_extension(_shown(text).casefold())
    if _has_letters(body):
        return _exact(text)
    digits = only_digits(body)
    start = next((place for place, char in enumerate(body) if char == "+" or "0" <= char <= "9"), 0)
    world = digits if body[start : start + 1] == "+" else digits[2:] if digits.startswith("00") else ""
    if not world:
        national = digits.lstrip("0")
        if len(digits) == 11 and digits[0] == "1":  # North America writes its own code without a plus
            national = national[1:]
        return Keys((f"n{national}",), (f"n{national}", f"w{national}"))
    if "(0)" in body.replace(" ", ""):  # the trunk's zero, between the code and the number
        before = only_digits(body.partition("(")[0])
        world = before.removeprefix("00") + only_digits(body.partition(")")[2])
    national = world[len(calling_code(world)) :].lstrip("0")
    full = f"i{world[: len(calling_code(world))]}-{national}"
    if len(national) < _MIN_NATIONAL:
        return _one(full)
    return Keys((full, f"w{national}"), (full, f"n{national}"))


def _without_extension(text: str) -> str:
    before = text.rstrip("0123456789").rstrip(". ")
    return next((before.removesuffix(mark) for mark in _EXTENSIONS if before.endswith(mark)), text)


def _address(text: str) -> Keys:
    try:
        return _one(str(ipaddress.ip_address(text.strip("[]"))))
    except ValueError:
        return _one(text)


_FORMS: Mapping[str, Callable[[str], Keys]] = MappingProxyType({
    "EMAIL": _email,
    "URL": _web,
    "PHONE": _phone,
    "PHONE_LOOSE": _phone,
    "IP_ADDRESS": _address,
    **dict.fromkeys(("CREDIT_CARD", "US_SSN", "US_ITIN", "UK_NHS", "SORT_CODE"), _digits),
    **dict.fromkeys(
        ("IBAN", "BANK_ACCOUNT", "UK_NINO", "DE_ID", "FR_ID", "ES_ID", "IT_ID", "MAC_ADDRESS", "PASSPORT",
         "DRIVER_LICENSE", "MEDICAL_RECORD_NUMBER"),
        _alphanumeric,
    ),
    "DATE_OF_BIRTH": _date,
})  # fmt: skip
"""Entity -> how it is compared. Others, all secrets among them, are the same only where they are the same text."""
