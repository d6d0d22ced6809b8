"""What a model has said of texts that come again: a chat sends its whole history with every request.

So are the windows of long texts, since a text that has grown, or that stands in another, begins with windows that have
been read. Each is known by its hash, never kept. INVARIANT: what is known to one caller is not known to another, or the
time of an answer would tell what others have written. Callers without names can't be told apart: they are one.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import OrderedDict

from checkstream.scoring.session import Reading, Window

MOST = 16_384
"""Readings and entities that are kept together: eight megabytes a model, the history of some hundred long chats."""
_MOST_ENTITIES = 32
"""A reading with more is not kept, so that a few long texts don't push out all others."""


class Known:
    """The readings of one model, those least recently asked for given up first."""

    def __init__(self, most: int = MOST) -> None:
        """Know nothing; keep at most so many readings and entities together."""
        self._most = most
        self._readings: OrderedDict[bytes, Reading] = OrderedDict()
        self._weight = 0

    def find(self, key: bytes) -> Reading | None:
        """Return what was said of a text, by its `key_of`."""
        reading = self._readings.get(key)
        if reading is not None:
            self._readings.move_to_end(key)
        return reading

    def keep(self, key: bytes, reading: Reading) -> None:
        """Remember what was said of a text."""
        if len(reading.entities) > _MOST_ENTITIES or key in self._readings:
            return
        self._readings[key] = reading
        self._weight += _weight(reading)
        while self._weight > self._most:
            _, given_up = self._readings.popitem(last=False)
            self._weight -= _weight(given_up)


def key_of(caller: str, text: str, covered_chars: int) -> bytes:
    """Return what a text is known by, to one caller; `covered_chars`: how much at its end was asked about."""
    said = f"{len(caller)}:{caller}{covered_chars}:{text}"
    return hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=32).digest()


def key_of_part(caller: str, window: Window) -> bytes | None:
    """Return what a window is known by, to one caller; None: what is said of it depends on where it stands."""
    if window.words or not window.ids:
        return None
    kind = "together" if window.texts else window.excerpt
    said = f"{len(caller)}:{caller}{window.context}:{kind}:".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(said + array("q", window.ids).tobytes(), digest_size=32, person=b"window").digest()


def _weight(reading: Reading) -> int:
    return 1 + len(reading.entities)
