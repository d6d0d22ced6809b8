"""What a program costs on this machine: to compile, to keep, and for a chunk of text that it judges."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Sequence
from statistics import median

import msgspec

from checkstream.core.cel.values import from_json
from checkstream.core.channel.brief import Brief
from checkstream.core.channel.checks import HoldSettings
from checkstream.core.channel.judge import Judge
from checkstream.core.match.scan import scanning
from checkstream.core.policy.classifiers import Installed
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.nodes import Given
from checkstream.core.policy.program import Program
from checkstream.core.policy.stored import stored
from checkstream.core.policy.vm import Machine, exchange_facts
from checkstream.core.terms import Channel, ExchangeFacts, Facts, Stage
from checkstream.trial.cases import Case

_QUIET = "The library opens at nine, and the tea room a little later on.  "
"""64 characters in which nothing is to be found."""
_CHUNKS = 200
"""Chunks of one run: long enough for the clock, short enough for the memory."""


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """One number."""

    name: str
    value: float
    unit: str
    runs: int
    """The value is the median of so many."""


def measure(
    sources: Sequence[Given],
    labels: Sequence[Installed],
    cases: Sequence[Case],
    *,
    first_s: float,
    runs: int = 15,
) -> tuple[Measure, ...]:
    """Return what policies cost on the content of an answer.

    Args:
        sources: The policy files.
        labels: Every label and every entity that models give.
        cases: Their answers and scores are the chunks in which something is found; empty: there are none.
        first_s: How long the first compilation of the process took, in seconds.
        runs: How often each is measured.

    Raises:
        PolicyError: a policy can't be used.
    """
    program = compile_sources(sources, labels)
    found = [
        Measure(name="compile, first of the process", value=first_s * 1e3, unit="ms", runs=1),
        Measure(
            name="compile, patterns remembered",
            value=_seconds(lambda: compile_sources(sources, labels), 3) * 1e3,
            unit="ms",
            runs=3,
        ),
        Measure(name="program, stored", value=len(stored(program)), unit="bytes", runs=1),
        Measure(
            name="program, in memory (without the regex engine)", value=_memory(sources, labels), unit="bytes", runs=1
        ),
        Measure(name="rules", value=len(program.rules), unit="", runs=1),
    ]
    scope = program.scope(Stage.MIDSTREAM, "content")
    timed: list[tuple[str, Callable[[], object], int]] = [
        ("quiet 64-character chunk, matcher", _matcher(program), _CHUNKS),
        ("quiet 64-character chunk, matcher, rules and release", _judge(program), _CHUNKS),
    ]
    answers = [case for case in cases if case.texts and case.kind == "content"]
    if answers and scope.rules:
        timed.append(("rules over what a case finds and scores", _decisions(program, answers), len(answers) * _CHUNKS))
    found += [
        Measure(name=name, value=_seconds(run, runs) / per * 1e6, unit="us", runs=runs) for name, run, per in timed
    ]
    return tuple(found)


def _seconds(run: Callable[[], object], runs: int) -> float:
    """Return the median of how long `run` takes, without garbage collection."""
    run()
    took = []
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(runs):
            began = time.perf_counter()
            run()
            took.append(time.perf_counter() - began)
    finally:
        if collecting:
            gc.enable()
    return median(took)


def _memory(sources: Sequence[Given], labels: Sequence[Installed]) -> int:
    """Return how many bytes a program keeps."""
    gc.collect()
    tracemalloc.start()
    try:
        program = compile_sources(sources, labels)
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
        del program
        return kept
    finally:
        tracemalloc.stop()


def _matcher(program: Program) -> Callable[[], object]:
    scope = program.scope(Stage.MIDSTREAM, "content")

    def run() -> None:
        for patterns in (scope.hold, scope.watch):
            scan = scanning(patterns)
            for _ in range(_CHUNKS):
                scan.feed(_QUIET)

    return run


def _judge(program: Program) -> Callable[[], object]:
    exchange = _exchange(program)

    def run() -> None:
        judge = Judge(
            Channel("content"),
            Stage.MIDSTREAM,
            Brief(
                program=program,
                settings=HoldSettings(),
                fail_mode="closed",
                exchange=exchange,
                digest=str,
                degrade=lambda _: None,
            ),
        )
        for _ in range(_CHUNKS):
            for check in judge.feed(_QUIET):
                check.scores = dict.fromkeys(judge._scope.score_signals, 0.0)  # noqa: SLF001
            judge.advance()
            judge.holdback.release(judge.holdback.releasable)

    return run


def _decisions(program: Program, cases: Sequence[Case]) -> Callable[[], object]:
    """Return a run of the machine over what the answers of cases hold, and their scores."""
    scope = program.scope(Stage.MIDSTREAM, "content")
    exchange = _exchange(program)
    known: list[Facts] = []
    for case in cases:
        facts = Facts(Stage.MIDSTREAM, "content", exchange)
        for patterns in (scope.hold, scope.watch):
            scan = scanning(patterns)
            for finding in (*scan.feed(case.texts[0]), *scan.end()):
                facts.counts[finding.signal] = facts.counts.get(finding.signal, 0) + 1
        given = case.scores if isinstance(case.scores, dict) else {}
        for name, signal in scope.score_signals.items():
            facts.scores[signal] = facts.peaks[signal] = given.get(name, 0.0)
        known.append(facts)

    def run() -> None:
        for _ in range(_CHUNKS):
            for facts in known:
                machine = Machine(program, facts)
                for signal in (*facts.counts, *facts.scores):
                    for entry in scope.rules.get(signal, ()):
                        machine.decide(entry)

    return run


def _exchange(program: Program) -> ExchangeFacts:
    request = {"route": "", "model": "m", "surface": "openai.chat", "stream": True, "tools": (), "metadata": {}}
    facts = {name: from_json(list(value) if isinstance(value, tuple) else value) for name, value in request.items()}
    return exchange_facts(program, from_json({}), facts, who=("", ""), fail_mode="closed")[0]
