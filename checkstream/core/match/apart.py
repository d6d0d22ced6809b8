"""The view `spaced`: single letters that are set apart by one and the same gap, pulled together.

k i l l      ["k", "i", "l", "l"]      one a line      entries of a list
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from checkstream.core.match.engine import compile_regex
from checkstream.core.match.normalise import Reading

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
