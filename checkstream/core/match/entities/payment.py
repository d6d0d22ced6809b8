"""Money: cards, IBANs, bank accounts, and the codes that name a bank's branch."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

from checkstream.core.match.entities.checksums import aba_routing, iban_mod97, luhn
from checkstream.core.match.entities.entity import (
    GAP,
    WORD,
    Entity,
    SpanPair,
    before,
    continues_number,
    digit_groups,
    glued_before,
    glued_behind,
    only_digits,
    past_mark,
    stands_alone,
    whole_if,
)
from checkstream.core.match.entities.labels import is_labelled, tight_label, words_of
from checkstream.core.match.patterns import compile_regex
from checkstream.core.match.syntax import parse
from checkstream.core.match.tree import companion

# (first prefix, last prefix, least digits, most digits). Source: ISO/IEC 7812 issuer ranges as the schemes publish
# them: Visa, Mastercard, American Express, Discover, Diners, JCB, UnionPay, Maestro, Mir, RuPay, Verve, Troy.
_ISSUERS = (
    ("4", "4", 16, 16), ("4", "4", 13, 13), ("4", "4", 19, 19), ("51", "55", 16, 16), ("2221", "2720", 16, 16),
    ("34", "34", 15, 15), ("37", "37", 15, 15), ("6011", "6011", 16, 19), ("644", "649", 16, 19), ("65", "65", 16, 19),
    ("300", "305", 14, 19), ("3095", "3095", 14, 19), ("36", "36", 14, 19), ("38", "39", 14, 19),
    ("3528", "3589", 16, 19), ("62", "62", 16, 19), ("81", "82", 16, 16), ("5018", "5018", 12, 19),
    ("5020", "5020", 12, 19), ("5038", "5038", 12, 19), ("5893", "5893", 12, 19), ("6304", "6304", 12, 19),
    ("6759", "6759", 12, 19), ("6761", "6763", 12, 19), ("56", "58", 12, 19), ("6390", "6390", 12, 19),
    ("0604", "0604", 12, 19), ("2131", "2131", 15, 15), ("1800", "1800", 15, 15), ("2200", "2204", 16, 19),
    ("60", "60", 16, 16), ("508", "508", 16, 16), ("506099", "506198", 16, 19), ("507865", "507964", 16, 19),
    ("9792", "9792", 16, 16),
)  # fmt: skip

_HEADS: Final = MappingProxyType(
    {
        f"{head:02}": tuple(each for each in _ISSUERS if f"{each[0]}0"[:2] <= f"{head:02}" <= f"{each[1]}9"[:2])
        for head in range(100)
    }
)
"""The first two digits of a number -> the issuers whose it may be."""


def is_card_number(digits: str) -> bool:
    """Say whether `digits` has an issuer's prefix, a length that the issuer uses, and a right check digit."""
    size = len(digits)
    for low, high, least, most in _HEADS[digits[:2]]:
        if least <= size <= most and low <= digits[: len(low)] <= high:
            return len(set(digits)) > 1 and luhn(digits)
    return False


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


_ODD_GROUPS: Final = MappingProxyType({2: 8, 3: 6})
"""Size of the first group -> how many there are, in layouts that no other begins like."""


def refine_card(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return the card numbers in a run of digit groups; a number begins and ends at group borders."""
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
            stop = _iban_around(text, groups[first][0], end)
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
    """Return where the first group stands whose card could reach beyond the candidate: of the others all was seen.

    So was a group of four behind them. A group that continues a number begins a card only where that is seen too.
    """
    segment = text[start:end]
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
    if not _HEADS[text[groups[first][0] : groups[first][0] + 2]]:
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


# Length of an IBAN by country. Source: SWIFT IBAN Registry, release 99.
_IBAN_LENGTHS = MappingProxyType(
    {
        country: length
        for length, countries in (
            (15, "NO"), (16, "BE"), (18, "DK FI FO GL NL SD FK"), (19, "MK SI"), (20, "AT BA EE KZ LT LU XK MN"),
            (21, "CH HR LI LV"), (22, "BG BH CR DE GB GE IE ME RS VA"), (23, "AE GI IL IQ OM SO TL"),
            (24, "AD CZ ES MD PK RO SA SE SK TN VG"), (25, "LY PT ST"), (26, "IS TR"), (27, "BI DJ FR GR IT MC MR SM"),
            (28, "AL AZ BY CY DO GT HN HU LB NI PL SV"), (29, "BR EG PS QA UA"), (30, "JO KW MU YE"), (31, "MT SC"),
            (32, "LC"), (33, "RU"),
        )
        for country in countries.split()
    }
)  # fmt: skip


def _iban_head(text: str, start: int) -> int:
    """Return where an IBAN in groups of four begins whose next group would stand at `start`; -1 when none does."""
    at = start
    while at >= 5 and text[at - 1] in " -" and text[at - 5 : at - 1].isalnum():
        at -= 5
        head = text[at : at + 4]
        if head[:2].upper() in _IBAN_LENGTHS and only_digits(head[2:]) == head[2:] and not glued_before(text, at):
            return at
        if start - at > 40:
            break
    return -1


def _iban_around(text: str, start: int, end: int) -> int | None:
    """Return where the IBAN ends that is found behind `start`, in whose inside `start` stands; None without one."""
    head = _iban_head(text, start)
    return next((stop for _, stop in refine_iban(text, head, end) if stop > start), None) if head >= 0 else None


def follows_iban_head(text: str, start: int) -> bool:
    """Say whether `start` stands behind a country, check digits and maybe more groups of four (`DE89 3704 `)."""
    return _iban_head(text, start) >= 0


def refine_iban(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return the IBAN that begins a candidate, cut to its country's length."""
    length = _IBAN_LENGTHS.get(text[start : start + 2].upper())
    if length is None or (glued_before(text, start) and before(text, start) != "_"):
        return ()
    compact, stop = "", start
    while stop < end and len(compact) < length:
        if text[stop].isalnum():
            compact += text[stop]
        stop += 1
    if len(compact) != length or (glued_behind(text, stop) and stop - start == length):
        return ()
    if "0" <= text[stop : stop + 1] <= "9":
        return ()
    return whole_if("02" <= compact[2:4] <= "98" and iban_mod97(compact.upper()), start, stop)


def refine_account(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept a number that a word such as `account number` or `Kontonummer` announces."""
    digits = only_digits(text[start:end])
    if not (6 <= len(digits) <= 17 and stands_alone(text, start, end)) or continues_number(text, start):
        return ()
    if len(set(digits)) == 1 or text[end : end + 1] == "%":
        return ()
    return whole_if(_is_announced(text, start), start, end)


def _is_announced(text: str, start: int) -> bool:
    """Say whether a word for an account stands before `start`."""
    return is_labelled(text, start, "account", reach=32) or tight_label(text, start) == "account_weak"


def skip_account(text: str, start: int, end: int) -> int:
    """Return where the next candidate may begin: what no word announces at its start, none does further on."""
    return start + 1 if _is_announced(text, start) else end


def refine_sort_code(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept a UK sort code, Australian BSB, German BLZ or US routing number that its word announces."""
    if not stands_alone(text, start, end) or continues_number(text, start):
        return ()
    digits = only_digits(text[start:end])
    if len(digits) == 9:
        return whole_if(end - start == 9 and aba_routing(digits) and is_labelled(text, start, "routing"), start, end)
    return whole_if(len(digits) in (6, 8) and is_labelled(text, start, "sort_code"), start, end)


CREDIT_CARD = Entity(
    name="CREDIT_CARD",
    regex="[0-9](?:[ \\t\\r\\n.,\\-/_'*\u00b7]{0,3}[0-9]){11,29}",
    refine=refine_card,
    skip=skip_card,
    group="pii",
)
_IBAN_GAP = "[ \\t\\r\\n,.\\-/_'*\u00b7]{1,3}"
IBAN = Entity(
    name="IBAN",
    regex=(
        r"(?:" + "|".join(sorted({*_IBAN_LENGTHS, *map(str.lower, _IBAN_LENGTHS)})) + r")[0-9]{2}"
        rf"(?:[A-Za-z0-9]{{11,30}}|(?:{_IBAN_GAP}[A-Za-z0-9]{{4}}){{2,7}}(?:{_IBAN_GAP}[A-Za-z0-9]{{1,4}})?)"
    ),
    refine=refine_iban,
    group="pii",
)
BANK_ACCOUNT = Entity(
    name="BANK_ACCOUNT",
    regex=rf"{WORD}[0-9](?:[ \t\-_]{{0,2}}[0-9]){{5,16}}",
    refine=past_mark(refine_account),
    skip=skip_account,
    lead=words_of("account", "account_weak"),
    group="pii",
)
SORT_CODE = Entity(
    name="SORT_CODE",
    regex=(
        rf"{WORD}(?:[0-9]{{2}}{GAP}{{1,2}}[0-9]{{2}}{GAP}{{1,2}}[0-9]{{2}}"
        rf"|[0-9]{{3}}{GAP}{{1,2}}[0-9]{{3}}(?: [0-9]{{2}})?|[0-9]{{8,9}}|[0-9]{{6}})"
    ),
    refine=past_mark(refine_sort_code),
    lead=words_of("routing", "sort_code"),
    group="pii",
)

ENTITIES = (CREDIT_CARD, IBAN, BANK_ACCOUNT, SORT_CODE)
