"""Texts that were read before and in which nothing was found: a chat sends its whole history with every request.

What patterns, phrases and entities find in a whole text is a function of the text and the policy alone. So one in which
they have found nothing need not be read again; all else about it (scores, conditions, what it is joined to) is decided
anew. INVARIANT: with and without this memory an exchange comes to the same.
"""

from __future__ import annotations

from typing import Protocol

from checkstream.core.channel.judge import Judge

LEAST_CHARS = 32
"""A shorter text is read as fast as looked up."""


class Quiet(Protocol):
    """Such texts of one caller, under one policy. Another caller's are not known: time would tell what they say."""

    def knows(self, kind: str, text: str) -> bool:
        """Tell whether nothing was found in a text.

        Args:
            kind: What was looked for in it.
            text: All of it.
        """

    def keep(self, kind: str, text: str) -> None:
        """Note that nothing was found in a text."""


def is_quiet(judge: Judge, size: int) -> bool:
    """Tell whether a judge and those that follow it have read a text of so many characters and found nothing."""
    return all(
        each.holdback.ended and each.holdback.received == size and not each.holdback.matches.hit
        for each in (judge, *judge.followers)
    )
