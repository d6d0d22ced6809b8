"""G33: no step of an exchange keeps the event loop for more than 5 ms of CPU, whatever comes (see `tests.watchdog`)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import aiohttp
import pytest

from checkstream.core import commands as do
from checkstream.core import events as on
from checkstream.core.exchange.guard import Guard, Plan
from checkstream.core.match.entities import ENTITIES
from checkstream.core.match.scan import Scan
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.terms import Stage
from checkstream.core.wire.surfaces import SURFACES
from tests.hostile import hostile
from tests.hostile_answers import END, STREAMS, TEXTS, WHOLE, event, said_over, streamed_text, told_raw, whole_text
from tests.relayed import Rig, ScriptedGuard, model, passing, streaming
from tests.watchdog import (
    MOST_S,
    Step,
    answered,
    calm,
    everything,
    guard_of,
    long_steps,
    looking_for,
    pace,
    steps,
    watched_loop,
)

CHAT = SURFACES["openai.chat"]
COMPLETIONS = SURFACES["openai.completions"]
SIZE = 40_000
"""Bytes of a hostile answer."""
RUNS = 7
MOST_US = 60
"""That a character may take, whatever stands around it."""
CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"


def request(*, stream: bool) -> bytes:
    return json.dumps({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "hi"}]}).encode()


class Slow:
    """A guard that works for this many multiples of what it may in one of its steps, or in one of them by chance."""

    def __init__(self, times: float, *, once: Iterator[bool] | None = None) -> None:
        self.times = times
        self.once = once
        self.events: list[on.AnyEvent] = []

    def receive(self, event: on.AnyEvent, now: float) -> list[do.AnyCommand]:
        self.events.append(event)
        if now and len(self.events) == 2 and (self.once is None or next(self.once)):
            sum(number % 7 for number in range(int(100_000 * self.times * pace())))
        return [do.Yield()] if len(self.events) == 1 else []


def driven(slow: Slow) -> list[Step]:
    return steps(cast("Guard", slow), [on.RequestReceived(b"{}"), on.UpstreamClosed()])


def test_a_long_step_is_seen_and_named() -> None:
    found = long_steps(lambda: driven(Slow(4)))
    assert [(step.number, step.event) for step in found] == [(1, "Resumed")]
    assert long_steps(lambda: driven(Slow(0.1))) == []


def test_a_step_that_is_long_by_chance_is_not() -> None:
    chance = iter([True] + [False] * 9)
    assert long_steps(lambda: driven(Slow(4, once=chance))) == []


@pytest.mark.parametrize("kind", ["chat_event", "chat_whole", "completions_event", "completions_whole", "exchange"])
def test_g33_no_step_over_what_fuzzing_has_found_is_long(kind: str) -> None:
    for path in sorted((CORPUS / kind).iterdir()):
        body = path.read_bytes()[2:] if kind == "exchange" else path.read_bytes()
        surface, streaming = COMPLETIONS if kind.startswith("completions") else CHAT, not kind.endswith("whole")
        asked = b'{"model":"m","prompt":"hi","stream":true}' if surface is COMPLETIONS else request(stream=streaming)
        events = answered(asked, body, streaming=streaming)
        assert long_steps(lambda: steps(guard_of(surface, everything()), events)) == [], path.name  # noqa: B023


@pytest.mark.parametrize("name", STREAMS)
def test_g33_no_step_on_a_streamed_answer_is_long(name: str) -> None:
    events = answered(request(stream=True), STREAMS[name](SIZE) + END, streaming=True)
    assert long_steps(lambda: steps(guard_of(CHAT, everything()), events)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", STREAMS)
def test_g33_no_step_on_a_streamed_answer_of_the_largest_events_is_long(name: str) -> None:
    events = answered(request(stream=True), STREAMS[name](1_000_000) + END, streaming=True)
    assert long_steps(lambda: steps(guard_of(CHAT, everything()), events)) == []


@pytest.mark.parametrize("name", TEXTS)
def test_g33_no_step_on_a_text_that_says_one_thing_over_and_over_is_long(name: str) -> None:
    body = streamed_text(said_over(name, 5000)) + END
    events = answered(request(stream=True), body, streaming=True)
    assert long_steps(lambda: steps(guard_of(CHAT, everything()), events)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("begun", ["", "a", "4 "])
@pytest.mark.parametrize("name", TEXTS)
def test_g33_no_step_on_the_longest_text_that_says_one_thing_over_and_over_is_long(name: str, begun: str) -> None:
    text = begun + said_over(name, 900_000 if len(told_raw(said_over(name, 900))) < 1000 else 450_000)
    events = answered(request(stream=True), streamed_text(text) + END, streaming=True)
    assert long_steps(lambda: steps(guard_of(CHAT, everything()), events), runs=3) == []
    events = answered(request(stream=False), whole_text(text), streaming=False)
    assert long_steps(lambda: steps(guard_of(CHAT, everything()), events), runs=3) == []


@pytest.mark.parametrize("name", TEXTS)
def test_g33_a_character_costs_a_small_constant_and_not_more_than_is_counted(name: str) -> None:
    """So a budget of work is one of time, too: a text of one letter took a minute before it had used its budget up."""
    text, patterns = said_over(name, 4000), everything().program.scope(Stage.MIDSTREAM, "content").hold
    shares = list[float]()
    while len(shares) < RUNS and min(shares, default=2.0) > 1:
        scan, began = Scan(patterns), time.thread_time()
        for at in range(0, len(text), 256):
            scan.feed(text[at : at + 256])
        scan.end()
        taken_us = (time.thread_time() - began) * 1e6
        shares.append(taken_us / pace() / min(MOST_US * len(text), 2 * scan.work.done + 5000))
    assert min(shares) <= 1


@pytest.mark.parametrize("size", [4000, SIZE])
@pytest.mark.parametrize("name", WHOLE)
def test_g33_no_step_on_a_whole_answer_is_long(name: str, size: int) -> None:
    events = answered(request(stream=False), WHOLE[name](size), streaming=False)
    assert long_steps(lambda: steps(guard_of(CHAT, everything()), events)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", WHOLE)
def test_g33_no_step_on_a_long_whole_answer_is_long(name: str) -> None:
    events = answered(request(stream=False), WHOLE[name](1_000_000), streaming=False)
    assert long_steps(lambda: steps(guard_of(CHAT, everything()), events)) == []


async def relayed(body: bytes) -> list[float]:
    """Return what each callback of the loop took while an answer went through the relay, from socket to socket."""
    rig = Rig(passing)
    rig.guard = cast("ScriptedGuard", guard_of(CHAT, everything()))
    async with model(streaming(body)) as upstream, rig.serving(upstream) as url, aiohttp.ClientSession() as session:
        with watched_loop() as taken:
            async with session.post(url, data=request(stream=True)) as response:
                await response.read()
    assert len(rig.ledger.records) == 1
    return taken


@pytest.mark.parametrize("name", ["blank lines", "choices", "addresses", "numbers", "letters", "events of all choices"])
async def test_g33_no_callback_of_the_loop_is_long_while_an_answer_is_relayed(name: str) -> None:
    body = STREAMS[name](SIZE) + END
    longest: list[float] = []
    while len(longest) < RUNS and min(longest, default=MOST_S + 1) > MOST_S * pace():
        longest.append(max(await relayed(body)))
    assert min(longest) <= MOST_S * pace()


def test_g33_no_step_on_a_calm_text_that_comes_at_once_is_long_however_many_checks_it_makes_due() -> None:
    rule = "{name: r, id: R-1, stage: [midstream], classifiers: [{name: m.risk}], actions: [{type: stop}]}"
    source = f"pack: {{name: r, version: 1.0.0}}\npolicies: [{rule}]"
    plan = Plan(program=compile_sources([("r.yaml", source)], [ClassifierLabel("m.risk", 0.5)]))
    events = answered(request(stream=True), event({"content": "word " * 20_000}) + END, streaming=True)
    asked = list[do.Score]()

    def quiet(score: do.Score) -> on.AnyEvent:
        asked.append(score)
        return calm(score)

    assert long_steps(lambda: steps(guard_of(CHAT, plan), events, quiet)) == []
    assert len(asked) >= 20_000 // 8


@pytest.mark.parametrize("name", sorted(ENTITIES))
def test_g33_no_step_on_the_dearest_texts_of_an_entity_is_long(name: str) -> None:
    assert long_steps(lambda: steps(guard_of(CHAT, looking_for(name)), dearest(name))) == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(ENTITIES))
def test_g33_no_step_on_the_dearest_texts_of_an_entity_is_out_of_all_bounds(name: str) -> None:
    """Of a policy that looks for all of them at once: what is live for one is decided for all."""
    assert long_steps(lambda: steps(guard_of(CHAT, everything()), dearest(name)), most_s=2 * MOST_S) == []


def dearest(name: str) -> list[on.AnyEvent]:
    """Return an exchange whose answer is made of texts that cost an entity the most."""
    texts = hostile(ENTITIES[name].regex, 400).values()
    body = b"".join(event({"content": text}) for text in texts) + END
    return answered(request(stream=True), body, streaming=True)
