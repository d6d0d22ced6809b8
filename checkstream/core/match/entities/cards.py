"""CREDIT_CARD: an issuer's number whose check digit is right, in groups as cards are set."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from checkstream.core.match.engine import compile_regex
from checkstream.core.match.entities.entity import (
    LEFT_CHARS,
    Entity,
    SpanPair,
    continues_number,
    digit_groups,
    glued_before,
    glued_behind,
    is_glued,
    only_digits,
    stands_alone,
)
from checkstream.core.match.entities.figures import refine_figures, skip_figures
from checkstream.core.match.entities.issuers import HEADS, is_card_number
from checkstream.core.match.entities.payment import iban_around
from checkstream.core.match.syntax import parse
from checkstream.core.match.tree import companion

_MOST_GAP = 3
_GAP_SIGNS = " \t\r\n.,-/_'*\u00b7"
"""What people and models set between the groups of a card's number, up to so many signs."""
_WIDE_LAYOUTS: Final = frozenset({(4, 4, 4, 4), (4, 6, 5), (4, 4, 4), (4, 4, 4, 4, 3), (4, 6, 4)})
"""Layouts that count with unusual gaps as well (tabs, dots, two kinds): others stand in tables of numbers."""
_ODD_LAYOUTS: Final = frozenset({(5, 5, 6), (3, 3, 3, 3, 3, 1), (2,) * 8})
"""Layouts that nobody prints, but a model does when it is asked to: by themselves alone, and no row that rises."""
_CARD_LAYOUTS: Final = frozenset(
    (
        *((size,) for size in range(12, 20)),
        *((4, 4, 4, *more) for more in ((), (1,), (2,), (3,), (4,), (4, 1), (4, 2), (4, 3))),
        *((4, 6, 5), (4, 6, 4), (6, 13), (6, 10), (8, 8), (4, 5, 6), (4, 4, 5), (4, 3, 3, 3)),
        *_ODD_LAYOUTS,
    )
)
"""Sizes of groups in which cards are printed."""
_BETWEEN = f"[{_GAP_SIGNS}]{{1,{_MOST_GAP}}}".replace("-", "\\-")


def _layout(*sizes: int) -> str:
    """Return RE2 syntax for groups of these sizes, of which the last may be longer."""
    return _BETWEEN.join(f"[0-9]{{{size}}}" for size in sizes)


_LAYOUTS: Final = "|".join(
    (
        *("[0-9]{12}", _layout(4, 4, 4), _layout(4, 6, 4), _layout(6, 10), _layout(8, 8), _layout(4, 5, 6)),
        *(_layout(4, 3, 3, 3), _layout(5, 5, 6), _layout(3, 3, 3, 3, 3, 1), _layout(*[2] * 8)),
    )
)
"""How cards begin."""
_BEGINS: Final = compile_regex(f"(?:{_LAYOUTS})")
_MAY_HOLD: Final = compile_regex(rf"(?:\A|[^0-9])(?:{_LAYOUTS})")
"""What a candidate has in it that holds a card: one question tells for most that they don't."""
_GOES_ON: Final = compile_regex(rf"[^0-9](?:{companion(parse(_LAYOUTS))})\z")
"""Where a card may begin that isn't seen whole."""


_POWERS: Final = r"(?:[0-9]{1,18}\.[0-9]{8,18}|[0-9]{9,19}(?:\.[0-9]{1,18})?)[eE][+\-]?[0-9]{1,2}"
"""A number with a power of ten that has about as many figures as a card: what is shorter stands in each line of hex."""
_IN_POWERS: Final = compile_regex(_POWERS)

_ODD_GROUPS: Final = MappingProxyType({2: 8, 3: 6})
"""Size of the first group -> how many there are, in layouts that no other begins like."""


_ANY: Final = "[^0-9]{1,12}"
_SINGLES: Final = rf"\b[2-6](?:{_ANY}[0-9]){{12,23}}"
"""Figures set one by one, with any words or signs between; more of them than a card has tell that they are none."""
_APART: Final = rf"\b[2-6][0-9]{{3}}(?:{_ANY}[0-9]{{4}}){{3,4}}|\b[2-6][0-9](?:{_ANY}[0-9]{{2}}){{7,8}}"
"""Groups of four, or pairs, likewise; one more tells that they are a row of something else."""
_AS_SINGLES: Final = compile_regex(_SINGLES)
_IN_A_ROW: Final = compile_regex(r"[0-9][\s,;|/.\-]+[0-9]|[0-9][^0-9]{9,}[0-9]")
"""What stands between the columns of a table or the words of a sentence."""
_MEMBER: Final = r"""["'][^"'\r\n]{1,24}["']\s{0,4}:[\s{\[]{0,16}"""
_BORDER: Final = rf"""[ -]?["'][\s}}\]]{{0,8}},[\s{{\[]{{0,16}}(?:{_MEMBER}){{0,2}}["'][ -]?"""
"""From one string to the next, of a list or of members."""
_GROUPS: Final = "(?:[ -][0-9]{1,8}){0,3}"
_STRINGS: Final = rf"\b[2-6][0-9]{{0,15}}{_GROUPS}(?:{_BORDER}[0-9]{{1,16}}{_GROUPS}){{1,4}}"
"""Figures that are cut over strings; one string more tells whether they stand in a column of such."""
_IN_STRINGS: Final = compile_regex(_STRINGS)
_ONE_BORDER: Final = compile_regex(_BORDER)
_STRING_BEFORE: Final = compile_regex(rf"[0-9]+{_BORDER}\z")
_NAMED: Final = compile_regex(_MEMBER)
_OPENS: Final = compile_regex(r"""[\[({:=]\s{0,16}["'][ -]?\z""")
"""Before the first of them: rows of a table that is set in quotes have none."""
_NAMES_BEFORE: Final = compile_regex(rf"""(?:{_MEMBER}){{1,2}}["'][ -]?\z""")
_CUT_FIGURES: Final = (15, 16)
"""Of cards that are looked for in strings."""
_RUN: Final = r"[0-9](?:[ \t\r\n.,\-/_'*·]{0,3}[0-9]){11,29}"
_AS_RUN: Final = compile_regex(_RUN)
_AS_OTHER: Final = compile_regex(f"{_POWERS}|{_SINGLES}|{_RUN}|{_APART}")


def refine_card(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return the card numbers in a candidate of any form."""
    if _IN_STRINGS.match(text, start) is not None:
        spans = _refine_strings(text, start, end)
        other = _AS_OTHER.match(text, start, end)
        if spans or other is None:
            return spans
        end = other.end()
    if _AS_SINGLES.match(text, start) is not None:
        return refine_figures(text, start, end)
    if _IN_POWERS.match(text, start) is None and _AS_RUN.match(text, start) is None:
        return _refine_apart(text, start, end)
    return _refine_run(text, start, end)


def _strings_in(text: str, start: int, end: int) -> list[SpanPair]:
    """Return the figures of each string of a candidate, with what stands between their groups."""
    places, at = list[SpanPair](), start
    while (border := _ONE_BORDER.search(text, at, end)) is not None:
        places.append((at, border.start()))
        at = border.end()
    return [*places, (at, end)]


def _refine_strings(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return the parts of a card that is cut over strings side by side, unless they are of a column of such.

    Each is edited by itself: names of members between them stay, and so does the form of the JSON.
    """
    if glued_before(text, start) or (text[start - 1 : start] in {" ", "-"} and text[start - 2 : start - 1].isdigit()):
        return ()
    left = max(0, start - LEFT_CHARS)
    if _OPENS.search(text[left:start]) is None:
        return ()
    strings = _strings_in(text, start, end)
    before_it = _STRING_BEFORE.search(text[left:start])
    sizes = [len(only_digits(text[low:high])) for low, high in strings]
    if before_it is not None:
        low, high = digit_groups(text, left + before_it.start(), start)[0]
        if high - low == sizes[0]:
            return ()
    for count in range(2, len(strings) + 1):
        stop = strings[count - 1][1]
        if sum(sizes[:count]) in _CUT_FIGURES and not glued_behind(text, stop):
            figures = "".join(only_digits(text[low:high]) for low, high in strings[:count])
            if is_card_number(figures):
                column = sizes[count : count + 1] == [sizes[count - 1]]
                told = not column and (_is_in_fours(text, strings[:count]) or _are_parts(text, strings[:count]))
                return strings[:count] if told else ()
    return ()


def _is_in_fours(text: str, strings: Sequence[SpanPair]) -> bool:
    """Say whether strings have the groups of four that cards are printed in: whatever they are called."""
    groups = digit_groups(text, strings[0][0], strings[-1][1])
    return tuple(stop - begin for begin, stop in groups) in _WIDE_LAYOUTS


def _are_parts(text: str, strings: Sequence[SpanPair]) -> bool:
    """Say whether strings have no names, or numbered or lettered ones: a zip and a phone number are no card."""
    begin = strings[0][0]
    left = text[max(0, begin - LEFT_CHARS) : begin]
    before_it = _NAMES_BEFORE.search(left)
    named = [_stems("" if before_it is None else left[before_it.start() :])]
    named += [_stems(text[low:high]) for (_, low), (high, _) in pairwise(strings)]
    return all(not stems for stems in named[1:]) or len({stems[-1:] for stems in named}) == 1


def _stems(text: str) -> tuple[str, ...]:
    """Return the names of members in a text without what numbers or letters them."""
    names = [text[hit.start() : hit.end()].strip(" \t\r\n:{[")[1:-1] for hit in _NAMED.finditer(text)]
    return tuple("" if len(name) == 1 else name.rstrip("0123456789") for name in names)


def _refine_apart(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return the card that groups with words or signs between them are: all of them, or all but a last one far off."""
    groups = digit_groups(text, start, end)
    if _is_apart(text, start, end):
        return ((start, end),)
    if _is_far(groups, len(groups) - 1) and _is_apart(text, start, groups[-2][1]):
        return ((start, groups[-2][1]),)
    return ()


def _skip_apart(text: str, start: int, end: int) -> int:
    """Return where the next group stands that is nearer to the one behind it than to the one before."""
    groups = digit_groups(text, start, end)
    gaps = [group[0] - before[1] for before, group in pairwise(groups)]
    return next((groups[number][0] for number in range(1, len(gaps)) if gaps[number - 1] > gaps[number]), groups[-1][0])


def _is_far(groups: Sequence[SpanPair], number: int) -> bool:
    """Say whether a group stands further from those before it than any of these from each other."""
    gaps = [group[0] - before[1] for before, group in pairwise(groups[: number + 1])]
    return gaps[-1] > max(gaps[:-1])


def _is_apart(text: str, start: int, end: int) -> bool:
    """Say whether groups with words or signs between them, as no table has them, are a card."""
    told = stands_alone(text, start, end) and _IN_A_ROW.search(text[start:end]) is None
    told = told and "&#" not in text[start:end]  # numbers of characters in HTML, which are read as those
    return told and is_card_number(only_digits(text[start:end]))


def _refine_run(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return the card numbers in a run of digit groups; a number begins and ends at group borders."""
    if _IN_POWERS.match(text, start) is not None:
        return _in_powers(text, start, end)
    if not _MAY_HOLD.search(text[start:end]):
        return ()
    groups = digit_groups(text, start, end)
    # After a space the next group begins a candidate of its own; after a hyphen it continues this number.
    cut = bool(start) and "0" <= text[start - 1] <= "9"
    if cut and not (len(groups) > 1 and _is_joined(text, groups[1][0])):
        return ()
    if cut or continues_number(text, start):
        groups = groups[1:]
    if "0" <= text[end : end + 1] <= "9":
        groups = groups[:-1]
    torn = (glued_before(text, start), glued_behind(text, end))
    spans: list[SpanPair] = []
    first = 0
    while first < len(groups):
        after = _card_from(text, groups, first)
        touched = any((torn[0] and groups[first][0] == start, torn[1] and groups[after - 1][1] == end))
        if after > first and touched and not _is_set_apart(text, groups[first:after]):
            after = first  # letters that touch it make an id of it, unless its groups are those of a card
        if after > first:
            stop = iban_around(text, groups[first][0], end)
            if stop is None:
                spans.append((groups[first][0], groups[after - 1][1]))
            else:
                after = next((place for place, group in enumerate(groups) if group[0] >= stop), len(groups))
        first = max(after, first + 1)
    return spans


def _is_set_apart(text: str, groups: Sequence[SpanPair]) -> bool:
    """Say whether a card is set in groups as cards are."""
    gaps = {text[groups[number][1] : groups[number + 1][0]] for number in range(len(groups) - 1)}
    return len(groups) >= 3 and gaps in ({" "}, {"-"})


_MOST_CARD_DIGITS = 19
_MOST_CARD_GROUPS = 8
_MOST_RUN_DIGITS = 30
"""That a candidate has."""


def skip_card(text: str, start: int, end: int) -> int:
    """Return where the next candidate may hold a card."""
    if _IN_STRINGS.match(text, start) is not None:
        other = _AS_OTHER.match(text, start, end)
        if other is None:
            return digit_groups(text, start, end)[0][1]
        end = other.end()
    if _AS_SINGLES.match(text, start) is not None:
        return skip_figures(text, start, end)
    if _IN_POWERS.match(text, start) is None and _AS_RUN.match(text, start) is None:
        return _skip_apart(text, start, end)
    return _skip_run(text, start, end)


def _skip_run(text: str, start: int, end: int) -> int:
    """Return where the first group stands whose card could reach beyond the candidate: of the others all was seen.

    So was a group of four behind them. A group that continues a number begins a card only where that is seen too.
    """
    segment = text[start:end]
    power = _IN_POWERS.match(text, start)
    if power is not None:
        return start + text[start : power.end()].lower().index(
            "e"
        )  # what begins within its figures is glued to those before
    if not _MAY_HOLD.search(segment):
        hit = _GOES_ON.search(segment)
        return end if hit is None else _begin_of(text, start + hit.start() + 1)
    groups = digit_groups(text, start, end)
    if sum(stop - at for at, stop in groups) < _MOST_RUN_DIGITS:
        return end  # the run of digits ends here
    whole = groups[:-1] if "0" <= text[end : end + 1] <= "9" else groups
    digits = 0
    for number in range(len(whole) - 1, 0, -1):
        digits += whole[number][1] - whole[number][0]
        if digits >= _MOST_CARD_DIGITS + 4 or len(whole) - number > _MOST_CARD_GROUPS:
            break
    else:
        number = 0
    last = groups[number][1]
    begins = number + 1 < len(groups) and not continues_number(text, groups[number + 1][0])
    return last if begins else min(last, end) - 1


def _begin_of(text: str, group: int) -> int:
    """Return where a candidate is to begin in which a card that begins with `group` is seen as in a longer one."""
    if not _is_joined(text, group):
        return group
    while not "0" <= text[group - 1] <= "9":
        group -= 1
    return group - 1


def _is_joined(text: str, group: int) -> bool:
    """Say whether a sign joins a group to digits before it."""
    return continues_number(text, group) or glued_before(text, group)


def _card_from(text: str, groups: Sequence[SpanPair], first: int) -> int:
    """Return the index after the last group of a card that begins at `first`; `first` itself when there is none."""
    size = groups[first][1] - groups[first][0]
    if not (2 <= size <= 8 or 12 <= size <= 19):
        return first  # no layout begins so
    if not HEADS[text[groups[first][0] : groups[first][0] + 2]]:
        return first
    if text[groups[first][0] - 1 : groups[first][0]] == "." and continues_number(text, groups[first][0]):
        return first  # digits of a fraction
    if size in (2, 3) and (first or len(groups) != _ODD_GROUPS[size]):
        return first  # layouts that count by themselves alone
    if _BEGINS.match(text, groups[first][0]) is None:
        return first
    for after, number in reversed(_in_layouts(text, groups, first)):
        if is_card_number(number) and _is_set_as_card(text, groups, first, after):
            return after
    return first


def _in_layouts(text: str, groups: Sequence[SpanPair], first: int) -> list[tuple[int, str]]:
    """Return where groups of a card's sizes end that begin at `first`, each with its digits; the shortest first."""
    digits, sizes = "", tuple[int, ...]()
    likely: list[tuple[int, str]] = []
    for after, (begin, stop) in enumerate(groups[first : first + _MOST_CARD_GROUPS], first + 1):
        digits += text[begin:stop]
        sizes += (stop - begin,)
        if sizes in _CARD_LAYOUTS:
            likely.append((after, digits))
        if len(digits) >= _MOST_CARD_DIGITS:
            break
    return likely


def _is_set_as_card(text: str, groups: Sequence[SpanPair], first: int, after: int) -> bool:
    """Say whether the groups from `first` to `after`, of a card's sizes, have gaps that go with them."""
    chosen = groups[first:after]
    sizes = tuple(stop - begin for begin, stop in chosen)
    gaps = {text[stop : groups[first + number + 1][0]] for number, (_, stop) in enumerate(chosen[:-1])}
    usual = not gaps or gaps in ({" "}, {"-"})
    if sizes in _ODD_LAYOUTS:
        return usual and after - first == len(groups) and not (sizes[0] == 2 and _rises(text, chosen))
    if usual:
        return sizes != (4, 4, 4) or not _has_another(text, groups, first, after)
    wrapped = gaps in ({"\n"}, {"\r\n"}) and sizes in ((4, 4, 4, 4), (4, 6, 5))
    some_lines = sizes in _WIDE_LAYOUTS and 2 * sum("\n" in gap for gap in gaps) <= len(gaps)
    return (wrapped or some_lines) and not _has_another(text, groups, first, after)


def _rises(text: str, groups: Sequence[SpanPair]) -> bool:
    """Say whether each group is at least the one before it: a row of values in order."""
    values = [int(text[begin:stop]) for begin, stop in groups]
    return values == sorted(values)


def _has_another(text: str, groups: Sequence[SpanPair], first: int, after: int) -> bool:
    """Say whether one more group of four stands beside some: then they are a part of something else, as of a table."""
    start = groups[first][0]
    at = start
    while at and start - at < _MOST_GAP and text[at - 1] in _GAP_SIGNS:
        at -= 1
    if at < start and len(only_digits(text[max(0, at - 4) : at])) == 4 and not glued_before(text, at - 4):
        return True
    return after < len(groups) and groups[after][1] - groups[after][0] == 4


def _in_powers(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return a number with a power of ten if it is a card's: programs print long ones so (`4.111111111111111e15`)."""
    if text[start - 1 : start].isalnum() or text[start - 1 : start] in {".", "_"} or is_glued(text[end : end + 1]):
        return ()
    figures, _, power = text[start:end].lower().partition("e")
    whole, _, part = figures.partition(".")
    size = len(whole) + int(power)
    if not 0 < size <= _MOST_CARD_DIGITS or (whole + part)[size:].strip("0"):
        return ()
    number = (whole + part)[:size].ljust(size, "0").lstrip("0")
    return ((start, end),) if is_card_number(number) else ()


CREDIT_CARD = Entity(
    name="CREDIT_CARD",
    regex=f"{_POWERS}|{_SINGLES}|{_STRINGS}|{_RUN}|{_APART}",
    refine=refine_card,
    skip=skip_card,
    group="pii",
)

ENTITIES = (CREDIT_CARD,)
