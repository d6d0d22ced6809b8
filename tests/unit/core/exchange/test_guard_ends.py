"""How exchanges end: by failures, leaving callers, drains and caps, and what they leave behind."""

from __future__ import annotations

import gc
import weakref

import pytest

from checkstream.core.commands import CancelUpstream, PauseUpstream, ResumeUpstream
from checkstream.core.events import (
    AnyEvent,
    DownstreamClosed,
    Draining,
    RequestReceived,
    Scored,
    ScoringFailed,
    TimerFired,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamFailed,
    UpstreamOpened,
)
from tests.guarded import (
    CAPPED,
    CHAT,
    DONE,
    MAIL,
    TOX,
    bodies,
    ends,
    event,
    open_stream,
    plan,
    request,
    says,
    stream,
    text_of,
)
from tests.playbook import Exchange, by_words


def test_g19_a_malformed_event_meets_the_fail_mode() -> None:
    bad = b'data: {"choices": [\n\n'
    closed = stream(MAIL, [says("fine.\n\n"), bad, says("x"), DONE])
    assert text_of(closed) == "fine.\n\n"
    assert any("error" in b for b in bodies(closed))
    assert closed.cancelled
    assert closed.closed
    opened = stream(MAIL, [says("fine.\n\n"), bad, ends(), DONE], fail_mode="open")
    assert bad in opened.joined
    assert opened.record is not None
    assert "midstream:opaque_event" in opened.record.unscanned


def test_an_upstream_reset_is_never_a_silent_end() -> None:
    exchange = open_stream(MAIL)
    exchange.send(UpstreamBytes(says("so far jo")))
    exchange.send(UpstreamFailed("reset"))
    assert text_of(exchange.out) == "so "  # what follows could still be part of an address
    assert bodies(exchange.out)[-1]["error"]["type"] == "upstream_error"
    assert exchange.out.closed
    assert exchange.out.record is not None
    assert exchange.out.record.upstream_failure == "reset"


@pytest.mark.parametrize("kind", ["reset", "protocol", "idle", "room"])
def test_g20_a_connection_that_breaks_behind_the_last_word_makes_no_error_behind_it(kind: str) -> None:
    for rules, said in ((MAIL, "or to jane"), (TOX, "or to jane"), (MAIL, "or to jo@example.com")):
        exchange = open_stream(rules)
        pieces = [says("write to them "), says(said), ends(), DONE]
        for piece in pieces:
            exchange.send(UpstreamBytes(piece))
        exchange.send(UpstreamFailed(kind))  # type: ignore[arg-type]
        while exchange.unanswered:
            exchange.send(Scored(exchange.unanswered.pop(0).ticket, {"lexicon.toxicity": 0.0}))
        record = exchange.out.record
        assert exchange.out.joined.endswith(DONE)
        assert exchange.out.closed
        assert record is not None
        assert record.outcome == "complete"
        if "@" in said:  # all was over before, since our own last word was said
            assert text_of(exchange.out) == "write to them or to [EMAIL]"
        else:
            assert exchange.out.joined == b"".join(pieces)
            assert "broken_behind_end" in record.degradations


@pytest.mark.parametrize(("kind", "status"), [("connect", 502), ("first_byte", 504), ("reset", 502)])
def test_an_upstream_failure_before_the_first_byte_is_an_error_status(kind: str, status: int) -> None:
    exchange = Exchange(CHAT, plan(MAIL))
    exchange.send(RequestReceived(request()))
    exchange.send(UpstreamFailed(kind))  # type: ignore[arg-type]
    assert exchange.out.reply is not None
    assert exchange.out.reply.status == status


def test_g21_a_gone_caller_cancels_the_upstream_in_every_state() -> None:
    opened = UpstreamOpened(200, streaming=True)
    flat = UpstreamOpened(200, streaming=False)
    for steps in ((), (opened,), (opened, UpstreamBytes(says("jo"))), (flat, UpstreamBytes(b"{"))):
        exchange = Exchange(CHAT, plan(MAIL))
        exchange.send(RequestReceived(request()))
        for step in steps:
            exchange.send(step)
        exchange.send(DownstreamClosed())
        assert CancelUpstream() in exchange.out.commands
        assert exchange.out.record is not None
        assert exchange.out.record.outcome == "downstream_closed"


def test_a_caller_that_hangs_up_at_the_last_word_has_the_answer() -> None:
    exchange = open_stream(MAIL)
    exchange.send(UpstreamBytes(says("all of it") + ends()))
    exchange.send(DownstreamClosed())
    assert exchange.out.record is not None
    assert exchange.out.record.outcome == "complete"


def test_a_caller_that_leaves_a_choice_unfinished_or_text_held_has_not() -> None:
    for left in (says("so far"), says("mail bob@exam") + ends()[:-2]):
        exchange = open_stream(MAIL)
        exchange.send(UpstreamBytes(left))
        exchange.send(DownstreamClosed())
        assert exchange.out.record is not None
        assert exchange.out.record.outcome == "downstream_closed"


def test_a_drain_ends_the_stream_with_an_error_event() -> None:
    exchange = open_stream(MAIL)
    exchange.send(UpstreamBytes(says("so far ")))
    exchange.send(Draining())
    assert bodies(exchange.out)[-1]["error"]["type"] == "server_shutting_down"
    assert exchange.out.record is not None
    assert exchange.out.record.outcome == "drained"


def test_g22_an_event_without_end_and_an_answer_without_end_meet_their_caps() -> None:
    for settings in ({"event_bytes": 500}, {"answer_bytes": 2000}):
        exchange = open_stream(MAIL, **settings)
        for _ in range(100):
            exchange.send(UpstreamBytes(b"data: " + b"x" * 100 if "event_bytes" in settings else says("fine. ")))
        assert exchange.out.cancelled
        assert exchange.out.closed
        assert bodies(exchange.out)[-1]["error"]


def test_g22_held_bytes_pause_the_upstream_and_resume_it() -> None:
    exchange = open_stream(TOX, held_bytes=450)
    for i in range(11):
        exchange.send(UpstreamBytes(says(f"word{i}\n")))
    assert PauseUpstream() in exchange.out.commands
    while exchange.unanswered:
        score = exchange.unanswered.pop(0)
        exchange.send(Scored(score.ticket, {"lexicon.toxicity": 0.0}))
    assert ResumeUpstream() not in exchange.out.commands  # the hold keeps the last words back
    exchange.now += 1
    exchange.send(TimerFired("stall"))
    exchange.send(Scored(exchange.unanswered.pop().ticket, {"lexicon.toxicity": 0.0}))
    assert ResumeUpstream() in exchange.out.commands


def test_g04_text_that_could_still_match_does_not_leave_because_the_guard_gives_up() -> None:
    rules = (
        "  - {name: k, id: KEY-1, stage: [midstream], "
        "patterns: [{name: key, regex: 'BEGIN[a-z ]*END', max_chars: 4000}], actions: [{type: redact}]}\n"
    )
    for settings, last in (
        ({"held_bytes": 1000}, None),
        ({"answer_bytes": 1000}, None),
        ({"event_bytes": 400}, UpstreamBytes(b"data: " + b"x" * 500)),
        ({}, UpstreamBytes(b"data: {\n\n")),
        ({}, Draining()),
    ):
        exchange = open_stream(rules, **settings)
        for step in ("so ", "BEGIN ", *["secret "] * 8):
            exchange.send(UpstreamBytes(says(step)))
        if last is not None:
            exchange.send(last)
        assert text_of(exchange.out) == "so "
        assert exchange.out.closed
        assert bodies(exchange.out)[-1]["error"]


def test_an_unfinished_last_event_is_scanned_and_completed() -> None:
    out = stream(MAIL, [says("to a@b.io ok "), ends(), DONE.rstrip(b"\n")])
    assert out.joined.endswith(DONE)
    assert "[EMAIL]" in text_of(out)


def test_late_and_foreign_events_are_ignored() -> None:
    exchange = open_stream(MAIL)
    exchange.send(UpstreamBytes(ends() + DONE))
    exchange.send(UpstreamClosed())
    before = len(exchange.out.commands)
    for late in (
        Scored(99, {}),
        ScoringFailed(99, "crash"),
        UpstreamBytes(b"x"),
        TimerFired("stall"),
        DownstreamClosed(),
        Draining(),
    ):
        exchange.send(late)
    assert len(exchange.out.commands) == before


def test_g05_what_follows_the_end_of_a_choice_stays_as_it_came_but_for_text_that_no_judge_has_seen() -> None:
    usage = event((0, {"role": "assistant", "content": ""}, None), usage={"total_tokens": 3})
    pieces = [says("Good day. "), ends(), usage, ends(), DONE]
    assert stream(MAIL, pieces).joined == b"".join(pieces)
    late = stream(MAIL, [says("Good day. "), ends(), says("More. "), usage, DONE])
    assert late.joined == says("Good day. ") + ends() + usage + DONE
    assert late.record is not None
    assert late.record.degradations == ("text_after_end",)


def test_g22_a_pause_ends_with_the_last_check_also_while_a_pattern_holds_most_of_the_cap() -> None:
    shadow = TOX.replace("id: TOX-1,", "id: TOX-1, mode: shadow,")
    rule = CAPPED.replace("max_chars: 12", "max_chars: 9000")
    exchange = Exchange(CHAT, plan(rule + shadow, held_bytes=1000))
    exchange.send(RequestReceived(request()))
    exchange.send(UpstreamOpened(200, streaming=True))
    exchange.send(UpstreamBytes(says("word " * 60)))
    exchange.send(UpstreamBytes(says("#" + "x" * 600)))
    assert len(exchange.unanswered) >= 4
    assert PauseUpstream() in exchange.out.commands
    while exchange.unanswered:
        exchange.send(Scored(exchange.unanswered.pop(0).ticket, {"lexicon.toxicity": 0.0}))
    assert isinstance(exchange.out.commands[-1], ResumeUpstream)


def test_g22_an_upstream_can_open_only_so_many_channels() -> None:
    exchange = open_stream(MAIL)
    for choice in range(50):
        calls = [{"index": i, "function": {"arguments": "{"}} for i in range(100)]
        exchange.send(UpstreamBytes(event((choice, {"tool_calls": calls}, None))))
    assert exchange.out.cancelled
    assert "texts apart" in bodies(exchange.out)[-1]["error"]["message"]
    assert exchange.out.record is not None
    assert exchange.out.record.outcome == "failed"


def test_g22_the_record_keeps_few_of_the_names_that_an_upstream_makes_up() -> None:
    sound = {"data": "iVBORw0KGgoA" + "QUJD" * 100, "transcript": "joe@example.com"}
    deep = {"z" * 30: {"w" * 35: sound}}
    out = stream(
        MAIL,
        [event((0, {f"x{i}" + "y" * 30: deep}, None)) for i in range(300)] + [ends(), DONE],
    )
    assert out.record is not None
    assert len(out.record.unscanned) == 100
    assert 100 < len(out.record.scanned) < 220
    assert max(map(len, out.record.scanned)) < 120
    assert max(map(len, out.record.unscanned)) < 120
    assert "unscanned_not_listed" in out.record.degradations


@pytest.mark.parametrize(
    "rest",
    [
        [UpstreamBytes(says("hello there") + ends() + DONE), UpstreamClosed()],
        [UpstreamBytes(says("hello idiot, and so on") + ends() + DONE), UpstreamClosed()],
        [UpstreamBytes(says("hello there")), UpstreamFailed("reset")],
        [UpstreamBytes(says("hello there")), DownstreamClosed()],
        [UpstreamBytes(says("hello there")), Draining()],
    ],
)
def test_all_that_an_exchange_used_is_freed_without_a_collection(rest: list[AnyEvent]) -> None:
    gc.collect()
    gc.disable()
    try:
        exchange = open_stream(TOX)
        exchange.scorer = by_words("lexicon.toxicity", ["idiot"])
        for event in rest:
            exchange.send(event)
        assert exchange.out.record is not None
        left = weakref.ref(exchange.guard), weakref.ref(exchange.guard._course.checking)
        del exchange
        assert [each() for each in left] == [None, None]
    finally:
        gc.enable()
