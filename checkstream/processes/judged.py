"""What a proxy tells the agent beside it: what it has in force, and what a rollout is judged by.

With a candidate, each side's exchanges are told apart: those that it has decided are counted by themselves, and the
base has what is left of all. How long checks take is told of all alone: both sides ask the same models.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from checkstream.control.attestation import Candidate, Figures, Running, RunningCandidate
from checkstream.control.server.tally import Tally, highest, less
from checkstream.proxy.health import CandidateStatus, Status
from checkstream.telemetry.drift import Key, histograms
from checkstream.telemetry.metrics import Metrics
from checkstream.telemetry.totals import Family, family_of

_FAILURES = frozenset({"detector_failed", "overloaded", "work_exceeded", "failed"})
"""Outcomes that a bundle may be to blame for: not those of the model server, nor of callers."""
_TIMES = {"checkstream_policy_seconds": "policy", "checkstream_check_seconds": "check"}
_MOST_LABELS = 256
_MOST_SAID = 900
_OF_CANDIDATE = "checkstream_candidate_"


class Counts(NamedTuple):
    """What has been counted."""

    base: Tally
    candidate: Tally
    """Of exchanges that a candidate has decided, whichever it was."""


class _Since:
    """Counts anew for each bundle that comes in force, so that what is told is what was done under that one."""

    def __init__(self, run: str, *, heir: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with no bundle and nothing counted.

        Args:
            run: Names the proxy's run.
            heir: What has been counted before the first word was told by another, whose counts go on in these.
            clock: In seconds.
        """
        self._clock = clock
        self._begun = clock()
        self._run = run
        self._heir = heir
        self._number = 0
        self.digest: str | None = None
        """Of the bundle that is counted for; None: nothing has been counted yet."""
        self._before = self._told = Tally()

    def begin(self, digest: str, counted: Tally) -> None:
        """Count from here on for a bundle, if it is another; `counted` is what there was before."""
        if digest != self.digest:
            first = self.digest is None and not self._heir
            self._before = Tally() if first else counted
            self._told = Tally()
            self._begun = self._begun if first else self._clock()
            self._number += 1
            self.digest = digest

    def figures(self, counted: Tally) -> Figures:
        """Return what is told of what was counted, which never falls: all and a part of it are not read at once."""
        self._told = highest(self._told, less(counted, self._before))
        since = msgspec.structs.asdict(self._told)
        return Figures(run=f"{self._run}.{self._number}", age_s=int(self._clock() - self._begun), **since)


class SinceBundle:
    """Counts anew for each bundle that comes in force, and for each candidate that comes to stand beside it."""

    def __init__(self, run: str, *, heir: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with no bundle and nothing counted.

        Args:
            run: Names the proxy's run.
            heir: What has been counted before the first word was told by another, whose counts go on in these.
            clock: In seconds.
        """
        self._base = _Since(run, heir=heir, clock=clock)
        self._candidate = _Since(f"{run}.c", heir=heir, clock=clock)

    @property
    def digests(self) -> tuple[str | None, str | None]:
        """Of the bundle that is counted for, and of the candidate beside it; None: nothing has been counted yet."""
        return self._base.digest, self._candidate.digest

    def begin(self, status: Status, counted: Counts) -> None:
        """Count from here on for what a proxy has in force, as far as it is new; `counted` is what there was before."""
        base, candidate = digests_of(status)
        self._base.begin(base, counted.base)
        self._candidate.begin(candidate, counted.candidate)

    def running(self, status: Status, counted: Counts) -> Running:
        """Return what is told of a proxy.

        Args:
            status: What it has in force.
            counted: What it has counted since its run began.
        """
        self.begin(status, counted)
        beside = status.candidate
        return Running(
            bundle=status.bundle_digest,
            bundle_version=_version(status.bundle),
            configuration=status.configuration,
            programs=_programs(status),
            models=dict(list(status.model_hashes.items())[:_MOST_LABELS]),
            figures=self._base.figures(counted.base),
            candidate=None if beside is None else self._running(beside, counted.candidate),
            left_out=status.left_out[:_MOST_SAID],
        )

    def _running(self, beside: CandidateStatus, counted: Tally) -> RunningCandidate:
        candidate = Candidate(
            bundle=beside.digest, version=_version(beside.bundle), share=beside.share, salt=beside.salt
        )
        return RunningCandidate(wanted=candidate, figures=self._candidate.figures(counted))


def digests_of(status: Status) -> tuple[str, str]:
    """Return the digests of the bundle that a proxy has in force, and of the candidate beside it; empty: none."""
    return status.bundle_digest, "" if status.candidate is None else status.candidate.digest


def _version(bundle: str) -> str:
    return bundle.partition("@")[2].rpartition("#")[0]


def _programs(status: Status) -> tuple[str, ...]:
    beside = () if status.candidate is None else status.candidate.programs
    every = (*(route.program for route in status.routes if route.program), *beside)
    return tuple(dict.fromkeys(every))[:_MOST_LABELS]


def counted_by(metrics: Metrics) -> Counts:
    """Return what this process has counted. Any thread may ask; of many routes it takes some 20 ms."""
    scores = {key: tally.counts for key, tally in metrics.scores.total.items()}
    return counted_in(map(family_of, metrics.judged()), scores)


def counted_in(families: Iterable[Family], scores: Mapping[Key, Sequence[float]] | None = None) -> Counts:
    """Return what a rollout is judged by; scores, where they are not given, are among the families."""
    found = list(families)
    theirs = [_as_of_all(family) for family in found if family.name.startswith(_OF_CANDIDATE)]
    candidate = _counted(theirs)
    return Counts(highest(less(_counted(found, scores), candidate), Tally()), candidate)


def _as_of_all(family: Family) -> Family:
    """Return the figures of candidates by the names that those of all exchanges have."""
    samples = tuple(
        msgspec.structs.replace(sample, name=sample.name.replace(_OF_CANDIDATE, "checkstream_"))
        for sample in family.samples
    )
    return msgspec.structs.replace(family, name=family.name.replace(_OF_CANDIDATE, "checkstream_"), samples=samples)


def _counted(families: Iterable[Family], scores: Mapping[Key, Sequence[float]] | None = None) -> Tally:
    outcomes: dict[str, int] = {}
    times: dict[str, tuple[int, ...]] = {}
    for family in families:
        if family.name == "checkstream_exchanges":
            for sample in family.samples:
                if sample.name.endswith("_total"):
                    outcome = dict(sample.labels).get("outcome", "")
                    outcomes[outcome] = outcomes.get(outcome, 0) + int(sample.value)
        elif family.name in _TIMES:
            times[_TIMES[family.name]] = _bins(family)
        elif family.name == "checkstream_score" and scores is None:
            scores = histograms(
                (dict(each.labels), each.value) for each in family.samples if each.name.endswith("_bucket")
            )
    return Tally(
        exchanges=sum(outcomes.values()),
        refusals=outcomes.get("refused", 0),
        stops=outcomes.get("stopped", 0),
        failures=sum(outcomes.get(outcome, 0) for outcome in _FAILURES),
        times=times,
        scores={" ".join(key): tuple(map(int, counts)) for key, counts in list((scores or {}).items())[:_MOST_LABELS]},
    )


def _bins(family: Family) -> tuple[int, ...]:
    """Return how many values are in each bin, whatever the labels: metrics have how many are up to its end."""
    up_to: dict[float, float] = {}
    for sample in family.samples:
        labels: Mapping[str, str] = dict(sample.labels)
        if sample.name.endswith("_bucket"):
            up_to[float(labels["le"])] = up_to.get(float(labels["le"]), 0.0) + sample.value
    counts = [int(up_to[end]) for end in sorted(up_to)]
    return tuple(max(0, more - less) for less, more in zip([0, *counts], counts, strict=False))
