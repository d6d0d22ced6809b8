"""Who is logged in, and how often somebody may guess. Pure: time and randomness are passed in.

INVARIANT: the token itself is compared, never kept; of a session only a digest is kept, so that what can be read here
logs nobody in. Both tables are bounded.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import OrderedDict, deque

LIVES_S = 12 * 3600.0
_MOST_SESSIONS = 100
_TRIES, _TRIES_OF_ALL, _WINDOW_S = 5, 60, 60.0
_MOST_ADDRESSES = 1000


def is_token(given: str, expected: str) -> bool:
    """Tell whether it is the token, in a time that says nothing of where they differ."""
    return hmac.compare_digest(_digest(given), _digest(expected))


class Sessions:
    """Sessions that have been begun, in memory: a restart ends them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._ends: OrderedDict[bytes, float] = OrderedDict()

    def begin(self, secret: str, now: float) -> None:
        """Begin a session under a fresh secret; beyond the most that are kept the oldest ends."""
        while len(self._ends) >= _MOST_SESSIONS:
            self._ends.popitem(last=False)
        self._ends[_digest(secret)] = now + LIVES_S

    def holds(self, secret: str, now: float) -> bool:
        """Tell whether a session goes on."""
        end = self._ends.get(_digest(secret))
        return end is not None and now < end

    def end(self, secret: str) -> None:
        """End it."""
        self._ends.pop(_digest(secret), None)


class Guesses:
    """How often tokens were tried and wrong, by address and by all together."""

    def __init__(self) -> None:
        """Begin with none."""
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()
        self._all: deque[float] = deque(maxlen=_TRIES_OF_ALL)

    def wait_s(self, address: str, now: float) -> float:
        """Return how long an address must wait before it tries again; 0: it may."""
        own = self._wrong.get(address, deque())
        return max(_wait(own, _TRIES, now), _wait(self._all, _TRIES_OF_ALL, now))

    def wrong(self, address: str, now: float) -> None:
        """Count a token that was wrong."""
        if address not in self._wrong and len(self._wrong) >= _MOST_ADDRESSES:
            self._wrong.popitem(last=False)
        self._wrong.setdefault(address, deque(maxlen=_TRIES)).append(now)
        self._all.append(now)


def _wait(tries: deque[float], most: int, now: float) -> float:
    return max(tries[0] + _WINDOW_S - now, 0.0) if len(tries) >= most else 0.0


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
