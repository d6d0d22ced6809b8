"""Runs: each scenario through each target in turn, round by round, so that a machine's moods meet all alike."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec

from checkstream.bench import targets
from checkstream.bench.caller import Place, ask
from checkstream.bench.figures import Run, Sample, sum_up
from checkstream.bench.model import Model
from checkstream.bench.scenario import Script
from checkstream.bench.targets import Target
from checkstream.bench.told import Told, tell

_LOOK_S = 0.25
_MARK = "(request "
_WARM_UP = 4


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be measured."""

    scripts: tuple[Script, ...]
    rounds: int = 3
    policies: tuple[str, ...] = ("builtin:default",)
    workers: int = 1
    """Processes of a second `checkstream`, beside the one with one process; 1: there is no second."""
    proxies: Mapping[str, Place] = {}
    """Gateways that stand before the bench's model, by name."""
    model_port: int = 0
    """Where it listens; 0: anywhere."""
    target: Place | None = None
    """A deployment with a model of its own, in place of all else."""


async def play(wanted: Wanted, show: Callable[[str, float], None]) -> list[Run]:
    """Measure.

    Args:
        wanted: What.
        show: Is told what is being measured, and the share that has been, 0..1.

    Raises:
        BenchError: a target can't be used.
        OSError: the model can't listen.
    """
    field = _Field()
    model = Model(field.told_of)
    port = await model.open(wanted.model_port)
    runs: list[Run] = []
    try:
        async with _running(wanted, port) as found:
            for target in found:
                show(f"{target.name}: warming up", 0.0)
                await field.warm_up(target, model, wanted.scripts[0])
            count = wanted.rounds * len(wanted.scripts) * len(found)
            for number in range(wanted.rounds):
                for script in wanted.scripts:
                    for target in found:
                        words = f"round {number + 1} of {wanted.rounds}: {script.name} through {target.name}"
                        show(words, len(runs) / count)
                        runs.append(await field.run(target, model, script, number + 1))
    finally:
        await model.close()
    return runs


@asynccontextmanager
async def _running(wanted: Wanted, port: int) -> AsyncIterator[Sequence[Target]]:
    """Start what is to be measured, each process on a core of its own where there are enough; we keep the others."""
    if wanted.target is not None:
        yield [Target(name="target", place=wanted.target, own_model=False)]
        return
    cores = sorted(os.sched_getaffinity(0))
    own = cores[: max(min(wanted.workers, len(cores) - 1), 1)] if len(cores) > 1 else []
    async with AsyncExitStack() as opened:
        beside = await opened.enter_async_context(targets.nginx(port, own[:1]))
        guarded = [await opened.enter_async_context(targets.guarded(port, wanted.policies, own[:1]))]
        if wanted.workers > 1:
            many = targets.guarded(port, wanted.policies, own if len(own) == wanted.workers else (), wanted.workers)
            guarded.append(await opened.enter_async_context(many))
        named = [Target(name=name, place=place) for name, place in wanted.proxies.items()]
        if own:
            os.sched_setaffinity(0, set(cores[len(own) :]))
        try:
            yield [targets.direct(port), *([beside] if beside is not None else []), *guarded, *named]
        finally:
            os.sched_setaffinity(0, set(cores))


class _Field:
    """All that is asked at the moment, by the number that stands in its prompt."""

    def __init__(self) -> None:
        self._told: dict[int, Told] = {}
        self._next = 0

    def told_of(self, prompt: str) -> Told | None:
        number = prompt.rpartition(_MARK)[2].removesuffix(")")
        return self._told.get(int(number)) if number.isdecimal() else None

    async def warm_up(self, target: Target, model: Model, script: Script) -> None:
        """Ask a few times, short and at once."""
        short = msgspec.structs.replace(script.scenario, tokens=50, per_s=None, reads_bytes_per_s=None, leaving=0.0)
        script = msgspec.structs.replace(script, scenario=short)
        model.scenario = short
        await asyncio.gather(*(self._ask(target, script, number) for number in range(_WARM_UP)))

    async def run(self, target: Target, model: Model, script: Script, round_: int) -> Run:
        """Run a scenario through a target."""
        model.scenario, model.late_s = script.scenario, []
        due = script.scenario.arrivals.times_s()
        memory: list[Sample] = []
        cpu_s, start = target.cpu_s(), time.perf_counter()
        asking: list[asyncio.Task[Told]] = []
        late_s: list[float] = []
        async with asyncio.TaskGroup() as tasks:
            looking = tasks.create_task(_look(target, memory, start))
            for number, at_s in enumerate(due):
                await asyncio.sleep(max(start + at_s - time.perf_counter(), 0))
                late_s.append(max(time.perf_counter() - start - at_s, 0.0))
                asking.append(tasks.create_task(self._ask(target, script, number)))
            answers = await asyncio.gather(*asking)
            seconds, after_s = time.perf_counter() - start, target.cpu_s()
            looking.cancel()
        return sum_up(
            (script.name, target.name, round_),
            script.scenario,
            answers,
            seconds=seconds,
            late_s=[*late_s, *model.late_s],
            cpu_s=None if cpu_s is None or after_s is None else after_s - cpu_s,
            memory=tuple(memory),
            own_model=target.own_model,
        )

    async def _ask(self, target: Target, script: Script, number: int) -> Told:
        told = tell(script, number)
        scenario = script.scenario
        self._next += 1
        mine = self._next
        prompt = f"{scenario.asked()} {_MARK}{mine})"
        self._told[mine] = told
        if not target.own_model:
            told.text = []
        try:
            await ask(
                target.place,
                told,
                prompt,
                stream=scenario.form != "whole",
                reads_bytes_per_s=scenario.reads_bytes_per_s,
            )
        finally:
            del self._told[mine]
        return told


async def _look(target: Target, memory: list[Sample], start_s: float) -> None:
    while (rss := target.rss_bytes()) is not None:
        memory.append(Sample(time.perf_counter() - start_s, rss))
        await asyncio.sleep(_LOOK_S)
