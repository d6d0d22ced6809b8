"""Servers of the Responses API that number no events, items or parts, as llama.cpp's: ids tell what is where."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import responses
from tests.chance import examples
from tests.continued import came, run
from tests.drawn import RISK, split
from tests.guarded import MAIL as REDACT
from tests.guarded import STOP, plan
from tests.playbook import play
from tests.property.test_responses import SAYS, items, streamed
from tests.responses import MAIL, RESPONSES, call, message, reasoning, request

NUMBERS = frozenset({"sequence_number", "output_index", "content_index", "summary_index"})


def spoken(kind: str, **members: Any) -> bytes:
    """Return an event as llama.cpp's server writes it."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()


def bare(data: bytes) -> bytes:
    """Return a stream without the numbers of its events."""
    bodies = [{k: v for k, v in body.items() if k not in NUMBERS} for body in responses.events(data)]
    return b"".join(f"event: {body['type']}\ndata: {json.dumps(body)}\n\n".encode() for body in bodies)


@settings(max_examples=examples(120), deadline=None)
@given(st.data(), st.sampled_from([REDACT, STOP, REDACT + STOP]))
def test_g03_g34_a_stream_of_ids_comes_to_what_one_of_numbers_comes_to(data: st.DataObject, rules: str) -> None:
    raw = streamed(data.draw, data.draw(items(SAYS)))
    numbered = play(RESPONSES, plan(rules), request(), [raw])
    by_ids = play(RESPONSES, plan(rules), request(), split(data.draw, bare(raw)))
    assert bare(by_ids.joined) == bare(numbered.joined)


@settings(max_examples=examples(30), deadline=None)
@given(st.data(), st.sampled_from(sorted(NUMBERS)))
def test_g03_g34_any_number_may_be_left_out(data: st.DataObject, name: str) -> None:
    raw = streamed(data.draw, data.draw(items(SAYS)))
    bodies = [{k: v for k, v in body.items() if k != name} for body in responses.events(raw)]
    some = b"".join(f"event: {body['type']}\ndata: {json.dumps(body)}\n\n".encode() for body in bodies)
    rules = REDACT + STOP
    told, wanted = (play(RESPONSES, plan(rules), request(), [each]).joined for each in (some, raw))
    assert bare(told) == bare(wanted)


def llama(*items: Mapping[str, Any], pieces: int = 3) -> bytes:
    """Return a stream as llama.cpp's server tells it: what is over is told when all is, and ids are all there is."""
    first = {"id": "resp_1", "object": "response", "status": "in_progress"}
    events = [spoken(f"response.{kind}", response=first) for kind in ("created", "in_progress")]
    ends: list[bytes] = []
    for item in items:
        if item["type"] == "reasoning":
            begun = {**item, "status": "in_progress", "content": [], "encrypted_content": ""}
            events.append(spoken("response.output_item.added", item=begun))
            texts = responses.cut(item["content"][0]["text"], pieces)
            events += (spoken("response.reasoning_text.delta", delta=text, item_id=item["id"]) for text in texts)
        elif item["type"] == "message":
            begun = {"id": item["id"], "type": "message", "status": "in_progress", "role": "assistant", "content": []}
            (part,) = item["content"]
            events.append(spoken("response.output_item.added", item=begun))
            empty = {"type": "output_text", "text": ""}
            events.append(spoken("response.content_part.added", item_id=item["id"], part=empty))
            texts = responses.cut(part["text"], pieces)
            events += (spoken("response.output_text.delta", item_id=item["id"], delta=text) for text in texts)
            ends.append(spoken("response.output_text.done", item_id=item["id"], text=part["text"]))
            ends.append(spoken("response.content_part.done", item_id=item["id"], part=part))
        else:
            begun = {**item, "status": "in_progress", "arguments": ""}
            events.append(spoken("response.output_item.added", item=begun))
            name = item.get("id", item["call_id"])
            texts = responses.cut(item["arguments"], pieces)
            events += (spoken("response.function_call_arguments.delta", item_id=name, delta=text) for text in texts)
        ends.append(spoken("response.output_item.done", item=item))
    usage = {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8}
    last = {**first, "created_at": 1, "status": "completed", "model": "m", "output": list(items), "usage": usage}
    return b"".join([*events, *ends, spoken("response.completed", response=last)])


def put_together(data: bytes) -> dict[str, str]:
    """Return what a client reads by ids: id of an item -> its text, or the arguments of its call."""
    said: dict[str, str] = {}
    for body in responses.events(data):
        if body["type"].endswith(".delta"):
            said[body["item_id"]] = said.get(body["item_id"], "") + body["delta"]
    return said


def without_id(item: dict[str, Any]) -> dict[str, Any]:
    """Return a call as older versions of the server tell it."""
    return {name: value for name, value in item.items() if name != "id"}


CALLS = [call("pay", json.dumps({"to": MAIL}), number=1), call("ask", json.dumps({"who": "me"}), number=2)]


@pytest.mark.parametrize("calls", [CALLS, [without_id(each) for each in CALLS]], ids=["ids", "names of calls"])
@pytest.mark.parametrize("pieces", [1, 3, 30])
def test_g34_thoughts_text_and_calls_that_are_all_open_at_once_are_edited_each_in_its_place(
    calls: list[dict[str, Any]], pieces: int
) -> None:
    found = [reasoning(texts=[f"Is it {MAIL}?"], id="rs_1"), message(f"Ask {MAIL} now."), *calls]
    out = play(RESPONSES, plan(REDACT), request(), [llama(*found, pieces=pieces)])
    assert MAIL not in out.joined.decode()
    names = [each.get("id", each["call_id"]) for each in calls]
    assert put_together(out.joined) == {
        "rs_1": "Is it [EMAIL]?", "msg_1": "Ask [EMAIL] now.", names[0]: '{"to": "[EMAIL]"}', names[1]: '{"who": "me"}',
    }  # fmt: skip
    *_, last = responses.events(out.joined)
    told = last["response"]["output"]
    assert [item["type"] for item in told] == ["reasoning", "message", "function_call", "function_call"]
    assert told[0]["content"][0]["text"] == "Is it [EMAIL]?"
    assert told[1]["content"][0]["text"] == "Ask [EMAIL] now."
    assert [item["arguments"] for item in told[2:]] == ['{"to": "[EMAIL]"}', '{"who": "me"}']


@pytest.mark.parametrize("pieces", [1, 4, 40])
def test_g20_a_stop_ends_such_an_answer_with_all_that_it_began(pieces: int) -> None:
    raw = llama(message(f"So far so good, {RISK}, and on."), call("pay", "{}"), pieces=pieces)
    out = play(RESPONSES, plan(STOP), request(), [raw])
    assert RISK not in out.joined.decode()
    bodies = list(responses.events(out.joined))
    assert [body["type"] for body in bodies][-4:] == [
        "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.incomplete",
    ]  # fmt: skip
    (item,) = bodies[-1]["response"]["output"]
    assert item["id"] == "msg_1"
    assert item["content"][0]["text"] == put_together(out.joined)["msg_1"] == bodies[-4]["text"]
    assert bodies[-1]["response"]["incomplete_details"] == {"reason": "content_filter"}


def test_what_names_no_item_at_all_is_refused() -> None:
    raw = llama(message("fine")).replace(b'"item_id": "msg_1", ', b"")
    out = play(RESPONSES, plan(REDACT), request(), [raw])
    assert b"`output_index` is not there" in out.joined


@given(st.integers(1, 5), st.integers(0, 3))
def test_g15_an_answer_of_ids_goes_on_with_another(pieces: int, cuts: int) -> None:
    first = llama(message("You could launder money with shops."), pieces=pieces)
    second = llama(message("live on a@b.example.com.", id="msg_9"), call("pay", "{}"), pieces=pieces)
    edges = [len(second) * at // (cuts + 1) for at in range(cuts + 2)]
    played = run("openai.responses", [first], [second[i:j] for i, j in itertools.pairwise(edges)], stream=True)
    *_, last = responses.events(came(played))
    spoken_, called = last["response"]["output"]
    assert last["response"]["id"] == "resp_1"
    assert (spoken_["id"], called["type"]) == ("msg_1", "function_call")
    assert spoken_["content"][0]["text"] == put_together(came(played))["msg_1"] == "You could live on [EMAIL]."
