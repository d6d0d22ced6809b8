"""A tool call reaches an application whole or not at all, whatever its library does with half a call (G35).

Some libraries mend the JSON of a call that was cut off, and run it: `pay(amount=1000)` without the card.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.sdks.conftest import Case
from tests.e2e.sdks.test_calm import AGENTS, TEXT
from tests.e2e.sdks.upstream import Turn

AFTER: Turn = {"choices": [{"content": TEXT}]}
PAY = '{"amount": 1000, "card": "gold"}'
GOLD = ("pay", {"amount": 1000, "card": "gold"})
LOOK_UP = '{"about": "tides"}'
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
EACH = pytest.mark.parametrize("sdk", AGENTS)


def calling(*calls: tuple[str, str], **more: Any) -> Turn:
    """A turn that calls; arguments come in pieces of nine characters."""
    made = [
        {"name": name, "arguments": [told[at : at + 9] for at in range(0, len(told), 9)] or ""} for name, told in calls
    ]
    return {"choices": [{"tool_calls": made, **more}]}


BLOCKED = calling(("pay", '{"amount": 1000, "card": "launch the missiles, please"}'))


@STREAMS
@EACH
def test_g35_no_client_runs_a_call_that_a_rule_stops(case: Case, sdk: str, stream: bool) -> None:
    outcome, asked = case.received(sdk, "agent", BLOCKED, AFTER, stream=stream)
    assert outcome.ran == []
    assert len(asked) == 1  # the conversation ends with the reason, no client asks again as if nothing had been
    if outcome.error is None:
        assert outcome.value["text"] == "[stopped by policy]"
    else:
        assert "content filter" in outcome.raised()


@STREAMS
@EACH
def test_g35_a_stop_in_one_call_leaves_those_that_are_whole(case: Case, sdk: str, stream: bool) -> None:
    turn = calling(("look_up", LOOK_UP), ("pay", '{"amount": 1000, "card": "launch the missiles"}'))
    outcome = case.guarded(sdk, "agent", turn, AFTER, stream=stream)
    assert outcome.ran in ([], [("look_up", {"about": "tides"})])


@pytest.mark.parametrize("finish", ["length", "tool_calls"])
@STREAMS
@EACH
def test_g35_no_client_runs_a_call_that_the_model_did_not_finish(
    case: Case, sdk: str, stream: bool, finish: str
) -> None:
    outcome = case.guarded(sdk, "agent", calling(("pay", PAY[:-3]), finish_reason=finish), AFTER, stream=stream)
    assert outcome.ran == []
    if outcome.error is None:
        assert "a tool call was withheld" in outcome.value["text"]
    else:
        assert "length limit" in outcome.raised()


@pytest.mark.nightly
@pytest.mark.parametrize("finish", ["length", "tool_calls", "stop"])
@STREAMS
@EACH
def test_g35_no_client_runs_a_call_wherever_it_was_cut_off(case: Case, sdk: str, stream: bool, finish: str) -> None:
    for end in range(len(PAY)):
        turn = calling(("look_up", LOOK_UP), ("pay", PAY[:end]), finish_reason=finish)
        outcome = case.guarded(sdk, "agent", turn, AFTER, stream=stream)
        assert outcome.ran in ([], [("look_up", {"about": "tides"})]), PAY[:end]


@EACH
def test_g35_no_client_runs_a_call_whose_stream_breaks_off(case: Case, sdk: str) -> None:
    for kind in ("close", "end"):
        turn = {**calling(("pay", PAY)), "fault": {"kind": kind, "after_events": 4}}
        outcome = case.guarded(sdk, "agent", turn, AFTER, stream=True)
        assert outcome.ran == [], kind
        if kind == "close":
            assert "upstream" in outcome.raised()


@STREAMS
@EACH
def test_g35_a_redacted_argument_stays_json_that_the_tool_gets(case: Case, sdk: str, stream: bool) -> None:
    turn = calling(("pay", '{"amount": 1000, "card": "4111 1111 1111 1111 \\"gold\\""}'))
    outcome = case.guarded(sdk, "agent", turn, AFTER, stream=stream)
    assert outcome.given()["text"] == TEXT
    assert outcome.ran == [("pay", {"amount": 1000, "card": '[CREDIT_CARD] "gold"'})]


@EACH
def test_g35_a_number_that_must_go_is_a_label_that_no_tool_takes_for_a_number(case: Case, sdk: str) -> None:
    outcome, asked = case.received(sdk, "agent", calling(("pay", '{"amount": 4111111111111111}')), AFTER, stream=True)
    assert outcome.ran in ([], [("pay", {"amount": "[CREDIT_CARD]", "card": None})])
    assert "4111" not in json.dumps(asked) + json.dumps([outcome.value, outcome.error])


def event(delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def at_once(told: str, finish: str = "tool_calls") -> Turn:
    """A call in one event together with the end, as several servers send it."""
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "pay", "arguments": told}}
    return {"events": [event({"role": "assistant", "content": None, "tool_calls": [call]}, finish)]}


def in_turns(first: str, second: str) -> Turn:
    """Two calls whose pieces take turns."""
    calls = [
        {"index": number, "id": f"call_{number}", "type": "function", "function": {"name": "pay", "arguments": ""}}
        for number in (0, 1)
    ]
    pieces = [
        event({"tool_calls": [{"index": number, "function": {"arguments": told[at : at + 8]}}]}, None)
        for at in range(0, max(len(first), len(second)), 8)
        for number, told in enumerate((first, second))
    ]
    return {"events": [event({"role": "assistant", "tool_calls": calls}, None), *pieces, event({}, "tool_calls")]}


@EACH
def test_g35_calls_come_whole_in_whatever_events_a_server_sends_them(case: Case, sdk: str) -> None:
    blocked = '{"amount": 5, "card": "launch the missiles"}'
    for turn in (at_once(PAY), in_turns(PAY, '{"amount": 5}')):
        told, direct = (ask(sdk, "agent", turn, AFTER, stream=True) for ask in (case.guarded, case.direct))
        assert told.given() == direct.given()
        assert sorted(told.ran, key=str) == sorted(direct.ran, key=str)  # LlamaIndex runs no calls that come in turns
        assert GOLD in told.ran or sdk == "llama_index"
    for turn in (at_once(PAY[:-4]), at_once(PAY[:-4], "length"), at_once(blocked)):
        assert case.guarded(sdk, "agent", turn, AFTER, stream=True).ran == [], turn
    assert case.guarded(sdk, "agent", in_turns(PAY, blocked), AFTER, stream=True).ran in ([], [GOLD])
