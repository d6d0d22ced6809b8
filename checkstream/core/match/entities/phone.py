"""PHONE: international numbers by calling code and length, national ones by the shape of their groups.

A run of digit groups may hold several numbers, or a number between other figures, so numbers are looked for at
group borders. Bare digits, and shapes that other figures share, count only after a word such as `phone`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec

from checkstream.core.match.engine import compile_regex
from checkstream.core.match.entities.calling_codes import digits_after_plus
from checkstream.core.match.entities.entity import (
    PLAIN_VIEWS,
    Entity,
    SpanPair,
    before,
    continues_number,
    digit_groups,
    glued_before,
    glued_behind,
    only_digits,
)
from checkstream.core.match.entities.labels import is_labelled, tight_label, words_of
from checkstream.core.match.entities.payment import follows_iban_head
from checkstream.core.match.entities.phone_shapes import labelled_shape, loose_shape, national_shape
from checkstream.core.match.patterns import LEFT_CONTEXT_CHARS
from checkstream.core.match.syntax import parse
from checkstream.core.match.tree import companion

_NOT_PHONES = frozenset(
    (
        *("card", "ssn", "itin", "account", "account_weak", "routing", "sort_code", "passport", "medical", "nhs"),
        *("licence", "identity_card", "other"),
    )
)


_SIGNS: Final = " .\\-/()\\t_'*\u00b7\u00a0\u2010-\u2013"
"""Between two digits of a candidate."""
_INSIDE: Final = frozenset(" .-/()\t_'*\u00b7\u00a0\u2010\u2011\u2012\u20130123456789")
_ANNOUNCED: Final = compile_regex(words_of("phone", "phone_weak"))
_BEGINS: Final = (
    "00[^0-9]*[1-9]"  # abroad
    "|0[1-9][0-9]{0,4}[^0-9]+[0-9]{2}"  # a trunk `0`
    "|(?:1[^0-9]+)?[2-9][0-9]{2}[^0-9]+[2-9][0-9]{2}[^0-9]+[0-9]{4}"  # North America
    "|1[3-9][0-9][^0-9]+[0-9]{4}[^0-9]+[0-9]{4}"  # mobile numbers of China
)
"""How numbers begin that no word announces."""
_BEGIN: Final = compile_regex(f"(?:{_BEGINS})")
_MAY_HOLD: Final = compile_regex(rf"[+(]|(?:\A|[^0-9])(?:{_BEGINS})")
"""What a candidate has in it that holds such a number: one question tells for most that they don't."""
_GOES_ON: Final = compile_regex(
    rf"(?:[^0-9.\-/]|[^0-9][.\-/])(?:[0-9]+[.\-/])*(?:{companion(parse(_BEGINS))}|[0-9]+)\z"
)
"""Where one may begin that isn't seen whole, or what a sign joins to it: at the last group at the latest, so that what
stands before the next one is seen together with it."""
_IN_A_ROW: Final = compile_regex(r"(?:[0-9][^0-9]?){16,}\z")
"""More digits than a number has, with one sign between two of them at most: none begins there that has to be alone."""
_MOST_DIGITS = 15
_SEQUENCE = 5
"""Figures in a row, each of three digits or more and higher than the last, that are no telephone numbers."""
_MOST_GROUPS = 7
"""Of one number that is no international one."""
_NATIONAL_DIGITS: Final = (8, 12)
_ANNOUNCED_DIGITS: Final = (7, 15)
"""Least and most of a number in national form, and of one that a word announces."""
_MOST_RUN_DIGITS = 18
"""That a candidate has, but for an extension."""


class _Group(msgspec.Struct, frozen=True):
    """One run of digits in the candidate; `gap` is what stands before it."""

    start: int
    end: int
    digits: str
    gap: str


class _Run(msgspec.Struct, frozen=True):
    """The digit groups of a candidate and what its surroundings say of them."""

    text: str
    groups: Sequence[_Group]
    body: int
    """How many groups numbers may take; what follows is an extension, or no whole group."""
    plus: bool
    """A plus sign stands before the first group."""
    labelled: bool
    """A word such as `phone` stands before the first group."""
    goes_on: bool
    """A hyphen joins the candidate to something behind it."""
    loose: bool
    """Numbers in national form count with no word before them, where the candidate holds no other digits."""


@lru_cache(maxsize=8)
def _groups(text: str, start: int, end: int) -> Sequence[_Group]:
    """Return the groups of a candidate, of which several questions are asked one after the other."""
    groups: list[_Group] = []
    last = start
    for at, stop in digit_groups(text, start, end):
        groups.append(_Group(at, stop, text[at:stop], text[last:at]))
        last = stop
    return groups


def _opens(groups: Sequence[_Group], first: int) -> bool:
    """Say whether a number may begin at `first`: at the run's start, or after a space or an opening bracket."""
    return first == 0 or " " in groups[first].gap or "(" in groups[first].gap


def _closes(groups: Sequence[_Group], after: int) -> bool:
    """Say whether a number may end before the group `after`: a space must set that off, or it is an extension."""
    return after >= len(groups) or " " in groups[after].gap or _is_extension(groups[after])


def _is_extension(group: _Group) -> bool:
    """Say whether a group is an extension (`ext. 12`)."""
    return any(char.isalpha() or char == "#" for char in group.gap)


def _international_end(groups: Sequence[_Group], body: int, skip: int) -> int:
    """Return how many groups an international number takes, 0 when it is none.

    Args:
        groups: of the candidate, from where the number would begin.
        body: how many of them the number may take.
        skip: digits of the prefix `00`.

    Behind a plus sign and a country's code, four groups or more are a number even when a digit is missing.
    """
    digits = ""
    taken = 0
    for count, group in enumerate(groups[:body], 1):
        # `+44 (0)20 ...`: the bracketed trunk digit is not dialled from abroad.
        digits += "" if group.digits == "0" and group.gap.endswith("(") else group.digits
        bounds = digits_after_plus(digits[skip:])
        if bounds is None:
            if len(digits) - skip >= 3:
                return 0
            continue
        if len(digits) - skip > bounds[1]:
            break
        least = bounds[0] - 1 if skip == 0 and count >= 4 else bounds[0]
        if len(digits) - skip >= least and _closes(groups, count):
            taken = count
    return taken


def _may_begin(groups: Sequence[_Group], first: int) -> bool:
    """Say whether a number that no word announces may begin so: `(`, a trunk `0`, three digits, or the 1 of `1-800`."""
    group = groups[first]
    if len(group.digits) == 3 or group.digits[0] == "0" or group.gap.endswith("("):
        return True
    return group.digits == "1" and first + 1 < len(groups) and len(groups[first + 1].digits) == 3


def _take(run: _Run, first: int) -> int:
    """Return the index after the last group of a national number that begins at `first`; `first` when there is none."""
    groups = run.groups
    if not (run.labelled or run.loose) and ((run.plus and first == 0) or not _may_begin(groups, first)):
        return first
    announced = run.labelled or run.loose
    if not (announced or groups[first].gap.endswith("(") or _BEGIN.match(run.text, groups[first].start)):
        return first
    for after in _ends(run, first, *(_ANNOUNCED_DIGITS if announced else _NATIONAL_DIGITS)):
        chosen = groups[first:after]
        parts = [group.digits for group in chosen]
        gaps = [group.gap for group in chosen[1:]]
        if run.labelled and labelled_shape(parts, gaps):
            return after
        if national_shape(parts, gaps, groups[first].gap) and (run.labelled or not _in_sequence(run, first, after)):
            return after
        if run.loose and after - first == len(groups) and loose_shape(parts, gaps):
            return after
    return first


def _ends(run: _Run, first: int, least: int, most: int) -> list[int]:
    """Return the ends of numbers that begin at `first` and have from `least` to `most` digits, the last one first."""
    found: list[int] = []
    digits = 0
    for after in range(first + 1, min(run.body, first + _MOST_GROUPS) + 1):
        digits += len(run.groups[after - 1].digits)
        if digits > most:
            break
        if digits >= least and _closes(run.groups, after):
            found.append(after)
    found.reverse()
    return found


def _in_sequence(run: _Run, first: int, after: int) -> bool:
    """Say whether three groups are a part of five rising figures or more (`233 377 610 987 1597`)."""
    chosen = run.groups[first:after]
    gap = chosen[1].gap if len(chosen) == 3 else ""
    if not gap.isspace() or chosen[2].gap != gap:
        return False
    row = [*_figures_before(run.text, chosen[0].start, gap), *(int(group.digits) for group in chosen)]
    for group in run.groups[after : run.body]:
        if group.gap != gap:
            break
        row.append(int(group.digits))
    return len(row) >= _SEQUENCE and all(100 <= low < high for low, high in itertools.pairwise(row))


def _figures_before(text: str, end: int, gap: str) -> list[int]:
    """Return up to two figures that stand before `end`, each with the gap behind it, in order."""
    found: list[int] = []
    while len(found) < _SEQUENCE - 3 and text.startswith(gap, end - len(gap)) and end >= len(gap):
        begin = end = end - len(gap)
        while begin > max(0, end - _MOST_DIGITS) and "0" <= text[begin - 1] <= "9":
            begin -= 1
        if begin == end:
            break
        found.insert(0, int(text[begin:end]))
        end = begin
    return found


def _span(text: str, start: int, groups: Sequence[_Group]) -> SpanPair:
    """Return the span of some groups with the plus sign or opening bracket that belongs to them."""
    begin, end = groups[0].start, groups[-1].end
    while begin > start and (text[begin - 1] == "+" or (text[begin - 1] == "(" and ")" in text[begin:end])):
        begin -= 1
    return begin, end


def refine_phone(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return the telephone numbers among the digit groups of a candidate."""
    return _numbers(text, start, end, loose=False)


def refine_loose(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return the telephone numbers of a candidate, those in national form too that nothing announces."""
    return _numbers(text, start, end, loose=_IN_A_ROW.match(text[start:end]) is None)


def _numbers(text: str, start: int, end: int, *, loose: bool) -> Sequence[SpanPair]:
    if not (_MAY_HOLD.search(text[start:end]) or _may_be_announced(text, start) or loose):
        return ()
    groups = _groups(text, start, end)
    plus = bool(groups) and "+" in text[start : groups[0].start]
    previous = before(text, start)
    # A plus sign begins a number even right after a letter (`Phone+1 ...`).
    cut_left = (
        (glued_before(text, start) and not plus)
        or continues_number(text, start)
        or (bool(previous) and previous in "+#$€£")
    )
    body = _extension_start(groups)
    if glued_behind(text, end) and not (plus and text[end].isalpha()):
        # The candidate ends inside a word or a longer number: its last group is not a whole one.
        groups, body = (groups, body - 1) if body == len(groups) else (groups[:body], body)
    if not plus and tight_label(text, start) in _NOT_PHONES:
        return ()
    labelled = bool(groups) and _is_announced(text, groups[0].start)
    if not (labelled or plus) and _follows_code(text, start):
        return ()
    loose = loose and not _goes_before(text, start)
    run = _Run(text, groups, body, plus, labelled, text[end : end + 1] == "-", loose)
    spans: list[SpanPair] = []
    first = 1 if cut_left else 0
    while first < body:
        after = _number_from(run, first)
        if after > first:
            begin, stop = _span(text, start, groups[first:after])
            if after == body == len(groups) - 1 and _extension_start(groups) == body:
                stop = groups[-1].end
            spans.append((begin, stop))
        first = max(after, first + 1)
    return spans


def skip_phone(text: str, start: int, end: int) -> int:
    """Return where the next candidate may begin; where no word says that there are numbers, how they begin tells."""
    segment = text[start:end]
    if _MAY_HOLD.search(segment) or _may_be_announced(text, start) or _follows_code(text, start):
        return _skip(text, start, end)
    if text[end : end + 1] not in _INSIDE:
        return end
    hit = _GOES_ON.search(segment)
    return _skip(text, start, end) if hit is None else start + hit.start() + 1


def skip_loose(text: str, start: int, end: int) -> int:
    """Return the same for what holds no number that is loose, or else where the next group may begin one."""
    return (_skip if _IN_A_ROW.match(text[start:end]) is None else skip_phone)(text, start, end)


def _skip(text: str, start: int, end: int) -> int:
    """Return where the first group ends behind which a number could begin that was not looked for in the candidate.

    A number begins with a group. Those were seen whole that have more behind them in the candidate than a number has.
    """
    groups = _groups(text, start, end)
    plus = "+" in text[start : groups[0].start]
    if text[start] in "+(" and continues_number(text, start):
        return start + 1  # what stands before it took it for the rest of something, and not the digits behind it
    if not plus and (tight_label(text, start) in _NOT_PHONES or _follows_code(text, start)):
        return groups[0].end
    known = _extension_start(groups)
    if sum(len(group.digits) for group in groups[:known]) >= _MOST_RUN_DIGITS or known < len(groups):
        known = _seen_whole(groups, known - ("0" <= text[end : end + 1] <= "9"))
    for number, group in enumerate(groups[1:known], 1):
        if " " not in group.gap and "(" not in group.gap and group.gap not in (".", "-", "/"):
            return groups[number - 1].end
    return end if known == len(groups) else groups[known - 1].end


def _seen_whole(groups: Sequence[_Group], whole: int) -> int:
    """Return how many of the first groups, all of which but the last are whole, have a number's length behind them."""
    digits = 0
    for number in range(whole - 1, 0, -1):
        digits += len(groups[number].digits)
        if digits > _MOST_DIGITS or whole - number > _MOST_GROUPS:
            return number + 1
    return 1


def _number_from(run: _Run, first: int) -> int:
    """Return the index after the last group of a number that begins at `first`; `first` itself when there is none."""
    plus = run.plus and first == 0
    if not _opens(run.groups, first):
        return first
    skip = 2 if run.groups[first].digits.startswith("00") else 0
    if not (plus or skip or run.labelled or run.loose or _may_begin(run.groups, first)):
        return first
    after = first
    if plus or skip:
        after = first + _international_end(run.groups[first:], run.body - first, skip)
    if after == first and not run.goes_on:
        after = _take(run, first)
    if after > first and not (plus or run.labelled) and _inside_longer(run.text, run.groups[first:]):
        return first
    return after


def _may_be_announced(text: str, start: int) -> bool:
    """Whether a word such as `phone` stands anywhere before a candidate that begins with a digit."""
    return start > 0 and _ANNOUNCED.search(text, max(start - LEFT_CONTEXT_CHARS, 0), start) is not None


def _is_announced(text: str, start: int) -> bool:
    """Say whether a word such as `phone` stands before `start`, or one such as `reach me at` right before it."""
    return is_labelled(text, start, "phone") or tight_label(text, start) == "phone_weak"


def _follows_code(text: str, start: int) -> bool:
    """Say whether a hyphen joins the candidate to letters or digits before it (`NDC-0591-3740-01`)."""
    return start >= 2 and text[start - 1] == "-" and text[start - 2].isalnum()


def _goes_before(text: str, start: int) -> bool:
    """Say whether other digits stand before the candidate, with one sign between."""
    return start >= 2 and not text[start - 1].isalnum() and "0" <= text[start - 2] <= "9"


def _inside_longer(text: str, groups: Sequence[_Group]) -> bool:
    """Say whether the groups stand behind the first four digits of a card's number, or behind the head of an IBAN."""
    start = groups[0].start
    sizes = [len(group.digits) for group in groups[:3]]
    if sizes[:2] == [6, 5] or sizes == [4, 4, 4]:
        four = text[max(0, start - 5) : start - 1]
        if text[start - 1 : start] == " " and len(only_digits(four)) == 4 and not glued_before(text, start - 5):
            return True
    return sizes[0] == 4 and follows_iban_head(text, start)


def _extension_start(groups: Sequence[_Group]) -> int:
    """Return the index of the group that is an extension, or the number of groups."""
    return len(groups) - 1 if len(groups) > 1 and _is_extension(groups[-1]) else len(groups)


PHONE = Entity(
    name="PHONE",
    # Up to 18 digits with at most three separators between two of them; then an extension.
    regex=(f"[+(]{{0,2}}[0-9](?:[{_SIGNS}]{{0,3}}[0-9]){{6,17}}(?: ?(?:x|ext|extn|extension|#)\\.? ?[0-9]{{1,5}})?"),
    refine=refine_phone,
    skip=skip_phone,
    group="pii",
)
PHONE_LOOSE = Entity(
    name="PHONE_LOOSE",
    regex=PHONE.regex,
    refine=refine_loose,
    skip=skip_loose,
    group=None,
    views=PLAIN_VIEWS - {"spaced"},  # rows of digits are no numbers that somebody has spelled
)
