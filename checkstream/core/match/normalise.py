"""Views of a text in which evasions are undone, with exact offset maps (G9, G18).

A view reads its source from left to right and writes characters, each with the half-open span of the
original that it stands for. What it can't decide yet it leaves unread; how much that is depends on the
text read so far and on nothing else, so that a view is the same however the text was cut.

    folded   on unescaped (see `escapes`): NFKC, digits of all scripts as ASCII, ignorables and controls removed,
             lookalikes of ASCII mapped to it, strokes and rings on ASCII characters left out
    spaced   on unmarked (see `markup`), which is on folded: runs of four or more single letters set apart by one and
             the same gap (`k i l l`, `["k", "i", ...]`, one a line, entries of a list) pulled together, with the signs
             and gaps between their words
    leet     on spaced: digits and signs used as letters (`1gn0re`) mapped to them
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Protocol

import msgspec

from checkstream.core.match.confusables import CONFUSABLES
from checkstream.core.match.engine import compile_regex

MAX_CLUSTER: Final = 32
"""Most characters read as one: a base and its marks (compare the stream-safe format, UAX 15, section 13)."""
LEET: Final = str.maketrans("01345789@$|", "oieastbgasl")
_SIGN: Final = "!"
LEET_CHARS: Final = "01345789@$!|"
COMPOSING: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz<=>")
"""ASCII characters that a following mark may become one with."""


class Reading(msgspec.Struct):
    """What a view made of some source text."""

    text: str
    starts: Sequence[int]
    """For each character of `text`, the offset in the original at which it starts."""
    ends: Sequence[int]
    used: int
    """Characters of the source that were read; the rest is undecided."""
    changed: int = -1
    """End, in the original, of the last place where the view differs from its source; -1: nowhere."""


class View(Protocol):
    """One way of reading a text."""

    def read(self, text: str, starts: Sequence[int], ends: Sequence[int], *, ended: bool) -> Reading:
        """Read the source's next characters, which begin with those left unread the last time."""

    @property
    def neutral(self) -> bool:
        """Whether nothing that was read earlier changes how the next characters are read."""


_PAGE: Final = "\f"
"""What ends a page ends a line."""
FOLDING: Final = r"[^\t\n\r -~]"
"""What `folded` may change: all but the ASCII characters that show, or show a gap within a page."""
_FOLDING: Final = compile_regex(FOLDING)


def folds_nowhere(text: str) -> bool:
    """Whether `folded` reads a text as it stands."""
    return _FOLDING.search(text) is None


def ignorable(char: str) -> bool:
    """Whether a character shows nothing: controls, format characters (Cf), variation selectors, fillers.

    So does what stands in place of half a character: many clients leave it out, and a reader looks past it.
    """
    category = unicodedata.category(char)
    return category == "Cf" or char in _FILLERS or (category == "Cc" and char not in "\t\n\f\r\x85")


HALF: Final = "\ufffd"
"""Stands for what is no character: a surrogate without its other half, octets that are no UTF-8."""
_FILLERS: Final = frozenset(
    HALF
    + "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"
    + "".join(map(chr, range(0xFE00, 0xFE10)))
    + "".join(map(chr, range(0xE0100, 0xE01F0)))
)


@lru_cache(maxsize=1 << 14)
def joins(char: str) -> bool:
    """Whether a character may become one with those before it: marks, conjoining jamo, ignorables."""
    if char < "\x80":
        return ignorable(char)
    return unicodedata.category(char).startswith("M") or "\u1160" <= char <= "\u11ff" or ignorable(char)


@lru_cache(maxsize=1 << 14)
def fold(cluster: str) -> str:
    """Return a cluster (a base and what joins it) in folded form; empty when nothing of it shows."""
    if len(cluster) == 1 and cluster in CONFUSABLES:
        return CONFUSABLES[cluster]
    shown = "".join(char for char in cluster if not ignorable(char))
    if (digit := _digit(shown[:1])) is not None:
        shown = digit + shown[1:]
    folded = "".join(CONFUSABLES.get(char, char) for char in unicodedata.normalize("NFKC", shown))
    if folded[:1].isascii():  # a mark left on an ASCII character is an overlay
        folded = folded[:1] + "".join(char for char in folded[1:] if not joins(char))
    return folded


def _digit(char: str) -> str | None:
    """Return the ASCII digit that a character stands for: of any script, raised, lowered, enclosed, with a stop."""
    value = unicodedata.digit(char, None) if char > "\x7f" else None
    return None if value is None else str(value)


_JOINING: Final = "\0"
"""Stands for what is not read as one character by itself. It shows nothing itself, and so is among them."""


class _Flat(dict[int, str]):
    """What each character comes to that is read alone, learnt as it comes; as `str.translate` asks."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        folded = "\n" if char == _PAGE else _JOINING if joins(char) else fold(char)
        if len(folded) != 1:
            folded = _JOINING
        if len(self) >= _MOST_KNOWN:
            self.clear()
        self[code] = folded
        return folded


_MOST_KNOWN: Final = 1 << 14
_FLAT: Final = _Flat()


def _composes(char: str) -> bool:
    """Tell whether a character may become one with those behind it."""
    return char > "\x7f" or char in COMPOSING


def _cluster_end(text: str, at: int) -> int:
    """Return the end of a character and what joins it, as far as that is known."""
    after, most = at + 1, min(at + MAX_CLUSTER, len(text))
    if _composes(text[at]):
        while after < most and joins(text[after]):
            after += 1
    return after


class Folded:
    """NFKC, ignorables removed, lookalikes mapped. Source: UAX 15; UTS 39, section 4."""

    __slots__ = ("_marked",)

    def __init__(self, before: str = "") -> None:
        """Start after the character `before` ("" at the text's start)."""
        self._marked = bool(before) and before.isascii()

    @property
    def neutral(self) -> bool:
        """A cluster is read whole; the base before it is known from the text."""
        return True

    def read(self, text: str, starts: Sequence[int], ends: Sequence[int], *, ended: bool) -> Reading:
        """Read whole clusters."""
        if folds_nowhere(text):
            used = len(text) - (not ended and text[-1:] in COMPOSING)
            if used:
                self._marked = True
            return Reading(text[:used], starts[:used], ends[:used], used)
        flat = text.translate(_FLAT)
        out: list[str] = []
        first: list[int] = []
        last: list[int] = []
        at, size, changed = 0, len(text), -1
        while at < size:
            stop = flat.find(_JOINING, at)
            stop = self._stop(text, stop if stop >= 0 else size, ended=ended)
            if stop > at:  # each of these is read alone, as one character
                run = flat[at:stop]
                out.append(run)
                first += starts[at:stop]
                last += ends[at:stop]
                self._marked = run[-1].isascii()
                if run != text[at:stop]:
                    changed = ends[next(place for place in range(stop - 1, at - 1, -1) if flat[place] != text[place])]
                at = stop
                continue
            after = _cluster_end(text, at)
            if after == size and after - at < MAX_CLUSTER and not ended and _composes(text[at]):
                break
            folded = self._fold(text[at], text[at:after])
            out.append(folded)
            first += [starts[at]] * len(folded)
            last += [ends[after - 1]] * len(folded)
            if after > at + 1 or folded != text[at]:  # a cluster is mapped as one piece, changed or not
                changed = ends[after - 1]
            at = after
        return Reading("".join(out), first, last, at, changed)

    @staticmethod
    def _stop(text: str, stop: int, *, ended: bool) -> int:
        """Return where a run of single characters ends, before `stop`: its last may be the base of a cluster."""
        known = not joins(text[stop]) if stop < len(text) else ended
        return stop if known or not stop or not _composes(text[stop - 1]) else stop - 1

    def _fold(self, char: str, cluster: str) -> str:
        """Fold one cluster; marks without a base belong to the ASCII character read before, as overlays."""
        if cluster.isascii() and not joins(cluster[-1]):
            self._marked = True
            return "\n" if cluster == _PAGE else cluster
        if self._marked and joins(char):
            return ""
        folded = fold(cluster)
        if folded:
            self._marked = folded[-1].isascii()
        return folded


class Leet:
    """Digits and signs that stand for letters, mapped one to one.

    `!` is a letter only in front of one: at a word's end it is what it is.
    """

    __slots__ = ("_waiting",)

    def __init__(self, before: str = "") -> None:  # noqa: ARG002 - every view starts after a character
        """Start after any character."""
        self._waiting = False

    @property
    def neutral(self) -> bool:
        """Whether no sign waits for what follows it."""
        return not self._waiting

    def read(self, text: str, starts: Sequence[int], ends: Sequence[int], *, ended: bool) -> Reading:
        """Read all but a sign at the end, which waits for what follows it."""
        used = len(text) - (not ended and text.endswith(_SIGN))
        self._waiting = used < len(text)
        mapped = text.translate(LEET)
        if _SIGN in mapped:
            mapped = "".join(
                "i" if char == _SIGN and after.isalnum() else char
                for char, after in zip(mapped, f"{mapped[1:]} ", strict=True)
            )
        mapped = mapped[:used]
        changed = -1
        if mapped != text[:used]:
            changed = ends[next(i for i in range(used - 1, -1, -1) if mapped[i] != text[i])]
        return Reading(mapped, starts[:used], ends[:used], used, changed)
