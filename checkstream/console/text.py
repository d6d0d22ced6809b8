"""Text from outside as a page may show it: nothing in it hides, turns the line around, or goes on for ever. Pure."""

from __future__ import annotations

import math
import unicodedata
from datetime import UTC, datetime

MOST_CHARS = 160
_HIDING = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Kinds of characters that are not seen, or that steer what stands around them."""


def shown(text: object, most: int = MOST_CHARS) -> str:
    """Return text in one line, with what can't be seen spelled out, cut at `most` characters.

    It is no HTML yet: templates escape what they are given.
    """
    given = str(text)
    cut = given if len(given) <= most else given[: most - 1] + "…"
    return "".join(character if _is_plain(character) else _spelled(character) for character in cut)


def whole(text: str) -> str:
    """Return text of many lines, uncut, with what can't be seen spelled out."""
    return "".join(each if each == "\n" or _is_plain(each) else _spelled(each) for each in text)


def lines_of(text: str, most: int = MOST_CHARS * 4) -> list[str]:
    """Return the lines of a text, each as `shown` has it."""
    return [shown(line, most) for line in text.replace("\r\n", "\n").replace("\t", "  ").split("\n")]


def _is_plain(character: str) -> bool:
    return unicodedata.category(character) not in _HIDING


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def number(value: float) -> str:
    """Return a count as people read it: `1,234,567`."""
    return f"{round(value):,}"


def seconds(value: float | None, most: int = 5) -> str:
    """Return a time as people read it: `0.4 ms`, `38 ms`, `1.2 s`; `-` for none, `> 5 s` beyond the last bin."""
    if value is None:
        return "-"
    if math.isinf(value):
        return f"> {most} s"
    if value < 0.001:
        return f"{value * 1000:.2f} ms"
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"


def span(value: float) -> str:
    """Return how long something has run: `42 s`, `7 min`, `3 h 5 min`, `12 d 4 h`."""
    whole = max(int(value), 0)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"


def moment(at: float) -> str:
    """Return a time in seconds since 1970 as `2026-11-29 08:15:30Z`."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%SZ}"
