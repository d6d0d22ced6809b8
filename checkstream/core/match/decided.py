"""What is decided of a text by any view, kept until all views have decided on what starts there."""

from __future__ import annotations

from typing import Final

from checkstream.core.match.hidden import Outs
from checkstream.core.match.lane import Found
from checkstream.core.match.patterns import VIEWS
from checkstream.core.terms import Finding, Recited, Span

Decided = dict[tuple[int, int, int], tuple[int, bool, Recited | None]]
"""Start, end and signal -> rank of the first view that found it, whether it is capped, and what it recites."""
_RANK: Final = {name: rank for rank, name in enumerate(VIEWS)}


def note(decided: Decided, view: str, found: list[Found]) -> None:
    """Remember what a view has decided; of equal findings the first view's stays."""
    for each in found:
        key = (each.start, each.end, each.signal)
        rank, known = _RANK[view], decided.get(key)
        if known is None or (rank, each.capped) < known[:2]:
            decided[key] = rank, each.capped, each.recited


def note_embedded(decided: Decided, found: Outs) -> None:
    """Remember what was decided of texts that stand in another."""
    for view, each in found.items():
        note(decided, view, each)


def taken(decided: Decided, live: int) -> list[Finding]:
    """Take out, in order, the findings that start before `live`: by now every view has decided on them."""
    out: list[Finding] = []
    for key in sorted(key for key in decided if key[0] < live):
        rank, capped, recited = decided.pop(key)
        span = Span(key[0], key[1])
        out.append(Finding(signal=key[2], span=span, view=VIEWS[rank], capped=capped, recited=recited))
    return out
