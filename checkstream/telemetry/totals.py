"""What several processes have counted, as one: the sums, which never fall when a process ends.

Counters and histograms of all processes are added; so are gauges, but for those that tell of something that all
processes have in common, and for how far scores have drifted, which is reckoned from the sums. INVARIANT: what was told
once is never taken back; only gauges end with their process.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from checkstream.telemetry.drift import drifts, histograms
from checkstream.telemetry.metrics import SPECS, Metrics, of_drifts

_COMMON = frozenset(spec.name for spec in SPECS if spec.common)


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """One figure."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float


class Family(msgspec.Struct, frozen=True, array_like=True):
    """The figures of one metric."""

    name: str
    kind: str
    help: str
    samples: tuple[Sample, ...]


_FAMILIES = msgspec.msgpack.Decoder(tuple[Family, ...])
Figures = tuple[Family, ...]


def told(metrics: Metrics) -> bytes:
    """Return the figures of one process, for another."""
    return encoded(figures(metrics))


def encoded(figures: Figures) -> bytes:
    """Return figures for another process."""
    return msgspec.msgpack.encode(figures)


def heard(body: bytes) -> Figures:
    """Return the figures that another process has told."""
    return _FAMILIES.decode(body)


def figures(metrics: Metrics) -> Figures:
    """Return the figures of this process. Any thread may ask; it takes long where there are many."""
    return tuple(map(family_of, metrics.registry.collect()))


def some(metrics: Metrics, names: Collection[str]) -> Iterator[Family]:
    """Yield the figures of some metrics of this process. Any thread may ask."""
    ends = {"histogram": ("_bucket", "_count", "_sum"), "counter": ("",), "gauge": ("",)}
    wanted = (spec for spec in SPECS if spec.name in names)
    for spec in wanted:
        yield from map(
            family_of, metrics.registry.restricted_registry([spec.name + end for end in ends[spec.kind]]).collect()
        )


def family_of(metric: Metric) -> Family:
    """Return the figures of one metric."""
    samples = (
        Sample(sample.name, tuple(sorted(sample.labels.items())), float(sample.value)) for sample in metric.samples
    )
    return Family(metric.name, metric.type, metric.documentation, tuple(samples))


def lasting(figures: Figures) -> Figures:
    """Return what is left of the figures of a process that has ended: all but its gauges."""
    return tuple(family for family in figures if family.kind != "gauge")


def summed(processes: Iterable[Figures]) -> Figures:
    """Return the figures of several processes as those of one."""
    families: dict[str, Family] = {}
    values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
    for process in processes:
        for family in process:
            families.setdefault(family.name, family)
            known = values.setdefault(family.name, {})
            for sample in family.samples:
                key = sample.name, sample.labels
                known[key] = _together(family, sample, known.get(key))
    added = {
        name: Family(name, family.kind, family.help, tuple(Sample(*key, value) for key, value in values[name].items()))
        for name, family in families.items()
    }
    return tuple((added | _drifts(added)).values())


def _drifts(families: Mapping[str, Family]) -> dict[str, Family]:
    """Return how far the scores of all processes together are from what they are held against."""
    today, reference = (
        histograms((dict(sample.labels), sample.value) for sample in families[name].samples) if name in families else {}
        for name in ("checkstream_score_day", "checkstream_score_reference")
    )
    reckoned = {metric.name: family_of(metric) for metric in of_drifts(drifts(reference, today))}
    return {name: family for name, family in reckoned.items() if name in families}


def _together(family: Family, sample: Sample, before: float | None) -> float:
    if before is None:
        return sample.value
    if sample.name.endswith("_created"):  # since when it is counted
        return min(before, sample.value)
    return max(before, sample.value) if family.name in _COMMON else before + sample.value


class _Told(Collector):
    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        for family in self._figures:
            metric = Metric(family.name, family.help, family.kind)
            for sample in family.samples:
                metric.add_sample(sample.name, dict(sample.labels), sample.value)
            yield metric


def rendered(figures: Figures) -> bytes:
    """Return figures in the Prometheus text format, as `Metrics.render` does."""
    registry = CollectorRegistry()
    registry.register(_Told(figures))
    return generate_latest(registry)
