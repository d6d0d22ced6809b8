"""Which bundle decides an exchange where two are in force: the candidate of a rollout, or its base.

A caller is chosen by a hash of who it is, so it doesn't go to and fro: not over requests, nodes, processes or restarts.
Who is among the first 10 of a hundred is among the first 50; the salt is the rollout's, so that the first are not
always the same. INVARIANT: whose policy it is depends on nothing else, in particular not on what is asked.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import msgspec

from checkstream.listen import Who
from checkstream.proxy.accept import Route

_PARTS = 10_000
_MOST = 4096
"""Parties whose places are remembered: to look one up is some ten times as fast as to hash it."""


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a candidate decides for."""

    share: int
    """Percent of the callers."""
    salt: str
    """Of the hash."""

    def has(self, party: str) -> bool:
        """Tell whether a party is among them."""
        return _place(self.salt, party) < self.share * (_PARTS // 100)


@lru_cache(_MOST)
def _place(salt: str, party: str) -> int:
    digest = hashlib.sha256(f"{salt} {party}".encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "big") % _PARTS


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """The routes of a bundle that only some callers are answered by; but for policies, they are those of the others."""

    routes: tuple[Route, ...]
    chosen: Chosen


def party_of(who: Who, conversation: str | None) -> str:
    """Return as whose a request is chosen.

    A caller who has a name goes by it alone. Others are their conversation, where a header names it, and else where
    they come from: behind a gateway all come from one place, and would be chosen together.
    """
    if who.caller is None and conversation:
        return f"conversation {conversation}"
    return who.party("caller")
