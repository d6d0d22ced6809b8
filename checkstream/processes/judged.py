"""What a proxy tells the agent beside it: what it has in force, and what a rollout is judged by."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from checkstream.control.attestation import Figures, Running
from checkstream.control.server.tally import Tally, less
from checkstream.proxy.health import Status
from checkstream.telemetry.drift import Key, histograms
from checkstream.telemetry.metrics import Metrics
from checkstream.telemetry.totals import Family, family_of

_FAILURES = frozenset({"detector_failed", "overloaded", "work_exceeded", "failed"})
"""Outcomes that a bundle may be to blame for: not those of the model server, nor of callers."""
_TIMES = {"checkstream_policy_seconds": "policy", "checkstream_check_seconds": "check"}
_MOST_LABELS = 256


class SinceBundle:
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
        self._before = Tally()

    def begin(self, digest: str, counted: Tally) -> None:
        """Count from here on for a bundle, if it is another; `counted` is what there was before."""
        if digest != self.digest:
            first = self.digest is None and not self._heir
            self._before = Tally() if first else counted
            self._begun = self._begun if first else self._clock()
            self._number += 1
            self.digest = digest

    def running(self, status: Status, counted: Tally) -> Running:
        """Return what is told of a proxy.

        Args:
            status: What it has in force.
            counted: What it has counted since its run began.
        """
        self.begin(status.bundle_digest, counted)
        since = msgspec.structs.asdict(less(counted, self._before))
        return Running(
            bundle=status.bundle_digest,
            bundle_version=status.bundle.partition("@")[2].rpartition("#")[0],
            configuration=status.configuration,
            programs=tuple(dict.fromkeys(route.program for route in status.routes if route.program))[:_MOST_LABELS],
            models=dict(list(status.model_hashes.items())[:_MOST_LABELS]),
            figures=Figures(run=f"{self._run}.{self._number}", age_s=int(self._clock() - self._begun), **since),
        )


def counted_by(metrics: Metrics) -> Tally:
    """Return what this process has counted. Any thread may ask; of many routes it takes some 20 ms."""
    scores = {key: tally.counts for key, tally in metrics.scores.total.items()}
    return counted_in(map(family_of, metrics.judged()), scores)


def counted_in(families: Iterable[Family], scores: Mapping[Key, Sequence[float]] | None = None) -> Tally:
    """Return what a rollout is judged by; scores, where they are not given, are among the families."""
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
