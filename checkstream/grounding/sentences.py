"""Where the sentences of a text stand: by rules, in every script, in one pass.

A terminator ends a sentence unless it belongs to a number, a date, an address, a version, an abbreviation or an
initial. A citation behind the terminator (`Claim. [S0]`) belongs to the sentence before. A line ends a sentence where
it is an item, a heading, a table's row or short; else it was only wrapped. Scripts without terminators are cut there.
"""

from __future__ import annotations

from bisect import bisect_right

from checkstream.core.match.regex import TextRegex
from checkstream.core.terms import Span
from checkstream.grounding.abbreviations import BEFORE_NUMBER, BEFORE_ORDINALS, MAY_BE_LAST, MONTHS, NEVER_LAST, OPENERS
from checkstream.grounding.citations import citations

_SPACED = ".!?…．؟۔"
"""End a sentence only before white space or the end: they also stand inside numbers, names and addresses."""
_UNSPACED = "。！？｡︒﹒﹖﹗⁇⁈⁉‼‽।॥։።፧፨။។៕᠃᠉܀܁܂߹᙮᥄᥅᪨᪩᪪᪫᭚᭛᭞᭟᰻᰼᱾᱿꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝꩞꩟꫰꫱꯫\u037e"
"""End a sentence whatever follows."""
TERMINATORS = _SPACED + _UNSPACED
_CLOSERS = "\"'”’»›)]}」』）】*_"
_PLACES = TextRegex(rf"[{_SPACED}{_UNSPACED}]+[\"'”’»›)\]}}」』）】*_]*|[ \t\r]*\n\s*")
_ITEM = TextRegex(r"^\s*(?:[-*+•‣◦▪●–—·|>#]|\d{1,3}[.)]|\(?[a-zA-Zא-ת][.)])(?:\s|$|#|\|)|^\s*(?:#{1,6}|\||>)")
_ITEM_NUMBER = TextRegex(r"^(?:\d{1,3}|[a-zA-Zא-ת])$")
_INITIALS = TextRegex(r"^(?:\pL\.)+\pL$")
_LETTERS = TextRegex(r"^\pL\.")
_WRAPPED = 60
"""A line that is shorter was ended on purpose when the next one does not begin in lower case."""
_MOST_WORD = 24
"""A longer word before a full stop is no abbreviation."""
_MOST_AHEAD = 64


def sentences(text: str) -> list[Span]:
    """Return the sentences of `text` in their order: disjoint, with no white space around, and all else in one."""
    inside = [(citation.start, citation.end) for citation in citations(text)]
    starts = [start for start, _ in inside]
    found: list[Span] = []
    begin = 0
    for place in _PLACES.spans(text):
        if place.start < begin:
            continue
        around = bisect_right(starts, place.start) - 1
        if around >= 0 and place.start < inside[around][1]:
            continue
        if text[place.start] in TERMINATORS:
            end = _end(text, begin, place)
            if end is None:
                continue
            end = _with_citations(text, end, inside, starts)
        elif _line_ends(text, begin, place):
            end = place.start
        else:
            continue
        _add(text, begin, end, found)
        begin = end
    _add(text, begin, len(text), found)
    return found


def _add(text: str, start: int, end: int, found: list[Span]) -> None:
    """Add what stands there, without its white space; marks alone belong to the sentence before."""
    part = text[start:end]
    bare = part.strip()
    if not bare:
        return
    start += len(part) - len(part.lstrip())
    end = start + len(bare)
    if found and not any(char.isalnum() for char in bare) and "\n" not in text[found[-1].end : start]:
        found[-1] = Span(found[-1].start, end)
    else:
        found.append(Span(start, end))


def _end(text: str, begin: int, place: Span) -> int | None:
    """Return where the sentence ends that has the terminator at `place`, or nothing when it goes on."""
    marks = text[place.start : place.end].rstrip(_CLOSERS)
    if any(mark in _UNSPACED for mark in marks):
        return place.end
    if place.end < len(text) and not text[place.end].isspace():
        return place.end if text[place.end] in "[【" or _glued(text, place) else None
    ahead = text[place.end : place.end + _MOST_AHEAD].lstrip()
    if not ahead or "\n" in text[place.end : place.end + _MOST_AHEAD - len(ahead)]:
        return None if _is_item_number(text, begin, place) else place.end
    first = next((char for char in ahead if char.isalnum()), "")
    if marks == ".":
        return place.end if _stop_ends(text, begin, place, ahead, first) else None
    return None if first.islower() else place.end


def _glued(text: str, place: Span) -> bool:
    """Return whether a space was forgotten: in `is closed.The next`, but not in `Node.js`, `3.2` or an address."""
    before, after = text[max(0, place.start - 3) : place.start], text[place.end : place.end + 2]
    return (
        len(before) == 3 and before.islower() and before.isalpha() and after[:1].isupper() and after[1:].islower()
        and after.isalpha() and "/" not in text[max(0, place.start - _MOST_WORD) : place.start]
    )  # fmt: skip


def _word_before(text: str, begin: int, at: int) -> str:
    """Return the run up to `at` that has no white space, bracket or quote, at most `_MOST_WORD` long."""
    start = at
    while (
        start > begin
        and at - start < _MOST_WORD
        and not text[start - 1].isspace()
        and text[start - 1] not in "([{\"'“„«"
    ):
        start -= 1
    return text[start:at]


def _is_item_number(text: str, begin: int, place: Span) -> bool:
    """Return whether the stop belongs to the number of a list's item: `1. First`."""
    return (
        text[place.start] == "."
        and place.start - begin <= _MOST_AHEAD
        and _ITEM_NUMBER.found_in(text[begin : place.start].strip())
    )


def _stop_ends(text: str, begin: int, place: Span, ahead: str, first: str) -> bool:
    """Return whether one full stop with white space behind it ends a sentence.

    Args:
        text: All of it.
        begin: Where the sentence began.
        place: The stop and what closes behind it.
        ahead: The characters that follow the white space.
        first: The first letter or digit of them.
    """
    if _is_item_number(text, begin, place):
        return False
    word = _word_before(text, begin, place.start)
    folded = word.casefold()
    following = ahead.lstrip("\"'“„«([*_")[:_MOST_WORD].split()
    opens = bool(following) and following[0].rstrip(",.;:!?").casefold() in OPENERS and not first.islower()
    if folded in NEVER_LAST or (folded in BEFORE_NUMBER and (first.isdigit() or ahead[:1] == "§")):
        return False
    if len(word) == 1 and word.islower() and _LETTERS.found_in(ahead):
        return False  # `z. B.`, `d. h.`: German puts a space into its abbreviations
    if folded == "al" and text.endswith("et al", begin, place.start):
        return opens
    if folded in MAY_BE_LAST:
        return opens or (first.isupper() and "." not in folded)
    if _INITIALS.found_in(word) or (len(word) == 1 and word.isalpha() and (word.isupper() or first.isdigit())):
        return opens
    if word.isdigit() and len(word) <= 2:
        return not _is_ordinal(text, begin, place.start - len(word), following, first)
    return not (first.islower() and (len(word) < 4 or not word.isalpha()))


def _is_ordinal(text: str, begin: int, at: int, following: list[str], first: str) -> bool:
    """Return whether the number at `at` is a German ordinal: `am 3. Oktober`, `der 2. Platz`, `3. bis`."""
    if first.islower() or (following and following[0].rstrip(",.;:").casefold() in MONTHS):
        return True
    before = text[max(begin, at - _MOST_WORD) : at].split()
    return bool(before) and before[-1].casefold() in BEFORE_ORDINALS and first.isalpha()


def _line_ends(text: str, begin: int, place: Span) -> bool:
    """Return whether the line end at `place` ends a sentence too."""
    if text.count("\n", place.start, place.end) > 1 or place.end >= len(text):
        return True
    line = text[max(begin, text.rfind("\n", begin, place.start) + 1) : place.start]
    if (
        _ITEM.found_in(text[place.end : place.end + 8])
        or _ITEM.found_in(line[:8])
        or line.rstrip().endswith((":", "："))
    ):
        return True
    following = text[place.end]
    return len(line) < _WRAPPED and not following.islower() and (following.isalnum() or following in _CLOSERS)


def _with_citations(text: str, end: int, inside: list[tuple[int, int]], starts: list[int]) -> int:
    """Return the end after the citations that follow on the line, unless they open the next sentence (`[S0] says`)."""
    reached = end
    while True:
        at = reached
        while at < len(text) and text[at] in " \t\u00a0\u202f":
            at += 1
        found = bisect_right(starts, at) - 1
        if found < 0 or starts[found] != at:
            break
        reached = inside[found][1]
        while reached < len(text) and text[reached] in ".。":
            reached += 1
    following = text[reached : reached + _MOST_AHEAD].lstrip(" \t")
    return end if reached == end or following[:1].islower() else reached
