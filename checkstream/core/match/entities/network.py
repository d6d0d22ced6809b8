"""Addresses of machines: IP, MAC, and URLs that carry a password."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import AddressValueError, IPv6Address
from typing import Final

from checkstream.core.match.engine import compile_regex
from checkstream.core.match.entities.entity import (
    WORD,
    Entity,
    SpanPair,
    before,
    glued_before,
    glued_behind,
    past_mark,
    whole_if,
)
from checkstream.core.match.entities.labels import left_of
from checkstream.core.match.entities.randomness import is_stand_in

_HEX = frozenset("0123456789abcdefABCDEF")
_OUTSIDE: Final = compile_regex("::|[^0-9A-Fa-f:.]")
# Dotted numbers after these words are versions or places in a document.
_NOT_ADDRESSES = frozenset(
    (
        *(
            "version",
            "ver",
            "ver.",
            "v",
            "v.",
            "release",
            "build",
            "firmware",
            "driver",
            "update",
            "patch",
            "sdk",
            "kernel",
        ),
        *("section", "sec.", "chapter", "clause", "figure", "fig.", "table", "step", "§"),
    )
)


def _is_v4(address: str) -> bool:
    """Check four octets without leading zeros (RFC 6943, 3.1.1, the strict form), and that they name a host.

    `255.` begins a net mask or the broadcast address, `0.` means this network (RFC 6890, 2.2.2).
    """
    octets = address.split(".")
    strict = len(octets) == 4 and all(octet == str(int(octet)) and int(octet) < 256 for octet in octets)
    return strict and octets[0] not in ("0", "255")


def _is_v6(address: str) -> bool:
    """Check an IPv6 address, and that it isn't a slice (`1::2`) or a scope operator (`Face::Add`) of a program."""
    try:
        IPv6Address(address)
    except AddressValueError:
        return False
    address = address.partition("%")[0]
    if address == "::1":
        return True
    digits = address.replace(":", "").replace(".", "")
    groups = address.count(":")
    if groups == 7 and "::" not in address and all(len(group) == 2 for group in address.split(":")):
        return False  # eight pairs are an EUI-64
    if not any(char.isdigit() for char in digits):
        return groups >= 4
    return len(digits) >= 4 or groups >= 4


_NAME = compile_regex(r"[\pL\pN]_+\z")
_NAME_OF_HOST = compile_regex(
    r"(?i:(?:\A|[^\pL])(?:ip(?:v4)?|addr(?:ess)?|host|server|client|node|peer|gateway|src|source|dst|dest|remote|dns"
    r"|proxy|subnet|router|bind|listen)s?[0-9]{0,3}_+\z)"
)
"""A name that ends with a word for what has an address."""


def refine_ip(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept an IPv4 or IPv6 address that isn't part of a longer code or a version number."""
    previous = before(text, start)
    if glued_before(text, start) or (previous in tuple(".:") and text[start - 2 : start - 1] in _HEX and start > 1):
        return ()
    candidate = text[start:end]
    if ":" in candidate:
        return _refine_v6(text, start, end)
    if glued_behind(text, end) or not _is_v4(candidate):
        return ()
    if previous == "_" and _NAME.search(left_of(text, start)) and not _NAME_OF_HOST.search(left_of(text, start)):
        return ()  # `firefox_115.0.2.1`: files and programs have their versions so
    words = left_of(text, start).split()
    return whole_if(not (words and words[-1].lstrip("([").rstrip(":=(") in _NOT_ADDRESSES), start, end)


def skip_ip(text: str, start: int, end: int) -> int:
    """Return the first place in the candidate that is not inside of an address: behind `::`, `%` or a mark."""
    hit = _OUTSIDE.search(text[start:end])
    return end if hit is None else start + hit.end()


def _refine_v6(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept an IPv6 address; a single colon after it is punctuation."""
    if text[end - 1] == ":" and text[end - 2 : end] != "::":
        end -= 1
    elif glued_behind(text, end) or text[end : end + 1] == ":":
        return ()
    candidate = text[start:end]
    bracketed = before(text, start) == "[" and start > 1 and (text[start - 2].isalnum() or text[start - 2] in "])")
    if bracketed and all(char.isdigit() or char == ":" for char in candidate) and candidate.count(":") == 2:
        return ()  # a slice: rows[10::20]
    return whole_if(_is_v6(candidate), start, end)


def refine_mac(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept an EUI-48 or EUI-64 with one kind of separator; longer runs are fingerprints."""
    candidate = text[start:end]
    previous = before(text, start)
    if glued_before(text, start) or glued_behind(text, end) or len(set(candidate) & set(":-.")) != 1:
        return ()
    if previous in tuple(":-.") and text[start - 2 : start - 1] in _HEX and start > 1:
        return ()
    if "." in candidate:
        return whole_if(any(char.isalpha() for char in candidate) and text[end : end + 1] != ".", start, end)
    return whole_if(candidate.count(candidate[2]) in (5, 7), start, end)


def refine_url(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept a URL whose authority has a user and a password that isn't a stand-in."""
    if glued_before(text, start):
        return ()
    userinfo = text[start:end].partition("://")[2].rpartition("@")[0]
    password = userinfo.partition(":")[2]
    return whole_if(bool(password) and not is_stand_in_password(password), start, end)


def is_stand_in_password(password: str) -> bool:
    """Say whether a password in a URL only holds the place of one (`****`, `${DB_PASS}`, `[YOUR-PASSWORD]`)."""
    bracketed = password[0] in "[{$<%" and password[-1] in "]}>%)"
    return bracketed or (set(password) <= set("*xX.•")) or (is_stand_in(password) and len(set(password)) > 3)


IP_ADDRESS = Entity(
    name="IP_ADDRESS",
    regex=(
        r"(?:[0-9A-Fa-f]{0,4}:){2,8}(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f]{1,4})?(?:%[0-9A-Za-z]{1,15})?"
        r"|(?:\b|_)[0-9]{1,3}(?:\.[0-9]{1,3}){3,7}"
    ),
    refine=past_mark(refine_ip),
    skip=skip_ip,
    group="pii",
)
MAC_ADDRESS = Entity(
    name="MAC_ADDRESS",
    regex=WORD + r"(?:[0-9A-Fa-f]{2}(?:[:\-][0-9A-Fa-f]{2}){5,9}|[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4})",
    refine=past_mark(refine_mac),
    group="pii",
)
URL_CREDENTIALS = Entity(
    name="URL_CREDENTIALS",
    regex=(
        rf"{WORD}[A-Za-z][A-Za-z0-9+.\-]{{1,15}}://"
        r"[A-Za-z0-9._~%!$&*+=\-]{0,64}:[!#-&(-.0-;=?A-_a-~]{1,128}@"
        r"(?:[A-Za-z0-9._\-]{1,128}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?"
    ),
    refine=past_mark(refine_url),
    group="secret",
)

ENTITIES = (IP_ADDRESS, MAC_ADDRESS, URL_CREDENTIALS)
