"""The `unmarked` view: tags of HTML that show nothing left out, and marks of Markdown inside words.

So `4<b>1</b>1` is `411`, and `john**@**example.com` is what it shows. Marks at a word's edge part nothing that patterns
look for, so text that is merely set in bold is read as it stands. A lone underscore belongs to names (`snake_case`) and
stays, except beside an at-sign. Two strings that a program puts together (`"AKIA" + "..."`, `'a' . 'b'`, one behind the
other) are one word, and so is one that mail has cut at the end of a line (`AKIA=`). Colours for a terminal that have
lost their control character, or show it (`[31m`, `^[[0m`), are left out too; `escapes` sees to those that have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from checkstream.core.match.engine import compile_regex
from checkstream.core.match.normalise import Reading
from checkstream.core.match.syntax import parse
from checkstream.core.match.tree import companion

_MOST_MARKS: Final = 8
_MOST_PARTS: Final = 4
"""Runs of marks, and tags, that are left out in one place."""
_REACH: Final = 640
"""More characters than they have together, twice."""
_WORD: Final = r"[0-9A-Za-z@.+/=:\x{c0}-\x{24f}-]"
_NAMES: Final = (
    "a|abbr|b|bdi|bdo|big|cite|code|del|em|font|i|ins|kbd|mark|q|s|samp|small|span|strike|strong|sub|sup|tt|u|var|wbr"
)
_INSIDE: Final = r"[ !-)+-;=?-^a-}]"
"""What an attribute or a comment may hold: no mark, so that a tag never begins within marks of another."""
_TAG: Final = rf"(?:</?(?i:{_NAMES})(?:[ \t]{_INSIDE}{{0,40}})?/?>|<!--{_INSIDE}{{0,40}}-->)"
_PREFIXES: Final = "|".join(sorted({name[:size] for name in _NAMES.split("|") for size in range(1, len(name) + 1)}))
_TAG_BEGUN: Final = (
    rf"(?:</?(?i:{_PREFIXES})?|</?(?i:{_NAMES})(?:[ \t]{_INSIDE}{{0,40}})?/?|<!-?|<!--{_INSIDE}{{0,42}})"
)
_GAP: Final = r"[ \t]{0,4}(?:\\?\r?\n[ \t]{0,40})?"
_JOINT: Final = rf"(?:{_GAP}(?:\+|&|~|\.{{1,2}}|\|\||<<)?{_GAP})"
_INSIDE_STRING: Final = r"[0-9A-Za-z@.+/=:_\x{c0}-\x{24f}-]"
_JOIN: Final = rf"""(?:"{_JOINT}"|'{_JOINT}'|=\r?\n)"""
_JOINS: Final = rf"{_INSIDE_STRING}{_JOIN}{_INSIDE_STRING}"
"""Two strings that a program joins, between two characters of theirs."""
_JOIN_BEGUN: Final = compile_regex(rf"(?:{companion(parse(_JOINS))})\z")
_WHOLE_JOIN: Final = compile_regex(_JOIN)
_MOST_JOIN: Final = 110
"""More characters than stand between two strings."""
_CLOSES_STRING: Final = frozenset("\"'=")
_IN_JOINS: Final = _CLOSES_STRING | frozenset(" \t\r\n+&~.|<\\")
_COLOUR: Final = r"(?:\^\[|[\x{241b}\x{fffd}])?\[[0-9;]{1,16}m"
_WHOLE_COLOUR: Final = compile_regex(_COLOUR)
_COLOUR_BEGUN: Final = compile_regex(rf"(?:{companion(parse(_COLOUR))})\z")
_MOST_COLOUR: Final = 24
"""More characters than a colour has."""
_OPENS_COLOUR: Final = frozenset("[^\u241b\ufffd")
_IN_COLOUR: Final = _OPENS_COLOUR | frozenset("0123456789;")
_PART: Final = rf"(?:[*~`_]{{1,{_MOST_MARKS}}}|{_TAG})"
_LETTER: Final = r"[0-9A-Za-z@\x{c0}-\x{24f}]"
_BETWEEN: Final = rf"[.+/=:-]{_PART}{{0,{_MOST_PARTS}}}"
"""What may stand between marks and the letter behind them (`example**.**com`); at a word's end none follows."""
MARKED: Final = (
    rf"{_WORD}(?:(?:[*~`]|_[*~`_]|_?{_TAG}){_PART}{{0,{_MOST_PARTS}}}(?:{_BETWEEN})?{_LETTER}|_@)|@_{_LETTER}|{_TAG}"
    rf"|{_JOINS}|{_COLOUR}"
)
"""Expression for all that the view changes."""
_MARKED: Final = compile_regex(MARKED)
_MORE: Final = rf"{_PART}{{0,{_MOST_PARTS - 1}}}{_TAG_BEGUN}"
_BEGUN: Final = compile_regex(rf"{_WORD}(?:{_PART}{{1,{_MOST_PARTS}}}(?:{_BETWEEN}|[.+/=:-]{_MORE})?|{_MORE})\z")
_SIGN: Final = compile_regex(r"[*~`_<\"'=\[\^\x{241b}\x{fffd}]")
_WHOLE_TAG: Final = compile_regex(_TAG)
_OPEN_TAG: Final = compile_regex(rf"{_TAG_BEGUN}\z")
_MARKS: Final = frozenset("*~`_")
_LETTERS: Final = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz@").union(
    map(chr, range(0xC0, 0x250))
)
_SIGNS: Final = frozenset(".+/=:-")
_CLOSING: Final = frozenset("*~`_>")
_WORD_CHARS: Final = _LETTERS | _SIGNS
_STRING_CHARS: Final = _WORD_CHARS | {"_"}


class Unmarked:
    """Marks and tags that stand between two characters of a word, left out."""

    __slots__ = ("_before",)

    def __init__(self, before: str = "") -> None:
        """Start after the character `before` ("" at the text's start)."""
        self._before = before

    @property
    def neutral(self) -> bool:
        """What stands before the next character is known from the text."""
        return True

    def read(self, text: str, starts: Sequence[int], ends: Sequence[int], *, ended: bool) -> Reading:
        """Read up to marks of which it is not known yet what follows them."""
        lead = len(self._before)
        whole = self._before + text
        if _MARKED.search(whole) is None:
            used = len(text) if ended else marks_from(whole, len(whole)) - lead
            out = Reading(text[:used], starts[:used], ends[:used], used)
        else:
            out = _leave_out(whole, lead, starts, ends, ended=ended)
        if out.used:
            self._before = "" if ended else text[out.used - 1]  # a tag that was given up doesn't go on
        return out


def _leave_out(whole: str, lead: int, starts: Sequence[int], ends: Sequence[int], *, ended: bool) -> Reading:
    """Read `whole[lead:]`, to which the offset map belongs."""
    kept: list[tuple[int, int]] = []
    since = at = lead
    changed = -1
    stop = len(whole)
    while (hit := _SIGN.search(whole, at)) is not None:
        place = hit.start()
        after = _left_out(whole, place, ended=ended)
        if after < 0:
            stop = place
            break
        if after > place:
            kept.append((since, place))
            since, changed = after, ends[after - lead - 1]
        at = max(after, place + 1)
    kept.append((since, stop))
    places = [(low - lead, high - lead) for low, high in kept]
    return Reading(
        "".join([whole[low:high] for low, high in kept]),
        [each for low, high in places for each in starts[low:high]],
        [each for low, high in places for each in ends[low:high]],
        stop - lead,
        changed,
    )


def _left_out(text: str, place: int, *, ended: bool) -> int:
    """Return up to where what starts at `place` is left out: `place`, if nothing is; -1: not known yet."""
    names_end = text[place : place + 2] == "_<"  # `ghp_<b>...`: the underscore is the name's own
    if text[place] in _CLOSES_STRING:
        return _join_end(text, place, ended=ended)
    if text[place] in _OPENS_COLOUR:
        return _colour_end(text, place, ended=ended)
    if place and text[place - 1] in _WORD_CHARS and not names_end:
        at = _marks_end(text, place, ended=ended)
        inside = None if at < 0 else at > place and _is_inside(text, place, at, ended=ended)
        if inside is None:
            return -1
        if inside:
            return at
    if text[place] != "<":
        return place
    tag = _WHOLE_TAG.match(text, place)
    if tag is not None:
        return tag.end()
    return -1 if not ended and _OPEN_TAG.match(text, place) is not None else place


def _join_end(text: str, place: int, *, ended: bool) -> int:
    """Return where the next string goes on that is joined to the one that ends at `place`; `place`: none is."""
    if not place or text[place - 1] not in _STRING_CHARS:
        return place
    join = _WHOLE_JOIN.match(text, place)
    if join is not None and text[join.end() : join.end() + 1] in _STRING_CHARS:
        return join.end()
    return -1 if not ended and _JOIN_BEGUN.match(text, place - 1) is not None else place


def _colour_end(text: str, place: int, *, ended: bool) -> int:
    """Return where the colour ends that begins at `place`; `place`: none does; -1: not known yet."""
    colour = _WHOLE_COLOUR.match(text, place)
    if colour is not None:
        return colour.end()
    return -1 if not ended and _COLOUR_BEGUN.match(text, place) is not None else place


def _marks_end(text: str, place: int, *, ended: bool) -> int:
    """Return where the marks and tags end that start at `place`; -1: the text's end may go on with them."""
    at = place
    for _ in range(_MOST_PARTS):
        if text[at : at + 1] == "<":
            tag = _WHOLE_TAG.match(text, at)
            if tag is None:
                return -1 if not ended and _OPEN_TAG.match(text, at) is not None else at
            at = tag.end()
        else:
            start = at
            while at < len(text) and at - start < _MOST_MARKS and text[at] in _MARKS:
                at += 1
            if at == start and at < len(text):
                return at
        if at == len(text):
            return at if ended else -1
    return at


def _is_inside(text: str, start: int, end: int, *, ended: bool) -> bool | None:
    """Say whether the word goes on behind marks; behind a lone underscore, beside an at-sign. None: not known yet."""
    following = text[end : end + 1]
    if following in _SIGNS:
        at = _marks_end(text, end + 1, ended=ended)
        if at < 0:
            return None
        return text[at : at + 1] in _LETTERS and (at - start > 2 or text[start] != "_")
    if following not in _LETTERS:
        return False
    return end - start > 1 or text[start] != "_" or "@" in (text[start - 1], following)


def marks_from(text: str, end: int) -> int:
    """Return where the marks start at the end of `text[:end]` of which it is not known what follows; else `end`.

    Nothing in the text may be left out.
    """
    last = text[end - 1 : end]
    if last in _IN_COLOUR:
        tail = text[max(0, end - _MOST_COLOUR) : end]
        begun = _COLOUR_BEGUN.search(tail) if "[" in tail or last in _OPENS_COLOUR else None
        if begun is not None:
            return min(end - len(tail) + begun.start(), _marks_from(text, end))
    if last in _IN_JOINS:
        low = max(0, end - _MOST_JOIN)
        begun = _JOIN_BEGUN.search(text[low:end]) if not _CLOSES_STRING.isdisjoint(text[low:end]) else None
        if begun is not None and begun.end() - begun.start() > 1:
            return min(low + begun.start() + 1, _marks_from(text, end))
    return _marks_from(text, end)


def _marks_from(text: str, end: int) -> int:
    """Return what `marks_from` does, but for strings that a program may join."""
    last = text[end - 1 : end]
    if last in _SIGNS:
        last = text[end - 2 : end - 1]
    if last not in _CLOSING and text.rfind("<", max(0, end - _REACH), end) < 0:
        return end
    low = max(0, end - _REACH)
    begun = _BEGUN.search(text[low:end])
    if begun is not None:
        return low + begun.start() + 1
    tag = text.rfind("<", low, end)
    return tag if tag >= 0 and _OPEN_TAG.match(text[tag:end]) is not None else end
