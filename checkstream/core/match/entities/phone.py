"""PHONE: international numbers by calling code and length, national ones by the shape of their groups.

A run of digit groups may hold several numbers, or a number between other figures, so numbers are looked for at
group borders. Bare digits, and shapes that other figures share, count only after a word such as `phone`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from checkstream.core.match.entities.calling_codes import digits_after_plus
from checkstream.core.match.entities.entity import (
    PLAIN_VIEWS,
    Entity,
    SpanPair,
    before,
    continues_number,
    is_glued,
)
from checkstream.core.match.entities.labels import is_labelled, tight_label

_NOT_PHONES = frozenset(
    (
        *("card", "ssn", "itin", "account", "account_weak", "routing", "sort_code", "passport", "medical", "nhs"),
        *("licence", "identity_card", "other"),
    )
)


class _Group(msgspec.Struct, frozen=True):
    """One run of digits in the candidate; `gap` is what stands before it."""

    start: int
    end: int
    digits: str
    gap: str


def _groups(text: str, start: int, end: int) -> list[_Group]:
    groups: list[_Group] = []
    at, last = start, start
    while at < end:
        if not ("0" <= text[at] <= "9"):
            at += 1
            continue
        stop = at
        while stop < end and "0" <= text[stop] <= "9":
            stop += 1
        groups.append(_Group(at, stop, text[at:stop], text[last:at]))
        at = last = stop
    return groups


def _opens(groups: Sequence[_Group], first: int) -> bool:
    """Say whether a number may begin at `first`: at the run's start, or after a space or an opening bracket."""
    return first == 0 or " " in groups[first].gap or "(" in groups[first].gap


def _closes(groups: Sequence[_Group], after: int) -> bool:
    """Say whether a number may end before the group `after`: what follows must be set off by a space."""
    return after >= len(groups) or " " in groups[after].gap


def _is_nanp(parts: Sequence[str]) -> bool:
    """Check area, exchange and line of a North American number. Source: ATIS-0300051, NPA and NXX rules."""
    area, exchange, line = parts
    return (len(area), len(exchange), len(line)) == (3, 3, 4) and area[0] > "1" and exchange[0] > "1"


def _is_year(digits: str) -> bool:
    return len(digits) == 4 and digits[:2] in ("19", "20")


def _looks_dated(parts: Sequence[str]) -> bool:
    """Say whether the groups begin like a date or are a range of years."""
    if len(parts) >= 3 and _is_year(parts[0]) and len(parts[1]) <= 2 and len(parts[2]) <= 2:
        return True
    if len(parts) >= 3 and len(parts[0]) <= 2 and len(parts[1]) <= 2 and _is_year(parts[2]):
        return True
    return len(parts) == 2 and _is_year(parts[0]) and _is_year(parts[1])


def _trunk_shape(parts: Sequence[str], gaps: Sequence[str]) -> bool:
    """Say whether groups that begin with a trunk `0` are shaped as a national number (Europe, Asia, Oceania)."""
    total = sum(map(len, parts))
    first = parts[0]
    if not (9 <= total <= 12 and 2 <= len(parts) <= 6 and first[0] == "0" and first[1:2] > "0"):
        return False
    if all("." in gap for gap in gaps) or (len(first) == 2 and all(len(part) == 2 for part in parts)):
        return len(parts) == 5 and all(len(part) == 2 for part in parts) and len({*gaps}) == 1
    if len(first) > 6 or any(not 2 <= len(part) <= 8 for part in parts[1:]) or any("." in gap for gap in gaps):
        return False
    return len(parts[-1]) >= 2 and not (len(parts) > 2 and len(parts[-1]) > 5)


def _national_shape(parts: Sequence[str], gaps: Sequence[str], lead: str) -> bool:
    """Say whether the groups stand for a national number with no word to say so."""
    if any(len(gap) > 1 and not set(gap) <= set(" ()-") for gap in gaps) or _looks_dated(parts):
        return False
    bracketed = lead.endswith("(") and bool(gaps) and gaps[0].startswith(")")
    if len(parts) == 4 and parts[0] == "1" and _is_nanp(parts[1:]):
        return True
    if len(parts) == 3 and _is_nanp(parts):
        return bracketed or len({gap.strip() for gap in gaps}) == 1
    if _trunk_shape(parts, gaps):
        return True
    if len(parts) == 3 and [len(part) for part in parts] == [3, 4, 4] and parts[0][0] == "1" and parts[0][1] > "2":
        return True  # mobile numbers of China: 1[3-9]x xxxx xxxx
    total = sum(map(len, parts))
    return (
        bracketed
        and not _is_year(parts[0])
        and 2 <= len(parts[0]) <= 5
        and 8 <= total <= 12
        and len(parts) in (2, 3)
        and len(parts[-1]) >= 3
    )


def _labelled_shape(parts: Sequence[str]) -> bool:
    """Say whether the groups may be a number when a word such as `phone` stands before them."""
    total = sum(map(len, parts))
    if not 7 <= total <= 15 or _looks_dated(parts) or len(parts) > 7:
        return False
    if [len(part) for part in parts] == [3, 2, 4]:
        return False  # a US social security number
    if len(parts) == 4 and all(len(part) <= 3 and int(part) < 256 for part in parts) and parts[0] != "1":
        return False  # an IP address
    return len(parts) > 1 or total <= 13


def _international_end(groups: Sequence[_Group], skip: int) -> int:
    """Return how many groups an international number takes, 0 when it is none. `skip`: digits of the prefix `00`."""
    digits = ""
    taken = 0
    for count, group in enumerate(groups, 1):
        # `+44 (0)20 ...`: the bracketed trunk digit is not dialled from abroad.
        digits += "" if group.digits == "0" and group.gap.endswith("(") else group.digits
        bounds = digits_after_plus(digits[skip:])
        if bounds is None:
            if len(digits) - skip >= 3:
                return 0
            continue
        if len(digits) - skip > bounds[1]:
            break
        if len(digits) - skip >= bounds[0] and _closes(groups, count):
            taken = count
    return taken


def _may_begin(groups: Sequence[_Group], first: int) -> bool:
    """Say whether a number that no word announces may begin so: `(`, a trunk `0`, three digits, or the 1 of `1-800`."""
    group = groups[first]
    if len(group.digits) == 3 or group.digits[0] == "0" or group.gap.endswith("("):
        return True
    return group.digits == "1" and first + 1 < len(groups) and len(groups[first + 1].digits) == 3


def _take(groups: Sequence[_Group], first: int, *, plus: bool, labelled: bool) -> int:
    """Return the index after the last group of a number that begins at `first`; `first` itself when there is none."""
    if plus and not labelled:
        return first
    if not labelled and not _may_begin(groups, first):
        return first
    for after in range(min(len(groups), first + 7), first, -1):
        if not _closes(groups, after):
            continue
        chosen = groups[first:after]
        parts = [group.digits for group in chosen]
        gaps = [group.gap for group in chosen[1:]]
        if _national_shape(parts, gaps, groups[first].gap) or (labelled and _labelled_shape(parts)):
            return after
    return first


def _span(text: str, start: int, groups: Sequence[_Group]) -> SpanPair:
    """Return the span of some groups with the plus sign or opening bracket that belongs to them."""
    begin, end = groups[0].start, groups[-1].end
    while begin > start and (text[begin - 1] == "+" or (text[begin - 1] == "(" and ")" in text[begin:end])):
        begin -= 1
    return begin, end


def refine_phone(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return the telephone numbers among the digit groups of a candidate."""
    groups = _groups(text, start, end)
    plus = bool(groups) and "+" in text[start : groups[0].start]
    previous = before(text, start)
    # A plus sign begins a number even right after a letter (`Phone+1 ...`).
    cut_left = (
        (is_glued(previous) and not plus) or continues_number(text, start) or (bool(previous) and previous in "+#$€£")
    )
    if is_glued(text[end : end + 1]):
        # The candidate ends inside a word or a longer number: its last group is not a whole one.
        extension = _extension_start(groups)
        groups = groups[:-1] if extension == len(groups) else groups[:extension]
    if not plus and tight_label(text, start) in _NOT_PHONES:
        return ()
    spans: list[SpanPair] = []
    first = 1 if cut_left else 0
    labelled = bool(groups) and is_labelled(text, groups[0].start, "phone")
    body = _extension_start(groups)
    while first < body:
        after = first
        if _opens(groups, first):
            lead = text[start : groups[0].start] if first == 0 else ""
            skip = 2 if groups[first].digits.startswith("00") else 0
            if "+" in lead or skip:
                after = first + _international_end(groups[first:body], skip)
            if after == first and text[end : end + 1] != "-":
                after = _take(groups[:body], first, plus="+" in lead, labelled=labelled)
        if after > first:
            begin, stop = _span(text, start, groups[first:after])
            if after == body < len(groups):
                stop = groups[-1].end
            spans.append((begin, stop))
        first = max(after, first + 1)
    return spans


def _extension_start(groups: Sequence[_Group]) -> int:
    """Return the index of the group that is an extension (`ext. 12`), or the number of groups."""
    if len(groups) > 1 and any(char.isalpha() or char == "#" for char in groups[-1].gap):
        return len(groups) - 1
    return len(groups)


PHONE = Entity(
    name="PHONE",
    # Up to 18 digits with at most three separators between two of them; then an extension.
    regex=(
        "[+(]{0,2}[0-9](?:[ .\\-/()\u00a0\u2010-\u2013]{0,3}[0-9]){6,17}"
        "(?: ?(?:x|ext|extn|extension|#)\\.? ?[0-9]{1,5})?"
    ),
    refine=refine_phone,
    group="pii",
    views=PLAIN_VIEWS,
)
