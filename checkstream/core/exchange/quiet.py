"""What was found in texts that were read before: a chat sends its whole history with every request.

What patterns, phrases and entities find in a whole text is a function of the text and the policy alone. So one that
comes again need not be searched again; all else about it (scores, conditions, what it is joined to, what rules do) is
decided anew. INVARIANT: with and without this memory an exchange comes to the same.
"""

from __future__ import annotations

from typing import Protocol

from checkstream.core.channel.judge import Judge
from checkstream.core.terms import Finding

LEAST_CHARS = 32
"""A shorter text is read as fast as looked up."""
MOST_FINDINGS = 64
"""Of a text in which more was found nothing is remembered."""

Found = tuple[tuple[Finding, ...], ...]
"""What a judge has found in a text, and each of those that follow it; empty: nobody anything."""


class Quiet(Protocol):
    """Such texts of one caller, under one policy. Another caller's are not known: time would tell what they say."""

    def found(self, kind: str, text: str) -> Found | None:
        """Return what was found in a text; None: it is not known.

        Args:
            kind: What was looked for in it.
            text: All of it.
        """

    def keep(self, kind: str, text: str, found: Found = ()) -> None:
        """Note what was found in a text."""


def listen(judge: Judge) -> None:
    """Have a judge, and those that follow it, keep in mind what they find."""
    for each in (judge, *judge.followers):
        each.holdback.matches.heard = []


def found_by(judge: Judge, size: int) -> Found | None:
    """Return what a judge and those that follow it have found in a text of so many characters.

    None: they have not read all of it, or nobody wanted to know, or it is too much to be remembered.
    """
    found: list[tuple[Finding, ...]] = []
    for each in (judge, *judge.followers):
        holdback = each.holdback
        heard = holdback.matches.heard
        if heard is None or len(heard) > MOST_FINDINGS or not holdback.ended or holdback.received != size:
            return None
        found.append(tuple(heard))
    if sum(map(len, found)) > MOST_FINDINGS:
        return None
    return tuple(found) if any(found) else ()
