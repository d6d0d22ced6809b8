"""Answers of the Responses API that a rule cuts and another answer goes on with: one answer, true to itself."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import responses
from tests.continued import ASK, came, forwarded, run
from tests.responses import call, cited, message, reasoning

STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
CUT = message("You could launder money with shops.", id="msg_1")
LIVE = message("live on a@b.example.com.", id="msg_9")


def answer(*items: dict[str, Any], stream: bool, **more: Any) -> bytes:
    made = responses.answer(*items, **more) if stream else responses.whole(*items, **more)
    return made.replace(b"resp_1", b"resp_2") if items[-1] is not CUT else made


def turned(first: list[dict[str, Any]], second: list[dict[str, Any]], *, stream: bool, **more: Any) -> dict[str, Any]:
    """Return what a client makes of an answer that is cut in the first and goes on in the second."""
    bodies = [answer(*first, stream=stream), answer(*second, stream=stream, **more)]
    data = came(run("openai.responses", bodies[:1], bodies[1:], stream=stream))
    return responses.read(data) if stream else responses.parsed(data)


@STREAMS
def test_thoughts_and_calls_of_the_rest_are_items_of_the_one_answer(stream: bool) -> None:
    told = turned([reasoning("Hm."), CUT], [reasoning("Go on.", id="rs_9"), LIVE, call("pay", "{}")], stream=stream)
    assert responses.said(told) == "You could live on [EMAIL]."
    assert [item["type"] for item in told["output"]].count("function_call") == 1
    assert told["status"] == "completed"
    if stream:
        assert told["id"] == "resp_1"
        assert [item["type"] for item in told["output"]] == [
            "reasoning", "message", "reasoning", "message", "function_call",
        ]  # fmt: skip


@STREAMS
def test_a_message_that_goes_on_is_one_item(stream: bool) -> None:
    told = turned([reasoning("Hm."), CUT], [LIVE], stream=stream)
    (spoken,) = (item for item in told["output"] if item["type"] == "message")
    assert [part["text"] for part in spoken["content"]] == ["You could live on [EMAIL]."]
    assert spoken["status"] == "completed"
    if stream:
        assert spoken["id"] == "msg_1"


@STREAMS
def test_the_rest_may_break_off_and_refuse_and_cite(stream: bool) -> None:
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    told = turned([CUT], [cited("live.", "A page", id="msg_9")], stream=stream, **cut)
    assert responses.said(told) == "You could live."
    assert (told["status"], told["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    no = {**message("", id="msg_9"), "content": [{"type": "refusal", "refusal": "I won't."}]}
    told = turned([CUT], [no], stream=stream)
    assert "I won't." in json.dumps(told["output"])
    assert "You could " in json.dumps(told["output"])


@STREAMS
def test_a_second_cut_is_a_stop(stream: bool) -> None:
    told = turned([CUT], [message("hide. Or launder money.", id="msg_9")], stream=stream)
    assert responses.said(told) == "You could hide. Or [Stopped.]"
    assert (told["status"], told["incomplete_details"]) == ("incomplete", {"reason": "content_filter"})


@pytest.mark.parametrize(
    ("more", "stands"),
    [
        ({"input": [{"role": "user", "content": ASK}]}, 1),
        ({"input": [{"role": "user", "content": ASK}, {**message("Well: "), "status": "in_progress"}]}, 1),
        ({"input": [{"role": "user", "content": ASK}, message("Well.")]}, 2),
    ],
    ids=["items", "begun", "said"],
)
def test_the_rest_is_asked_for_as_a_message_that_is_not_complete(more: dict[str, Any], stands: int) -> None:
    bodies = [answer(CUT, stream=True)], [answer(LIVE, stream=True)]
    asked = forwarded(run("openai.responses", *bodies, stream=True, **more))[1]
    last = asked["input"][stands]
    begun = "Well: " if last["status"] == "in_progress" else ""
    assert len(asked["input"]) == stands + 1
    assert last["content"][0]["text"] == f"{begun}You could "
    assert last["status"] in {"in_progress", "incomplete"}


@STREAMS
@pytest.mark.parametrize(
    "more",
    [{"conversation": "conv_1"}, {"background": True}, {"text": {"format": {"type": "json_object"}}}],
    ids=["conversation", "background", "form"],
)
def test_what_no_request_can_ask_to_go_on_is_stopped(more: dict[str, Any], stream: bool) -> None:
    played = run("openai.responses", [answer(CUT, stream=stream)], stream=stream, **more)
    assert len(forwarded(played)) == 1
    assert "launder" not in came(played).decode()
    assert played.record is not None
    assert (played.record.action, played.record.outcome) == ("stop", "stopped")


TEXT = st.text(st.sampled_from("ab .\U0001f30a\u00c4"), min_size=1, max_size=12)
THOUGHT = st.builds(lambda text, at: reasoning(text, id=f"rs_{at}"), TEXT, st.integers(0, 99))
SPOKEN = st.builds(lambda text, at: message(text, id=f"msg_{at}"), TEXT, st.integers(100, 199))
CALLED = st.integers(200, 299).map(lambda at: call("pay", '{"amount": 1}', number=at))
BEFORE = st.lists(st.one_of(THOUGHT, SPOKEN), max_size=2, unique_by=lambda item: item["id"])
BEHIND = st.lists(st.one_of(THOUGHT, SPOKEN, CALLED), min_size=1, max_size=4, unique_by=lambda item: item["id"])


@given(BEFORE, BEHIND, st.integers(1, 4), st.lists(st.floats(0, 1), max_size=5))
def test_g15_the_one_answer_is_true_to_itself_whatever_items_both_have(
    before: list[dict[str, Any]], behind: list[dict[str, Any]], pieces: int, cuts: list[float]
) -> None:
    first = responses.answer(*before, CUT, pieces=pieces)
    second = responses.answer(*behind, pieces=pieces).replace(b"resp_1", b"resp_2")
    edges = sorted({0, len(second), *(int(each * len(second)) for each in cuts)})
    played = run(
        "openai.responses", [first], [second[one:other] for one, other in itertools.pairwise(edges)], stream=True
    )
    told = responses.read(came(played))
    said = "".join(map(_text, (*before, {**CUT, "content": [{"text": "You could "}]}, *behind)))
    assert responses.said(told) == said
    assert told["id"] == "resp_1"
    for kind in ("reasoning", "function_call"):
        mine, theirs = ([item for item in items if item["type"] == kind] for items in (told["output"], before + behind))
        assert mine == theirs


def _text(item: dict[str, Any]) -> str:
    return "".join(part["text"] for part in item.get("content", ()) if item["type"] == "message")
