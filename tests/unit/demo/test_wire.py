from __future__ import annotations

import json
from typing import Any

import pytest

from checkstream.demo.answer import Event
from checkstream.demo.scenario import read_scenario
from checkstream.demo.script import Script
from checkstream.demo.wire import BOM, Break, Sent, Step, Wait, Write, steps, stream, whole

EVENTS = [Event({"a": "é"}, token=False), Event({"b": 2}, token=True), Event({"c": 3}, token=True)]


def _script(more: str = "") -> Script:
    return read_scenario("x", "choices: [{content: x}]\n" + more).script


def _bytes(more: str = "") -> bytes:
    return b"".join(sent.data for sent in stream(EVENTS, _script(more)))


def test_events_are_compact_lines_and_end_with_done() -> None:
    expected = 'data: {"a":"é"}\n\ndata: {"b":2}\n\ndata: {"c":3}\n\ndata: [DONE]\n\n'
    assert _bytes() == expected.encode()


@pytest.mark.parametrize(("name", "end"), [("lf", b"\n"), ("crlf", b"\r\n"), ("cr", b"\r")])
def test_line_ends(name: str, end: bytes) -> None:
    assert _bytes(f"wire: {{line_end: {name}}}") == _bytes().replace(b"\n", end)


def test_bom_comments_space_and_json_forms() -> None:
    assert _bytes("wire: {bom: true}") == BOM + _bytes()
    every = _bytes("wire: {comments: {every: 2, text: hi}}")
    assert every.split(b"\n\n") == [
        'data: {"a":"é"}'.encode(), b": hi", b'data: {"b":2}', b'data: {"c":3}', b": hi", b"data: [DONE]", b"",
    ]  # fmt: skip
    assert _bytes("wire: {space_after_colon: false}").startswith(b'data:{"a"')
    assert b'{"a": "' in _bytes("wire: {json: spaced}")
    assert b'{"a":"\\u00e9"}' in _bytes("wire: {json: ascii}")
    assert 'data: {\ndata:   "a": "é"\ndata: }\n\n'.encode() in _bytes("wire: {json: pretty}")


def test_tails() -> None:
    assert _bytes("wire: {tail: no_blank_line}").endswith(b"data: [DONE]\n")
    assert _bytes("wire: {tail: no_newline, line_end: crlf}").endswith(b"data: [DONE]")
    assert _bytes("wire: {done: false}").endswith(b'data: {"c":3}\n\n')


def test_inserted_events_stand_in_order_after_the_given_number_of_events() -> None:
    inserts = """insert:
      - {after_events: 1, data: one}
      - {after_events: 9, data: last, event: error}
      - {after_events: 1, data: two}"""
    lines = [line for line in _bytes(inserts).decode().split("\n") if line]
    assert lines == [
        'data: {"a":"é"}', "data: one", "data: two", 'data: {"b":2}', 'data: {"c":3}', "event: error", "data: last",
        "data: [DONE]",
    ]  # fmt: skip


def test_a_whole_body_is_one_thing_to_send() -> None:
    sent = whole({"a": 1}, _script("timing: {first_byte_ms: 5}"))
    assert sent == [Sent(b'{"a":1}', 5)]
    assert json.loads(sent[0].data) == {"a": 1}


def _steps(more: str) -> list[Step]:
    script = _script(more)
    return list(steps(stream(EVENTS, script), script))


def _written(found: list[Step]) -> bytes:
    return b"".join(step.data for step in found if isinstance(step, Write))


@pytest.mark.parametrize(
    "cut",
    [
        "{by: event}",
        "{by: whole}",
        "{by: fixed}",
        "{by: fixed, size: 7}",
        "{by: random, size: 9}",
        "{by: random, seed: 3}",
    ],
)
def test_a_cut_changes_no_byte_and_counts_the_events_that_are_complete(cut: str) -> None:
    found = _steps(f"wire: {{cut: {cut}}}")
    sent = stream(EVENTS, _script())
    assert _written(found) == _bytes()
    at = 0
    for step in found:
        assert isinstance(step, Write)
        at += len(step.data)
        assert step.events == sum(len(b"".join(s.data for s in sent[:n])) <= at for n in range(1, len(sent) + 1))


def test_cuts_have_their_sizes() -> None:
    assert {len(step.data) for step in _steps("wire: {cut: {by: fixed}}") if isinstance(step, Write)} == {1}
    assert len(_steps("wire: {cut: {by: whole}}")) == 1
    assert len(_steps("wire: {cut: {by: event}}")) == 4
    sizes = [len(step.data) for step in _steps("wire: {cut: {by: random, size: 5}}") if isinstance(step, Write)]
    assert set(sizes[:-1]) <= {1, 2, 3, 4, 5}
    assert _steps("wire: {cut: {by: random, size: 5}}") == _steps("wire: {cut: {by: random, size: 5}}")


def test_delays_stand_before_what_they_delay_and_flush_what_is_due() -> None:
    found = _steps("timing: {first_byte_ms: 9, token_ms: 3}\nwire: {cut: {by: whole}}")
    assert [step.ms if isinstance(step, Wait) else None for step in found] == [9, None, 3, None, 3, None]
    gaps = _steps("wire: {cut: {by: fixed, size: 40, gap_ms: 2}}")
    assert [type(step) for step in gaps] == [Write, Wait, Write]


@pytest.mark.parametrize("after", range(6))
def test_a_fault_after_events(after: int) -> None:
    found = _steps(f"fault: {{kind: reset, after_events: {after}}}")
    where = next(at for at, step in enumerate(found) if isinstance(step, Break))
    sent = stream(EVENTS, _script())
    assert _written(found[:where]) == b"".join(piece.data for piece in sent[:after])
    assert _written(found) == _bytes()
    assert sum(isinstance(step, Break) for step in found) == 1


@pytest.mark.parametrize("after", [0, 1, 15, 16, 17, 40, 61, 1000])
@pytest.mark.parametrize("cut", ["event", "whole", "fixed"])
def test_a_fault_after_bytes(after: int, cut: Any) -> None:
    found = _steps(f"fault: {{kind: stall, after_bytes: {after}}}\nwire: {{cut: {{by: {cut}, size: 5}}}}")
    where = next(at for at, step in enumerate(found) if isinstance(step, Break))
    assert _written(found[:where]) == _bytes()[:after]
    assert _written(found) == _bytes()
    assert sum(isinstance(step, Break) for step in found) == 1
