"""When two texts are the same thing: `John@Example.com` and `john [at] example.com`, `555 010 4477` and `+15550104477`.

A value is remembered under keys and looked for under others, since a number that is written for one country and for the
whole world is the same number, and two numbers of the world with different countries never are.
"""

from __future__ import annotations

import ipaddress
import unicodedata
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from checkstream.core.match.entities.calling_codes import calling_code
from checkstream.core.match.entities.entity import only_digits
from checkstream.core.match.escapes import unescaped

_MIN_NATIONAL = 7
"""Fewest digits of a telephone number that may be the same without its country."""
_MAX_CHARS = 1_000
"""What is longer is compared as it stands."""
_DOTS = ("[dot]", "(dot)", "[.]", "(.)")
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
        rest = plain.partition("://")[2] or plain
        host = rest.replace("\\", "/").partition("/")[0].partition("?")[0].partition("#")[0].rpartition("@")[2]
        return ascii_domain(host.partition(":")[0])
    return ""


def ascii_domain(name: str) -> str:
    """Return a domain name in lower case, with labels of other scripts as they are sent (`xn--...`)."""
    folded = name.casefold().strip(".")
    if folded.isascii():
        return folded
    try:
        return folded.encode("idna").decode()
    except UnicodeError:
        return folded


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


def _digits(text: str) -> Keys:
    return _one(only_digits(text))


def _alphanumeric(text: str) -> Keys:
    return _one("".join(char for char in text.casefold() if char.isalnum()))


def _web(text: str) -> Keys:
    return _one(unescaped(text))


def _email(text: str) -> Keys:
    return _one(_email_address(text))


def _email_address(text: str) -> str:
    folded = unescaped(text).translate(_EMPHASIS).casefold()
    for mark in _ATS:
        folded = folded.replace(mark, "@")
    for mark in _DOTS:
        folded = folded.replace(mark, ".")
    local, at, domain = "".join(folded.split()).partition("@")
    return f"{local}{at}{ascii_domain(domain)}"


def _phone(text: str) -> Keys:
    """Tell an international number by all of its digits, a national one by those behind the trunk's zero."""
    body = text.casefold().partition("x")[0].partition("ext")[0].partition("#")[0]
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


def _address(text: str) -> Keys:
    try:
        return _one(str(ipaddress.ip_address(text.strip("[]"))))
    except ValueError:
        return _one(text.casefold())


_FORMS: Mapping[str, Callable[[str], Keys]] = MappingProxyType({
    "EMAIL": _email,
    "URL": _web,
    "PHONE": _phone,
    "PHONE_LOOSE": _phone,
    "IP_ADDRESS": _address,
    **dict.fromkeys(("CREDIT_CARD", "US_SSN", "US_ITIN", "UK_NHS", "SORT_CODE"), _digits),
    **dict.fromkeys(
        ("IBAN", "BANK_ACCOUNT", "UK_NINO", "DE_ID", "FR_ID", "ES_ID", "IT_ID", "MAC_ADDRESS", "PASSPORT",
         "DRIVER_LICENSE", "MEDICAL_RECORD_NUMBER", "DATE_OF_BIRTH"),
        _alphanumeric,
    ),
})  # fmt: skip
"""Entity -> how it is compared. Others, all secrets among them, are the same only where they are the same text."""
