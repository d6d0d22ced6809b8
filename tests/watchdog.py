"""Watches a guard at work: how long each step of an exchange keeps its thread, whatever comes.

A step is what the event loop waits for: one call of `Guard.receive`, of which there are as many as turns, and at the
end that what is left of the guard is freed. Its time is the CPU time of the thread, so what else the machine does is
left out. What is left of chance goes by repetition: an exchange does the same steps each time, so each of them counts
with the least that it took in some runs of it; and by a gauge, a loop that has nothing to do with the project, which
says how quick this machine is at present.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from unittest import mock

import msgspec

from checkstream.core import commands as do
from checkstream.core import events as on
from checkstream.core.exchange.machine import machine_for
from checkstream.core.exchange.plan import Plan
from checkstream.core.exchange.stepping import Stepping
from checkstream.core.match.entities import ENTITIES
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.mcp.surface import Mcp
from checkstream.core.wire.surface import Surface
from tests.playbook import digest

MOST_S = 0.005
"""That a step may take, on the machine of which `_GAUGE_S` speaks."""
_GAUGE_S = 0.00085
"""What the gauge takes on that machine: one core of a server of 2023, where the figures of `bench/` come from."""
_TURN_WORK = 1000
"""As the proxy sets it."""
READ_BYTES = 16_384
"""Of an upstream's bytes at a time: what the proxy asks its socket for."""
Answer = Callable[[do.Score], on.AnyEvent]


class Step(msgspec.Struct, frozen=True):
    """One call of the guard."""

    number: int
    event: str
    cpu_s: float


def calm(score: do.Score) -> on.AnyEvent:
    """Answer as classifiers do that find nothing."""
    return on.Scored(score.ticket, dict.fromkeys(score.classifiers, 0.0))


def steps(
    guard: Stepping, events: Sequence[on.AnyEvent], answer: Answer = calm, again: Sequence[on.AnyEvent] = ()
) -> list[Step]:
    """Drive a guard through an exchange as the proxy does, turn after turn; return what each step took.

    Args:
        guard: A fresh one.
        events: What happens; what the guard asks of classifiers is answered between two of them.
        answer: Answers for the classifiers.
        again: What happens once the upstream is asked again, to go on with an answer that a rule has turned.
    """
    pending, found, now = deque(events), list[Step](), 1.0
    answers = deque[on.AnyEvent]()
    goes_on = cancelled = forwarded = False
    with without_collections():
        while goes_on or answers or pending:
            event = on.Resumed() if goes_on else answers.popleft() if answers else pending.popleft()
            if cancelled and isinstance(event, on.UpstreamBytes | on.UpstreamClosed):
                continue
            now += 0.001
            began = time.thread_time()
            commands = guard.receive(event, now)
            found.append(Step(len(found), type(event).__name__, time.thread_time() - began))
            goes_on = False
            for command in commands:
                match command:
                    case do.Yield():
                        goes_on = True
                    case do.CancelUpstream():
                        cancelled = True
                    case do.ForwardRequest() if forwarded:
                        pending, cancelled = deque(again), False
                    case do.ForwardRequest():
                        forwarded = True
                    case do.Score():
                        answers.append(answer(command))
                    case _:
                        pass
        began = time.thread_time()
        del guard
        found.append(Step(len(found), "Forgotten", time.thread_time() - began))
    return found


def long_steps(run: Callable[[], list[Step]], *, most_s: float = MOST_S, runs: int = 7) -> list[Step]:
    """Return the steps of an exchange that take too long in every run of it, with the least that each took.

    Args:
        run: Plays the exchange from its beginning.
        most_s: That a step may take, of the CPU of a machine as the figures of `bench/` have it.
        runs: How often a step has to be too long; one run is enough where none is.
    """
    found = run()
    allowed_s = most_s * pace()
    for _ in range(runs - 1):
        if all(step.cpu_s <= allowed_s for step in found):
            break
        again = run()
        if [step.event for step in again] != [step.event for step in found]:  # the first of a process builds and learns
            found = again
            continue
        found = [min(pair, key=lambda step: step.cpu_s) for pair in zip(found, again, strict=True)]
        allowed_s = max(allowed_s, most_s * pace())
    return [step for step in found if step.cpu_s > allowed_s]


def pace() -> float:
    """Return how much longer than on the machine of the figures a piece of work may take here and now; at least 1.

    Twice as long where other tests run beside this one: they share caches and cores, and not at every moment alike.
    """
    beside = 2.0 if "PYTEST_XDIST_WORKER" in os.environ else 1.0
    return beside * max(min(_gauge() for _ in range(3)) / _GAUGE_S, 1.0)


def _gauge() -> float:
    """Return the CPU time of work of the kind that guards do: JSON, dictionaries and strings."""
    began = time.thread_time()
    for number in range(250):
        body = json.loads('{"choices":[{"index":0,"delta":{"content":"some text"}}],"n":[1,2,3]}')
        kept = {str(each): (each, body) for each in range(12)}
        "".join(kept).find(str(number))
    return time.thread_time() - began


@contextmanager
def without_collections() -> Iterator[None]:
    """Keep the collector away: it walks all that the tests keep, which no proxy has."""
    on_before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on_before:
            gc.enable()


def guard_of(surface: Surface | Mcp, plan: Plan) -> Stepping:
    """Return a guard with turns as long as the proxy's."""
    return machine_for(surface, msgspec.structs.replace(plan, turn_work=_TURN_WORK), digest)


def answered(
    request: bytes, body: bytes, *, streaming: bool, read_bytes: int = READ_BYTES, status: int = 200
) -> list[on.AnyEvent]:
    """Return what happens when an upstream answers a request with these bytes."""
    reads = [on.UpstreamBytes(body[at : at + read_bytes]) for at in range(0, len(body), read_bytes)]
    return [on.RequestReceived(request), on.UpstreamOpened(status, streaming), *reads, on.UpstreamClosed()]


@cache
def everything() -> Plan:
    """Return the plan of a route that looks for every entity there is, in all it reads, and changes what it finds."""
    return looking_for(*sorted(ENTITIES))


@cache
def looking_for(*names: str) -> Plan:
    """Return the plan of a route that looks for some entities and a phrase in all it reads, and changes them."""
    rules = f"""
pack: {{name: all, version: 1.0.0}}
policies:
  - {{name: all, id: ALL-1, entities: [{", ".join(names)}], actions: [{{type: redact}}]}}
  - {{name: words, id: WORD-1, stage: [midstream], phrases: [zero risk], actions: [{{type: redact}}]}}
"""
    return Plan(program=compile_sources([("all.yaml", rules)]))


@contextmanager
def watched_loop() -> Iterator[list[float]]:
    """Note the CPU time of every callback that an event loop of asyncio runs meanwhile, seconds."""
    taken: list[float] = []
    run = asyncio.events.Handle._run

    def timed(handle: asyncio.events.Handle) -> None:
        began = time.thread_time()
        try:
            run(handle)
        finally:
            taken.append(time.thread_time() - began)

    with without_collections(), mock.patch.object(asyncio.events.Handle, "_run", timed):
        yield taken
