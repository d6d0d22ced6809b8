"""Where a JSON text may be edited, and what the inside of its strings says."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.channel.json_strings import JsonStrings, inside_json_string, outside_json_string
from checkstream.core.terms import Span


def read(text: str) -> JsonStrings:
    strings = JsonStrings()
    strings.feed(text)
    return strings


def test_g10_strings_of_json_are_kept_as_long_as_they_can_matter_and_found_by_halving() -> None:
    strings = JsonStrings()
    for sent in range(0, 40_000, 4):
        strings.feed('"\\n"')
        strings.forget(sent)
    assert strings.editable(39_997, 39_998) == Span(39_997, 39_999)
    assert strings.whole(39_998) == 39_997
    assert strings.editable(39_996, 39_998) is None
    assert strings.editable(1, 2) is None, "forgotten: it was sent long ago"


def test_g08_what_is_widened_stays_inside_the_string() -> None:
    text = '{"to": "Dear Ann. Bye", "n": 1'
    strings = read(text)
    inside = Span(text.index("Ann"), text.index("Ann") + 3)
    assert strings.clip(Span(0, len(text)), inside) == Span(8, 21)
    assert strings.clip(Span(10, 14), inside) == Span(10, 14)
    outside = Span(text.index("1"), text.index("1") + 1)
    assert strings.clip(Span(0, len(text)), outside) == outside
    open_string = read('{"a": "x y')
    assert open_string.clip(Span(0, 10), Span(9, 10)) == Span(7, 10)


@pytest.mark.parametrize(
    ("inside", "says"),
    [
        ("caf\\u00e9", "café"),
        ("a\\nb\\\\c\\/d", "a\nb\\c/d"),
        ("\\ud83d\\ude00", "\N{GRINNING FACE}"),
        ("\\ud83d", "\N{REPLACEMENT CHARACTER}"),
        ("plain", "plain"),
        ("half \\", "half \\"),
        ("half \\u00", "half \\u00"),
        ('no inside \\" "', 'no inside \\" "'),
        ("control \\t \t", "control \t \t"),
    ],
)
def test_the_inside_of_a_string_is_read_as_it_says_and_what_is_none_as_it_stands(inside: str, says: str) -> None:
    assert outside_json_string(inside) == says


@given(st.text())
def test_what_is_written_inside_a_string_is_read_back(text: str) -> None:
    assert outside_json_string(inside_json_string(text)) == text
    assert json.loads(f'"{inside_json_string(text)}"') == text


@given(st.text(alphabet='\\u0123dD8ef"n\x00 é'))
def test_no_inside_can_make_text_that_is_no_text(inside: str) -> None:
    outside_json_string(inside).encode()
