"""G18: numbers that are told with something between their figures or groups, and rows of figures that are none."""

from __future__ import annotations

import itertools
import json
import random
import re
import sys
from collections.abc import Callable
from unicodedata import category

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chance import examples
from tests.property.made_values import a_card, an_iban, an_ssn, squeezed
from tests.property.match_strategies import pieces
from tests.property.test_respelled import covered

ENDS_AND_DASHES = [char for char in map(chr, range(0x80, sys.maxunicode)) if category(char) in {"Zs", "Zl", "Zp", "Pd"}]


def assert_found(lead: str, said: str, rest: str, cuts: list[int], of: Callable[[str], bool] = str.isdigit) -> None:
    """Fail unless all figures that are said are found between two texts, however those are cut."""
    text = f"{lead}{said}{rest}"
    places = covered(pieces(text, cuts))
    assert places == covered([text])
    assert {len(lead) + at for at, char in enumerate(said) if of(char)} <= places


@pytest.mark.parametrize("sign", ["\n", "\x85", *ENDS_AND_DASHES])
def test_g18_any_end_of_line_and_any_dash_sets_figures_apart(sign: str) -> None:
    said = f"card {sign.join(['4111', '1111', '1111', '1111'])} ok"
    assert covered([said]) >= set(range(5, len(said) - 3))


GAPS = (
    "=",
    "&",
    " + ",
    "][",
    ") (",
    " and ",
    ", then ",
    "  ",
    "\t",
    "</td><td>",
    "<x>",
    " dash ",
    "...",
    "\u3001",
    "\\n",
    "a",
)
FAR_CHARS = [char for char in map(chr, range(0x20, 0x7F)) if not char.isdigit()]


@settings(max_examples=examples(80), deadline=None)
@given(
    st.integers(0, 1 << 30),
    st.lists(st.sampled_from(GAPS) | st.text(FAR_CHARS, min_size=1, max_size=12), min_size=15, max_size=15),
    st.lists(st.integers(0, 300), max_size=6),
)
def test_g18_a_card_s_number_is_found_whatever_stands_between_each_of_its_figures(
    seed: int, gaps: list[str], cuts: list[int]
) -> None:
    figures = squeezed(a_card(random.Random(seed)))
    said = "".join(figure + gap for figure, gap in zip(figures, [*gaps, ""], strict=True))
    lead = "Here it is, as you have asked: "
    assert_found(lead, said, ". That is all of it, and no more.", cuts)


SIGNS = (" ", "-", ".", ", ", "/", "  ", "_", " - ", "\t", "\n", "*", "\u00b7", "'")
BEFORE_NUMBERS = ("", "+1 415 555 2000 ; that is old. ", "form 27 of 2024: ", "at 5 it is ", "in 12 or so, ")
BEHIND_NUMBERS = (" . Done.", ", as of the day before 27/09", " ; and then I was told  4 or 5", " OK. Room 20270")
NAMING = ("SSN: ", "social security number is ", "Social Security: ")


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(0, 1 << 30),
    st.lists(st.sampled_from(GAPS) | st.text(FAR_CHARS, min_size=1, max_size=12), min_size=8, max_size=8),
    st.tuples(st.sampled_from(BEFORE_NUMBERS), st.sampled_from(NAMING), st.sampled_from(BEHIND_NUMBERS)),
    st.sampled_from(((1,) * 9, (3, 2, 4), (3, 3, 3), (5, 4))),
    st.lists(st.integers(0, 300), max_size=6),
)
def test_g18_an_ssn_that_is_named_is_found_whatever_stands_between_its_figures(
    seed: int, gaps: list[str], around: tuple[str, str, str], sizes: tuple[int, ...], cuts: list[int]
) -> None:
    before, naming, behind = around
    if sizes in ((3, 3, 3), (5, 4)):  # with words between they are numbers of their own
        gaps = ["".join(char for char in gap if not char.isalpha()) or " " for gap in gaps]
    left, parts = an_ssn(random.Random(seed)).replace("-", ""), list[str]()
    for size in sizes:
        parts.append(left[:size])
        left = left[size:]
    said = "".join(part + gap for part, gap in zip(parts, [*gaps[: len(parts) - 1], ""], strict=True))
    lead = f"Here: {before}the {naming}"
    assert_found(lead, said, f"{' ' * 14}{behind}", cuts)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(0, 1 << 30),
    st.lists(st.sampled_from(SIGNS), min_size=21, max_size=21),
    st.tuples(st.sampled_from(BEFORE_NUMBERS), st.sampled_from(BEHIND_NUMBERS), st.sampled_from((1, 2, 3, 4))),
    st.lists(st.integers(0, 300), max_size=6),
)
def test_g18_an_iban_is_found_whatever_signs_stand_between_its_figures(
    seed: int, gaps: list[str], around: tuple[str, str, int], cuts: list[int]
) -> None:
    before, behind, size = around
    value = squeezed(an_iban(random.Random(seed)))
    parts = [value[:2], *(value[at : at + size] for at in range(2, 22, size))]
    said = "".join(part + gap for part, gap in zip(parts, [*gaps[: len(parts) - 1], ""], strict=True))
    lead = f"Here: {before}the IBAN is "
    assert_found(lead, said, f"{' ' * 4}{behind}", cuts, of=str.isalnum)


@pytest.mark.parametrize(
    "said",
    [
        "1, 2, 3, 4, 5, 6, 7, 8, 9",
        "SSN of the ages 1 and 2; 3 and 4; 5 and 6; 7 and 8; 9 and 10; 11 and 12",
        "the SSN has 3 and 2 and 4 figures, as in the form of 2024",
        "Social Security paid 100 people in 12 towns, 20 more than in 2023",
        "at 10, 20, 30, 40, 50, 60, 70, 80, 90, 100 and 110",
        "100 - 20 - 2023",
        "it is 10 in 2021, 12 in 2022, 14 in 2023, 18 in 2024 and 20 in 2025",
        "NO 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15",
    ],
)
def test_figures_of_a_row_are_no_ssn_and_no_iban(said: str) -> None:
    assert not covered([f"See: {said} . Done."])


@settings(max_examples=examples(30), deadline=None)
@given(
    st.integers(0, 1 << 30),
    st.sampled_from((" dash ", " = ", "&", "+", ")(", "][", "<br>", " then ", "\u3001", "~", " \u2192 ")),
    st.sampled_from((4, 2)),
    st.lists(st.integers(0, 99), max_size=4),
    st.tuples(
        st.sampled_from(("", "+1 415 555 2000 ; it is ", "4012 or so: ", "no 27 :: it is ")),
        st.sampled_from(("", ", expires 2027", " , as of 27/09", "  from  20270")),
    ),
)
def test_g18_groups_of_a_card_s_number_are_found_with_words_and_signs_between(
    seed: int, gap: str, size: int, cuts: list[int], around: tuple[str, str]
) -> None:
    figures = squeezed(a_card(random.Random(seed)))
    said = gap.join(figures[at : at + size] for at in range(0, 16, size))
    lead = f"Here: {around[0]}"
    assert_found(lead, said, f"{around[1]} . Done.", cuts)


@pytest.mark.parametrize(
    "said",
    [
        "4 1 1 1 | 1 1 1 1 | 1 1 1 1\n5 1 1 1 | 1 1 1 1 | 1 1 1 1\n" * 3,
        "a: 4, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1, k: 1",
        "4111 and 1111 and 1111 and 1111 and 1111",
        "| 4111 | 1111 | 1111 | 1111 |",
        "x = [4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2]",
        "4 of 111 in 1 and 11 of 11 by 111 to 11",
    ],
)
def test_figures_of_a_table_or_of_a_sentence_are_no_card(said: str) -> None:
    assert not covered([f"See: {said} . Done."])


FEW_WORDS = (" then ", ", ", " | ", "\n", " - ", " and then ", "; ", " \t ", ": ", " dash ", ", part: ", "</td><td>")


def capitals(char: str) -> bool:
    return char.isdigit() or char.isupper()


@settings(max_examples=examples(40), deadline=None)
@given(
    st.integers(0, 1 << 30),
    st.lists(st.sampled_from(FEW_WORDS), min_size=4, max_size=4),
    st.sampled_from(("NINO: ", "National Insurance number is ", "my NI number: ", "NINO letters ", "nino (prefix ")),
    st.sampled_from(((2, 2, 2), (6,), (3, 3), (1, 1, 1, 1, 1, 1))),
    st.lists(st.integers(0, 99), max_size=4),
)
def test_g18_a_national_insurance_number_is_found_behind_its_word_whatever_stands_between_its_parts(
    seed: int, gaps: list[str], naming: str, sizes: tuple[int, ...], cuts: list[int]
) -> None:
    figures, said = f"{random.Random(seed).randrange(10**6):06}", "AB"
    for number, size in enumerate(sizes):
        said += gaps[number % 4] + figures[:size]
        figures = figures[size:]
    assert_found(f"Here: {naming}", f"{said}{gaps[-1]}C", " . That is all.", cuts, of=capitals)


@settings(max_examples=examples(40), deadline=None)
@given(
    st.integers(0, 1 << 30),
    st.lists(st.sampled_from(FEW_WORDS), min_size=6, max_size=6),
    st.sampled_from(("IBAN: ", "the IBAN (country ", "my iban, in parts, is ")),
    st.sampled_from(((2, 4, 4, 4, 4, 2), (2, 8, 10), (4, 4, 4, 4, 4))),
    st.lists(st.integers(0, 99), max_size=4),
)
def test_g18_an_iban_is_found_behind_its_word_whatever_words_stand_between_its_parts(
    seed: int, gaps: list[str], naming: str, sizes: tuple[int, ...], cuts: list[int]
) -> None:
    value = squeezed(an_iban(random.Random(seed)))
    said, rest = value[:2], value[2:]
    for number, size in enumerate(sizes):
        said += gaps[number] + rest[:size]
        rest = rest[size:]
    assert_found(f"Here: {naming}", said, " . That is all.", cuts, of=capitals)


def test_g18_an_iban_is_found_whose_parts_are_named() -> None:
    said = "IBAN: country GB, check 29, bank NWBK, sort code 601613, account 31926819."
    places = covered(list(said))
    assert {at for at, char in enumerate(said) if at > 4 and capitals(char)} <= places


@pytest.mark.parametrize(
    "said",
    [
        "IBAN: DE 12 of 8937, then 0400 of 4405 and 32 of 013 and 000",
        "an IBAN has up to 34 characters: in GB there are 22, in DE 22, in FR 27, in NO 15 and in MT 31 of them",
        "National Insurance is for 16 to 64, see A and B in the list of 2024",
        "National Insurance: see GB 12 34 56 and then A",
        "the NINO has 2 letters, 6 figures and 1 letter",
        "912 people in 70 towns or 1234 in all",
        "the ITIN: 912 rows, 70 columns, 1234 cells",
        "Weekly users: 1234567, 50, 51, 52, 53, 54, 55, 56",
        "ages: 49, 50, 46, 49, 54, 56, 46, 49, 46, 49",
        "firefox_115.0.2.1 and file_v1.2.3.4.zip",
        '{"first_lot": "41111111", "other": "11111111"}',
    ],
)
def test_figures_behind_words_for_numbers_are_no_iban_and_no_number_of_persons(said: str) -> None:
    assert not covered([f"See: {said} . Done."])


STRINGS_OF = (
    json.dumps,
    lambda parts: json.dumps(parts, separators=(",", ":")),
    lambda parts: json.dumps(parts, indent=4),
    lambda parts: "[" + ", ".join(f"'{part}'" for part in parts) + "]",
    lambda parts: json.dumps({f"part_{at}": part for at, part in enumerate(parts)}),
    lambda parts: json.dumps({f"p{at}": {"a": part} for at, part in enumerate(parts)}, separators=(",", ":")),
    lambda parts: json.dumps({"card": {"numbers": [[part] for part in parts]}}),
    lambda parts: json.dumps(json.dumps(parts)),
)


@settings(max_examples=examples(120), deadline=None)
@given(
    st.integers(0, 1 << 30),
    st.sets(st.integers(1, 18), min_size=1, max_size=3),
    st.tuples(st.sampled_from(STRINGS_OF), st.booleans()),
    st.tuples(st.sampled_from(("So: ", "", '{"n": 4, "of": ', '"4012", or ')), st.sampled_from((" . Done.", "", "\n"))),
    st.lists(st.integers(0, 200), max_size=6),
)
def test_g18_a_card_s_number_is_found_that_is_cut_over_strings_of_json_in_a_text(
    seed: int,
    at: set[int],
    how: tuple[Callable[[list[str]], str], bool],
    around: tuple[str, str],
    cuts: list[int],
) -> None:
    form, spaced = how
    value = a_card(random.Random(seed))
    value = value if spaced else squeezed(value)
    places = sorted(place for place in at if place < len(value))
    parts = [value[low:high] for low, high in itertools.pairwise([0, *places, len(value)])]
    said = form([part for part in parts if part.strip()])
    lead, rest = around
    text = f"{lead}{said}{rest}"
    found = covered(pieces(text, cuts))
    assert found == covered([text])
    inside = [match.span(1) for match in re.finditer(r"""["'] ?([0-9][0-9 -]*)\\?["']""", said)]
    assert {len(lead) + place for low, high in inside for place in range(low, high) if said[place] != " "} <= found


@pytest.mark.parametrize(
    "said",
    [
        '{"ids": ["41111111", "11111111", "41111111", "11111111"]}',
        '{"from": "20240101", "to": "20241231"}',
        '["4111", "1111", "1111", "1111", "1111", "1111"]',
        '{"zip": "41234", "no": "55512", "of": "345678"}',
        '["4111", "x", "1111", "1111", "1111"]',
        '{"a": "4111 1111", "b": "1111 1112"}',
    ],
)
def test_figures_of_strings_that_only_stand_beside_each_other_are_no_card(said: str) -> None:
    assert not covered([f"See: {said} . Done."])
