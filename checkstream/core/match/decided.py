"""What is decided of a text by any view, kept until all views have decided on what starts there."""

from __future__ import annotations

from typing import Final

from checkstream.core.match.hidden import Outs
from checkstream.core.match.lane import Found
from checkstream.core.match.patterns import VIEWS
from checkstream.core.terms import Finding, Span

Decided = dict[tuple[int, int, int], tuple[int, bool]]
"""Start, end and signal -> rank of the first view that found it, and whether it is capped."""
_RANK: Final = {name: rank for rank, name in enumerate(VIEWS)}


def note(decided: Decided, view: str, found: list[Found]) -> None:
    """Remember what a view has decided; of equal findings the first view's stays."""
    for each in found:
        key = (each.start, each.end, each.signal)
        value = (_RANK[view], each.capped)
        if key not in decided or value < decided[key]:
            decided[key] = value


def note_embedded(decided: Decided, found: Outs) -> None:
    """Remember what was decided of texts that stand in another."""
    for view, each in found.items():
        note(decided, view, each)


def taken(decided: Decided, live: int) -> list[Finding]:
    """Take out, in order, the findings that start before `live`: by now every view has decided on them."""
    out: list[Finding] = []
    for key in sorted(key for key in decided if key[0] < live):
        rank, capped = decided.pop(key)
        out.append(Finding(signal=key[2], span=Span(key[0], key[1]), view=VIEWS[rank], capped=capped))
    return out
