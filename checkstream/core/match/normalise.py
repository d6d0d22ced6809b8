"""Views of a text in which evasions are undone, with exact offset maps (G9, G18).

A view reads its source from left to right and writes characters, each with the half-open span of the
original that it stands for. What it can't decide yet it leaves unread; how much that is depends on the
text read so far and on nothing else, so that a view is the same however the text was cut.

    folded   on unescaped (see `escapes`): NFKC, digits of all scripts as ASCII, ignorables and controls removed,
             lookalikes of ASCII mapped to it, strokes and rings on ASCII characters left out
    spaced   on unmarked (see `markup`), which is on folded: runs of four or more single letters set apart by one and
             the same separator (`k i l l`, `k-i-l-l`) pulled together, with the signs and gaps between their words
    leet     on spaced: digits and signs used as letters (`1gn0re`) mapped to them
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Protocol

import msgspec

from checkstream.core.match.confusables import CONFUSABLES
from checkstream.core.match.patterns import compile_regex

MAX_CLUSTER: Final = 32
"""Most characters read as one: a base and its marks (compare the stream-safe format, UAX 15, section 13)."""
_ONE: Final = r"[^ ._*|\-]"
_GAP: Final = r"[ ._*|\-]"
_SIGNED: Final = rf"{_GAP}[^0-9A-Za-z]{_GAP}"
"""A gap with a sign in it."""
APART: Final = (
    rf"{_ONE}(?:{_GAP}{_ONE}(?:{_GAP}{_ONE}(?:{_GAP}|{_SIGNED}){_ONE}|{_SIGNED}{_ONE}{_GAP}{_ONE})"
    rf"|{_SIGNED}{_ONE}{_GAP}{_ONE}{_GAP}{_ONE})"
)
"""What every run of single letters has in it."""
_APART: Final = compile_regex(APART)
RUN_SINGLES: Final = 4
"""Fewest single letters that make a spaced run."""
_MOST_BEGUN: Final = 2 * RUN_SINGLES + 2
"""More characters than a run has of which it is not known yet that it is one."""
SEPARATORS: Final = frozenset(" ._*|-")
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


FOLDING: Final = r"[^\t\n\f\r -~]"
"""What `folded` may change: all but the ASCII characters that show, or show a gap."""
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
        out: list[str] = []
        first: list[int] = []
        last: list[int] = []
        at, size, changed = 0, len(text), -1
        while at < size:
            char = text[at]
            after = at + 1
            if char > "\x7f" or char in COMPOSING:
                while after < size and after - at < MAX_CLUSTER and joins(text[after]):
                    after += 1
                if after == size and after - at < MAX_CLUSTER and not ended:
                    break
            folded = self._fold(char, text[at:after])
            out.append(folded)
            if len(folded) == 1 and after == at + 1:
                first.append(starts[at])
                last.append(ends[at])
            else:
                first.extend([starts[at]] * len(folded))
                last.extend([ends[after - 1]] * len(folded))
            if after > at + 1 or folded != char:  # a cluster is mapped as one piece, changed or not
                changed = ends[after - 1]
            at = after
        return Reading("".join(out), first, last, at, changed)

    def _fold(self, char: str, cluster: str) -> str:
        """Fold one cluster; marks without a base belong to the ASCII character read before, as overlays."""
        if cluster.isascii() and not joins(cluster[-1]):
            self._marked = True
            return cluster
        if self._marked and joins(char):
            return ""
        folded = fold(cluster)
        if folded:
            self._marked = folded[-1].isascii()
        return folded


class Spaced:
    """Single letters set apart, pulled together: the separators between them are left out."""

    __slots__ = ("_after_word", "_separator")

    def __init__(self, before: str = "") -> None:
        """Start after the character `before` ("" at the text's start)."""
        self._after_word = before.isalnum()
        self._separator = ""

    @property
    def neutral(self) -> bool:
        """Within a run the next letter is read as part of it."""
        return not self._separator

    def read(self, text: str, starts: Sequence[int], ends: Sequence[int], *, ended: bool) -> Reading:
        """Read up to the first run that is not decided."""
        if not self._separator and _APART.search(text) is None:
            used = len(text) if ended else apart(text, len(text), after_word=self._after_word)
            if used:
                self._after_word = text[used - 1].isalnum()
            return Reading(text[:used], starts[:used], ends[:used], used)
        return self._pull(text, starts, ends, ended=ended)

    def _pull(self, text: str, starts: Sequence[int], ends: Sequence[int], *, ended: bool) -> Reading:
        """Read character by character."""
        kept: list[int] = []
        at, size, changed = 0, len(text), -1
        while at < size:
            if self._separator:
                single = at + 1
                if text[at] == self._separator:
                    verdict = _goes_on(text, single, self._separator, ended=ended)
                    if verdict is None:
                        break
                    if verdict:
                        kept.append(single)
                        changed = ends[single]
                        at += 2
                        continue
                self._separator, self._after_word = "", True
            char = text[at]
            if self._after_word or not char.isalnum():
                kept.append(at)
                self._after_word = char.isalnum()
                at += 1
                continue
            count = _run(text, at, ended=ended)
            if count is None:
                break
            if count:
                singles = range(at, at + 2 * count, 2)
                kept.extend(singles)
                changed = ends[singles[-1]]
                self._separator = text[at + 1]
                at = singles[-1] + 1
                continue
            kept.append(at)
            self._after_word = True
            at += 1
        if changed < 0:
            return Reading(text[:at], starts[:at], ends[:at], at)
        return Reading(
            "".join([text[i] for i in kept]), [starts[i] for i in kept], [ends[i] for i in kept], at, changed
        )


def _single(text: str, at: int, *, ended: bool) -> bool | None:
    """Whether `text[at]` is a letter or digit with none after it; None: not known yet."""
    if at >= len(text):
        return False if ended else None
    if not text[at].isalnum():
        return False
    if at + 1 >= len(text):
        return True if ended else None
    return not text[at + 1].isalnum()


def _goes_on(text: str, at: int, separator: str, *, ended: bool) -> bool | None:
    """Whether a run goes on with `text[at]`: a single, or a sign between two members of it; None: not known yet."""
    if at < len(text) and not text[at].isalnum():
        if text[at + 1 : at + 2] == separator:
            if at + 2 < len(text) and not text[at + 2].isalnum():
                following = text[at + 3 : at + 4]
                return following == separator if following or ended else None
            return _single(text, at + 2, ended=ended)
        return False if ended or at + 1 < len(text) else None
    return _single(text, at, ended=ended)


def _run(text: str, at: int, *, ended: bool) -> int | None:
    """Return how many members stand apart from `at` on, if a run begins there, else 0; None: not known yet.

    A run begins with `RUN_SINGLES` singles, between which one sign may stand (`g h p _ a`, `1 2 3 - 4`).
    """
    place, members, signs = at, 0, 0
    while place < len(text):
        if text[place].isalnum():
            verdict = _single(text, place, ended=ended)
            if not verdict:
                return None if verdict is None else 0
        else:
            signs += 1
            if signs > 1:
                return 0
        members += 1
        if members - signs == RUN_SINGLES:
            return members
        if place + 1 >= len(text):
            break
        if text[place + 1] not in SEPARATORS or text[place + 1] != text[at + 1]:
            return 0
        place += 2
    return 0 if ended else None


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


def apart(text: str, end: int, *, after_word: bool) -> int:
    """Return where the singles start that stand apart at the end of `text[:end]`; `end` if there are none.

    `after_word`: a letter or digit stands in front of the text.
    """
    if end > 1 and text[end - 2 : end].isalnum():
        return end  # a word
    low = max(0, end - _MOST_BEGUN)
    tail = text[low:end]
    for at, char in enumerate(tail):
        begins = char.isalnum() and not (text[low + at - 1].isalnum() if low + at else after_word)
        if begins and _run(tail, at, ended=False) is None:
            return low + at
    return end
