"""What an upstream says in headers of its answer: the names under which it is found again. No guard edits them."""

from __future__ import annotations

from checkstream.core.exchange.ingress.known import Search
from checkstream.core.policy.program import Program
from checkstream.core.terms import Stage

_STAGES = (Stage.MIDSTREAM, Stage.EGRESS)


def holds(program: Program, text: str) -> bool:
    """Tell whether a rule that edits or stops an answer would find something in a short text beside it."""
    for stage in _STAGES:
        patterns = program.scope(stage, "extra").hold
        if not len(patterns):
            continue
        search = Search(patterns)
        if search.feed(text) or search.end():
            return True
    return False
