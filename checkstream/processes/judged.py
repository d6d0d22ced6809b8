"""What a proxy tells the agent beside it: what it has in force, and what a rollout is judged by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from checkstream.control.attestation import Figures, Running
from checkstream.control.server.tally import Tally, less, tally_of
from checkstream.proxy.health import Status
from checkstream.telemetry.drift import histograms
from checkstream.telemetry.totals import Family

_FAILURES = frozenset({"detector_failed", "overloaded", "work_exceeded", "failed"})
"""Outcomes that a bundle may be to blame for: not those of the model server, nor of callers."""
_TIMES = {"checkstream_policy_seconds": "policy", "checkstream_check_seconds": "check"}
_MOST_LABELS = 256


class SinceBundle:
    """Counts anew for each bundle that comes in force, so that what is told is what was done under that one."""

    def __init__(self, run: str) -> None:
        """Begin with no bundle and nothing counted; `run` names the proxy's run."""
        self._run = run
        self._number = 0
        self._digest: str | None = None
        self._before = Tally()

    def begin(self, digest: str, families: Iterable[Family]) -> None:
        """Count from here on for a bundle, if it is another."""
        if digest != self._digest:
            first = self._digest is None
            self._before = Tally() if first else tally_of(figures_of(families, self._run))
            self._number += 1
            self._digest = digest

    def running(self, status: Status, families: Sequence[Family]) -> Running:
        """Return what is told of a proxy.

        Args:
            status: What it has in force.
            families: What it has counted, of those that `Metrics.judged` yields at least.
        """
        self.begin(status.bundle_digest, families)
        counted = less(tally_of(figures_of(families, self._run)), self._before)
        figures = Figures(run=f"{self._run}.{self._number}", **msgspec.structs.asdict(counted))
        return Running(
            bundle=status.bundle_digest,
            bundle_version=status.bundle.partition("@")[2].rpartition("#")[0],
            configuration=status.configuration,
            programs=tuple(dict.fromkeys(route.program for route in status.routes if route.program))[:_MOST_LABELS],
            models=dict(list(status.model_hashes.items())[:_MOST_LABELS]),
            figures=figures,
        )


def figures_of(families: Iterable[Family], run: str) -> Figures:
    """Return what a rollout is judged by."""
    outcomes: dict[str, int] = {}
    times: dict[str, tuple[int, ...]] = {}
    scores: dict[str, tuple[int, ...]] = {}
    for family in families:
        if family.name == "checkstream_exchanges":
            for sample in family.samples:
                if sample.name.endswith("_total"):
                    outcome = dict(sample.labels).get("outcome", "")
                    outcomes[outcome] = outcomes.get(outcome, 0) + int(sample.value)
        elif family.name in _TIMES:
            times[_TIMES[family.name]] = _bins(family)
        elif family.name == "checkstream_score":
            samples = ((dict(each.labels), each.value) for each in family.samples if each.name.endswith("_bucket"))
            found = list(histograms(samples).items())[:_MOST_LABELS]
            scores = {" ".join(key): tuple(map(int, counts)) for key, counts in found}
    return Figures(
        run=run,
        exchanges=sum(outcomes.values()),
        refusals=outcomes.get("refused", 0),
        stops=outcomes.get("stopped", 0),
        failures=sum(outcomes.get(outcome, 0) for outcome in _FAILURES),
        times=times,
        scores=scores,
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
