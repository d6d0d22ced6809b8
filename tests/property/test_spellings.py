"""G04, G09 and G18: values of the kinds that are asked for most, in spellings that a model is asked to write."""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Callable, Mapping

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from checkstream.proxy.specimens import SPECIMENS
from tests.chance import examples
from tests.property.made_values import Make, a_card, an_address, an_iban, an_ssn, squeezed, word
from tests.property.match_strategies import pieces
from tests.property.test_respelled import covered
from tests.unit.core.match.entities.examples.forms import BARE_RSA
from tests.unit.proxy.test_specimens import BESIDE

Spell = Callable[[str], str]

MAKES: Mapping[str, Make] = {
    "ssn": an_ssn,
    "card": a_card,
    "email": an_address,
    "iban": an_iban,
    "aws": lambda dice: "AKIA" + word(dice, 8, "BCDFGHJKMNPQRS") + word(dice, 8, "2345678TUVWXYZ"),
    "github": lambda _: SPECIMENS["GITHUB_TOKEN"],
    "phone": lambda dice: f"+44 20 7{dice.randint(100, 999)} {dice.randint(1000, 9999)}",
    "key": lambda _: BARE_RSA,
}


def between(sign: str) -> Spell:
    return lambda value: value.replace(" ", sign).replace("-", sign)


def grouped(*sizes: int) -> Spell:
    def spell(value: str) -> str:
        digits, out = squeezed(value), list[str]()
        for size in sizes:
            out.append(digits[:size])
            digits = digits[size:]
        return " ".join(out)

    return spell


EVERY: Mapping[str, Spell] = {
    "tags between": "<b></b>".join,
    "turned round": lambda value: f"\u202e{value[::-1].replace(chr(10), ' ')}\u202c",
    "one tag around": lambda value: f"<b>{value}</b>",
    "a comment inside": lambda value: f"{value[:5]}<!-- -->{value[5:]}",
    "hex": lambda value: value.encode().hex(),
    "hex, spaced": lambda value: value.encode().hex(" "),
}
SOME: Mapping[str, tuple[tuple[str, ...], Spell]] = {
    "each character apart": (("ssn", "card", "email", "iban", "aws", "github", "key"), " ".join),
    "behind a name": (("ssn", "card", "iban", "aws", "github"), lambda value: f"secret_{value}"),
    "behind letters": (("card", "aws", "github"), lambda value: f"id{value}"),
    "before a letter": (("card", "iban", "aws", "phone"), lambda value: f"{value}x"),
    "dots": (("ssn", "card", "iban", "phone"), between(".")),
    "middle dots": (("ssn", "card", "iban"), between("\u00b7")),
    "underscores": (("ssn", "card", "iban"), between("_")),
    "commas": (("card", "iban"), between(",")),
    "lines": (("card", "iban"), between("\n")),
    "odd groups": (("card",), grouped(5, 5, 6)),
    "threes": (("card",), grouped(3, 3, 3, 3, 3, 1)),
    "spaces around the sign": (("email",), lambda value: value.replace("@", " @ ")),
    "a line behind the sign": (("email",), lambda value: value.replace("@", "@\n")),
    "a literal of a host": (("email",), lambda value: value.partition("@")[0] + "@[192.0.2.1]"),
    "quoted lines": (("key",), lambda value: value.replace("\n", "\n> ")),
    "an odd first line": (("key",), lambda value: f".....BEGIN.PRIVATE.KEY.....\n{value}"),
}
CASES = [
    *((f"{what}: {how}", what, spell) for how, spell in EVERY.items() for what in MAKES),
    *((f"{what}: {how}", what, spell) for how, (kinds, spell) in SOME.items() for what in kinds),
]


APART: Mapping[str, Spell] = {
    "commas": ",".join,
    "commas and spaces": ", ".join,
    "lines": "\n".join,
    "empty lines": "\n\n".join,
    "pages": "\f".join,
    "bars": " | ".join,
    "tabs": "\t".join,
    "semicolons": "; ".join,
    "slashes": "/".join,
    "arrows": "->".join,
    "a list as text": lambda value: json.dumps(list(value)),
    "a list set out": lambda value: json.dumps(list(value), indent=4),
    "a list of Python's": lambda value: str(list(value)),
    "bullets": lambda value: "".join(f"- {each}\n" for each in value),
    "entries": lambda value: "".join(f"{number}. {each}\n" for number, each in enumerate(value, 1)),
    "entries with brackets": lambda value: "".join(f"({number}) {each}\n" for number, each in enumerate(value, 1)),
    "a column": lambda value: "".join(f"| {each} |\n" for each in value),
}
"""Ways to part each character of a value from the next."""


@pytest.mark.parametrize("how", APART)
@settings(max_examples=examples(8), deadline=None)
@given(
    st.sampled_from(("ssn", "card", "email", "iban", "aws", "github")),
    st.integers(0, 1 << 30),
    st.lists(st.integers(0, 999), max_size=6),
)
def test_g18_a_value_is_found_whatever_parts_each_of_its_characters(
    how: str, what: str, seed: int, cuts: list[int]
) -> None:
    value = MAKES[what](random.Random(seed))
    said = APART[how](squeezed(value))
    text = f"Here it is:\n{said}\nThat is all."
    low = len("Here it is:\n")
    found = covered(pieces(text, cuts))
    shown = [at for at in range(low, low + len(said)) if text[at].isalnum() and "entries" not in how]
    line = said.partition("\n")[0]
    first = low + (len(line) - 1 if "entries" in how else said.index(value[0]))
    last = low + said.rindex(value[-1])
    assert {first, last, *shown} <= found


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(0, 1 << 30),
    st.integers(-3, 20),
    st.sampled_from(("e", "E")),
    st.booleans(),
    st.lists(st.integers(0, 99), max_size=4),
)
def test_g18_a_card_s_number_is_found_with_any_power_of_ten(
    seed: int, point: int, sign: str, plus: bool, cuts: list[int]
) -> None:
    digits = squeezed(a_card(random.Random(seed)))
    if point <= 0:
        said = f"0.{'0' * -point}{digits}{sign}{'+' * plus}{16 - point}"
    elif point < 16:
        said = f"{digits[:point]}.{digits[point:]}{sign}{'+' * plus}{16 - point}"
    else:
        said = f"{digits}{'0' * min(point - 16, 3)}{sign}{-min(point - 16, 3)}"
    text = f'{{"card": {said}}}'
    assert set(range(9, 9 + len(said))) <= covered(pieces(text, cuts))


@pytest.mark.parametrize(
    "said", ["4.1e15", "1e5", "0.4111111111111111", "6.02214076e23", "a4.111111111111111e15b", "12e99"]
)
def test_other_numbers_with_powers_are_no_cards(said: str) -> None:
    assert not covered([said])


def value_in(said: str, how: str) -> tuple[int, int]:
    """Return the part of what was said that must be found: without names before it and letters behind it."""
    low = len("secret_") if "name" in how else len("id") if "behind letters" in how else 0
    if "first line" in how:
        low = said.index("\n") + 1
    high = len(said) - ("before a letter" in how)
    if "turned round" in how:
        low, high = 1, high - 1
    if "one tag around" in how:
        low, high = 3, high - 4
    return low, high


@pytest.mark.parametrize(("how", "what", "spell"), CASES, ids=[case[0] for case in CASES])
@settings(max_examples=examples(4), deadline=None)
@given(seed=st.integers(0, 1 << 30), cuts=st.lists(st.integers(0, 2000), max_size=5))
def test_g04_g09_g18_a_value_is_found_in_spellings_that_models_are_asked_for(
    how: str, what: str, spell: Spell, seed: int, cuts: list[int]
) -> None:
    said = spell(MAKES[what](random.Random(seed)))
    lead = "Answer: "
    text = f"{lead}{said} . Done here."
    places = covered(pieces(text, cuts))
    assert places == covered([text])
    low, high = (place + len(lead) for place in value_in(said, how))
    assert set(range(low, high)) <= places, (text, "".join(text[place] for place in sorted(places)))


NAMES = st.from_regex(r"[a-zA-Z\u00e9][a-zA-Z]{0,7}(?:_[a-z]{1,6})?[0-9]{0,2}_{1,2}", fullmatch=True)


@pytest.mark.parametrize("entity", sorted(SPECIMENS.keys() - {"AUTHORIZATION", "GENERIC_SECRET", "IP_ADDRESS"}))
@settings(max_examples=examples(8), deadline=None, phases=(Phase.explicit, Phase.generate))
@given(name=NAMES, cuts=st.lists(st.integers(0, 200), max_size=5))
def test_g04_g18_a_value_is_found_right_behind_a_name_s_underscore(entity: str, name: str, cuts: list[int]) -> None:
    assume(not re.search("no|ref|item|part|case|due|id|call|tel", name.casefold()))  # words that say what a value is
    before, _, behind = BESIDE.get(entity, "{}").format("|").partition("|")
    lead, value = f"Well, {before}{name}", SPECIMENS[entity]
    text = f"{lead}{value}{behind} it is."
    places = covered(pieces(text, cuts))
    assert places == covered([text])
    assert set(range(len(lead), len(lead) + len(value))) <= places


LEFT: Mapping[str, str] = {
    "a name with a number that is no card": "order_4111111111111112 and id_4111111111111110, row_20240101123456",
    "a number with its groups parted": "1_4111_1111 or 99_4111_11 or 4_000_000_000",
    "what looks like colours": "x[4111]m, y[m], [41;11m 1111 of [1m] and [31, a[0] = [1;2;3] and ^[a-z]$",
    "names of programs": "value_1, utf_8, test_2024_01_02, v_1_2_3, img_640_480, a_AB12C, x_0b1010",
    "a column of values": "123\n45\n6789",
    "cells": "123\t45\t6789",
    "a path": "see /items/123/45/6789",
    "a part's number": "part AB123-45-6789",
    "a table of pairs": "40 41 42 43 44 45 46 47 48 49",
    "more lines than a card has": "1000\n4111\n1111\n1111\n1111\n2000",
    "a product of matrices": "y = x @ self.weights.T + b @ w.mT",
    "a place": "meet us @ example.com",
    "a certificate": "MIIDDTCCAfWgAwIBAgIUQ0h1bmsgb2YgYSBjZXJ0aWZpY2F0ZSwgbm90IGEga2V5MA0GCSqGSIb3DQ",
    "an equation": "x = a + b - c * d",
    "a hash": "d41d8cd98f00b204e9800998ecf8427e and 550e8400-e29b-41d4-a716-446655440000",
    "words of a task": "task-force-of-the-year-2024-and-more is on",
}


@pytest.mark.parametrize("kind", sorted(LEFT))
def test_what_only_looks_like_it_is_left_alone(kind: str) -> None:
    assert covered([f"Answer: {LEFT[kind]} . Done here."]) == set()


PREFIXED: Mapping[str, str] = {
    "GITHUB_TOKEN": "ghp_",
    "AWS_ACCESS_KEY": "AKIA",
    "HUGGINGFACE_TOKEN": "hf_",
    "STRIPE_KEY": "sk_live_",
    "OPENAI_KEY": "sk-proj-",
    "GITLAB_TOKEN": "glpat-",
    "NPM_TOKEN": "npm_",
    "GCP_KEY": "AIza",
}


def a_key(name: str, dice: random.Random) -> str:
    """Return what stands behind the prefix of a key: letters and figures that no name has."""
    if name == "AWS_ACCESS_KEY":
        return word(dice, 8, "BCDFGHJKMNPQRS") + word(dice, 8, "2345678TUVWXYZ")
    size = 35 if name == "GCP_KEY" else 36
    mixed = "".join(word(dice, 1, "BCDFGHJKMNP") + word(dice, 1, "qrstvwxyz") + word(dice, 1, "2345678") for _ in "12")
    return mixed + word(dice, size - len(mixed), string.ascii_letters + string.digits)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(sorted(PREFIXED)),
    st.integers(0, 1 << 30),
    st.sampled_from(("**", "*", "`", "_", "__", "***", "~~", "<b>")),
    st.lists(st.integers(0, 99), max_size=4),
)
def test_g18_a_key_is_found_whose_prefix_has_emphasis_behind_it(
    name: str, seed: int, mark: str, cuts: list[int]
) -> None:
    secret = a_key(name, random.Random(seed))
    said = f"{PREFIXED[name]}{mark}{secret}{mark.replace('<', '</')}"
    text = f"Key: {said} . Done here."
    places = covered(pieces(text, cuts))
    assert places == covered([text])
    assert set(range(text.index(secret), text.index(secret) + len(secret))) <= places


COLOURS = (
    "\x1b[31m",
    "\x1b[1;38;2;255;0;0m",
    "\x1b[0m",
    "\x9b1m",
    "\x1b(B",
    "\x1b]8;;http://a.example\x1b\\",
    "\x1b]0;t\x07",
)
ESCAPED = ("\x1b", "\\x1b", "\\u001b", "\\033", "\\e", "\\\\x1b", "%1b", "&#27;")


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(("ssn", "card", "email", "iban", "aws", "github", "phone")),
    st.integers(0, 1 << 30),
    st.lists(st.sampled_from(COLOURS), min_size=1, max_size=3),
    st.tuples(st.sampled_from(ESCAPED), st.booleans()),
    st.lists(st.integers(0, 999), max_size=6),
)
def test_g18_a_value_is_found_whatever_tells_a_terminal_how_to_show_it(
    what: str, seed: int, shown: list[str], how: tuple[str, bool], cuts: list[int]
) -> None:
    escape, each = how
    value = MAKES[what](random.Random(seed))
    if what != "ssn":
        value = squeezed(value)
    signs = [shown[at % len(shown)].replace("\x1b", escape) for at in range(len(value))]
    if escape == "\\e":
        signs = [sign if sign[:3] in ("\\e[", "\\e]", "\x9b1") else "\\e[0m" for sign in signs]
    said = (
        "".join(sign + char for sign, char in zip(signs, value, strict=True))
        if each
        else (value[:4] + signs[0] + value[4:])
    )
    text = f"Here: {said} . Done here."
    places = covered(pieces(text, cuts))
    assert places == covered([text])
    low = text.index(value[0], len("Here: ")) if not each else len("Here: ") + len(signs[0])
    assert {low, len("Here: ") + len(said) - 1} <= places, text


LOST = st.from_regex(r"(?:\^\[|\u241b|\ufffd)?\[[0-9]{1,2}(?:;[0-9]{1,3}){0,3}m", fullmatch=True)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(sorted(MAKES.keys() - {"key"})),
    st.integers(0, 1 << 30),
    st.tuples(LOST, LOST, st.integers(1, 8)),
    st.lists(st.integers(0, 999), max_size=6),
)
def test_g18_a_value_is_found_among_colours_that_have_lost_their_control_character(
    what: str, seed: int, shown: tuple[str, str, int], cuts: list[int]
) -> None:
    on, off, every = shown
    value = squeezed(MAKES[what](random.Random(seed))) if what != "phone" else MAKES[what](random.Random(seed))
    said = "".join(f"{on}{value[at : at + every]}{off}" for at in range(0, len(value), every))
    text = f"Here: {said} . Done here."
    places = covered(pieces(text, cuts))
    assert places == covered([text])
    low, high = len("Here: ") + len(on), len("Here: ") + len(said) - len(off)
    assert {low, high - 1} <= places, text


@settings(max_examples=examples(20), deadline=None)
@given(st.sampled_from(sorted(MAKES)), st.integers(0, 1 << 30), st.lists(st.integers(0, 999), max_size=6))
def test_g18_a_value_is_found_in_octets_as_mail_writes_them(what: str, seed: int, cuts: list[int]) -> None:
    value = MAKES[what](random.Random(seed))
    octets = [f"={ord(char):02X}" for char in value]
    said = "=\r\n".join("".join(octets[at : at + 25]) for at in range(0, len(octets), 25))
    text = f"Here: {said}\r\nThat is all."
    places = covered(pieces(text, cuts))
    assert places == covered([text])
    assert {len("Here: ") + 1, len("Here: ") + len(said) - 1} <= places


JOINTS = (
    " + ",
    "+",
    " . ",
    ".",
    " .. ",
    " & ",
    " ~ ",
    " || ",
    " << ",
    " ",
    "  ",
    "",
    "\n    ",
    " \\\n  ",
    " +\n    ",
    "\n  + ",
)
"""What a program writes between two strings that it puts together."""


@settings(max_examples=examples(80), deadline=None)
@given(
    st.sampled_from(sorted(MAKES.keys() - {"key"})),
    st.integers(0, 1 << 30),
    st.tuples(st.sampled_from("\"'"), st.lists(st.sampled_from(JOINTS), min_size=1, max_size=4)),
    st.lists(st.integers(1, 60), min_size=1, max_size=4),
    st.lists(st.integers(0, 300), max_size=6),
)
def test_g18_a_value_is_found_in_strings_that_a_program_joins(
    what: str, seed: int, how: tuple[str, list[str]], places: list[int], cuts: list[int]
) -> None:
    quote, joints = how
    value = MAKES[what](random.Random(seed))
    if what != "ssn":
        value = squeezed(value)
    borders = sorted({1 + place % (len(value) - 1) for place in places})
    parts = [value[low:high] for low, high in zip([0, *borders], [*borders, len(value)], strict=True)]
    said = parts[0] + "".join(f"{quote}{joints[at % len(joints)]}{quote}{part}" for at, part in enumerate(parts[1:]))
    text = f"key = {quote}{said}{quote}\nprint(key)"
    found = covered(pieces(text, cuts))
    assert found == covered([text])
    low = len("key = ") + 1
    assert {low, low + len(said) - 1} <= found, text


@settings(max_examples=examples(20), deadline=None)
@given(
    st.sampled_from(sorted(MAKES.keys() - {"key"})),
    st.integers(0, 1 << 30),
    st.integers(1, 60),
    st.sampled_from(["=\n", "=\r\n"]),
    st.lists(st.integers(0, 300), max_size=6),
)
def test_g18_a_value_is_found_that_mail_has_cut_at_the_end_of_a_line(
    what: str, seed: int, place: int, cut: str, cuts: list[int]
) -> None:
    value = MAKES[what](random.Random(seed))
    if what != "ssn":
        value = squeezed(value)
    place = 1 + place % (len(value) - 1)
    said = value[:place] + cut + value[place:]
    text = f"Here: {said} . Done."
    found = covered(pieces(text, cuts))
    assert found == covered([text])
    assert {6, 6 + len(said) - 1} <= found, text


@settings(max_examples=examples(40), deadline=None)
@given(
    st.sampled_from(("ssn", "card", "email", "iban", "aws", "github", "phone")),
    st.integers(0, 1 << 30),
    st.sampled_from(("out of sight", "turned round")),
    st.lists(st.integers(0, 999), max_size=8),
)
def test_g18_a_value_is_found_that_json_has_escaped_out_of_sight_or_turned_round(
    what: str, seed: int, how: str, cuts: list[int]
) -> None:
    value = MAKES[what](random.Random(seed))
    if what != "ssn":
        value = squeezed(value)
    hidden = "".join(chr(0xE0000 + ord(char)) for char in value)
    said = json.dumps(hidden if how == "out of sight" else f"\u202e{value[::-1]}\u202c")[1:-1]
    text = f'{{"note": "{said}", "n": 1}}'
    found = covered(pieces(text, cuts))
    assert found == covered([text])
    low = text.index(said) + (6 if how == "turned round" else 0)
    high = text.index(said) + len(said) - 1 - (6 if how == "turned round" else 0)
    assert {low, high} <= found, text


@pytest.mark.parametrize("name", ["ip_", "client_ip_", "host2_", "SERVER_", "src__", "db_host_"])
def test_g18_an_address_is_found_behind_the_name_of_what_has_one(name: str) -> None:
    lead, value = f"Well, {name}", "10.20.30.40"
    assert set(range(len(lead), len(lead) + len(value))) <= covered([f"{lead}{value} it is."])


@pytest.mark.parametrize("said", ["firefox_115.0.2.1", "file_v1.2.3.4.zip", "build_10.0.19045.1", "chrome_120.0.6.9"])
def test_four_numbers_behind_the_name_of_a_program_are_its_version(said: str) -> None:
    assert not covered([f"Well, {said} it is."])
