"""`safe_mode` midstream while scores are waited for: what comes meanwhile, and which rule has its way."""

from __future__ import annotations

import json

import pytest

from checkstream.core.commands import ArmTimer, ForwardRequest, PauseUpstream, ResumeUpstream
from checkstream.core.events import (
    Draining,
    RequestReceived,
    Scored,
    TimerFired,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamOpened,
)
from tests.playbook import Exchange, by_words
from tests.turned import RULES, content, exchange, forwarded, request, run, stream


def begun(*texts: str) -> Exchange:
    """Return a stream that has ended and whose scores nobody has given yet."""
    running = exchange()
    running.scorer = None
    running.send(RequestReceived(request()))
    running.send(UpstreamOpened(200, streaming=True))
    running.send(UpstreamBytes(b"".join(stream(*texts))))
    return running


def score(running: Exchange, value: float) -> None:
    running.send(Scored(running.unanswered.pop(0).ticket, {"toy.risk": value}))


def test_reading_goes_on_with_the_second_upstream_though_the_first_was_too_fast() -> None:
    running = begun("one two three four five six seven eight " * 9)
    score(running, 0.9)
    flow = [c for c in running.out.commands if isinstance(c, PauseUpstream | ResumeUpstream | ForwardRequest)]
    assert [type(each) for each in flow] == [ForwardRequest, PauseUpstream, ResumeUpstream, ForwardRequest]


def test_what_still_comes_of_the_first_upstream_while_the_turn_waits_is_not_taken() -> None:
    running = begun("one two three four five six seven eight nine ten. Then launder money now")
    while running.guard._course.answer.turning is None:
        score(running, 0.0)
    running.send(UpstreamBytes(b"data: {broken off\n\n"))
    while len(forwarded(running.out)) == 1:
        score(running, 0.0)
    running.scorer = by_words("toy.risk", ())
    running.send(UpstreamOpened(200, streaming=True))
    running.send(UpstreamBytes(b"".join(stream("pay taxes.", number="two"))))
    running.send(UpstreamClosed())
    assert content(running.out) == "one two three four five six seven eight nine ten. Then pay taxes."


def test_g06_the_connection_is_kept_alive_behind_a_turn_as_before() -> None:
    running = begun("one two three four five six seven eight nine ten. Then launder money now")
    running.send(UpstreamClosed())
    running.send(TimerFired("keepalive"))
    while len(forwarded(running.out)) == 1:
        score(running, 0.0)
    running.send(UpstreamOpened(200, streaming=True))
    armed = [command for command in running.out.commands if isinstance(command, ArmTimer)]
    assert [command.timer for command in armed].count("keepalive") == 2  # one ran out


@pytest.mark.parametrize("streaming", [True, False])
def test_a_drain_while_the_turn_waits_for_scores_is_never_a_silent_end(streaming: bool) -> None:
    text = "one two three four five six seven eight nine ten. Then launder money now"
    if streaming:
        running = begun(text)
    else:
        running = exchange()
        running.scorer = None
        message = {"role": "assistant", "content": text}
        body = {"id": "x", "object": "o", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        running.send(RequestReceived(request(stream=False)))
        running.send(UpstreamOpened(200, streaming=False))
        running.send(UpstreamBytes(json.dumps(body).encode()))
    running.send(UpstreamClosed())
    while running.guard._course.answer.turning is None:
        score(running, 0.0)
    assert running.out.record is None
    running.send(Draining())
    while running.unanswered:
        score(running, 0.0)
    assert running.out.record is not None
    assert running.out.record.outcome == "drained"
    if streaming:
        assert b"server_shutting_down" in running.out.joined
        assert b"launder" not in running.out.joined
    else:
        assert running.out.reply is not None
        assert running.out.reply.status == 503


def test_a_rule_that_turns_earlier_and_is_decided_later_has_its_way() -> None:
    earlier = STOP_BEFORE.replace('stop, message: "[Ended.]"', "safe_mode, instruction: Say nothing of alpha.")
    scorer = by_words("toy.risk", ["alpha"], hit=0.4)
    first = stream("One two three four so alpha launder money now")
    played = run([b"".join(first)], stream("on.", number="two"), scorer, RULES + earlier)
    assert content(played) == "One two three four so on."
    assert forwarded(played)[1]["messages"][0] == {"role": "system", "content": "Say nothing of alpha."}


@pytest.mark.parametrize("streaming", [True, False])
def test_g01_an_answer_that_has_been_ended_is_not_turned_any_more(streaming: bool) -> None:
    stop = (
        "  - {name: s, id: STOP-1, stage: midstream, channels: [content], phrases: [zebra], actions: [{type: stop}]}\n"
    )
    text = "One two three four so alpha zebra now"
    running = exchange(by_words("toy.risk", ["so alpha "], hit=0.9), RULES + stop)
    running.send(RequestReceived(request(stream=streaming)))
    running.send(UpstreamOpened(200, streaming=streaming))
    message = {"role": "assistant", "content": text}
    body = {"id": "x", "object": "o", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    running.send(UpstreamBytes(b"".join(stream(text)) if streaming else json.dumps(body).encode()))
    if not running.out.cancelled:
        running.send(UpstreamClosed())
    assert len(forwarded(running.out)) == 1
    assert running.out.record is not None
    assert [verdict.rule_id for verdict in running.out.record.verdicts] == ["SAFE-1", "STOP-1"]
    if running.out.reply is None:
        assert content(running.out) == "One two three four so alpha[Stopped.]"
    else:
        (choice,) = json.loads(running.out.reply.body)["choices"]
        assert choice["message"]["content"] == "One two three four so alpha[Stopped.]"


STOP_BEFORE = """  - name: before
    id: STOP-1
    stage: midstream
    channels: [content]
    phrases: [alpha]
    conditions: [scores.toy.risk > 0.3]
    actions: [{type: stop, message: "[Ended.]"}]
"""


@pytest.mark.parametrize("ended", [True, False])
def test_g01_a_stop_before_the_turn_that_is_decided_later_ends_the_answer(ended: bool) -> None:
    text = "One two three four so alpha launder money now"
    scorer = by_words("toy.risk", ["alpha"], hit=0.4)
    running = exchange(scorer, RULES + STOP_BEFORE)
    running.scorer = None
    running.send(RequestReceived(request()))
    running.send(UpstreamOpened(200, streaming=True))
    running.send(UpstreamBytes(b"".join(stream(text)[: None if ended else -2])))
    if ended:
        running.send(UpstreamClosed())
    while running.unanswered:
        running.send(scorer(running.unanswered.pop(0)))
    assert content(running.out) == "One two three four so [Ended.]"
    assert running.out.joined.count(b"content_filter") == running.out.joined.count(b"[DONE]") == 1
    assert running.out.closed
    assert len(forwarded(running.out)) == 1
    whole = exchange(scorer, RULES + STOP_BEFORE)
    message = {"role": "assistant", "content": text}
    body = {"id": "x", "object": "o", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    whole.send(RequestReceived(request(stream=False)))
    whole.send(UpstreamOpened(200, streaming=False))
    whole.send(UpstreamBytes(json.dumps(body).encode()))
    whole.send(UpstreamClosed())
    assert whole.out.reply is not None
    (choice,) = json.loads(whole.out.reply.body)["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == (
        "One two three four so [Ended.]",
        "content_filter",
    )
