"""The laws of values in the middle of something: what they are put into is what it was, and says them (G38)."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote

from hypothesis import example, given
from hypothesis import strategies as st

from checkstream.core.pseudonyms.quoting import LINK, PLAIN, ROW, Quoting
from checkstream.core.pseudonyms.spelling import says, written_as
from tests.property.test_pseudonyms import answered, cut, cuts, forwarded

SIGNS = "\"\\\n|()[]{}<>&%' ,:;ab0é漢🌊\t"
values = st.text(st.sampled_from(SIGNS), min_size=1, max_size=20).map(lambda text: f"«{text}»")
LABEL = "<QUOTED_1>"
Place = tuple[str, Callable[[str], str]]
"""A text with a placeholder in it, and what reads the value that stands there."""


def in_json(ascii_only: bool, indent: int | None, key: bool) -> Callable[[Place], Place]:
    def around(place: Place) -> Place:
        said, reads = place
        made = json.dumps(
            {said: 1, "n": [1]} if key else {"n": 1, "a": ["b", said]}, ensure_ascii=ascii_only, indent=indent
        )
        made = made.replace("<", "\\u003c") if ascii_only else made
        return made, lambda text: reads(next(iter(json.loads(text))) if key else json.loads(text)["a"][1])

    return around


def in_url(place: Place) -> Place:
    said, reads = place
    return f"https://x.io/?q={quote(said, safe='')}&n=1", lambda text: reads(unquote(text[16:-4]))


def in_html(place: Place) -> Place:
    said, reads = place
    return f'<a title="{html.escape(said)}">', lambda text: reads(html.unescape(text[10:-2]))


def in_prose(place: Place) -> Place:
    said, reads = place
    kind = "json" if said[0] in "[{" else "text"  # in JSON a bare label would come back as a string
    head = f"So:\n```{kind}\n"
    return f"{head}{said}\n``` is it.", lambda text: reads(text[len(head) : text.rindex("\n```")])


jsons = st.builds(in_json, st.booleans(), st.sampled_from([None, 1]), st.booleans())
places = st.tuples(
    st.sampled_from([None, None, in_url, in_html]), st.lists(jsons, max_size=3), st.sampled_from([None, in_prose])
)


def placed(first: Callable[[Place], Place] | None, around: list[Callable[[Place], Place]]) -> Place:
    place: Place = LABEL, str
    for each in ([first] if first is not None else []) + around:
        place = each(place)
    return place


@given(values, places, cuts)
@example('«"»', (in_html, [in_json(False, None, True)] * 2, in_prose), [30])
@example('«"»', (None, [in_json(False, None, False)], in_prose), [])
@example("«a\nb\\»", (None, [in_json(True, None, False)] * 3, None), [])
def test_g38_what_a_value_is_put_into_stays_what_it_is(value: str, where: Any, at: list[int]) -> None:
    first, around, prose = where
    said, reads = placed(first, around)
    if prose is not None:
        said, reads = prose((said, reads))
    assert reads(answered(f"About {value}.", cut(said, at))) == value


@given(values, places, cuts)
def test_g38_arguments_that_hold_json_hold_it_after_all(value: str, where: Any, at: list[int]) -> None:
    said, reads = placed(where[0], where[1])
    made = json.dumps({"n": 1, "body": said})
    assert reads(json.loads(answered(f"About {value}.", cut(made, at), "arguments"))["body"]) == value


@given(values.map(lambda value: f"{value[:-1][:9]}»"), st.integers(1, 3), st.booleans(), cuts)
def test_g38_a_value_that_stood_in_json_says_the_same_in_prose(
    value: str, depth: int, key: bool, at: list[int]
) -> None:
    written = value
    for _ in range(depth):
        written = json.dumps({written: 1} if key else ["a", {"b": written}], ensure_ascii=False)
    prompt = f"Read {written} now."
    echoed = json.loads(forwarded(prompt))["messages"][0]["content"]
    assert value not in echoed
    assert answered(prompt, cut(echoed, at)) == prompt
    assert answered(prompt, cut("It is <QUOTED_1>.", at)) == f"It is {value}."


@given(values, st.sampled_from([LABEL, "quoted 1", "QUOTED_1"]), cuts)
def test_g38_rows_and_links_of_markdown_go_on(value: str, label: str, at: list[int]) -> None:
    told = answered(f"About {value}.", cut(f"| a | {label} |\n|---|---|\n[a](mailto:{label}) b", at))
    row, line, link = told.rsplit("\n", 2) if told.count("\n") == 2 else told.split("\n")
    assert line == "|---|---|"
    cell = row[6:-2]
    assert cell.replace("<br>", "\n").replace("\\|", "|") == "\n".join(value.splitlines())
    address = link[link.index("](") + 2 : link.index(") b")]
    assert unquote(address.removeprefix("mailto:")) == unquote(value)
    assert not set(" \t\n()<>\\").intersection(address)


marks = st.text(st.sampled_from('"\\{}[](),:| \n1taX'), max_size=40)


@given(marks, cuts)
@example('"{\\"a\\": "X', [3])
def test_g38_what_a_place_is_written_in_depends_on_no_cut(text: str, at: list[int]) -> None:
    def ways(pieces: list[str]) -> list[int]:
        quoting = Quoting()
        for piece in pieces:
            quoting.feed(piece)
        return [quoting.way(place) for place in range(len(text))]

    assert ways([text]) == ways(cut(text, at)) == ways(list(text))


@given(values, st.integers(0, 4))
def test_g38_what_is_written_says_the_value(value: str, way: int) -> None:
    assert says(written_as(value, "", way), way) == value


def test_g38_places_are_told_as_they_are() -> None:
    def way(text: str) -> int:
        quoting = Quoting()
        quoting.feed(text)
        return quoting.way(text.index("X"))

    told = {
        'So "X" it': PLAIN, "[a] (X)": PLAIN, "[a](b) X": PLAIN, "a | X": PLAIN, "| a |\nX": PLAIN, "{a X": PLAIN,
        '{"a": 1} X': PLAIN, '["b\nX': PLAIN, '[note "X"]': PLAIN, "[a](t:X)": LINK, "\n | a | X |": ROW,
        '{"a": "X"}': 1, '{"a": "say \\"b\\" X"}': 1, '[1, {"X": 1}]': 1, '{"a": "x\\\\", "b": "X"}': 1,
        '"{\\"a\\": \\"X\\"}"': 2,
    }  # fmt: skip
    assert {text: way(text) for text in told} == told


dressed = st.sampled_from([
    "<EMAIL_1>", "email 1", "<QUOTED_1>", "EMAIL_2", "<EMAIL_9>", "&lt;EMAIL_1&gt;", "%3CEMAIL_1%3E",
    "\\u003cQUOTED_1\\u003e",
])  # fmt: skip
around = st.text(st.sampled_from('<>_`*~"\\{}[](),:|\n %3CE&lt;1'), max_size=8)


@given(st.lists(st.tuples(around, dressed), min_size=1, max_size=6), around, cuts)
def test_g38_what_comes_back_depends_on_no_cut(parts: list[tuple[str, str]], rest: str, at: list[int]) -> None:
    said = "".join(f"{before}{label}" for before, label in parts) + rest
    prompt = 'About bob@x.io and «a "b" \\ c\n¢».'
    assert answered(prompt, [said]) == answered(prompt, cut(said, at)) == answered(prompt, list(said))


leaves = st.sampled_from(["<QUOTED_1>", "quoted 1", "x <EMAIL_1>", '"<QUOTED_1>"', "\\<QUOTED_1>", "a"]) | st.integers()
anything = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["k", "<QUOTED_1>", "n"]), inner, max_size=2)
        | st.tuples(inner, st.booleans()).map(lambda pair: json.dumps(pair[0], ensure_ascii=pair[1]))
    ),
    max_leaves=6,
)


def is_alike(said: Any, told: Any) -> bool:
    """Tell whether two values have one form, down through all strings of JSON that hold objects or lists."""
    match said, told:
        case (dict(), dict()) | (list(), list()):
            inner = [each.values() if isinstance(each, dict) else each for each in (said, told)]
            return len(said) == len(told) and all(is_alike(*pair) for pair in zip(*inner, strict=True))
        case (str(), str()) if said.lstrip('"')[:1] in ("{", "["):
            return is_alike(json.loads(said), json.loads(told))
        case _:
            return isinstance(told, str) if isinstance(said, str) else said == told


@given(anything, st.sampled_from(["content", "arguments"]), st.booleans(), cuts)
def test_g38_json_in_json_keeps_its_form(value: Any, of: str, ascii_only: bool, at: list[int]) -> None:
    said = {"a": value, "b": [value]}
    made = json.dumps(said, ensure_ascii=ascii_only)
    assert is_alike(said, json.loads(answered('About bob@x.io and «a "b" \\ c\n¢».', cut(made, at), of)))
