"""Money: IBANs, bank accounts, and the codes that name a bank's branch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from types import MappingProxyType

from checkstream.core.match.engine import compile_regex
from checkstream.core.match.entities.checksums import aba_routing, iban_mod97
from checkstream.core.match.entities.entity import (
    GAP,
    LEFT_CHARS,
    WORD,
    Entity,
    SpanPair,
    before,
    continues_number,
    glued_before,
    glued_behind,
    only_digits,
    parts_of,
    past_mark,
    stands_alone,
    whole_if,
)
from checkstream.core.match.entities.labels import is_labelled, tight_label, words_of

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


def iban_around(text: str, start: int, end: int) -> int | None:
    """Return where the IBAN ends that is found behind `start`, in whose inside `start` stands; None without one."""
    head = _iban_head(text, start)
    return next((stop for _, stop in refine_iban(text, head, end) if stop > start), None) if head >= 0 else None


def follows_iban_head(text: str, start: int) -> bool:
    """Say whether `start` stands behind a country, check digits and maybe more groups of four (`DE89 3704 `)."""
    return _iban_head(text, start) >= 0


def refine_iban(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return the IBAN that begins a candidate, cut to its country's length."""
    if _AS_PRINTED.match(text, start) is not None:
        return _refine_set(text, start, end)
    apart = _AS_APART.match(text, start, end)
    spans = () if apart is None else _refine_set(text, start, apart.end())
    return spans or _refine_named(text, start, end)


def _refine_set(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return the IBAN that is printed, or set apart by signs alone."""
    second = next((at for at in range(start + 1, min(start + 5, end)) if text[at].isalnum()), start)
    length = _IBAN_LENGTHS.get((text[start] + text[second]).upper())
    if length is None or (glued_before(text, start) and before(text, start) != "_"):
        return ()
    compact, stop = "", start
    while stop < end and len(compact) < length:
        if text[stop].isalnum():
            compact += text[stop]
        stop += 1
    if not _is_set_as_iban(text, start, stop, end):
        return ()
    if len(compact) != length or (glued_behind(text, stop) and stop - start == length):
        return ()
    if "0" <= text[stop : stop + 1] <= "9":
        return ()
    return whole_if("02" <= compact[2:4] <= "98" and iban_mod97(compact.upper()), start, stop)


def _refine_named(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return the IBAN of which parts stand behind the word for it, with words in small letters and signs between."""
    if _AS_PARTS.match(text, start, end) is None:
        return ()
    if _NAMED.search(text[max(0, start - LEFT_CHARS) : start]) is None:
        return ()
    places = [at for at in range(start, end) if "0" <= text[at] <= "9" or "A" <= text[at] <= "Z"]
    length = _IBAN_LENGTHS[text[places[0]] + text[places[1]]]
    compact = "".join(text[at] for at in places[:length])
    if len(compact) < length or glued_behind(text, places[length - 1] + 1):
        return ()
    told = "02" <= compact[2:4] <= "98" and iban_mod97(compact)
    return parts_of(text, places[0], places[length - 1] + 1) if told else ()


def _is_set_as_iban(text: str, start: int, stop: int, end: int) -> bool:
    """Say whether what has gaps otherwise than in groups of four is one: capitals, and no figure stands so near."""
    if _AS_PRINTED.match(text, start) is not None:
        return True
    places = [at for at in range(start, end) if text[at].isalnum()]
    if not (text[places[0]] + text[places[1]]).isupper():
        return False
    inside = [after - at for at, after in pairwise(places) if after < stop]
    behind = next((at for at in places if at >= stop and "0" <= text[at] <= "9"), None)
    return behind is None or behind - stop + 1 > max(inside, default=0)


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


_IBAN_GAP = "[ \\t\\r\\n,.\\-/_'*\u00b7]{1,3}"
_COUNTRIES = "|".join(sorted({*_IBAN_LENGTHS, *map(str.lower, _IBAN_LENGTHS)}))
_GROUPED = (
    rf"(?:{_COUNTRIES})[0-9]{{2}}"
    rf"(?:[A-Za-z0-9]{{11,30}}|(?:{_IBAN_GAP}[A-Za-z0-9]{{4}}){{2,7}}(?:{_IBAN_GAP}[A-Za-z0-9]{{1,4}})?)"
)
_SIGNS = "[ \\t\\r\\n,.\\-/_'*\u00b7]{0,3}"
_CODES = "|".join(
    f"{first}[{''.join(sorted(code[1] for code in _IBAN_LENGTHS if code[0] == first))}]"
    for first in sorted({code[0] for code in _IBAN_LENGTHS})
)
_APART = (
    rf"\b(?:{_CODES}){_SIGNS}[0-9]{_SIGNS}[0-9](?:{_SIGNS}[A-Z]){{0,6}}"
    rf"(?:{_SIGNS}[0-9]){{8,30}}(?:{_SIGNS}[A-Z0-9]){{0,12}}"
)
"""Letters and figures with any signs between, which may change from one to the next."""
_AS_PRINTED = compile_regex(_GROUPED)
_AS_APART = compile_regex(_APART)
_FEW = "[^0-9A-Z]{0,16}"
_IN_PARTS = rf"\b(?:{_CODES}){_FEW}[0-9]{_FEW}[0-9](?:{_FEW}[A-Z0-9]){{11,31}}"
"""The same, with words in small letters between too: behind the word itself alone."""
_AS_PARTS = compile_regex(_IN_PARTS)
_NAMED = compile_regex(r"(?i:\biban)\b[^0-9]{0,32}\z")
IBAN = Entity(
    name="IBAN",
    regex=f"{_GROUPED}|{_IN_PARTS}",
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

ENTITIES = (IBAN, BANK_ACCOUNT, SORT_CODE)
