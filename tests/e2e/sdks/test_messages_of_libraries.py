"""The Messages API, asked by libraries that speak several APIs: each gives its application what it gives without us."""

from __future__ import annotations

import json

import pytest

from tests.e2e.sdks.conftest import Case
from tests.e2e.sdks.test_calm import JSON, PERSON, RAN, plain
from tests.e2e.sdks.test_messages import CARD, ERROR, TEXT, call, says, text, thought
from tests.e2e.sdks.test_requests import STREAMS
from tests.e2e.sdks.upstream import Turn

TALKERS = ["langchain_messages", "litellm_messages", "vercel_messages"]
EACH = pytest.mark.parametrize("sdk", TALKERS)
CALLS = [call(name, number, **given) for number, (name, given) in enumerate(RAN, 1)]
STOPPED = "[stopped by policy]"


@STREAMS
@EACH
def test_g05_text_thoughts_and_usage_are_those_of_the_upstream(case: Case, sdk: str, stream: bool) -> None:
    turn = says(thought("Let me think."), text(TEXT), stream=stream)
    told = case.guarded(sdk, "chat", turn, stream=stream).given()
    assert told["text"] == TEXT
    assert plain(told) == plain(case.direct(sdk, "chat", turn, stream=stream).given())


@EACH
def test_g05_what_adds_a_stream_up_comes_to_the_same(case: Case, sdk: str) -> None:
    turn = says(thought("Both are wanted."), text("I do."), text("Both."), *CALLS, reason="tool_use", stream=True)
    told = case.guarded(sdk, "helper", turn).given()
    assert plain(told) == plain(case.direct(sdk, "helper", turn).given())


@STREAMS
@EACH
def test_g02_what_is_found_is_edited_in_each_of_several_blocks(case: Case, sdk: str, stream: bool) -> None:
    turn = says(thought(f"Is it {CARD}?"), text(f"It is {CARD}. "), text(f"Again: {CARD}!"), stream=stream)
    told = case.guarded(sdk, "chat", turn, stream=stream).given()
    assert told["text"] == "It is [CREDIT_CARD]. Again: [CREDIT_CARD]!"
    assert "4111" not in json.dumps(told)


@STREAMS
@EACH
def test_g35_an_agent_runs_the_calls_of_the_model_and_goes_on(case: Case, sdk: str, stream: bool) -> None:
    turns = says(text("I do both."), *CALLS, reason="tool_use", stream=stream), says(text(TEXT), stream=stream)
    outcome, asked = case.received(sdk, "agent", *turns, stream=stream)
    assert outcome.given()["text"] == TEXT
    assert sorted(outcome.ran) == sorted(RAN)
    assert asked == case.received_directly(sdk, "agent", *turns, stream=stream)


@STREAMS
@EACH
def test_g35_a_redacted_argument_stays_json_that_the_tool_gets(case: Case, sdk: str, stream: bool) -> None:
    said = [thought(f"Is it {CARD}?"), text("I pay."), call("pay", amount=1000, card=f'{CARD} "gold"')]
    turns = says(*said, reason="tool_use", stream=stream), says(text(TEXT), stream=stream)
    outcome, asked = case.received(sdk, "agent", *turns, stream=stream)
    assert outcome.given()["text"] == TEXT
    assert outcome.ran == [("pay", {"amount": 1000, "card": '[CREDIT_CARD] "gold"'})]
    assert "thinking" not in [block["type"] for block in asked[1]["messages"][1]["content"]]


@STREAMS
@EACH
def test_g35_no_client_runs_a_call_that_a_rule_stops(case: Case, sdk: str, stream: bool) -> None:
    said = [call("pay", 1, amount=1000, card="launch the missiles"), call("look_up", 2, about="tides")]
    outcome = case.guarded(sdk, "agent", says(*said, reason="tool_use", stream=stream), stream=stream)
    assert outcome.ran == []
    if outcome.error is None:
        assert outcome.value["text"] == STOPPED
    else:
        assert "content filter" in outcome.raised().lower()


@EACH
def test_g20_a_stream_that_breaks_off_raises(case: Case, sdk: str) -> None:
    whole = says(text(TEXT), stream=True)["sse"]
    for cut_off, word in ((whole[: len(whole) // 2], "upstream"), (whole[:900] + ERROR, "Overloaded")):
        outcome = case.guarded(sdk, "chat", {"sse": cut_off, "breaks": word == "upstream"}, stream=True)
        assert word in outcome.raised()


def _shaped(how: str, said: str, *, stream: bool) -> Turn:
    """A turn that gives an object, as text or as a call of that name."""
    if how:
        called = {"type": "tool_use", "id": "toolu_1", "name": how, "input": json.loads(said)}
        return says(called, reason="tool_use", stream=stream)
    return says(text(said), stream=stream)


SHAPES: list[tuple[str, str, str | None, str]] = [
    ("langchain_messages", "shape", "json_schema", ""),
    ("langchain_messages", "shape", "function_calling", "Person"),
    ("litellm_messages", "shape", None, ""),
    ("instructor_messages", "shape", "TOOLS", "Person"),
    ("instructor_messages", "shape", "JSON", ""),
    ("vercel_messages", "shape", None, ""),
    ("vercel_messages", "output", None, ""),
]
WAYS = pytest.mark.parametrize("way", SHAPES, ids=lambda way: "-".join(filter(None, way[:3])))


@STREAMS
@WAYS
def test_structured_output_comes_whole_and_is_an_object_after_an_edit(
    case: Case, way: tuple[str, str, str | None, str], stream: bool
) -> None:
    sdk, do, how, name = way
    turn = _shaped(name, JSON, stream=stream)
    assert case.guarded(sdk, do, turn, stream=stream, how=how).given() == PERSON
    turn = _shaped(name, JSON.replace("London", CARD), stream=stream)
    assert case.guarded(sdk, do, turn, stream=stream, how=how).given() == PERSON | {"city": "[CREDIT_CARD]"}


@pytest.mark.parametrize(
    "way",
    [way for way in SHAPES if way[2] != "JSON"],  # which asks for an object in words, and stands in prose to us
    ids=lambda way: "-".join(filter(None, way[:3])),
)
def test_g35_no_client_takes_words_of_a_rule_for_a_value(case: Case, way: tuple[str, str, str | None, str]) -> None:
    sdk, do, how, name = way
    turn = _shaped(name, JSON.replace("London", "launch the missiles"), stream=True)
    outcome = case.guarded(sdk, do, turn, stream=True, how=how)
    assert "launch" not in str(outcome)
    assert outcome.value in (None, PERSON | {"city": ""})
