"""From texts to their fingerprints (see `fingerprints`). The same texts, in any order, make the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from checkstream.core.match.fingerprints import (
    BITS_A_WORD,
    FACTOR,
    LEAST_WORDS,
    MOST_WORDS,
    PROBES,
    RUN,
    SEED,
    SHIFT,
    window_of,
    written,
)
from checkstream.core.match.plain_words import numbers_of
from checkstream.errors import FingerprintsInvalid

MAX_WORDS: Final = 1 << 25
"""Of all texts together: some 200 MB of prose."""

_Numbers = NDArray[np.uint64]


class Winnowing:
    """Takes texts; mutable."""

    def __init__(self, least: int) -> None:
        """Start without texts.

        Args:
            least: Words of the shortest recital that is to be found.

        Raises:
            FingerprintsInvalid: that is out of range.
        """
        if not LEAST_WORDS <= least <= MOST_WORDS:
            raise FingerprintsInvalid(f"a recital has {LEAST_WORDS} to {MOST_WORDS} words, not {least}")
        self._least = least
        self._runs: list[_Numbers] = []
        self.texts = 0
        """Taken so far."""
        self.words = 0
        """Of them."""

    def take(self, text: str) -> bool:
        """Take a text; False: it is too short to be recited.

        Raises:
            FingerprintsInvalid: there are too many words.
        """
        runs = _unbroken(numbers_of(text), self._least)
        size = sum(map(len, runs))
        if self.words + size > MAX_WORDS:
            raise FingerprintsInvalid(f"the texts have more than {MAX_WORDS:,} words; make several files")
        if not runs:
            return False
        self._runs += runs
        self.texts += 1
        self.words += size
        return True

    def file(self) -> bytes:
        """Return the file.

        Raises:
            FingerprintsInvalid: no text is long enough.
        """
        if not self._runs:
            raise FingerprintsInvalid(f"no text has {self._least} words in a row; give longer ones")
        bits = -(-self.words * BITS_A_WORD // 64) * 64
        filter_ = np.zeros(bits // 8, np.uint8)
        window = window_of(self._least)
        kept: list[_Numbers] = []
        for numbers in self._runs:
            for size in (*range(1, RUN + 1), self._least):
                _mark(filter_, bits, _hashes(numbers, size))
            kept.append(_winnowed(_hashes(numbers, self._least - window + 1), window))
        anchors = np.unique(np.concatenate(kept)).astype("<u8")
        return written(
            least=self._least,
            texts=self.texts,
            words=self.words,
            filter_=filter_.tobytes(),
            anchors=anchors.tobytes(),
        )


def _unbroken(numbers: Sequence[int | None], least: int) -> list[_Numbers]:
    """Return the stretches between what is no word, each of `least` words or more."""
    found: list[_Numbers] = []
    stretch: list[int] = []
    for number in (*numbers, None):
        if number is not None:
            stretch.append(number)
        else:
            if len(stretch) >= least:
                found.append(np.array(stretch, np.uint64))
            stretch = []
    return found


def _hashes(numbers: _Numbers, size: int) -> _Numbers:
    """Return the hash of each run of `size` words (see `run_hash`)."""
    count = len(numbers) - size + 1
    found = np.full(count, SEED, np.uint64)
    for at in range(size):
        found = (found ^ numbers[at : at + count]) * np.uint64(FACTOR)
        found ^= found >> np.uint64(SHIFT)
    return found


def _winnowed(hashes: _Numbers, window: int) -> _Numbers:
    """Return the least hash of each window."""
    found = hashes[: len(hashes) - window + 1]
    for at in range(1, window):
        found = np.minimum(found, hashes[at : len(hashes) - window + 1 + at])
    return np.unique(found)


def _mark(filter_: NDArray[np.uint8], bits: int, hashes: _Numbers) -> None:
    """Note runs in the filter."""
    low, high = hashes & np.uint64(0xFFFFFFFF), hashes >> np.uint64(32) | np.uint64(1)
    for probe in range(PROBES):
        places = (low + np.uint64(probe) * high) % np.uint64(bits)
        np.bitwise_or.at(filter_, places >> np.uint64(3), np.uint8(1) << (places & np.uint64(7)).astype(np.uint8))
