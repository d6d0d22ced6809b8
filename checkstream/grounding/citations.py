"""What an answer cites: `[S0]`, `[1, 2]`, `[Source: AAPL 10-Q]`, `(Source: 1)`, and phrases like "according to".

Ids are kept as written; whether a passage of that name exists is not known here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum

import msgspec

from checkstream.core.match.regex import TextRegex

_MOST_RANGE = 20
"""Ids that a range such as `[2-5]` may stand for; a longer one is taken as one id."""


class CitationStyle(StrEnum):
    """How a citation is written."""

    MARK = "mark"
    """`[S0]`, `[1, 2]`, `[^3]`, `【3†source】`."""
    BRACKETS = "brackets"
    """`[Source: ...]`."""
    PARENTHESES = "parentheses"
    """`(Source: ...)`."""
    ACCORDING_TO = "according_to"
    """`according to ...`: names no id."""
    PER_FILING = "per_filing"
    """`per the filing`: names no id."""
    IN_FILING = "in_filing"
    """`in the ... filing`: names no id."""


class Citation(msgspec.Struct, frozen=True, kw_only=True):
    """A place of the answer that names passages."""

    start: int
    end: int
    ids: tuple[str, ...]
    style: CitationStyle


_NAMING = r"\s*(?:sources?|ref(?:erence)?s?|מקור(?:ות)?|quellen?|fuentes?)\s*[:=]\s*"
_BRACKETED = TextRegex(rf"(?i)\[[^\[\]\n]{{1,200}}\]|\({_NAMING}[^()\n]{{1,200}}\)|【[^【】\n]{{1,60}}】")
_SOURCE = TextRegex(rf"(?i)^{_NAMING}\S")
_MARK = TextRegex(
    r"(?i)^\^?(?:(?:s|d|c|p|r|docs?|document|source|src|ref|chunk|passage|chunk_id)[-_ #]?)?\d{1,4}$"
    r"|^[a-z]{1,8}[-_]\d{1,6}$"
)
_YEAR = TextRegex(r"^(?:1[5-9]|20)\d\d$")
_RANGE = TextRegex(r"^[SDCP]?\d{1,3}\s?[-–]\s?[SDCP]?\d{1,3}$")
_PHRASES = (
    (CitationStyle.ACCORDING_TO, TextRegex(r"(?i)\baccording to\b|(?:^|[\s(])(?:לפי|על[ -]פי)\s")),
    (CitationStyle.PER_FILING, TextRegex(r"(?i)\bper (?:the )?filings?\b")),
    (CitationStyle.IN_FILING, TextRegex(r"(?i)\bin (?:the|its|their|this) (?:[^\s.!?]+ ){0,6}filings?\b")),
)


def citations(text: str, known: Collection[str] = ()) -> list[Citation]:
    """Return the citations of `text` that name ids, in their order.

    Args:
        text: An answer, or a part of one.
        known: Ids of passages; in brackets they count as citations however they are written.
    """
    found = []
    for place in _BRACKETED.spans(text):
        inside = text[place.start + 1 : place.end - 1]
        round_brackets = text[place.start] == "("
        ids: tuple[str, ...] | None
        if _SOURCE.found_in(inside):
            style = CitationStyle.PARENTHESES if round_brackets else CitationStyle.BRACKETS
            ids = _source_ids(inside.replace("=", ":", 1).split(":", 1)[1].strip(), known)
        else:
            style = CitationStyle.MARK
            ids = _mark_ids(inside.split("†", 1)[0], known)
        if ids is not None:
            found.append(Citation(start=place.start, end=place.end, ids=ids, style=style))
    return found


def styles(text: str, found: Sequence[Citation]) -> frozenset[CitationStyle]:
    """Return in which ways `text` cites, phrases included; `found` are its citations."""
    phrases = {style for style, regex in _PHRASES if regex.found_in(text)}
    return frozenset(phrases.union(citation.style for citation in found))


def _mark_ids(inside: str, known: Collection[str]) -> tuple[str, ...] | None:
    """Return the ids of a mark, or nothing when it is an aside, a year or code."""
    whole = inside.strip()
    if whole in known:
        return (whole,)
    ids: list[str] = []
    for part in (part.strip() for part in whole.replace(";", ",").split(",")):
        if _RANGE.found_in(part):
            ids += _range_ids(part)
        elif part in known or (_MARK.found_in(part) and not _YEAR.found_in(part)):
            ids.append(part.lstrip("^"))
        else:
            return None
    return tuple(dict.fromkeys(ids))


def _range_ids(part: str) -> list[str]:
    """Return the ids from the first to the last: of `S0-S2` those with the letter."""
    edges = [edge.strip() for edge in part.replace("–", "-").split("-")]
    letter, other = (edge.rstrip("0123456789") for edge in edges)
    first, last = (int(edge.lstrip(letter + other)) for edge in edges)
    if other not in {"", letter} or not 0 <= last - first < _MOST_RANGE:
        return [part]
    return [f"{letter}{number}" for number in range(first, last + 1)]


def _source_ids(named: str, known: Collection[str]) -> tuple[str, ...]:
    """Return what a `Source:` names: ids where all of it are ids, else the whole name."""
    return _mark_ids(named, known) or _mark_ids(named.strip("[]"), known) or (named,)
