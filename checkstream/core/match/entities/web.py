"""URL: any web address, with a scheme, with `www.`, or a bare name under a top-level domain that people write so.

Most answers hold addresses that are no secret, so the entity stands in no group: a policy asks for it by name.
"""

from __future__ import annotations

from collections.abc import Sequence

from checkstream.core.match.entities.entity import WORD, Entity, SpanPair, before, past_mark, whole_if

_CAP = 2048
"""Longer addresses are no addresses that browsers take."""

# Top-level domains under which a bare name is an address and not a file (`main.py`) or a member (`self.name`).
_TOP_NAMES = """
com org net edu gov mil int info biz io ai dev app cloud online site shop store xyz tech blog wiki news eu uk de fr it
es nl pl ch at be se no dk fi cz pt ie gr hu ro ru ua us ca mx br ar cl co au nz jp cn kr in sg hk tw tr il ae za ng
"""
_TOPS = frozenset(_TOP_NAMES.split())
_SIGN = '[^\\s<>"`{}|\\\\^\u00a0\u2000-\u200a\u3000]'
_TRAILING = ".,;:!?'*_~)]"
_OPENED_BY = {")": "(", "]": "["}


def _without_punctuation(address: str) -> str:
    """Return an address without the signs of the sentence behind it; a bracket stays that was opened inside."""
    while address and address[-1] in _TRAILING:
        opener = _OPENED_BY.get(address[-1])
        if opener is not None and address.count(opener) >= address.count(address[-1]):
            break
        address = address[:-1]
    return address


def _is_name(host: str) -> bool:
    labels = host.split(".")
    return len(labels) > 1 and labels[-1] in _TOPS and all(label[:1] != "-" != label[-1:] for label in labels)


def refine_web(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return the address in a candidate, without the punctuation behind it."""
    previous = before(text, start)
    if previous and (previous.isalnum() or previous in "@-./+"):
        return ()
    address = _without_punctuation(text[start:end])
    scheme, mark, rest = address.partition("://")
    if mark and scheme.isalpha():
        return whole_if(bool(rest) and (rest[0].isalnum() or rest[0] == "["), start, start + len(address))
    host = address.partition("/")[0].partition("?")[0].partition("#")[0].partition(":")[0].casefold()
    if host == address.casefold() and text[start + len(address) : start + len(address) + 1] == "@":
        return ()  # the part of an e-mail address before its sign
    return whole_if(_is_name(host), start, start + len(address))


URL = Entity(
    name="URL",
    regex=(
        rf"(?i){WORD}(?:(?:https?|ftps?|sftp|wss?)://{_SIGN}+"
        r"|[a-z0-9](?:[a-z0-9-]{0,62}\.)(?:[a-z0-9-]{1,63}\.){0,6}[a-z]{2,6}(?::[0-9]{1,5})?"
        rf"(?:[/?#]{_SIGN}*)?)"
    ),
    refine=past_mark(refine_web),
    group=None,
    max_chars=_CAP,
)

ENTITIES = (URL,)
