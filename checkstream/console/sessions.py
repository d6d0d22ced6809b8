"""Who is logged in, and how often somebody may guess. Pure: time and randomness are passed in.

INVARIANT: a secret itself is compared, never kept; of a session only a digest is kept, so that what can be read here
logs nobody in. Both tables are bounded.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import OrderedDict, deque
from typing import NamedTuple

from checkstream.config.control import Role

LIVES_S = 12 * 3600.0
_MOST_SESSIONS, _MOST_OF_ONE = 1000, 50
_TRIES, _WINDOW_S = 5, 60.0
_MOST_ADDRESSES = 1000


def is_token(given: str, expected: str) -> bool:
    """Tell whether it is the one that is expected, in a time that says nothing of where they differ."""
    return hmac.compare_digest(_digest(given), _digest(expected))


class Person(NamedTuple):
    """Who looks at the console."""

    name: str
    """Empty: whoever has the token, or whoever reaches the listener where none is asked for."""
    role: Role | None = None
    """At a control server; a proxy knows no roles."""
    called: str = ""
    """What a provider of identities calls them; empty: they are called by their name."""


class Sessions:
    """Sessions that have been begun, in memory: a restart ends them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._known: OrderedDict[bytes, tuple[Person, float]] = OrderedDict()

    def begin(self, secret: str, now: float, person: Person, lives_s: float = LIVES_S) -> None:
        """Begin a session of `person` under a fresh secret; beyond the most that are kept the oldest ends.

        Nobody ends another's by beginning many: beyond the most of one person the oldest of theirs ends.
        """
        own = [digest for digest, (whose, _) in self._known.items() if whose.name == person.name]
        for digest in own[: max(len(own) + 1 - _MOST_OF_ONE, 0)]:
            del self._known[digest]
        while len(self._known) >= _MOST_SESSIONS:
            self._known.popitem(last=False)
        self._known[_digest(secret)] = person, now + min(lives_s, LIVES_S)

    def person(self, secret: str, now: float) -> Person | None:
        """Return whose session goes on under a secret; None: nobody's."""
        person, end = self._known.get(_digest(secret), (None, 0.0))
        return person if now < end else None

    def end(self, secret: str) -> None:
        """End it."""
        self._known.pop(_digest(secret), None)


class Guesses:
    """How often secrets were tried and wrong, by address.

    Nobody waits for what others try: who could make all wait would lock the operator out. Against guesses from very
    many addresses a long secret is enough, and nothing else.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()

    def wait_s(self, address: str, now: float) -> float:
        """Return how long an address must wait before it tries again; 0: it may."""
        tries: deque[float] = self._wrong.get(address, deque())
        return max(tries[0] + _WINDOW_S - now, 0.0) if len(tries) >= _TRIES else 0.0

    def wrong(self, address: str, now: float) -> None:
        """Count a secret that was wrong."""
        if address not in self._wrong and len(self._wrong) >= _MOST_ADDRESSES:
            self._wrong.popitem(last=False)
        self._wrong.setdefault(address, deque(maxlen=_TRIES)).append(now)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
