"""Where a JSON text may be edited, and what the inside of its strings says."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.channel.json_leaves import (
    JsonLeaves,
    Piece,
    inside_json,
    inside_json_string,
    is_json,
    outside_json_string,
)
from checkstream.core.channel.replacements import Replacement, Replacements
from checkstream.core.steps import done
from checkstream.core.terms import Span


def read(text: str) -> JsonLeaves:
    strings = JsonLeaves()
    strings.feed(text)
    return strings


def test_g10_strings_of_json_are_kept_as_long_as_they_can_matter_and_found_by_halving() -> None:
    strings = JsonLeaves()
    strings.feed("[")
    for sent in range(0, 40_000, 4):
        strings.feed('"\\n"')
        strings.forget(sent)
    assert strings.pieces(Span(39_998, 39_999)) == [Piece(Span(39_998, 40_000), bare=False)]
    assert strings.whole(39_999) == 39_998
    assert strings.pieces(Span(1, 3)) == [], "forgotten: it was sent long ago"


def test_g08_what_is_widened_stays_inside_the_string() -> None:
    text = '{"to": "Dear Ann. Bye", "n": 1'
    strings = read(text)
    inside = Span(text.index("Ann"), text.index("Ann") + 3)
    assert strings.clip(Span(0, len(text)), inside) == Span(8, 21)
    assert strings.clip(Span(10, 14), inside) == Span(10, 14)
    outside = Span(text.index("1"), text.index("1") + 1)
    assert strings.clip(Span(0, len(text)), outside) == outside
    assert strings.clip(Span(0, 20), Span(9, 22)) == Span(9, 22)
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


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
CONTAINERS = st.lists(JSON, max_size=4) | st.dictionaries(st.text(max_size=4), JSON, max_size=4)


@given(CONTAINERS, st.sampled_from([None, 2]), st.booleans(), st.data())
def test_g35_json_is_json_after_any_edits_of_it(
    value: object, indent: int | None, ascii_only: bool, data: st.DataObject
) -> None:
    label, bare = data.draw(st.text(max_size=6)), data.draw(st.sampled_from(["", "null", "0", "-7"]))
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    replacements = Replacements()
    for made in done(inside_json(text, [Replacement(start, end, label, bare=bare)])) or ():
        replacements.add(made, 0)
    for start, end in data.draw(st.lists(st.tuples(st.integers(0, len(text)), st.integers(0, len(text))), max_size=3)):
        for made in done(inside_json(text, [Replacement(start, end, label, bare=bare)] if start < end else [])) or ():
            replacements.add(made, 0)
    edited = replacements.render(0, len(text), lambda span: text[span.start : span.end])
    assert is_json(edited)


@given(CONTAINERS, st.data())
def test_g03_leaves_are_the_same_however_the_text_is_cut(value: object, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    whole, parted = read(text), JsonLeaves()
    at = 0
    for cut in sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6))):
        parted.feed(text[at:cut])
        at = cut
    parted.feed(text[at:])
    everything = Span(0, len(text))
    assert parted.pieces(everything) == whole.pieces(everything)
    assert all(parted.whole(at) == whole.whole(at) for at in range(len(text)))


def test_g35_a_number_becomes_a_string_or_null_and_what_spans_leaves_is_taken_from_each() -> None:
    def edited(text: str, start: str, end: str, *, bare: str = "") -> str:
        replacements = Replacements()
        edit = Replacement(text.index(start), text.index(end) + len(end), "[X]", bare=bare)
        for made in done(inside_json(text, [edit])) or ():
            replacements.add(made, 0)
        return replacements.render(0, len(text), lambda span: text[span.start : span.end])

    assert edited('{"card": 4111111111111111, "n": 1}', "411", "1111,") == '{"card": "[X]", "n": 1}'
    assert edited('{"card": 4111111111111111, "n": 1}', "411", "411", bare="null") == '{"card": null, "n": 1}'
    assert edited('{"card": 4111111111111111, "n": 1}', "411", "411", bare="0") == '{"card": 0, "n": 1}'
    assert edited("[4111, 1111, true]", "4111", "true") == '["[X]", null, null]'
    assert edited('{"a": "my ann", "b": "bob and"}', "ann", "bob") == '{"a": "my [X]", "": " and"}'
    assert edited("mail ann, or bob", "ann", "ann") == "mail [X], or bob", "no JSON: all of it is text"


def test_an_edit_between_leaves_is_none() -> None:
    assert done(inside_json('{"a": 1}', [Replacement(4, 6, "x")])) is None
    assert done(inside_json('{"a": 1}', [Replacement(2, 3, "x"), Replacement(4, 6, "x")])) is None


def test_g10_a_long_string_of_escapes_is_read_once() -> None:
    text = "[" + '"' + "\\" * 200_000 + '"]'
    leaves = read(text)
    assert len(leaves.pieces(Span(0, len(text)))) == 1


@pytest.mark.parametrize("blank", ["\n", "\t", "\r", "\f", "\n\n", "\t\n"])
@pytest.mark.parametrize("value", ["+john.doe@example.com", "john.doe@example.com"])
def test_an_edit_leaves_the_white_space_that_stands_before_a_value(blank: str, value: str) -> None:
    """In `\\njohn@...` the letter of the escape seems to begin the address."""
    text = json.dumps({"diff": f"-a{blank}{value}{blank}b"})
    low = text.index(value) - 1
    parted = JsonLeaves()
    for char in text:
        parted.feed(char)
    for leaves in (read(text), parted):
        (piece,) = leaves.pieces(Span(low, text.index(value) + len(value)))
        assert text[piece.span.start : piece.span.end] == value


def test_an_edit_takes_an_escape_that_spells_a_part_of_a_value_as_a_whole() -> None:
    text = '{"mail": "\\u006aohn@example.com"}'
    (piece,) = read(text).pieces(Span(text.index("u006a"), text.index('"}')))
    assert text[piece.span.start : piece.span.end] == "\\u006aohn@example.com"
