"""Text that waits for a busy classifier: it is whole in the end, or the exchange ends as overloaded (G32)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.commands import ArmTimer
from checkstream.core.events import (
    RequestReceived,
    Scored,
    ScoringFailed,
    TimerFired,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamOpened,
)
from tests.chance import examples
from tests.guarded import CHAT, DONE, INJ, TOX, bodies, ends, event, finishes, plan, request, says, text_of, whole
from tests.playbook import Exchange, Played

QUIET = {"lexicon.toxicity": 0.0, "lexicon.injection": 0.0}
WORDS = " ".join(f"word{number}" for number in range(40))
SHADOW = TOX.replace("id: TOX-1,", "id: TOX-1, mode: shadow,")
DISCLAIMED = TOX.replace("stage: [midstream]", "stage: [egress]").replace(
    "{type: stop, message: Halt.}", "{type: inject_disclaimer, text: Beware., position: end}"
)
HOLD = TimerFired("hold")


def opened(rules: str = TOX, *, streaming: bool = True, fail_mode: str = "open") -> Exchange:
    exchange = Exchange(CHAT, plan(rules, fail_mode=fail_mode, max_hold_ms=5_000.0))
    exchange.send(RequestReceived(request(stream=streaming)))
    exchange.send(UpstreamOpened(200, streaming=streaming))
    return exchange


def hold_timers(exchange: Exchange) -> list[float]:
    return [c.after_ms for c in exchange.out.commands if isinstance(c, ArmTimer) and c.timer == "hold"]


def codes(out: Played) -> list[str]:
    return [body["error"]["code"] for body in bodies(out) if "error" in body]


def answer_all(exchange: Exchange) -> None:
    while exchange.unanswered:
        exchange.send(Scored(exchange.unanswered.pop(0).ticket, QUIET))


def outcome(exchange: Exchange) -> str:
    assert exchange.out.record is not None
    return exchange.out.record.outcome


def test_g32_text_that_waits_for_a_slow_classifier_comes_whole() -> None:
    exchange = opened()
    exchange.send(UpstreamBytes(says(WORDS) + ends() + DONE))
    exchange.send(UpstreamClosed())
    exchange.now += 4.9
    exchange.send(HOLD)
    assert exchange.out.sent == []
    answer_all(exchange)
    assert text_of(exchange.out) == WORDS
    assert finishes(exchange.out) == {0: "stop"}
    assert exchange.out.joined.endswith(DONE)
    assert outcome(exchange) == "complete"


@pytest.mark.parametrize("fail_mode", ["open", "closed"])
@pytest.mark.parametrize("ended", [True, False])
def test_g32_a_stream_that_waits_for_too_long_ends_as_overloaded_and_never_looks_complete(
    fail_mode: str, *, ended: bool
) -> None:
    exchange = opened(fail_mode=fail_mode)
    assert hold_timers(exchange) == []
    exchange.send(UpstreamBytes(says("some words come first ") + says(WORDS) + (ends() + DONE if ended else b"")))
    assert hold_timers(exchange) == [5_000.0]
    for _ in range(3):
        exchange.send(Scored(exchange.unanswered.pop(0).ticket, QUIET))
    sent = text_of(exchange.out)
    exchange.now += 5.0
    exchange.send(HOLD)
    assert text_of(exchange.out) == sent + "some words come first"  # it waited for the rest of its event
    assert codes(exchange.out) == ["overloaded"]
    assert finishes(exchange.out) == {}
    assert b"[DONE]" not in exchange.out.joined
    assert exchange.out.closed
    assert outcome(exchange) == "overloaded"
    assert exchange.out.record is not None
    assert (exchange.out.record.action, exchange.out.record.upstream_failure) == ("allow", None)
    assert exchange.out.cancelled


def test_g32_a_whole_answer_and_a_prompt_that_wait_for_too_long_are_503_to_be_repeated() -> None:
    answer = opened(streaming=False)
    answer.send(UpstreamBytes(whole(WORDS)))
    answer.send(UpstreamClosed())
    prompt = Exchange(CHAT, plan(INJ, fail_mode="open", max_hold_ms=5_000.0))
    prompt.send(RequestReceived(request(WORDS)))
    for exchange in (answer, prompt):
        exchange.now += 5.0
        exchange.send(HOLD)
        reply = exchange.out.reply
        assert reply is not None
        assert (reply.status, reply.action, reply.retry, reply.retry_after_s) == (503, "overloaded", None, 1)
        assert json.loads(reply.body)["error"]["code"] == "overloaded"
        assert outcome(exchange) == "overloaded"
    assert prompt.out.forwarded is None


def test_g32_the_time_that_a_check_waits_is_its_own() -> None:
    exchange = opened()
    exchange.send(UpstreamBytes(says("one two ")))
    exchange.now += 4.0
    answer_all(exchange)
    exchange.send(UpstreamBytes(says("three four five six ")))
    exchange.now += 1.0
    exchange.send(HOLD)
    assert hold_timers(exchange) == [5_000.0, pytest.approx(4_000.0)]
    assert not exchange.out.closed
    answer_all(exchange)
    exchange.now += 4.0
    exchange.send(HOLD)  # nobody waits any more
    assert len(hold_timers(exchange)) == 2
    exchange.send(UpstreamBytes(says("seven eight ") + ends() + DONE))
    answer_all(exchange)
    assert text_of(exchange.out) == "one two three four five six seven eight "


def test_g32_a_long_prompt_waits_as_much_longer_as_it_is_longer() -> None:
    exchange = Exchange(CHAT, plan(INJ, fail_mode="closed", max_hold_ms=5_000.0))
    exchange.send(RequestReceived(request("word " * 60_000)))  # three times what waits for 5 s
    exchange.now += 5.0
    exchange.send(HOLD)
    assert exchange.out.reply is None
    assert hold_timers(exchange) == [5_000.0, 5_000.0]  # looks again in time for a short text
    exchange.now += 9.9
    exchange.send(HOLD)
    assert exchange.out.reply is None
    assert hold_timers(exchange)[2:] == [pytest.approx(100.0, abs=1.0)]
    answer_all(exchange)
    assert exchange.out.forwarded is not None


def test_g32_a_long_prompt_does_not_wait_for_ever() -> None:
    exchange = Exchange(CHAT, plan(INJ, fail_mode="closed", max_hold_ms=5_000.0))
    exchange.send(RequestReceived(request("word " * 60_000)))
    exchange.now += 15.0
    exchange.send(HOLD)
    assert exchange.out.reply is not None
    assert exchange.out.reply.status == 503
    assert exchange.out.forwarded is None


def test_g32_what_only_a_shadow_waits_for_is_left_out_of_the_record_and_the_answer_is_complete() -> None:
    exchange = opened(SHADOW, fail_mode="closed")
    exchange.send(UpstreamBytes(says(WORDS) + ends() + DONE))
    exchange.send(UpstreamClosed())
    for _ in range(9):
        exchange.now += 5.0
        exchange.send(HOLD)
    assert text_of(exchange.out) == WORDS
    assert exchange.out.joined.endswith(DONE)
    assert outcome(exchange) == "complete"
    assert exchange.out.record is not None
    assert "lexicon:overload" in exchange.out.record.degradations


def test_g32_an_answer_that_a_disclaimer_waits_for_is_overloaded() -> None:
    exchange = opened(DISCLAIMED)
    exchange.send(UpstreamBytes(says(WORDS) + ends() + DONE))
    exchange.now += 5.0
    exchange.send(HOLD)
    assert codes(exchange.out) == ["overloaded"]
    assert b"[DONE]" not in exchange.out.joined
    assert outcome(exchange) == "overloaded"


@pytest.mark.parametrize("stream", [True, False])
def test_g32_a_classifier_that_takes_no_more_is_busy_and_not_broken(stream: bool) -> None:
    exchange = opened(streaming=stream, fail_mode="open")
    exchange.send(UpstreamBytes(says(WORDS) + ends() + DONE if stream else whole(WORDS)))
    exchange.send(UpstreamClosed())
    exchange.send(ScoringFailed(exchange.unanswered[0].ticket, "overload"))
    assert outcome(exchange) == "overloaded"
    assert text_of(exchange.out) == ""


def call(arguments: str, **more: object) -> bytes:
    return event((0, {"tool_calls": [{"index": 0, "function": {"arguments": arguments, **more}}]}, None))


@pytest.mark.parametrize("broken", [True, False])
def test_g32_g35_an_answer_that_ends_with_an_error_leaves_no_call_to_act_on(broken: bool) -> None:
    rules = TOX.replace("channels: [content], ", "")
    exchange = opened(rules, fail_mode="closed")
    exchange.send(UpstreamBytes(says("I call. ") + call('{"amount": ', name="pay") + call('1000, "to": "joe"}')))
    exchange.send(UpstreamBytes(ends(reason="tool_calls") + DONE))
    while len(exchange.unanswered) > 1:
        exchange.send(Scored(exchange.unanswered.pop(0).ticket, QUIET))
    if broken:
        exchange.send(ScoringFailed(exchange.unanswered.pop(0).ticket, "crash"))
        answer_all(exchange)
    else:
        exchange.now += 5.0
        exchange.send(HOLD)
    assert codes(exchange.out) == ["detector_failed" if broken else "overloaded"]
    assert "I call. ".startswith(text_of(exchange.out))
    assert b"tool_calls" not in exchange.out.joined
    assert b"[DONE]" not in exchange.out.joined


@settings(max_examples=examples(150))
@given(
    words=st.integers(1, 60),
    answered=st.integers(0, 12),
    verdict=st.sampled_from(["deadline", "crash", "garbage", "rested", "overload", "late"]),
    ended=st.booleans(),
    choices=st.integers(1, 2),
    mode=st.sampled_from(["closed", "open"]),
)
def test_g32_whenever_it_ends_nothing_unchecked_leaves_and_the_end_says_why(
    *, words: int, answered: int, verdict: str, ended: bool, choices: int, mode: str
) -> None:
    """Whatever the moment: what was sent is a beginning of the answer, and an error is never a complete answer."""
    said = [f"w{number} " for number in range(words)]
    exchange = Exchange(CHAT, plan(TOX, fail_mode=mode, max_hold_ms=5_000.0))
    exchange.send(RequestReceived(request(n=choices)))
    exchange.send(UpstreamOpened(200, streaming=True))
    for word in said:
        exchange.send(UpstreamBytes(b"".join(says(word, choice) for choice in range(choices))))
    if ended:
        exchange.send(UpstreamBytes(b"".join(ends(choice) for choice in range(choices)) + DONE))
        exchange.send(UpstreamClosed())
    for _ in range(min(answered, len(exchange.unanswered))):
        exchange.send(Scored(exchange.unanswered.pop(0).ticket, QUIET))
    if not exchange.unanswered:
        return
    before = [text_of(exchange.out, choice) for choice in range(choices)]
    if verdict == "late":
        exchange.now += 5.0
        exchange.send(HOLD)
    else:
        reason = verdict
        exchange.send(ScoringFailed(exchange.unanswered.pop(0).ticket, reason))  # type: ignore[arg-type]
    broken = verdict not in {"late", "overload"}
    if broken and mode == "open":
        return
    answer_all(exchange)
    assert exchange.out.closed
    wanted = "detector_failed" if broken else "overloaded"
    assert codes(exchange.out) == [wanted]
    assert outcome(exchange) == wanted
    assert b"[DONE]" not in exchange.out.joined
    assert "content_filter" not in finishes(exchange.out).values()
    for choice in range(choices):
        text = text_of(exchange.out, choice)
        assert "".join(said).startswith(text)
        assert text.startswith(before[choice])
        assert choice not in finishes(exchange.out) or text == "".join(said)
