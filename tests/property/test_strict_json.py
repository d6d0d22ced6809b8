"""JSON that is read in steps is what the standard library reads; a step is short whatever is read (G33)."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.steps import dropping
from checkstream.core.wire.json_text import strict
from checkstream.core.wire.json_text.strict import MAX_DEPTH, MAX_VALUES, Dialect, StrictJson
from checkstream.errors import RequestInvalid
from tests.watchdog import MOST_S, pace, without_collections

JSON = StrictJson("it")
ANSWERS = StrictJson("it", Dialect(values=1_000_000, halves=100, variants=True, wide=True, name_bytes=1_048_576))
"""What whole answers are read by."""
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from([
    "x" * 2000, "é" * 900, "\U0001f600" * 300, '\n"\\' * 30, "\u2028\x7f", "\x00\x1f",
])  # fmt: skip
NUMBERS = st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | st.lists(st.integers(0, 9999), max_size=40),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(TEXTS.map(str.casefold), inner, max_size=6),
    max_leaves=25,
)


@given(value=st.dictionaries(st.sampled_from("abc"), VALUES), ascii_=st.booleans(), wide=st.booleans())
def test_what_is_written_is_read(value: dict[str, Any], ascii_: bool, wide: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_, indent=3 if wide else None)
    assert json.dumps(JSON.read(text)) == json.dumps(value)


@given(value=st.dictionaries(st.sampled_from("abc"), VALUES), at=st.integers(0), put=st.binary(max_size=3))
def test_what_is_broken_is_read_as_the_library_reads_it_or_refused(value: dict[str, Any], at: int, put: bytes) -> None:
    data = json.dumps(value, ensure_ascii=False).encode()
    at %= len(data)
    for broken in (data[:at] + put + data[at:], data[:at] + put + data[at + len(put) :], data[:at]):
        try:
            found = JSON.read(broken.decode())
        except (RequestInvalid, UnicodeDecodeError):
            continue
        assert json.dumps(found) == json.dumps(json.loads(broken))


@given(value=st.dictionaries(st.sampled_from("abc"), VALUES))
def test_no_text_is_read_otherwise_where_steps_are_short(value: dict[str, Any]) -> None:
    data = json.dumps(value, ensure_ascii=False).encode()
    with pytest.MonkeyPatch.context() as short:
        short.setattr(strict, "_TOKENS_A_STEP", 2)
        short.setattr(strict, "_STRING_BYTES", 30)
        short.setattr(strict, "_ESCAPED_BYTES", 40)
        assert json.dumps(JSON.read(data.decode())) == json.dumps(value)


LOOSE = st.lists(
    st.sampled_from([
        '"', "\\", "\\u", "d83d", "de00", "0041", "\\ud83d", "\\udc00", "\\ud83d\\ude00", "\\n", "x", "é", "\U0001f600",
    ]),
    max_size=30,
).map("".join)  # fmt: skip
FIGURES = st.lists(st.integers() | st.floats(allow_nan=False) | st.just(10**30), max_size=20)


def by_library(text: str) -> object:
    """Return what the standard library reads, None where it refuses; of two members of one name it tells nothing."""
    try:
        return json.loads(text, parse_constant=lambda _: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return None


@given(inside=LOOSE, short=st.booleans())
def test_an_answer_may_have_halves_of_characters_wherever_steps_end(inside: str, short: bool) -> None:
    text = f'{{"a":"{inside}","A":1}}'
    with pytest.MonkeyPatch.context() as patched:
        if short:
            patched.setattr(strict, "_ESCAPED_BYTES", 25)
            patched.setattr(strict, "_TOKENS_A_STEP", 2)
        try:
            found: object = ANSWERS.read(text)
        except RequestInvalid:
            found = None
    assert found == by_library(text)


@given(figures=FIGURES, spaces=st.sampled_from(["", " ", "\n "]))
def test_an_answer_may_have_any_numbers(figures: list[float], spaces: str) -> None:
    text = json.dumps({"x": figures, "y": [figures, "z"]}, separators=(f"{spaces},{spaces}", ":"))
    if "Infinity" not in text:
        assert json.dumps(ANSWERS.read(text)) == json.dumps(json.loads(text))
    assert ANSWERS.read('{"a": [1e999, 1, 2.5, -3E-7, 1.25, 1]}') == {"a": [float("inf"), 1, 2.5, -3e-7, 1.25, 1]}


@given(value=VALUES)
def test_what_is_dropped_is_empty(value: object) -> None:
    kept = json.loads(json.dumps(value))
    for _ in dropping(kept):
        pass
    assert not kept or not isinstance(kept, list | dict)


def test_an_answer_is_bounded_too() -> None:
    for text, message in (
        ('{"a":"' + "\\ud800" * 101 + '"}', "more than 100 lone surrogates in `a`"),
        ('{"a":1,"a":2}', "both `a` and `a`"),
        ('{"a":' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}", "nested too deeply"),
        ('{"a":NaN}', "`NaN`, which is not JSON"),
    ):
        with pytest.raises(RequestInvalid, match=message):
            ANSWERS.read(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a":' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}", "nested too deeply"),
        ('{"a":[' + '"",' * MAX_VALUES + '""]}', f"more than {MAX_VALUES} values"),
        ('{"a":[' + "1.5," * MAX_VALUES + "1]}", f"more than {MAX_VALUES} values"),
        ('{"a":{"b":["\\udc00"]}}', r"it has a lone surrogate in `a\.b\[0\]`"),
        ('{"a":"' + "\\n" * 40_000 + '\\ud83d"}', "it has a lone surrogate in `a`"),
        ('{"a":' + "9" * 5000 + "}", "too large"),
        ('{"' + "a" * 65_537 + '":1}', "a member whose name has more than 65536 bytes"),
        ('{"a":{"' + "é" * 32_769 + '":1}}', "a member whose name has more than 65536 bytes"),
        ('{"' + "a" * 9_000_000 + '":1}', "a member whose name has more than 65536 bytes"),
        ('{"one":1,"One":1}', "an object with both `one` and `One`"),
        ('{"a":1} x', "not JSON at byte `8`: extra data"),
        ('{"a":"' + "é" * 1_100_000 + '"}', "`a` is no ASCII and has more than"),
        ('{"a":"\\n' + "é" * 1_100_000 + '"}', "`a` is no ASCII and has more than"),
        ('{"a":"' + "b" * 2_100_000 + '\\u00e9"}', "`a` is no ASCII and has more than"),
        ('{"a":"' + "b" * 300_000 + "\x01" + '"}', "not JSON at byte `300006`: invalid control character"),
    ],
)
def test_g31_what_is_more_than_is_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(RequestInvalid, match=message):
        JSON.read(text)


def large(size: int) -> Mapping[str, bytes]:
    """Return bodies of about so many bytes, each dear to read in its way."""
    return {
        "a file": b'{"x":"' + b"A" * size + b'"}',
        "strings": b'{"x":[' + b'"a",' * (size // 4) + b"1]}",
        "ids": b'{"x":[' + b"12345," * (size // 6) + b"1]}",
        "fractions": b'{"x":[' + b"1.5," * (size // 4) + b"1]}",
        "objects": b'{"x":[' + b'{"a":{}},' * (size // 9) + b"1]}",
        "names": b"{" + b",".join(b'"f%d":1' % number for number in range(size // 12)) + b"}",
        "letters": b'{"x":"' + "ж".encode() * (size // 2) + b'"}',
        "one emoji": b'{"x":"' + b"A" * (size // 8) + "\U0001f600".encode() + b'"}',
        "an emoji behind a file": b'{"x":"' + b"A" * size + b'\\ud83d\\ude00"}',
        "octets of no character": b'{"x":"' + b"\x80" * size + b'"}',
        "octets of no character behind an escape": b'{"x":"\\n' + b"\x80" * size + b'"}',
        "octets of no character outside": b'{"x":1}' + b"\x80" * size,
        "line ends": b'{"x":"' + b"\\n" * (size // 2) + b'"}',
        "escapes": b'{"x":"' + b"\\u0041" * (size // 6) + b'"}',
        "escaped names": b'{"x":[' + b'{"\\u0061":0},' * (size // 13) + b"1]}",
        "spaces": b"{" + b" " * size + b'"x":1}',
        "no end": b'{"x":"' + b"a" * size,
        "brackets": b'{"x":' + b"[" * size,
        "a long name": b'{"' + b"A" * (4 * size) + b'":1}',
        "a long name with an escape": b'{"\\n' + b"A" * (4 * size) + b'":1}',
        "a long name of other letters": b'{"' + "É".encode() * min(size // 2, 1_000_000) + b'":1}',
        "long names": b"{" + b",".join(b'"%d%b":1' % (n, b"A" * 60_000) for n in range(size // 60_000)) + b"}",
        "one name in two spellings": (
            b"{" + b'"n%d":1,' * 20_000 % (*range(20_000),) + b'"%b":1,"%b":1}' % (b"a" * 60_000, b"A" * 60_000)
        ),
        "many texts": b'{"x":[' + (b'"' + b"a" * 1025 + b'",') * (size // 1030) + b"1]}",
    }


@pytest.mark.parametrize("reader", [JSON, ANSWERS], ids=["callers", "answers"])
@pytest.mark.parametrize("kind", sorted(large(10)))
def test_g33_a_step_of_reading_json_is_short(kind: str, reader: StrictJson) -> None:
    body = large(4_000_000 if reader is JSON else 1_000_000)[kind]

    def longest() -> float:
        reading, most = reader.reading(body), 0.0
        while True:
            began, left = time.thread_time(), None
            try:
                next(reading)
            except (StopIteration, RequestInvalid) as end:
                left = end
            most = max(most, time.thread_time() - began)
            if left is not None:
                for _ in dropping(left.value if isinstance(left, StopIteration) else None):
                    pass
                return most

    with without_collections():
        assert min(longest() for _ in range(3)) <= MOST_S * pace()
