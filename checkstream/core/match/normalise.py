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
_GAP_SIGNS: Final = " \t\r\n._*|,;:/\"'\u2022\u00b7+>#-"
_GAP_CHARS: Final = frozenset(_GAP_SIGNS)
_MOST_GAP: Final = 16
"""Characters between two letters of a run: an array that is set out has white space ahead of each."""
_ONE: Final = r"[\pL\pN]"
_SOME: Final = f"[{_GAP_SIGNS[:-1]}\\-]+"
_NUMBER: Final = r"[ \t]{0,8}\r?\n[ \t]{0,8}\(?[0-9]{1,2}[.):\]][ \t]{1,3}"
"""A line's end and the number of the next entry of a list."""
_BETWEEN: Final = rf"(?:{_SOME}(?:[^\pL\pN]{_SOME})?|{_NUMBER}(?:[^\pL\pN]{_NUMBER})?)"
APART: Final = rf"{_ONE}{_BETWEEN}{_ONE}{_BETWEEN}{_ONE}{_BETWEEN}{_ONE}"
"""What every run of single letters has in it."""
_APART: Final = compile_regex(APART)
_NUMBERED: Final = compile_regex(_NUMBER)
_NUMBERED_BEGUN: Final = compile_regex(
    r"[ \t]{0,8}(?:\r|\r?\n[ \t]{0,8}(?:\(?(?:[0-9]{1,2}(?:[.):\]][ \t]{0,3})?)?)?)?\z"
)
_ENTRY: Final = "1."
"""Stands for every gap that has the number of an entry in it."""
RUN_SINGLES: Final = 4
"""Fewest single letters that make a spaced run."""
_BLANK: Final = " " * 5
"""No gap, unless it is ahead of a line: what stands so far apart is a table."""
_MOST_SIGNS: Final = 2
_MOST_UNSHOWN: Final = 64
"""More characters than two gaps have and a sign between them."""
_MOST_BEGUN: Final = 160
"""More characters than a run has of which it is not known yet that it is one."""
_MOST_STEPS: Final = 2 * RUN_SINGLES
"""More letters, and numbers of entries, than such a run has."""
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


class Spaced:
    """Single letters set apart, pulled together: the gaps between them are left out."""

    __slots__ = ("_after_word", "_gap")

    def __init__(self, before: str = "") -> None:
        """Start after the character `before` ("" at the text's start)."""
        self._after_word = before.isalnum()
        self._gap = ""

    @property
    def neutral(self) -> bool:
        """Within a run the next letter is read as part of it."""
        return not self._gap

    def read(self, text: str, starts: Sequence[int], ends: Sequence[int], *, ended: bool) -> Reading:
        """Read up to the first run that is not decided."""
        if not self._gap and _APART.search(text) is None:
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
            if self._gap:
                member = _next_member(text, at, self._gap, ended=ended)
                if member is None:
                    break
                if member >= 0:
                    kept.append(member)
                    changed = ends[member]
                    at = member + 1
                    continue
                self._gap, self._after_word = "", True
            char = text[at]
            if self._after_word or not char.isalnum():
                kept.append(at)
                self._after_word = char.isalnum()
                at += 1
                continue
            run = _run(text, at, ended=ended)
            if run is None:
                break
            gap, members = run
            if members:
                kept += members
                changed = ends[members[-1]]
                self._gap = gap
                at = members[-1] + 1
                continue
            kept.append(at)
            self._after_word = True
            at += 1
        if changed < 0:
            return Reading(text[:at], starts[:at], ends[:at], at)
        return Reading(
            "".join([text[i] for i in kept]), [starts[i] for i in kept], [ends[i] for i in kept], at, changed
        )


_NOWHERE: Final = -1
_NO_RUN: Final[tuple[str, Sequence[int]]] = ("", ())


def _single(text: str, at: int, *, ended: bool) -> bool | None:
    """Whether `text[at]` is a letter or digit with none after it; None: not known yet."""
    if at >= len(text):
        return False if ended else None
    if not text[at].isalnum():
        return False
    if at + 1 >= len(text):
        return True if ended else None
    return not text[at + 1].isalnum()


def _behind(text: str, at: int, gap: str, *, ended: bool) -> int | None:
    """Return where a gap ends that starts at `at`; `_NOWHERE`: none does; None: not known yet."""
    if gap is not _ENTRY:
        if text.startswith(gap, at):
            return at + len(gap)
        return None if not ended and gap.startswith(text[at : at + len(gap)]) else _NOWHERE
    rest = text[at : at + _MOST_UNSHOWN]
    hit = _NUMBERED.match(rest)
    if hit is not None and (ended or hit.end() < len(rest)):
        return at + hit.end()
    return None if not ended and _NUMBERED_BEGUN.match(rest) is not None else _NOWHERE


def _next_member(text: str, at: int, gap: str, *, ended: bool) -> int | None:
    """Return where the next member of a run stands: a single, or a sign between two; `at` is behind the last one.

    `_NOWHERE`: the run has ended; None: not known yet.
    """
    place = _behind(text, at, gap, ended=ended)
    if place is None or place == _NOWHERE:
        return place
    if place >= len(text) or text[place].isalnum():
        verdict = _single(text, place, ended=ended)
    else:
        verdict = _is_sign(text, place, gap, ended=ended)
    return None if verdict is None else place if verdict else _NOWHERE


def _is_sign(text: str, place: int, gap: str, *, ended: bool) -> bool | None:
    """Whether the run goes on behind a sign, with a single or with one more sign; None: not known yet."""
    after = _behind(text, place + 1, gap, ended=ended)
    if after is None or after == _NOWHERE:
        return None if after is None else False
    if after < len(text) and not text[after].isalnum():
        following = _behind(text, after + 1, gap, ended=ended)
        return None if following is None else following != _NOWHERE
    return _single(text, after, ended=ended)


def _run(text: str, at: int, *, ended: bool) -> tuple[str, Sequence[int]] | None:
    """Return the gap, and the first members, of the run that begins at `at`, if one does; None: not known yet.

    A run begins with `RUN_SINGLES` singles, between which signs may stand, each once (`g h p _ a`, `j . d @ e x`).
    """
    verdict = _single(text, at, ended=ended)
    if not verdict:
        return None if verdict is None else _NO_RUN
    gaps = _gaps(text, at + 1, ended=ended)
    if gaps is None:
        return None
    for gap in gaps:
        members = _members(text, at, gap, ended=ended)
        if members is None:
            return None
        if members:
            return gap, members
    return _NO_RUN


def _gaps(text: str, at: int, *, ended: bool) -> Sequence[str] | None:
    """Return what may be the gap of a run whose first letter stands before `at`; None: not known yet."""
    end, strange = at, 0
    if text.startswith(_BLANK, at):
        return ()
    while end < len(text) and not text[end].isalnum():
        strange += text[end] not in _GAP_CHARS
        if strange > 1 or end - at > 2 * _MOST_GAP:
            return ()
        end += 1
    if end == len(text):
        return () if ended else None
    between = text[at:end]
    gaps: list[str] = []
    middle = len(between) // 2
    if len(between) % 2 and between[:middle] == between[middle + 1 :] and _GAP_CHARS.issuperset(between[:middle]):
        gaps.append(between[:middle])  # a sign between two gaps
    if not strange and len(between) <= _MOST_GAP:
        gaps.append(between)
    if "\n" in between:
        gaps.append(_ENTRY)
    return [gap for gap in gaps if gap]


def _members(text: str, at: int, gap: str, *, ended: bool) -> Sequence[int] | None:
    """Return where the first members of a run with this gap stand; empty: there is none; None: not known yet."""
    members, signs = [at], ""
    while len(members) - len(signs) < RUN_SINGLES:
        place = _behind(text, members[-1] + 1, gap, ended=ended)
        if place is None or (place == len(text) and not ended):
            return None
        if place == _NOWHERE or place == len(text):
            return ()
        if text[place].isalnum():
            verdict = _single(text, place, ended=ended)
            if not verdict:
                return None if verdict is None else ()
        else:
            if text[place] in signs or len(signs) == _MOST_SIGNS:
                return ()
            signs += text[place]
        members.append(place)
    return members


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
    low = _lone_before(text, end)
    if low == end:
        return end
    for _ in range(_MOST_STEPS):
        if not low or end - low >= _MOST_BEGUN:
            break
        place = _lone_before(text, low)
        if place == low:
            break
        low = place
    tail = text[low:end]
    for at, char in enumerate(tail):
        begins = char.isalnum() and not (text[low + at - 1].isalnum() if low + at else after_word)
        if begins and _run(tail, at, ended=False) is None:
            return low + at
    return end


def _lone_before(text: str, end: int) -> int:
    """Return where the last letter or digit of `text[:end]` stands, or a number of two; `end`: it is of a word."""
    last = end
    while last and not text[last - 1].isalnum():
        last -= 1
        if end - last > _MOST_UNSHOWN:
            return end
    word = text[max(last - 3, 0) : last]
    if not word[-2:].isalnum() or len(word) == 1:
        return max(last - 1, 0)
    return end if (word.isalnum() and len(word) > 2) or not word[-2:].isdecimal() else last - 2
