"""What callers have in each of several processes, for all of them to see: one page of shared memory a process.

Each process writes its own page alone and reads those of all, so there is no lock, and nobody waits for a parent. Who
takes something writes it down first and then looks at what all have: two that take the last at the same moment may both
find it gone, but never both get it. One page besides is of what callers have on other machines (`ELSEWHERE`).

A page is a table of words of 64 bits, a key and its value side by side: the hash of what is counted for whom, under a
key of these processes alone, so that nobody outside can choose two that fall together. A key has a few places where it
may stand, and whoever looks for it looks at all of them at once: so a page stays quick whatever stood there before, and
no key moves, which another process might miss meanwhile. It stays until another takes its place, which that can once
the value is 0. Amounts add up over pages; of moments the last counts. The sign of a key says which of both it is of, so
who reads a whole page needs to know nothing else.
"""

from __future__ import annotations

import hashlib
import itertools
import mmap
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import Final

PLACES: Final = 4096
"""Keys that a page has at most; from some 2,600 on there may be no room for one more."""
NEAR: Final = 64
"""Places where a key may stand."""
_PAGE: Final = 2 * PLACES
"""Words of a page."""
PAGES: Final = 128
"""Of all processes, those too that only end what they have begun."""
_DIRECTORY: Final = PAGES
"""Words before the first page: which are in use."""
ELSEWHERE: Final = PAGES
"""The page of what callers have on other machines: behind those of processes, and looked at always."""
_BYTES: Final = 8 * (_DIRECTORY + (PAGES + 1) * _PAGE)


def make() -> int:
    """Return the descriptor of an empty board; what is not written to takes no memory.

    Raises:
        OSError: there is no room for it.
    """
    if sys.platform == "linux":
        descriptor = os.memfd_create("checkstream-board")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, _BYTES)
    return descriptor


class Pages:
    """Which pages are in use, as the parent says. It alone gives them out and takes them back."""

    def __init__(self, descriptor: int, half: int) -> None:
        """Give out pages of one half: another parent, which this one follows or that follows it, has the other."""
        self._words = _words(descriptor)
        self._half = range(half * PAGES // 2, (half + 1) * PAGES // 2)

    def take(self) -> int:
        """Return a page that nobody has; -1: there is none."""
        for page in self._half:
            if not self._words[page]:
                self._words[page] = 1
                return page
        return -1

    def give(self, page: int) -> None:
        """Clear the page of a process that has ended."""
        if page >= 0:
            begin = _begin(page)
            self._words[page] = 0
            self._words[begin : begin + _PAGE] = memoryview(bytes(8 * _PAGE)).cast("q")


class Board:
    """One process's page, and what stands on the others'."""

    def __init__(self, descriptor: int, page: int, secret: bytes) -> None:
        """Write to `page`.

        Args:
            descriptor: Of the board.
            page: Given out by `Pages`, or `ELSEWHERE`; -1: there was none left.
            secret: Of all processes, at most 64 bytes.
        """
        self._words = _words(descriptor)
        self._page = page
        self._secret = secret

    def key(self, *said: str) -> int:
        """Return the key of an amount: above 0."""
        text = "\0".join(said).encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(text, key=self._secret, digest_size=8).digest()
        return int.from_bytes(digest, "big") >> 1 or 1

    def key_of_moment(self, *said: str) -> int:
        """Return the key of a moment, in milliseconds of the machine's monotonic clock: below 0."""
        return -self.key(*said)

    def write(self, key: int, value: int) -> bool:
        """Write a value down for all to see; tell whether there was room for its key."""
        if self._page < 0:  # there were more processes than pages: what nobody sees may not be taken
            return value == 0
        place = self._own_place(key, new=value != 0)
        if place < 0:
            return value == 0
        self._words[place + 1] = value
        return True

    def _own_place(self, key: int, *, new: bool) -> int:
        there = self._place(key, self._page)
        if there >= 0 or not new:
            return there
        begin = _first_place(key, self._page)
        values = self._words[begin + 1 : begin + 2 * NEAR : 2].tolist()
        if 0 not in values:
            return -1
        free = begin + 2 * values.index(0)
        self._words[free] = key  # its value is 0 until it is written
        return free

    def _place(self, key: int, page: int) -> int:
        """Return the word where a key stands on a page; -1: it doesn't."""
        begin = _first_place(key, page)
        first = self._words[begin]
        if first == key or not first:  # keys are never taken away, so behind an empty place there is none of these
            return begin if first else -1
        keys = self._words[begin : begin + 2 * NEAR : 2].tolist()
        return begin + 2 * keys.index(key) if key in keys else -1

    def _elsewhere(self, key: int) -> Iterator[int]:
        words = self._words
        for page in (*itertools.compress(range(PAGES), words[:PAGES].tolist()), ELSEWHERE):
            if page == self._page:
                continue
            place = self._place(key, page)
            if place >= 0:
                value = words[place + 1]
                if words[place] == key:  # else another has taken the place meanwhile
                    yield value

    def elsewhere(self, key: int) -> int:
        """Return the sum of what the other processes have written under a key."""
        return sum(self._elsewhere(key))

    def highest_elsewhere(self, key: int) -> int:
        """Return the highest that another process has written under a key; 0: none has."""
        return max(self._elsewhere(key), default=0)

    def totals(self) -> dict[int, int]:
        """Return what stands on the pages of all processes: of amounts the sums, of moments the last."""
        found: dict[int, int] = {}
        for page, used in enumerate(self._words[:PAGES].tolist()):
            if used:
                for _, key, value in self._there(page):
                    before = found.get(key, 0)
                    found[key] = before + value if key > 0 else max(before, value)
        return found

    def replace(self, values: Mapping[int, int]) -> bool:
        """Have this on the page and nothing else; tell whether there was room for all of it.

        Who looks meanwhile finds each key that was there and stays, with the value before or the new one.
        """
        for place, key, _ in self._there(self._page):
            if key not in values:
                self._words[place + 1] = 0
        written = [self.write(key, value) for key, value in values.items()]
        return all(written)

    def _there(self, page: int) -> Iterator[tuple[int, int, int]]:
        """Return the places of a page that have something, each with its key and its value."""
        begin = _begin(page)
        words = self._words[begin : begin + _PAGE].tolist()
        values = words[1::2]
        return itertools.compress(zip(range(begin, begin + _PAGE, 2), words[::2], values, strict=True), values)


def _begin(page: int) -> int:
    return _DIRECTORY + page * _PAGE


def _words(descriptor: int) -> memoryview:
    if os.fstat(descriptor).st_size < _BYTES:  # of a parent of another version, which has less
        os.ftruncate(descriptor, _BYTES)
    return memoryview(mmap.mmap(descriptor, _BYTES)).cast("q")


def _first_place(key: int, page: int) -> int:
    """Return the word where the places begin in which a key may stand on a page."""
    return _begin(page) + 2 * min(key % PLACES, PLACES - NEAR)
