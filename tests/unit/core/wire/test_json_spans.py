"""Spans of values in JSON text, against what the standard parser finds there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.wire.json_text import spans
from checkstream.core.wire.json_text.spans import NAME, JsonText, Path, Splice
from checkstream.errors import WireError

TEXT = ' { "a" : [ 1 , {"b\\u0062":"x\\"]"} , null ] ,"c":{ } , "d":[ ],"":-1.5e3 } \n'


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("a",), '[ 1 , {"b\\u0062":"x\\"]"} , null ]'),
        (("a", 0), "1"),
        (("a", 1, "bb"), '"x\\"]"'),
        (("a", 1, "bb", NAME), '"b\\u0062"'),
        (("a", 2), "null"),
        (("c",), "{ }"),
        (("",), "-1.5e3"),
        ((), TEXT.strip()),
        (("a", 3), None),
        (("a", "0"), None),
        (("a", 0, "x"), None),
        (("c", "x", "y"), None),
        (("d", 0), None),
        (("a", 0, NAME), None),
    ],
)
def test_span(path: tuple[str | int, ...], value: str | None) -> None:
    span = JsonText(TEXT).span(path)
    assert (None if span is None else TEXT[span[0] : span[1]]) == value


@pytest.mark.parametrize(
    "text", ["", "{", '{"a"', '{"a":', '{"a":1', '{"a":1 "b":2}', "{1:2}", '{"a" 1}', "[1 2]", "[1,]", '{"a":1,}', "["]
)
def test_what_is_not_json_is_a_wire_error(text: str) -> None:
    document = JsonText(text)
    if text:
        with pytest.raises(WireError):
            document.entries(())
    else:
        assert document.entries(()) == {}


@pytest.mark.parametrize("text", ['{"a":1,"a":2}', '{"a":1,"\\u0061":2}', '{"a":NaN}', '{"a":' + "[" * 100_000])
def test_hostile_json_is_a_wire_error(text: str) -> None:
    with pytest.raises(WireError):
        JsonText(text).entries(())
    if "N" in text or "[" in text:
        with pytest.raises(WireError):
            JsonText(text).span(("a",))


TREES = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(tree=TREES)
def test_a_place_is_the_same_in_whatever_order_places_are_asked_for(tree: object) -> None:
    text = json.dumps(tree)
    paths = [path for path, _ in walked(tree, ())]
    listed = JsonText(text)
    for path in paths:
        listed.entries(path)
    for order in (paths, paths[::-1], sorted(paths, key=hash)):
        lazy = JsonText(text)
        for path in order:
            span = lazy.span(path)
            assert span == listed.span(path)
            assert span is not None
            assert json.loads(text[slice(*span)]) == dict(walked(tree, ()))[path]
        assert lazy.entries(()) == listed.entries(())


def walked(value: Any, path: Path) -> Iterator[tuple[Path, object]]:
    yield path, value
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield from walked(inner, (*path, key))


def test_huge_numbers_are_skipped_without_being_read() -> None:
    text = '{"n":' + "9" * 100_000 + ',"e":1e999,"a":"x"}'
    span = JsonText(text).span(("a",))
    assert span is not None
    assert text[slice(*span)] == '"x"'


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_cut_of_every_subset_leaves_the_rest(size: int) -> None:
    items = list(range(size))
    array = json.dumps({"k": items}).replace(",", " , ")
    members = json.dumps({"k": {str(i): i for i in items}}).replace(",", " , ")
    for mask in range(2**size):
        doomed = [i for i in items if mask >> i & 1]
        kept = [i for i in items if i not in doomed]
        document = JsonText(array)
        assert json.loads(document.apply(document.cut(("k",), frozenset[str | int](doomed)))) == {"k": kept}
        document = JsonText(members)
        out = document.apply(document.cut(("k",), frozenset[str | int](str(i) for i in doomed)))
        assert json.loads(out) == {"k": {str(i): i for i in kept}}


def test_splices_inside_what_is_cut_are_left_out() -> None:
    document = JsonText('["a","b"]')
    splices = [Splice(5, 8, '"x"'), *document.cut((), frozenset[str | int]({1}))]
    assert document.apply(splices) == '["a"]'


VALUES = st.recursive(
    st.none() | st.integers() | st.text(st.sampled_from('a"\\\n[]{},é'), max_size=600),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=5),
    max_leaves=20,
)


def passed(text: str) -> JsonText:
    """Return JSON of which nothing was listed but the outermost object: all else was passed in steps."""
    document = JsonText(text)
    for _ in document.listing(()):
        pass
    return document


@given(value=VALUES, wide=st.booleans())
def test_what_is_passed_in_short_calls_ends_where_it_ends(value: object, wide: bool) -> None:
    text = json.dumps({"a": value, "b": 1}, indent=2 if wide else None)
    assert passed(text).span(("b",)) == JsonText(text).span(("b",))
    assert passed(text).span(("a",)) == JsonText(text).span(("a",))


@pytest.mark.parametrize("text", ['{"a":[1', '{"a":"x\\"', '{"a":["x\\"]', '{"a":{"b":[}', '{"a":"'])
def test_what_has_no_end_is_no_json_where_calls_are_short(text: str) -> None:
    with pytest.raises(WireError):
        passed(text).span(("b",))


@pytest.mark.parametrize(
    "value", ["[" + "{}," * 20_000 + "1]", "[" + "1," * 50_000 + "1]", '{"a":' * 300 + "1" + "}" * 300]
)
def test_no_long_value_is_passed_in_one_call_where_others_wait(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Library:
        def raw_decode(self, text: str, at: int) -> tuple[object, int]:
            found = json.JSONDecoder().raw_decode(text, at)
            asked.append(found[1] - at)
            return found

    monkeypatch.setattr(spans, "_SCANNER", Library())
    text = f'{{"x":{value},"n":12,"y":1}}'
    at = len(text) - 2
    assert passed(text).span(("y",)) == (at, at + 1)
    assert asked == [2, 1]  # numbers
    assert JsonText(text).span(("y",)) == (at, at + 1)
    assert max(asked) == len(value)
