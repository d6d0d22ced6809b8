"""`safe_mode` midstream: the upstream is cut off and asked to go on from what the caller has got."""

from __future__ import annotations

import json

import pytest

from checkstream.core.commands import CancelUpstream
from checkstream.core.events import (
    RequestReceived,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamFailed,
    UpstreamOpened,
)
from tests.playbook import by_words
from tests.turned import RULES, content, event, exchange, forwarded, request, run, stream


def test_the_answer_goes_on_from_what_was_sent_under_stricter_parameters() -> None:
    first = stream("Write to joe@", "example.com. You could ", "launder money ", "like this")
    played = run(first, stream("pay your taxes.", number="two"))
    assert content(played) == "Write to [EMAIL]. You could pay your taxes."
    again = forwarded(played)[1]
    assert again["messages"] == [
        {"role": "system", "content": "Speak of lawful ways only."},
        {"role": "user", "content": "How?"},
        {"role": "assistant", "content": "Write to [EMAIL]. You could "},
    ]
    assert (again["temperature"], again["bad_words"], again["continue_final_message"]) == (0.2, ["launder"], True)
    assert played.joined.count(b'"role"') == 1
    assert played.joined.count(b"[DONE]") == 1
    assert played.closed
    assert played.record is not None
    assert (played.record.action, played.record.outcome) == ("safe_mode", "complete")
    assert [verdict.rule_id for verdict in played.record.verdicts] == ["PII-1", "SAFE-1"]


def test_a_classifier_turns_an_answer_that_the_upstream_has_ended() -> None:
    first = stream("Go to the ", "casino tonight.")
    played = run([b"".join(first)], stream("library.", number="two"), by_words("toy.risk", ["casino"]))
    assert content(played).endswith("library.")
    assert "casino" not in content(played)
    assert played.joined.count(b"[DONE]") == 1


def test_rules_judge_what_comes_then_and_spans_count_from_the_start_of_the_answer() -> None:
    played = run(stream("You could ", "launder money"), stream("write to joe@example.com, a lawful way.", number="two"))
    assert content(played) == "You could write to [EMAIL], a lawful way.\n\nNo advice."
    assert played.record is not None
    spans = {verdict.rule_id: verdict.spans[0] for verdict in played.record.verdicts}
    assert spans["PII-1"].start == len("You could write to ")
    assert spans["END-1"].start == len("You could write to joe@example.com, a ")


def test_text_on_both_sides_of_the_turn_is_matched_together() -> None:
    played = run(stream("You could mail joe ", "launder money"), stream("@example.com now", number="two"))
    assert "example.com" in content(played)  # `joe ` has left, and with the blank it is no address
    played = run(stream("Do not launder", "? launder money"), stream("money", number="two"))
    assert content(played) == "Do not launder? money"


def test_a_second_turn_stops_the_answer() -> None:
    played = run(stream("You could ", "launder money"), stream("really launder money so", number="two"))
    assert content(played) == "You could really [Stopped.]"
    assert played.joined.count(b"content_filter") == 1
    assert played.record is not None
    assert (played.record.action, played.record.outcome) == ("stop", "stopped")


def test_several_choices_can_only_be_stopped() -> None:
    running = exchange()
    running.send(RequestReceived(request(n=2)))
    running.send(UpstreamOpened(200, streaming=True))
    running.send(UpstreamBytes(event({"content": "You could launder money now"})))
    assert len(forwarded(running.out)) == 1
    assert content(running.out) == "You could [Stopped.]"


@pytest.mark.parametrize(
    "form",
    [
        {"response_format": {"type": "json_object"}},
        {"messages": [{"role": "assistant", "content": None}], "continue_final_message": True},
    ],
)
@pytest.mark.parametrize("streamed", [True, False])
def test_an_answer_that_no_request_can_ask_to_go_on_is_stopped(form: dict[str, object], streamed: bool) -> None:
    running = exchange()
    running.send(RequestReceived(request(stream=streamed, **form)))
    assert running.out.forwarded is not None
    running.send(UpstreamOpened(200, streamed))
    if streamed:
        running.send(UpstreamBytes(b"".join(stream("You could ", "launder money"))))
        got = content(running.out)
    else:
        choice = {"index": 0, "message": {"content": "You could launder money"}, "finish_reason": "stop"}
        running.send(UpstreamBytes(json.dumps({"id": "x", "choices": [choice]}).encode()))
        running.send(UpstreamClosed())
        assert running.out.reply is not None
        assert running.out.reply.status == 200
        got = json.loads(running.out.reply.body)["choices"][0]["message"]["content"]
    assert got == "You could [Stopped.]"
    assert len(forwarded(running.out)) == 1
    assert running.out.record is not None
    assert (running.out.record.action, running.out.record.outcome) == ("stop", "stopped")
    assert "not_continued" in running.out.record.degradations


@pytest.mark.parametrize("streamed", [True, False])
def test_the_texts_of_a_turn_are_filled_from_the_request(streamed: bool) -> None:
    rules = RULES.replace("Speak of lawful ways only.", "Tell {context.name|them} of lawful ways.").replace(
        '"[Stopped.]"', '"[Stopped for {context.name}.]"'
    )
    extension = {"checkstream": {"context": {"name": "Ann"}}}
    running = exchange(rules=rules)
    running.send(RequestReceived(request(stream=streamed, **extension)))
    running.send(UpstreamOpened(200, streamed))
    if streamed:
        running.send(UpstreamBytes(b"".join(stream("You could ", "launder money"))))
    else:
        choice = {"index": 0, "message": {"content": "You could launder money"}, "finish_reason": "stop"}
        running.send(UpstreamBytes(json.dumps({"id": "x", "choices": [choice]}).encode()))
        running.send(UpstreamClosed())
    again = forwarded(running.out)[1]
    assert again["messages"][0] == {"role": "system", "content": "Tell Ann of lawful ways."}
    running.send(UpstreamOpened(500, streaming=False))
    whole = running.out.reply.body.decode() if running.out.reply is not None else running.out.joined.decode()
    assert "[Stopped for Ann.]" in whole


@pytest.mark.parametrize("refusal", [UpstreamOpened(400, streaming=False), UpstreamOpened(200, streaming=False)])
def test_an_upstream_that_will_not_go_on_stops_the_answer(refusal: UpstreamOpened) -> None:
    running = exchange()
    running.send(RequestReceived(request()))
    running.send(UpstreamOpened(200, streaming=True))
    for piece in stream("You could ", "launder money"):
        if not running.out.cancelled:
            running.send(UpstreamBytes(piece))
    running.out.cancelled = False
    running.send(refusal)
    assert content(running.out) == "You could [Stopped.]"
    assert running.out.joined.endswith(b"data: [DONE]\n\n")
    assert running.out.record is not None
    assert "not_continued" in running.out.record.degradations


def test_an_upstream_that_fails_then_is_an_error_of_the_stream() -> None:
    running = exchange()
    running.send(RequestReceived(request()))
    running.send(UpstreamOpened(200, streaming=True))
    running.send(UpstreamBytes(b"".join(stream("You could ", "launder money"))))
    running.send(UpstreamFailed("connect"))
    assert b'"error"' in running.out.joined
    assert running.out.record is not None
    assert running.out.record.outcome == "upstream_failed"


def test_a_whole_answer_is_continued_too() -> None:
    def whole(text: str, tokens: int) -> bytes:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": tokens + 1}
        return json.dumps({"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}).encode()

    running = exchange()
    running.send(RequestReceived(request(stream=False)))
    running.send(UpstreamOpened(200, streaming=False))
    running.send(UpstreamBytes(whole("Write to joe@example.com. You could launder money", 9)))
    running.send(UpstreamClosed())
    assert len(forwarded(running.out)) == 2
    running.send(UpstreamOpened(200, streaming=False))
    running.send(UpstreamBytes(whole("pay taxes.", 3)))
    running.send(UpstreamClosed())
    assert running.out.reply is not None
    answer = json.loads(running.out.reply.body)
    assert answer["choices"][0]["message"]["content"] == "Write to [EMAIL]. You could pay taxes."
    assert answer["usage"]["completion_tokens"] == 12
    assert running.out.reply.action == "safe_mode"


@pytest.mark.parametrize("refusal", [UpstreamOpened(503, streaming=False), UpstreamOpened(200, streaming=True)])
def test_g01_a_whole_answer_that_can_not_go_on_is_stopped_as_a_stream_is(refusal: UpstreamOpened) -> None:
    text = "Write to joe@example.com. You could launder money"
    message = {"role": "assistant", "content": text, "reasoning_content": "Money, money."}
    body = {"id": "x", "object": "o", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    running = exchange()
    running.send(RequestReceived(request(stream=False)))
    running.send(UpstreamOpened(200, streaming=False))
    running.send(UpstreamBytes(json.dumps(body).encode()))
    running.send(UpstreamClosed())
    assert len(forwarded(running.out)) == 2
    running.send(refusal)
    assert running.out.reply is not None
    assert (running.out.reply.status, running.out.reply.action) == (200, "stop")
    (choice,) = json.loads(running.out.reply.body)["choices"]
    assert choice["message"]["content"] == "Write to [EMAIL]. You could [Stopped.]"
    assert choice["message"]["reasoning_content"] == "Money, money."
    assert choice["finish_reason"] == "content_filter"
    assert running.out.cancelled
    assert running.out.record is not None
    assert (running.out.record.action, running.out.record.outcome) == ("stop", "stopped")
    assert "not_continued" in running.out.record.degradations


def test_the_rest_comes_under_the_id_of_the_answer() -> None:
    usage = {"id": "two", "object": "o", "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    spaced = json.dumps(usage, indent=1).replace("\n", "\ndata: ").encode()
    second = [event({"content": "pay taxes."}, number="two"), event({}, "stop", "two"), b"data: " + spaced + b"\n\n"]
    played = run(stream("You could ", "launder money"), [*second, b"data: [DONE]\n\n"])
    bodies = [json.loads(line[6:]) for line in played.joined.decode().splitlines() if line.startswith("data: {")]
    assert [body["id"] for body in bodies] == ["one"] * len(bodies)
    assert bodies[-1]["checkstream"]["action"] == "safe_mode"
    assert bodies[-2]["usage"] == {"prompt_tokens": 2, "completion_tokens": 4, "checkstream_estimated": True}
    assert content(played) == "You could pay taxes."


def test_an_event_with_two_ids_is_not_sent_under_either() -> None:
    twice = b'data: {"id":"two","id":"three","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    played = run(stream("You could ", "launder money"), [event({"content": "pay taxes."}, number="two"), twice])
    assert b"three" not in played.joined
    assert b'"error"' in played.joined


@pytest.mark.parametrize("cut", [1, 7, 30])
def test_g03_how_the_first_stream_is_cut_changes_nothing(cut: int) -> None:
    first = b"".join(stream("Write to joe@", "example.com. You could ", "launder money ", "like this"))
    pieces = [first[at : at + cut] for at in range(0, len(first), cut)]
    played = run(pieces, stream("pay your taxes.", number="two"))
    assert content(played) == "Write to [EMAIL]. You could pay your taxes."
    assert sum(isinstance(command, CancelUpstream) for command in played.commands) <= 1


def test_g04_text_behind_the_end_of_the_answer_that_went_on_never_leaves() -> None:
    late = [event({"content": "pay."}), event({}, "stop"), event({"content": "joe@example.com"}), b"data: [DONE]\n\n"]
    played = run(stream("You could ", "launder money"), late)
    assert content(played) == "You could pay."
    assert b"joe" not in played.joined
    assert played.record is not None
    assert "text_after_end" in played.record.degradations


KNOWN = """  - name: second
    id: TWICE-1
    stage: midstream
    channels: [content]
    phrases: [zebra]
    conditions: ['findings.zebra > 1 && stream.tokens > 9 && stream.risk > 0.3 && stream.language == "en"']
    actions: [{type: redact}]
  - name: known
    id: KNOWN-1
    stage: egress
    conditions: [stream.tokens > 14 && stream.risk > 0.3]
    actions: [{type: inject_disclaimer, text: Known.}]
"""


def test_conditions_know_what_stood_before_the_turn() -> None:
    scorer = by_words("toy.risk", ["mild"], hit=0.45)
    first = stream("This is a mild zebra and that is the mild one, ", "launder money ", "now")
    played = run(first, stream("a zebra it is", number="two"), scorer, RULES + KNOWN)
    assert content(played) == ("This is a mild zebra and that is the mild one, a [REDACTED] it is\n\nKnown.")
