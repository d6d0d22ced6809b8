"""Fingerprints of texts that must not be recited: what is kept of them, how it is stored, and what it tells.

Two things are kept, and no word of the texts:

- *runs*: a Bloom filter of all runs of 1 to `run` words, and of `least`. It never denies a run that stands in the
  texts, so what may still become a recital is known from the first word on.
- *anchors*: winnowed hashes of runs of `gram` words (Schleimer, Wilkerson and Aiken, "Winnowing: Local Algorithms for
  Document Fingerprinting", SIGMOD 2003, section 3): of each `window` grams in a row the least. So each `least` =
  `gram` + `window` - 1 words in a row of a text have an anchor in them: the guarantee that no recital is missed.

The file, in little-endian order:

    bytes 0-7      `CSFPRINT`
    8-11           version: 1
    12-19          run, probes, gram, window; two bytes each
    20-23          number of texts
    24-47          words of them, bits of the filter, number of anchors; eight bytes each
    48-79          SHA-256 of all other bytes of the file
    from 80 on     the filter, bit b in byte b // 8 at 2 ** (b % 8); then the anchors, eight bytes each, ascending

A hash of a run is made of the numbers of its words (see `plain_words`), one after the other (`run_hash`).
"""

from __future__ import annotations

import hashlib
import operator
import struct
import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

from checkstream.errors import FingerprintsInvalid

VERSION: Final = 1
RUN: Final = 4
"""Words of the longest run that the filter knows."""
PROBES: Final = 4
BITS_A_WORD: Final = 36
MAX_BYTES: Final = 1 << 30
LEAST_WORDS, MOST_WORDS = 6, 100
"""That a recital may need to have."""
SEED: Final = 0x9E3779B97F4A7C15
FACTOR: Final = 0xBF58476D1CE4E5B9
SHIFT: Final = 31
MASK: Final = (1 << 64) - 1
MAGIC: Final = b"CSFPRINT"
_HEAD: Final = struct.Struct("<8sI4HI3Q32s")
_SUM: Final = 32
_LOW: Final = (1 << 32) - 1
_READ_BYTES: Final = 1 << 20
_PART: Final = 4096
_MOST_RUN: Final = 8
"""Each word is looked up with as many before it."""

Data = bytes | memoryview


def window_of(least: int) -> int:
    """Return how many grams stand in a window, for recitals of so many words and more."""
    return least // 2 - 1


def run_hash(numbers: Iterable[int]) -> int:
    """Return the hash of a run of words."""
    found = SEED
    for number in numbers:
        found = ((found ^ number) * FACTOR) & MASK
        found ^= found >> SHIFT
    return found


class Fingerprints:
    """What is known of some texts. Immutable; equal to itself alone."""

    __slots__ = (
        "_anchors",
        "_bits",
        "_filter",
        "_probes",
        "digest",
        "gram",
        "least",
        "run",
        "texts",
        "window",
        "words",
    )

    def __init__(self, data: Data) -> None:
        """Read a file of fingerprints, trusting nothing of it.

        Args:
            data: All of the file; it is not copied.

        Raises:
            FingerprintsInvalid: it is none, or it is damaged, or of another version.
        """
        view = memoryview(data).cast("B")
        if len(view) < _HEAD.size or bytes(view[: len(MAGIC)]) != MAGIC:
            raise FingerprintsInvalid("it is no file of fingerprints; make one with `checkstream fingerprint`")
        _, version, run, probes, gram, window, texts, words, bits, anchors, said = _HEAD.unpack_from(view)
        if version != VERSION:
            raise FingerprintsInvalid(f"it is of version {version}, known is {VERSION}; make it anew")
        if not (
            1 <= run <= min(gram, _MOST_RUN) and gram <= MOST_WORDS and 1 <= window <= MOST_WORDS and 1 <= probes <= 16
        ):
            raise FingerprintsInvalid("its sizes are out of range; make it anew")
        if not (64 <= bits <= 8 * MAX_BYTES and bits % 64 == 0 and 1 <= anchors <= MAX_BYTES // 8):
            raise FingerprintsInvalid("its sizes are out of range; make it anew")
        size = _HEAD.size + bits // 8 + 8 * anchors
        if len(view) != size:
            raise FingerprintsInvalid(f"it has {len(view)} bytes in place of {size}: it is torn; copy it again")
        digest = checksum(view)
        if digest.digest() != said:
            raise FingerprintsInvalid("its checksum is wrong: it is damaged; copy it again, or make it anew")
        if sys.byteorder != "little":
            raise FingerprintsInvalid("machines with the high byte first can't read it")
        self._filter = view[_HEAD.size : _HEAD.size + bits // 8]
        self._anchors = view[_HEAD.size + bits // 8 :].cast("Q")
        if not _ascending(self._anchors):
            raise FingerprintsInvalid("its anchors are not in order; make it anew")
        self._bits: int = bits
        self._probes: int = probes
        self.run: int = run
        self.gram: int = gram
        self.window: int = window
        self.least: int = self.gram + self.window - 1
        """Words of the shortest recital that is found for sure."""
        self.texts: int = texts
        self.words: int = words
        self.digest = digest.hexdigest()
        """Of all that it tells, SHA-256 in hex."""

    def has_run(self, numbers: Sequence[int]) -> bool:
        """Tell whether these words may stand in a row in one of the texts; if they do, it is so.

        `numbers`: up to `run` of them, or `least`.
        """
        found = run_hash(numbers)
        low, high, bits, bytes_ = found & _LOW, found >> 32 | 1, self._bits, self._filter
        for _ in range(self._probes):
            place = low % bits
            if not bytes_[place >> 3] >> (place & 7) & 1:
                return False
            low += high
        return True

    def is_anchor(self, numbers: Sequence[int]) -> bool:
        """Tell whether these words, `gram` of them, are an anchor."""
        found = run_hash(numbers)
        place = bisect_left(self._anchors, found)
        return place < len(self._anchors) and self._anchors[place] == found


def _ascending(numbers: memoryview) -> bool:
    """Tell whether numbers ascend; a part at a time, so that other threads run."""
    parts = (numbers[at : at + _PART + 1] for at in range(0, len(numbers), _PART))
    return all(all(map(operator.lt, part[:-1], part[1:])) for part in parts)


def checksum(view: memoryview) -> hashlib._Hash:
    """Return the hash of a file, in which the place of the hash itself counts for nothing."""
    found = hashlib.sha256(view[: _HEAD.size - _SUM])
    for at in range(_HEAD.size, len(view), _READ_BYTES):
        found.update(view[at : at + _READ_BYTES])
    return found


def written(*, least: int, texts: int, words: int, filter_: bytes, anchors: bytes) -> bytes:
    """Return the file."""
    window = window_of(least)
    gram = least - window + 1
    head = (MAGIC, VERSION, RUN, PROBES, gram, window, texts, words, 8 * len(filter_), len(anchors) // 8)
    body = filter_ + anchors
    unsigned = _HEAD.pack(*head, bytes(_SUM)) + body
    return _HEAD.pack(*head, checksum(memoryview(unsigned)).digest()) + body
