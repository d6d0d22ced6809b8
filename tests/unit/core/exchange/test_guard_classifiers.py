"""What classifiers say of a stream decides when its text leaves, and what happens when they are slow or fail."""

from __future__ import annotations

import json

import pytest

from checkstream.core.commands import ArmTimer, Degraded
from checkstream.core.events import (
    RequestReceived,
    Scored,
    ScoringFailed,
    TimerFired,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamOpened,
)
from checkstream.core.exchange.checking import MAX_UNDER_WAY
from tests.guarded import (
    CHAT,
    DONE,
    MAIL,
    TOX,
    bodies,
    ends,
    finishes,
    open_stream,
    plan,
    request,
    says,
    stream,
    text_of,
    whole,
)
from tests.playbook import Exchange, by_words, play


def test_text_waits_for_its_score_and_the_calm_hold() -> None:
    exchange = open_stream(TOX)
    exchange.send(UpstreamBytes(says("one two three four five six seven eight nine ")))
    assert [s.text for s in exchange.unanswered] == [
        "one",
        "one two",
        "one two three four",
        "one two three four five six",
    ]
    assert exchange.out.sent == []
    for score in exchange.unanswered:
        exchange.send(Scored(score.ticket, {"lexicon.toxicity": 0.0}))
    assert exchange.out.sent == []  # a whole event leaves only when all of it may
    exchange.unanswered.clear()
    exchange.send(UpstreamBytes(ends() + DONE))
    (last,) = exchange.unanswered
    exchange.send(Scored(last.ticket, {"lexicon.toxicity": 0.0}))
    assert text_of(exchange.out).endswith("nine ")


def test_a_stop_by_score_condemns_what_is_still_held() -> None:
    words = [says(f"w{i} ") for i in range(20)]
    out = stream(TOX, [*words, says("you idiot "), *words, ends(), DONE])
    assert "idiot" not in text_of(out)
    assert text_of(out).endswith("Halt.")
    assert text_of(out).startswith("w0 w1 ")
    assert out.cancelled


@pytest.mark.parametrize("reason", ["deadline", "crash", "garbage", "rested"])
def test_g23_a_failed_detector_meets_the_fail_mode(reason: str) -> None:
    for mode, ended, outcome in (("closed", {}, "detector_failed"), ("open", {0: "stop"}, "complete")):
        out = play(CHAT, plan(TOX, fail_mode=mode), request(), [says("good day "), ends(), DONE],
                   scorer=lambda score: ScoringFailed(score.ticket, reason))  # type: ignore[arg-type]  # fmt: skip
        assert finishes(out) == ended
        assert out.record is not None
        assert out.record.outcome == outcome
        assert [body["error"]["code"] for body in bodies(out) if "error" in body] == ([outcome] if not ended else [])
        assert f"lexicon:{reason}" in out.record.degradations
        assert text_of(out) == ("" if mode == "closed" else "good day ")


def test_g23_a_rules_own_fail_mode_overrides_the_routes() -> None:
    out = play(CHAT, plan(TOX.replace("stage", "fail_mode: open, stage")), request(), [says("good day "), ends(), DONE],
               scorer=lambda score: ScoringFailed(score.ticket, "crash"))  # fmt: skip
    assert finishes(out) == {0: "stop"}


def test_g06_a_stall_checks_early_what_is_there() -> None:
    exchange = open_stream(TOX)
    exchange.send(UpstreamBytes(says("hello there")))
    exchange.unanswered.clear()
    assert any(isinstance(c, ArmTimer) and c.timer == "stall" for c in exchange.out.commands)
    exchange.send(Scored(1, {"lexicon.toxicity": 0.0}))
    exchange.now += 0.2
    exchange.send(TimerFired("stall"))
    assert exchange.unanswered == []  # not silent for long enough: the timer is armed again
    exchange.now += 0.1
    exchange.send(TimerFired("stall"))
    (early,) = exchange.unanswered
    assert early.text == "hello there"
    exchange.send(Scored(early.ticket, {"lexicon.toxicity": 0.0}))
    assert text_of(exchange.out) == "hello there"


def test_g06_a_stall_lets_go_of_what_no_classifier_need_be_asked_about() -> None:
    everywhere = "classifiers: [{name: lexicon.toxicity, threshold: 0.8}], channels: [extra], actions: [{type: stop}]"
    exchange = open_stream(MAIL + f"  - {{name: t, id: TOX-9, stage: [midstream], {everywhere}}}\n")
    note = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    note["choices"] = [{"index": 0, "delta": {"note": "joe@example.com,"}, "finish_reason": None}]
    exchange.send(UpstreamBytes(b"data: " + json.dumps(note).encode() + b"\n\n"))
    assert exchange.unanswered == []
    assert exchange.out.sent == []
    exchange.now += 1
    exchange.send(TimerFired("stall"))
    assert b'"note": "[EMAIL],"' in b"".join(exchange.out.sent)


def test_g06_a_comment_keeps_the_connection_while_text_is_held() -> None:
    exchange = open_stream(MAIL)
    exchange.send(UpstreamBytes(says("jo")))
    exchange.now += 20
    exchange.send(TimerFired("keepalive"))
    assert exchange.out.sent == [b": keep-alive\n"]


@pytest.mark.parametrize("streaming", [True, False])
def test_a_long_answer_in_one_piece_asks_a_few_checks_at_a_time(streaming: bool) -> None:
    text = " ".join(f"word{i}" for i in range(3000)) + " idiot and on " + " ".join(f"tail{i}" for i in range(300))
    exchange = Exchange(CHAT, plan(TOX))
    exchange.send(RequestReceived(request(stream=streaming)))
    exchange.send(UpstreamOpened(200, streaming=streaming))
    exchange.send(UpstreamBytes(says(text) + ends() + DONE if streaming else whole(text)))
    exchange.send(UpstreamClosed())
    answer = by_words("lexicon.toxicity", ["idiot"])
    asked = 0
    while exchange.unanswered:
        assert len(exchange.unanswered) <= MAX_UNDER_WAY
        asked += 1
        exchange.send(answer(exchange.unanswered.pop(0)))
    assert asked > 300
    assert exchange.out.record is not None
    assert exchange.out.record.outcome == "stopped"
    said = (
        text_of(exchange.out)
        if exchange.out.reply is None
        else json.loads(exchange.out.reply.body)["choices"][0]["message"]["content"]
    )
    assert said.startswith("word0 word1")
    assert said.endswith("Halt.")
    assert "idiot" not in said


def test_a_slow_check_is_recorded() -> None:
    exchange = open_stream(TOX)
    exchange.send(UpstreamBytes(says("hello there")))
    exchange.now += 0.06
    exchange.send(Scored(1, {"lexicon.toxicity": 0.0}))
    assert Degraded("check_over_budget") in exchange.out.commands
