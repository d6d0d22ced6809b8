"""G33: where a turn of the guard ends changes nothing but the time, and the work of one exchange has a limit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.commands import AnyCommand, Reply, Score, SendDownstream, Yield
from checkstream.core.events import (
    AnyEvent,
    DownstreamClosed,
    RequestReceived,
    Resumed,
    Scored,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamOpened,
)
from checkstream.core.exchange.guard import Guard, Plan, State
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.surfaces import SURFACES
from tests.chance import examples
from tests.hostile import common
from tests.playbook import Exchange, Played, digest

CHAT = SURFACES["openai.chat"]
RULES = """
pack: {name: all, version: 1.0.0}
policies:
  - {name: all, id: ALL-1, entities: [EMAIL, CREDIT_CARD, PHONE, JWT, GENERIC_SECRET, AWS_ACCESS_KEY],
     actions: [{type: redact}]}
  - {name: word, id: WORD-1, stage: [midstream], phrases: [zero risk], actions: [{type: rewrite_span,
     words: {zero: some}, scope: sentence}]}
  - {name: log, id: LOG-1, phrases: [quick], actions: [{type: log_event}]}
  - {name: halt, id: HALT-1, stage: [midstream], phrases: [stop here], actions: [{type: stop}]}
  - {name: tox, id: TOX-1, classifiers: [{name: lexicon.toxicity, threshold: 0.8}], actions: [{type: redact}]}
"""
PLAN = Plan(program=compile_sources([("all.yaml", RULES)], (ClassifierLabel("lexicon.toxicity"),)))
CALM = Plan(program=compile_sources([("calm.yaml", RULES.partition("  - {name: word")[0])]))
HEAD = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
SNIPPETS = st.sampled_from([
    "The quick brown fox. ", "zero risk is here. ", "4111 1111 1111 1111 ", "jane@example.org ", "030 1234567, ",
    "1 2 3 4 5 6 7 8 9 0 ", "eyJhbGciOiJub25lIn0.e30. ", "password=Xy7_kkQ9 ", "x" * 80, "é\u200b", "stop here. ",
])  # fmt: skip
TEXTS = st.lists(SNIPPETS, min_size=1, max_size=60).map("".join)


def event(choices: Sequence[object]) -> bytes:
    return b"data: " + json.dumps({**HEAD, "choices": choices}).encode() + b"\n\n"


def asked(messages: Sequence[str], **more: object) -> RequestReceived:
    body = {"model": "m", "messages": [{"role": "user", "content": text} for text in messages], **more}
    return RequestReceived(json.dumps(body).encode())


def streamed(texts: Sequence[str]) -> list[AnyEvent]:
    pieces = b"".join(event([{"index": n % 2, "delta": {"content": text}}]) for n, text in enumerate(texts))
    ends = b"".join(event([{"index": n, "delta": {}, "finish_reason": "stop"}]) for n in (0, 1))
    return [
        asked(["hi"], stream=True, n=2),
        UpstreamOpened(200, streaming=True),
        UpstreamBytes(pieces + ends + b"data: [DONE]\n\n"),
        UpstreamClosed(),
    ]


def whole(texts: Sequence[str]) -> list[AnyEvent]:
    choices = [
        {"index": n, "message": {"role": "assistant", "content": text, "refusal": text}, "finish_reason": "stop"}
        for n, text in enumerate(texts)
    ]
    body = json.dumps({"id": "c", "choices": choices}).encode()
    return [asked(["hi"], n=len(texts)), UpstreamOpened(200, streaming=False), UpstreamBytes(body), UpstreamClosed()]


class Turned(Exchange):
    """Gives the guard its turns, and lets what is answered to it come in between."""

    turns = 0

    def send(self, event: AnyEvent) -> None:
        commands: list[AnyCommand] = self.guard.receive(event, self.now)
        for command in commands:
            if not isinstance(command, Yield):
                self._carry_out(command)
        goes_on = any(isinstance(command, Yield) for command in commands)
        assert not goes_on or isinstance(commands[-1], Yield)
        self.turns += 1
        while self.unanswered and not goes_on:
            score = self.unanswered.pop(0)
            self.send(Scored(score.ticket, {"lexicon.toxicity": 0.9 if "fox" in score.text else 0.1}))
        if goes_on:
            self.send(Resumed())


def played(events: Sequence[AnyEvent], turn: int) -> Turned:
    exchange = Turned(CHAT, msgspec.structs.replace(PLAN, turn_work=turn))
    for each in events:
        if not exchange.out.cancelled:
            exchange.send(each)
    return exchange


def told(out: Played) -> object:
    return out.forwarded, out.reply, out.joined, out.record


@settings(max_examples=examples(25))
@given(texts=st.lists(TEXTS, min_size=1, max_size=4), turn=st.sampled_from([1, 30, 400]))
@pytest.mark.parametrize("kind", ["prompt", "streamed", "whole"])
def test_g33_where_turns_end_changes_nothing(kind: str, texts: list[str], turn: int) -> None:
    events = [asked(texts)] if kind == "prompt" else streamed(texts) if kind == "streamed" else whole(texts)
    at_once, in_turns = (played(events, each) for each in (0, turn))
    assert told(in_turns.out) == told(at_once.out)
    assert in_turns.guard.state is at_once.guard.state


@settings(max_examples=examples(15))
@given(texts=st.lists(TEXTS, min_size=1, max_size=3))
@pytest.mark.parametrize("kind", ["prompt", "streamed", "whole"])
def test_g33_a_clock_that_ends_turns_changes_nothing(kind: str, texts: list[str]) -> None:
    events = [asked(texts)] if kind == "prompt" else streamed(texts) if kind == "streamed" else whole(texts)
    at_once, by_clock = Turned(CHAT, PLAN), Turned(CHAT, PLAN)
    by_clock.guard._course.checking.meter.clock = map(float, count()).__next__  # each look at it is a second later
    for each in events:
        for exchange in (at_once, by_clock):
            if not exchange.out.cancelled:
                exchange.send(each)
    assert told(by_clock.out) == told(at_once.out)
    assert by_clock.guard.state is at_once.guard.state
    assert by_clock.turns > at_once.turns


@pytest.mark.parametrize("kind", sorted(common(10)))
def test_g33_a_turn_does_a_bounded_amount_of_work(kind: str) -> None:
    text, turn = common(6000)[kind], 500
    for events in (
        [asked([text])],
        streamed([text]),
        whole([text]),
        streamed([text[at : at + 50] for at in range(0, 6000, 50)]),
    ):
        guard = Guard(surface=CHAT, plan=msgspec.structs.replace(PLAN, turn_work=turn), digest=digest)
        waiting, turns = list(events), 0
        while waiting:
            meter = guard._course.checking.meter
            before = meter.spent
            commands = guard.receive(waiting.pop(0), 1.0)
            turns += 1
            assert meter.spent - before <= turn + MOST_OF_A_STEP, kind
            if any(isinstance(command, Yield) for command in commands):
                waiting.insert(0, Resumed())
            waiting += [Scored(each.ticket, {"lexicon.toxicity": 0.0}) for each in commands if isinstance(each, Score)]
        assert guard.state in {State.FORWARDED, State.CLOSED}
        assert turns >= meter.spent // (turn + MOST_OF_A_STEP)


MOST_OF_A_STEP = 150_000
"""Between two places at which a turn may end."""


def test_g33_a_turn_of_calm_events_does_a_bounded_amount_of_work() -> None:
    """However many come in one read; each does its work in the end."""
    said = [event([{"index": 0, "delta": {"content": f" {word}"}}]) for word in ("the", "keeper", "walks", "home")]
    guard = Guard(surface=CHAT, plan=msgspec.structs.replace(CALM, turn_work=500), digest=digest)
    meter = guard._course.checking.meter
    begins: list[AnyEvent] = [asked(["hi"], stream=True), UpstreamOpened(200, streaming=True)]
    for each in (*begins, *map(UpstreamBytes, said)):
        guard.receive(each, 1.0)
    assert guard._calm._judge is not None
    happens: AnyEvent | None = UpstreamBytes(b"".join(said * 500))
    sent = 0
    while happens is not None:
        before = meter.spent
        commands = guard.receive(happens, 1.0)
        assert meter.spent - before <= 500 + MOST_OF_CALM
        sent += sum(command.data.count(b"\n\n") for command in commands if isinstance(command, SendDownstream))
        happens = Resumed() if any(isinstance(command, Yield) for command in commands) else None
    assert sent == 2000


MOST_OF_CALM = 5000
"""Of events that are read as one, or leave at a time."""


def test_g33_a_prompt_over_its_work_is_refused_with_a_reason_and_recorded() -> None:
    plan = msgspec.structs.replace(PLAN, turn_work=200, work=1000)
    exchange = Turned(CHAT, plan)
    exchange.send(asked([common(20_000)["short numbers"]]))
    reply = exchange.out.reply
    assert isinstance(reply, Reply)
    assert reply.status == 413
    assert msgspec.json.decode(reply.body)["error"]["code"] == "work_exceeded"
    assert exchange.out.record is not None
    assert exchange.out.record.outcome == "work_exceeded"
    assert "work_exceeded" in exchange.out.record.degradations
    assert exchange.turns < 20


def test_g33_a_stream_over_its_work_ends_with_an_error_event_and_leaks_nothing() -> None:
    plan = msgspec.structs.replace(PLAN, turn_work=200, work=2000)
    exchange = Turned(CHAT, plan)
    for each in streamed(["The quick brown fox said jane@example.org ", *([common(500)["short numbers"]] * 40)]):
        exchange.send(each)
    assert b"work_exceeded" in exchange.out.joined
    assert b"jane@example.org" not in exchange.out.joined
    assert exchange.out.cancelled
    assert exchange.out.record is not None
    assert exchange.out.record.outcome == "work_exceeded"
    assert exchange.out.record.upstream_failure is None


def test_g33_where_the_fail_mode_is_open_work_over_the_limit_is_recorded_and_goes_on() -> None:
    plan = msgspec.structs.replace(PLAN, turn_work=200, work=1000, fail_mode="open")
    exchange = Turned(CHAT, plan)
    exchange.send(asked([common(5000)["short numbers"] + " jane@example.org"]))
    assert exchange.out.forwarded is not None
    assert b"jane@example.org" not in exchange.out.forwarded


def test_g33_a_caller_who_leaves_ends_the_work() -> None:
    guard = Guard(surface=CHAT, plan=msgspec.structs.replace(PLAN, turn_work=200), digest=digest)
    commands = guard.receive(asked([common(20_000)["short numbers"]]), 1.0)
    assert isinstance(commands[-1], Yield)
    commands = guard.receive(DownstreamClosed(), 1.0)
    assert not any(isinstance(command, Yield | SendDownstream) for command in commands)
    assert guard.state is State.CLOSED
    assert guard.receive(Resumed(), 1.0) == []
