"""Answers of the Responses API that a rule cuts and a hostile upstream goes on with: nothing condemned leaves."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from checkstream.core.commands import Record
from checkstream.core.events import (
    AnyEvent,
    DownstreamClosed,
    RequestReceived,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamFailed,
    UpstreamOpened,
)
from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.compile import compile_sources
from tests import continued, responses
from tests.chance import examples
from tests.continued import came, forwarded, request, run
from tests.drawn import split
from tests.playbook import Exchange, Played
from tests.property.test_every_string_is_text import assert_unheard, strings
from tests.property.test_responses import CUTS, MADE, PUTS, Open
from tests.responses import MAIL, RESPONSES, call, message, reasoning

NAME = "openai.responses"
RULES = continued.RULES + (
    "  - {name: card, id: PCI-1, stage: midstream, entities: [CREDIT_CARD, PHONE], actions: [{type: redact}]}\n"
)
CUT = message("You could launder money with shops.", id="msg_0")
CARD = ("4111 1111 ", "1111 1111")
TEXTS = st.sampled_from([
    "", "a b. ", "a@b.example.com", "a@b.exa", "mple.com", "launder", " money", "launder money", *CARD,
    '\U0001f30a\\"', "{",
])  # fmt: skip
CONDEMNED = ("a@b.example.com", "".join(CARD))


@pytest.fixture(autouse=True)
def rules() -> Any:
    """Have all answers here under these rules."""
    with patch.object(continued, "RULES", RULES):
        yield


def second(*items: dict[str, Any], **more: Any) -> bytes:
    return responses.answer(*items, **more).replace(b"resp_1", b"resp_2")


@st.composite
def items(draw: st.DrawFn, first: int) -> list[dict[str, Any]]:
    """Return the items of one answer, numbered from `first`."""
    kinds = draw(st.lists(st.sampled_from(sorted(MADE)), max_size=4))
    return [MADE[kind](first + at, draw(TEXTS), draw(TEXTS)) for at, kind in enumerate(kinds)]


def assert_clean(data: bytes) -> None:
    bodies = list(responses.events(data))
    spoken = (body["delta"] for body in bodies if body["type"] == "response.output_text.delta")
    assert "launder money" not in "".join(spoken), "only content can turn an answer, or be stopped by what would"
    for body in bodies:
        for _, text in strings(body):
            assert not any(each in text for each in CONDEMNED), text


@settings(max_examples=examples(70), deadline=None)
@given(st.data())
def test_g04_g15_whatever_the_rest_says_nothing_condemned_leaves_and_it_is_one_answer(data: st.DataObject) -> None:
    before, behind = data.draw(items(1)), data.draw(items(20))
    pieces = data.draw(st.integers(1, 5))
    first, rest = responses.answer(*before, CUT, pieces=pieces), second(*behind, pieces=pieces)
    played = run(NAME, split(data.draw, first), split(data.draw, rest), stream=True)
    answer = responses.read(came(played))  # which fails where it is no legal sequence, has gaps or says otherwise
    assert_clean(came(played))
    if "error" in answer and "id" not in answer:
        return
    assert answer["id"] == "resp_1"
    if answer["status"] == "completed" and len(forwarded(played)) == 2:
        # Those of the first leg are estimated, of the second its own.
        assert answer["usage"]["output_tokens"] >= responses.USAGE["output_tokens"]
    for item in answer["output"]:
        if item["type"] == "function_call":
            json.loads(item["arguments"])


def cited(number: int, *titles: str) -> dict[str, Any]:
    """Return a message whose sources have these titles."""
    notes = [
        {"type": "url_citation", "start_index": 0, "end_index": at, "url": f"https://{at}.example", "title": title}
        for at, title in enumerate(titles)
    ]
    part = {"type": "output_text", "annotations": notes, "logprobs": [], "text": "See there."}
    return message("", id=f"msg_{number}") | {"content": [part]}


@given(st.lists(st.lists(TEXTS, max_size=3), min_size=1, max_size=3), st.data())
@example([["4111 1111 ", "4111 1111 "], ["1111 1111", "1111 1111"]], None)
@example([["4111 1111 "], ["1111 1111", "4111 1111 "], ["1111 1111"]], None)
def test_g15_a_part_is_told_again_with_the_sources_that_were_sent(
    titles: list[list[str]], data: st.DataObject | None
) -> None:
    first = responses.answer(*(cited(at, *each) for at, each in enumerate(titles)), CUT, pieces=1)
    rest = second(pieces=1)
    cuts = ([first], [rest]) if data is None else (split(data.draw, first), split(data.draw, rest))
    played = run(NAME, *cuts, stream=True)
    responses.read(came(played))
    assert_clean(came(played))


@settings(max_examples=examples(40), deadline=None)
@given(st.data(), st.sampled_from(["closed", "failed", "left"]))
def test_g07_g20_the_rest_may_break_off_anywhere(data: st.DataObject, how: str) -> None:
    rest = second(*data.draw(items(20)), message("a@b.example.com", id="msg_90"))
    cut = data.draw(st.integers(0, len(rest) - 1))
    out = broken(responses.answer(reasoning("Hm."), CUT), split(data.draw, rest[:cut]), how)
    assert_clean(out.joined)
    bodies = list(responses.events(out.joined))
    assert out.record is not None
    assert sum(isinstance(command, Record) for command in out.commands) == 1
    if how == "left":
        assert out.cancelled or out.record.outcome != "downstream_closed"
        return
    assert out.closed
    numbers = [body["sequence_number"] for body in bodies]
    assert numbers == list(range(len(numbers)))
    done = bodies[-1]["type"]
    assert done in {"error", "response.completed", "response.incomplete", "response.failed"}, "never a silent end"
    assert (done == "error") is (out.record.outcome in {"upstream_failed", "failed"})


def broken(first: bytes, rest: list[bytes], how: str) -> Played:
    """Play an answer whose rest breaks off."""
    exchange = Exchange(RESPONSES, Plan(program=compile_sources([("p.yaml", RULES)])))
    for event in (RequestReceived(request(NAME, stream=True)), UpstreamOpened(200, streaming=True)):
        exchange.send(event)
    exchange.send(UpstreamBytes(first))
    assert len(forwarded(exchange.out)) == 2
    exchange.out.cancelled = False
    exchange.send(UpstreamOpened(200, streaming=True))
    for piece in rest:
        if exchange.out.record is None and not exchange.out.cancelled:
            exchange.send(UpstreamBytes(piece))
    ends: dict[str, AnyEvent] = {
        "closed": UpstreamClosed(),
        "failed": UpstreamFailed("reset"),
        "left": DownstreamClosed(),
    }
    if exchange.out.record is None:
        exchange.send(ends[how])
    return exchange.out


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("wrong", "more"),
    [('{"x": "secret', []), ('{"x": "secret', [call("pay", '{"a": 1}', number=2)]), ('{"x": "4111 1111 1111 1111', [])],
)
def test_g35_a_call_of_the_rest_that_is_withheld_stands_nowhere(
    wrong: str, more: list[dict[str, Any]], stream: bool
) -> None:
    said = (message("live.", id="msg_9"), call("run", wrong), *more)
    bodies = [responses.answer(CUT), second(*said)] if stream else [responses.whole(CUT), responses.whole(*said)]
    told = came(run(NAME, bodies[:1], bodies[1:], stream=stream))
    assert b"secret" not in told
    assert b"4111" not in told
    answer = responses.read(told) if stream else responses.parsed(told)
    assert [item["name"] for item in answer["output"] if item["type"] == "function_call"] == ["pay"] * len(more)


SEAMS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "content, content": ([message(f"{CARD[0]}launder money")], [message(CARD[1], id="msg_9")]),
    "content, thoughts": ([message(f"{CARD[0]}launder money")], [reasoning(CARD[1], id="rs_9")]),
    "content, refusal": ([message(f"{CARD[0]}launder money")], [message(CARD[1], id="msg_9", form="refusal")]),
    "content, call": ([message(f"{CARD[0]}launder money")], [call("f", json.dumps({"a": CARD[1]}))]),
    "thoughts, thoughts": ([reasoning(f"Hm. {CARD[0]}"), CUT], [reasoning(CARD[1], id="rs_9")]),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(SEAMS))
@pytest.mark.parametrize("pieces", [1, 3, 9])
def test_g34_a_value_cut_over_the_turn_never_leaves_whole(name: str, pieces: int) -> None:
    first, rest = SEAMS[name]
    played = run(NAME, [responses.answer(*first, pieces=pieces)], [second(*rest, pieces=pieces)], stream=True)
    assert len(forwarded(played)) == 2
    answer = responses.read(came(played))
    figures = "".join(char for _, text in strings(answer["output"]) for char in text if char in "41")
    assert figures.count("1") < 15


@pytest.mark.parametrize("field", ["field", "new"])
def test_g34_a_field_that_goes_on_behind_the_turn_is_read_on(field: str) -> None:
    legs = []
    for piece, said in (("so 4111 1111 ", "launder money"), (CARD[1], "x")):
        made = Open()
        CUTS[field](made, piece, 0)
        made.say(delta=said)
        made.end()
        legs.append(made.joined)
    told = came(run(NAME, legs[:1], legs[1:], stream=True)).decode()
    assert not ("4111 1111 " in told and CARD[1] in told)


@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_g34_a_secret_anywhere_in_an_event_of_the_rest_never_leaves(data: st.DataObject) -> None:
    secret, place = data.draw(st.sampled_from([MAIL, "".join(CARD)])), data.draw(st.sampled_from(sorted(PUTS)))
    made = Open(data.draw(st.integers(0, 2)))
    PUTS[place](made, "field", secret)
    made.end(message(" fine, "))
    played = run(NAME, [responses.answer(CUT)], split(data.draw, made.joined), stream=True)
    assert len(forwarded(played)) == 2
    assert_unheard(secret, played)


@pytest.mark.parametrize("whole", [False, True], ids=["stream", "whole"])
def test_an_upstream_that_begins_anew_is_read_as_what_goes_on(whole: bool) -> None:
    again = message("You could launder money with shops.", id="msg_9")
    bodies = [responses.whole(CUT), responses.whole(again)] if whole else [responses.answer(CUT), second(again)]
    told = came(run(NAME, bodies[:1], bodies[1:], stream=not whole))
    answer = responses.parsed(told) if whole else responses.read(told)
    assert responses.said(answer) == "You could You could [Stopped.]"
    assert answer["incomplete_details"] == {"reason": "content_filter"}
