"""Cards whose figures stand one by one, whatever is between them: `4 and 1, then 1`, `4=1&1`, `<td>4</td><td>1</td>`.

Whoever is asked for a number so that no filter finds it writes its figures with words or signs between them. Check
digits prove it, and its figures must be all that stand so near to each other: a part of a table or a board is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from checkstream.core.match.entities.entity import SpanPair
from checkstream.core.match.entities.issuers import is_card_number

_LEAST, _MOST = 13, 19
"""Figures of a card."""
_FAR: Final = 24
"""Characters before the first figure within which another would be near."""
_NONE: Final = 1 << 20


def _figures(text: str, start: int, end: int) -> list[tuple[int, int, int]]:
    """Return, for each figure of a candidate, where it stands and how many characters stand before and behind it."""
    places = [at for at in range(start, end) if "0" <= text[at] <= "9"]
    before = start
    while before and start - before <= _FAR and not "0" <= text[before - 1] <= "9":
        before -= 1
    first = start - before if before and start - before <= _FAR else _NONE
    gaps = [first, *(after - at - 1 for at, after in pairwise(places)), _NONE]
    return [(place, gaps[number], gaps[number + 1]) for number, place in enumerate(places)]


def refine_figures(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return the card whose figures are the first that stand near to each other."""
    figures = _figures(text, start, end)
    goes_on = "0" <= text[end : end + 1] <= "9"
    widest = 0
    for size in range(1, min(len(figures), _MOST) + 1):
        place, before, behind = figures[size - 1]
        widest = max(widest, before if size > 1 else 0)
        whole = widest < min(figures[0][1], behind) and not (goes_on and size == len(figures))
        if size >= _LEAST and whole and is_card_number("".join(text[at] for at, _, _ in figures[:size])):
            return ((start, place + 1),)
    return ()


def skip_figures(text: str, start: int, end: int) -> int:
    """Return where the next figure stands with which figures may begin that stand nearer to each other."""
    figures = _figures(text, start, end)
    return next((place for place, before, behind in figures[1:-1] if before > behind), figures[-1][0])
