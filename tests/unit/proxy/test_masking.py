from __future__ import annotations

import json

import pytest

from checkstream.core.commands import Score
from checkstream.core.events import (
    DownstreamClosed,
    Draining,
    RequestReceived,
    Scored,
    TimerFired,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamFailed,
    UpstreamOpened,
)
from checkstream.core.transcript import encode
from checkstream.errors import UnmaskableError
from checkstream.proxy.specimens import SPECIMENS
from tests.recordings import DONE, answer_of, body_of, data_of, delta, masked, request, say, streamed, whole

MAIL, CARD = "joe@example.com", "4242 4242 4242 4242"
MASK, MASKED_CARD = SPECIMENS["EMAIL"], SPECIMENS["CREDIT_CARD"]


def test_an_answer_is_masked_however_it_was_cut() -> None:
    data = say(["Write to jo", "e@exam", "ple.com or pay with 4242 42", "42 4242 4242 now"])
    for step in (0, 1, 7):
        kept = masked(request(), *streamed(data, step=step))
        assert answer_of(kept) == f"Write to {MASK} or pay with {MASKED_CARD} now"
        assert kept.header.masked
        assert kept.header.lost == ()


def test_a_prompt_is_masked_on_every_channel_and_across_its_parts() -> None:
    parts = [{"type": "text", "text": "pay 4242 4242 "}, {"type": "text", "text": "4242 4242"}]
    kept = masked(
        request(
            {"role": "system", "content": f"ask {MAIL}"},
            {"role": "user", "content": parts},
            {"role": "tool", "tool_call_id": "c", "content": f"to {MAIL}"},
            tools=[{"type": "function", "function": {"name": "f", "description": f"mail {MAIL}"}}],
        ),
        *streamed(say(["Yes."])),
    )
    messages = body_of(kept)["messages"]
    assert messages[0]["content"] == f"ask {MASK}"
    assert "".join(part["text"] for part in messages[1]["content"]) == f"pay {MASKED_CARD}"
    assert messages[2]["content"] == f"to {MASK}"
    assert body_of(kept)["tools"][0]["function"]["description"] == f"mail {MASK}"


def test_what_no_channel_reads_is_masked_string_by_string() -> None:
    received = request("Hi", user=MAIL, metadata={MAIL: CARD}, seed=4242424242424242, temperature=0.5)
    answer = delta({"content": "Yes."}, logprobs={"content": [{"token": MAIL}]}).replace(b'"c-1"', f'"{MAIL}"'.encode())
    kept = masked(
        RequestReceived(received.body, caller=MAIL, context=json.dumps({"user": {"mail": MAIL, "age": 17}})),
        *streamed(b": a comment of " + MAIL.encode() + b"\n" + answer + b": " + MAIL.encode() + b"\n\n" + DONE),
    )
    body = body_of(kept)
    assert (body["user"], body["metadata"], body["seed"], body["temperature"]) == (MASK, {MASK: MASKED_CARD}, 0, 0.5)
    first = kept.lines[0].event
    assert isinstance(first, RequestReceived)
    assert first.caller == MASK
    assert json.loads(first.context or "") == {"user": {"mail": MASK, "age": 17}}
    assert MAIL.encode() not in encode(kept)
    assert MAIL.encode() not in data_of(kept)
    assert MASK.encode() in data_of(kept)


def test_what_the_caller_told_the_policies_is_kept_masked() -> None:
    kept = masked(
        request("Hi", checkstream={"context": {"id": MAIL}, "documents": [f"of {MAIL}", {"title": CARD, "text": "t"}]}),
        *streamed(say(["Yes."])),
    )
    assert body_of(kept)["checkstream"] == {
        "context": {"id": MASK},
        "documents": [f"of {MASK}", {"title": MASKED_CARD, "text": "t"}],
    }


def test_a_whole_answer_is_masked() -> None:
    kept = masked(
        request(), UpstreamOpened(200, streaming=False), UpstreamBytes(whole(f"Ask {MAIL}.", id=MAIL)), UpstreamClosed()
    )
    body = json.loads(data_of(kept))
    assert (body["choices"][0]["message"]["content"], body["id"]) == (f"Ask {MASK}.", MASK)


def test_an_exchange_that_was_refused_keeps_its_request() -> None:
    kept = masked(request(f"I am {MAIL}"))
    assert body_of(kept)["messages"][0]["content"] == f"I am {MASK}"
    assert len(kept.lines) == 1


@pytest.mark.parametrize("end", [UpstreamFailed("reset", f"reading {MAIL}"), DownstreamClosed(), Draining(), None])
def test_of_an_answer_that_broke_off_no_half_of_anything_is_kept(end: UpstreamFailed | DownstreamClosed | None) -> None:
    cut = delta({"content": "Fine so far. "}) + delta({"content": "Pay with 4242 4242 42"})
    events = [request(), UpstreamOpened(200, streaming=True), UpstreamBytes(cut), *([end] if end is not None else [])]
    kept = masked(*events)
    assert "Fine so far." in answer_of(kept)
    assert "4242" not in answer_of(kept)
    assert b"error" not in data_of(kept)
    assert MAIL.encode() not in encode(kept)
    if end is not None:
        assert type(kept.lines[-1].event) is type(end)


def test_answers_of_classifiers_are_kept_where_nothing_was_masked() -> None:
    asked = {
        1: Score(1, ("toy",), "All is well", 50.0),
        2: Score(2, ("toy",), f"ask {MAIL}", 50.0),
        3: Score(3, ("toy",), f"ll. ask {MAIL[:5]}", 50.0),
        4: Score(4, ("toy",), "Hello there", 50.0, ingress=True),
    }
    scored = [Scored(ticket, {"toy.alpha": 0.5}) for ticket in asked]
    events = streamed(say(["All is well. ", f"ask {MAIL}"]))
    kept = masked(request("Hello there"), TimerFired("stall"), *events[:2], *scored, *events[2:], asked=asked)
    tickets = [line.event.ticket for line in kept.lines if isinstance(line.event, Scored)]
    assert tickets == [1, 4]
    assert any(isinstance(line.event, TimerFired) for line in kept.lines)


@pytest.mark.parametrize(
    "events",
    [
        [RequestReceived(b"not json " + MAIL.encode())],
        [RequestReceived(b'{"messages": [], "Messages": []}')],
        [],
        [request({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}]})],
        [request(), UpstreamOpened(500, streaming=False), UpstreamBytes(b'{"error": "x"}'), UpstreamClosed()],
        [request(), UpstreamOpened(200, streaming=False), UpstreamBytes(b"<html>"), UpstreamClosed()],
        [request(), *streamed(b"data: not json\n\n")],
        [request(), *streamed(delta({"audio": {"data": "QUJD" * 100}}) + DONE)],
        [request(), *streamed(delta({"content": "a"}) + b'data: {"strange": 1}\n\n')],
        [request(), UpstreamOpened(200, streaming=True), UpstreamOpened(200, streaming=True)],
    ],
    ids=["text", "twins", "nothing", "image", "failure", "html", "event", "audio", "opaque", "continued"],
)
def test_what_cannot_be_read_is_not_kept(events: list[RequestReceived]) -> None:
    with pytest.raises(UnmaskableError) as caught:
        masked(*events)
    assert MAIL not in str(caught.value)


def test_a_number_in_the_arguments_of_a_call_is_masked_as_a_string() -> None:
    function = {"name": "pay", "arguments": '{"card": 4242424242424242}'}
    call = {"index": 0, "id": "c", "type": "function", "function": function}
    kept = masked(request(), *streamed(delta({"tool_calls": [call]}) + delta({}, finish_reason="tool_calls") + DONE))
    assert isinstance(json.loads(answer_of(kept, "tool_arguments"))["card"], str)
    assert b"4242424242424242" not in data_of(kept)


def test_what_no_specimen_fits_is_said_to_be_lost() -> None:
    kept = masked(request(), *streamed(say(["routing number: 021000021"])))
    assert "021000021" not in answer_of(kept)
    assert kept.header.lost == ("entity:SORT_CODE",)


def test_a_field_that_nobody_knows_is_masked_like_the_prompt() -> None:
    kept = body_of(masked(request("Hello there", unknown_field={MAIL: [MAIL, 4242424242424242]}), *streamed(DONE)))
    assert list(kept["unknown_field"]) != [MAIL]
    assert MAIL not in json.dumps(kept)
    assert "4242424242424242" not in json.dumps(kept)
