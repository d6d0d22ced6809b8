"""Which one-time tokens have been spent, as long as they could be used again. Pure."""

from __future__ import annotations

import heapq

from checkstream.errors import NotReady

MOST = 100_000
"""Tokens that are remembered as spent: some 20 MB."""


class Spent:
    """Remembers tokens by what makes each another. INVARIANT: none is forgotten before it has expired."""

    def __init__(self, most: int = MOST) -> None:
        """Start with nothing spent; remember at most so many at once."""
        self._most = most
        self._spent: set[bytes] = set()
        self._ends: list[tuple[int, bytes]] = []

    def spend(self, nonce: bytes, expires_ms: int, now_ms: int) -> bool:
        """Spend a token; tell whether it had not been.

        Args:
            nonce: What makes it another than all others.
            expires_ms: After this nobody asks for it, on the clock of `now_ms`.
            now_ms: The time.

        Raises:
            NotReady: no more can be remembered.
        """
        while self._ends and self._ends[0][0] <= now_ms:
            self._spent.discard(heapq.heappop(self._ends)[1])
        if nonce in self._spent:
            return False
        if len(self._spent) >= self._most:
            raise NotReady("too many confirmations have been used of late; send the request again in a while")
        self._spent.add(nonce)
        heapq.heappush(self._ends, (expires_ms, nonce))
        return True

    def all(self) -> list[tuple[int, bytes]]:
        """Return what is remembered: when each expires, and what it is."""
        return list(self._ends)

    def remember(self, spent: list[tuple[int, bytes]]) -> None:
        """Remember what another has remembered."""
        for expires_ms, nonce in spent:
            self._spent.add(nonce)
            heapq.heappush(self._ends, (expires_ms, nonce))
