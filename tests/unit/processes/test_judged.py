"""What a proxy tells of itself is what its metrics say, whether of one process or of several."""

from __future__ import annotations

import io

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.control.attestation import Running
from checkstream.core.commands import StreamRecord
from checkstream.processes.judged import SinceBundle, counted_by, counted_in
from checkstream.processes.whole import _NOTHING
from checkstream.proxy.counts import Counted
from checkstream.proxy.health import CandidateStatus, Status
from checkstream.telemetry.logs import open_log
from checkstream.telemetry.metrics import Metrics
from checkstream.telemetry.totals import figures, summed

C = "c" * 64


def counted(scale: int) -> Metrics:
    metrics = Metrics()
    outcomes = {"complete": 5, "refused": 2, "stopped": 1, "detector_failed": 1, "upstream_failed": 1, "failed": 1}
    for outcome, times in outcomes.items():
        metrics.exchanges.of("chat", outcome).inc(times * scale)
        metrics.exchanges.of("other", outcome).inc(scale)
    for _ in range(scale):
        metrics.policy.of("chat").observe(0.00002)
        metrics.policy.of("other").observe(1.0)
        metrics.check.of("a").observe(0.3)
        metrics.check.of("b").observe(0.0)
        metrics.scores.count({"safety.toxic": 0.5}, "ingress")
    return metrics


def test_figures_are_those_of_the_metrics_over_all_routes_and_detectors() -> None:
    found = counted_by(counted(2)).base
    assert (found.exchanges, found.refusals, found.stops, found.failures) == (34, 6, 4, 8)
    assert found.times["policy"] == (0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 2)
    assert (found.times["check"][0], found.times["check"][-1], sum(found.times["check"])) == (2, 2, 4)
    (scores,) = found.scores.values()
    assert list(found.scores) == ["safety.toxic ingress"]
    assert sum(scores) == 2


def test_figures_of_several_processes_are_their_sums() -> None:
    one, two = counted(1), counted(2)
    together = counted_in(summed((figures(one), figures(two))))
    assert together == counted_in(figures(counted(3))) == counted_by(counted(3))


def status(digest: str) -> Status:
    return msgspec.structs.replace(_NOTHING, bundle=f"retail@7#{digest[:12]}", bundle_digest=digest, configuration=C)


def test_each_bundle_is_told_what_was_done_under_it() -> None:
    now = [100.0]
    metrics, since = Metrics(), SinceBundle("r", clock=lambda: now[0])

    def told(digest: str) -> Running:
        return since.running(status(digest), counted_by(metrics))

    metrics.exchanges.of("chat", "complete").inc(3)
    now[0] = 107.0
    one = told("1" * 64)
    assert (one.bundle, one.bundle_version, one.configuration) == ("1" * 64, "7", C)
    assert one.figures is not None
    assert (one.figures.exchanges, one.figures.stops) == (3, 0)  # what came before the first word is the first's
    since.begin(status("2" * 64), counted_by(metrics))
    metrics.exchanges.of("chat", "stopped").inc(2)
    metrics.policy.of("chat").observe(0.1)
    two = told("2" * 64)
    assert two.figures is not None
    assert (two.figures.exchanges, two.figures.stops, sum(two.figures.times["policy"])) == (2, 2, 1)
    assert two.figures.run != one.figures.run
    assert (one.figures.age_s, two.figures.age_s) == (7, 0)
    metrics.exchanges.of("chat", "stopped").inc(1)
    again = told("2" * 64)
    assert again.figures is not None
    assert (again.figures.run, again.figures.exchanges) == (two.figures.run, 3)


def test_an_heir_does_not_tell_again_what_its_elder_has_told() -> None:
    metrics, since = counted(1), SinceBundle("r", heir=True)
    told = since.running(status("1" * 64), counted_by(metrics)).figures
    assert told is not None
    assert (told.exchanges, told.stops) == (0, 0)
    metrics.exchanges.of("chat", "stopped").inc()
    told = since.running(status("1" * 64), counted_by(metrics)).figures
    assert told is not None
    assert (told.exchanges, told.stops) == (1, 1)


def beside(digest: str, share: int = 10) -> Status:
    """Return what is in force with a candidate beside the bundle of 1s."""
    candidate = CandidateStatus(bundle=f"retail@8#{digest[:12]}", digest=digest, share=share, salt="ab", programs=())
    return msgspec.structs.replace(status("1" * 64), candidate=candidate)


def decide(metrics: Metrics, outcome: str, *, candidate: bool, count: int = 1) -> None:
    counts = Counted(metrics, open_log("json", io.BytesIO(), level="error"))
    for _ in range(count):
        of = counts.begun("s", "chat", "c", candidate=candidate)
        of.scored({"safety.toxic": 0.9 if candidate else 0.1}, ingress=True)
        of.recorded(msgspec.convert({**RECORD, "outcome": outcome}, StreamRecord))
        of.guarded(0.02 if candidate else 0.00002)
        of.ended(200)


RECORD = {
    "surface": "openai.chat", "streaming": False, "action": "allow", "policies": (), "program": "", "scanned": (),
    "unscanned": (), "detectors": (), "findings": (), "verdicts": (), "degradations": (), "upstream_failure": None,
    "held_ms": 0.0, "prompt_chars": 0, "answer_chars": 0, "released_chars": 0,
}  # fmt: skip


@pytest.mark.parametrize("several", [False, True])
def test_a_candidate_and_the_other_callers_are_told_apart(several: bool) -> None:
    metrics, since = Metrics(), SinceBundle("r")

    def told(shown: Status) -> Running:
        counted = counted_in(figures(metrics)) if several else counted_by(metrics)
        return msgspec.json.decode(msgspec.json.encode(since.running(shown, counted)), type=Running)

    decide(metrics, "stopped", candidate=False, count=5)
    assert told(status("1" * 64)).candidate is None
    told(beside("2" * 64))
    decide(metrics, "complete", candidate=False, count=3)
    decide(metrics, "refused", candidate=True, count=2)
    found = told(beside("2" * 64))
    assert found.figures is not None
    assert (found.figures.exchanges, found.figures.stops, found.figures.refusals) == (8, 5, 0)
    assert (found.figures.times["policy"][1], found.figures.times["policy"][-1]) == (8, 0)
    assert found.candidate is not None
    assert (found.candidate.wanted.version, found.candidate.wanted.share, found.candidate.wanted.salt) == (
        "8",
        10,
        "ab",
    )
    of = found.candidate.figures
    assert of is not None
    assert (of.exchanges, of.stops, of.refusals, of.times["policy"][-1]) == (2, 0, 2, 2)
    (ours,), (theirs,) = found.figures.scores.values(), of.scores.values()
    assert (sum(ours), sum(theirs)) == (8, 2)
    assert not any(a and b for a, b in zip(ours, theirs, strict=True))
    more = told(beside("2" * 64, share=50)).candidate
    assert more is not None
    assert more.figures is not None
    assert (more.figures.run, more.figures.exchanges) == (of.run, 2)  # more callers are no other bundle
    told(status("1" * 64))
    decide(metrics, "refused", candidate=True)
    again = told(beside("2" * 64)).candidate
    assert again is not None
    assert again.figures is not None
    assert (again.figures.exchanges, again.figures.run == of.run) == (0, False)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2), st.integers(0, 2)), max_size=20))
def test_what_is_told_never_falls_though_all_and_a_part_are_not_read_at_once(
    steps: list[tuple[int, int, int, int]],
) -> None:
    """The part is read a little earlier or later than all; a count that fell would count again from 0."""
    since, every, part, before = SinceBundle("r"), 0, 0, (0, 0)
    for base, candidate, early, late in steps:
        every, part = every + base + candidate, part + candidate
        seen_part, seen_every = max(0, part - early), max(0, every - late)
        metrics = Metrics()
        metrics.exchanges.of("chat", "complete").inc(seen_every)
        metrics.candidate_exchanges.of("complete").inc(seen_part)
        told = since.running(beside("2" * 64), counted_by(metrics))
        assert told.figures is not None
        assert told.candidate is not None
        assert told.candidate.figures is not None
        now = told.figures.exchanges, told.candidate.figures.exchanges
        assert now >= before
        assert now[0] >= before[0]
        assert now[1] >= before[1]
        before = now
    metrics = Metrics()
    metrics.exchanges.of("chat", "complete").inc(every + 10)  # and what was too much is made up for
    metrics.candidate_exchanges.of("complete").inc(part)
    last = since.running(beside("2" * 64), counted_by(metrics)).figures
    assert last is not None
    assert last.exchanges == every + 10 - part


def test_a_server_that_knows_no_candidates_can_read_what_has_none() -> None:
    told = SinceBundle("r").running(status("1" * 64), counted_by(Metrics()))
    assert b"candidate" not in msgspec.json.encode(told)
