"""What a control server tells Prometheus: what it has counted itself, and what its store has. Pure, but it counts.

The table is the documentation, as that of a proxy is (`telemetry.metrics`): the guide repeats it, and a test compares
the two. Figures of the store are read when they are asked for, so several servers of one store tell the same.
INVARIANT: label values come from closed sets and from `control.yaml`, but for rules, of which only so many are told.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from checkstream.control.review.precision import Precision
from checkstream.control.server.showing import NodeShown
from checkstream.telemetry.metrics import SPECS as OF_PROXIES
from checkstream.telemetry.metrics import Family, MetricSpec
from checkstream.telemetry.tallies import MAX_SERIES

NODE_STATES = ("well", "astray", "refused", "stale", "unheard")
STAGES = ("none", "proposed", "running", "done", "rolled_back")
CHAIN_STATES = ("whole", "silent", "broken")
OUTCOMES = ("all", "refused", "stopped", "failed")
_TURNS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 30.0)
_ALSO = ("checkstream_api_seconds", "checkstream_tls_ends_seconds", "checkstream_tls_reloads_total")
_API, _ENDS, _RELOADS = (next(spec for spec in OF_PROXIES if spec.name == name) for name in _ALSO)
_OF_REVIEWS = ("rule_id", "week")

SPECS = (
    MetricSpec("checkstream_control_nodes", "gauge", "Nodes by how they stand", ("fleet", "state")),
    MetricSpec("checkstream_control_rollouts", "gauge", "1: where the newest rollout stands", ("fleet", "stage")),
    MetricSpec("checkstream_control_exchanges", "gauge", "Exchanges of nodes in the last hour", ("fleet", "outcome")),
    MetricSpec("checkstream_control_records_total", "counter", "Records of audit chains that have arrived"),
    MetricSpec("checkstream_control_records_missing", "gauge", "Records of audit chains that don't come"),
    MetricSpec("checkstream_control_waiting_bytes", "gauge", "Bytes of audit logs that nodes have still to send"),
    MetricSpec("checkstream_control_chains", "gauge", "Audit chains by how they stand", ("state",)),
    MetricSpec("checkstream_control_chain_faults", "gauge", "Faults of audit chains that are known"),
    MetricSpec("checkstream_control_troubles", "gauge", "Alerts that stand", ("severity",)),
    MetricSpec("checkstream_control_notices", "gauge", "Notices of alerts that are still to arrive", ("state",)),
    MetricSpec("checkstream_control_reviews_waiting", "gauge", "Findings that wait for people's words"),
    MetricSpec("checkstream_control_review_precision", "gauge", "Share of findings that was right", _OF_REVIEWS),
    MetricSpec("checkstream_control_reviewed", "gauge", "Findings that were reviewed", _OF_REVIEWS),
    MetricSpec("checkstream_control_store_up", "gauge", "1: the store answers; 0: what it has is not told"),
    MetricSpec("checkstream_control_store_seconds", "histogram", "Time of a transaction", (), _TURNS),
    _API,
    _ENDS,
    _RELOADS,
)


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What the store has, as metrics tell it."""

    nodes: Mapping[str, Sequence[NodeShown]]
    """Of each fleet."""
    stages: Mapping[str, str]
    """Fleet -> stage of its newest rollout; empty: there was none."""
    exchanges: Mapping[str, Sequence[int]]
    """Fleet -> how many there were in the last hour, in the order of `OUTCOMES`."""
    records: int
    missing: int
    waiting_bytes: int
    chains: Mapping[str, int]
    """State -> how many."""
    faults: int
    troubles: Mapping[str, int]
    """Severity -> how many."""
    notices: Mapping[str, int]
    """`waiting`: for their first try; `failing`: that have failed."""
    reviews_waiting: int
    precision: Sequence[Precision]
    """Of each rule in the last whole week, and in the week before."""
    week: int
    """The last whole week, as `Precision.week` counts them."""


def families(standing: Standing) -> Iterator[Metric]:
    """Yield what the store has as metrics of the table."""
    nodes: dict[tuple[str, ...], float] = {
        (fleet, state): count
        for fleet, shown in standing.nodes.items()
        for state, count in _counted(NODE_STATES, map(state_of, shown))
    }
    yield _gauge("checkstream_control_nodes", nodes)
    yield _gauge(
        "checkstream_control_rollouts",
        {(fleet, each): each == (stage or "none") for fleet, stage in standing.stages.items() for each in STAGES},
    )
    yield _gauge(
        "checkstream_control_exchanges",
        {
            (fleet, outcome): count
            for fleet, counts in standing.exchanges.items()
            for outcome, count in zip(OUTCOMES, counts, strict=True)
        },
    )
    spec = _spec("checkstream_control_records_total")
    yield CounterMetricFamily(spec.name, spec.help, value=standing.records)
    yield _gauge("checkstream_control_records_missing", {(): standing.missing})
    yield _gauge("checkstream_control_waiting_bytes", {(): standing.waiting_bytes})
    yield _gauge("checkstream_control_chains", {(state,): standing.chains.get(state, 0) for state in CHAIN_STATES})
    yield _gauge("checkstream_control_chain_faults", {(): standing.faults})
    yield _gauge("checkstream_control_troubles", {(of,): standing.troubles.get(of, 0) for of in ("page", "ticket")})
    yield _gauge("checkstream_control_notices", {(of,): standing.notices.get(of, 0) for of in ("waiting", "failing")})
    yield _gauge("checkstream_control_reviews_waiting", {(): standing.reviews_waiting})
    weeks = {standing.week: "last", standing.week - 1: "before"}
    said = [each for each in standing.precision if each.week in weeks][:MAX_SERIES]
    yield _gauge("checkstream_control_review_precision", {(each.rule, weeks[each.week]): each.value for each in said})
    yield _gauge("checkstream_control_reviewed", {(each.rule, weeks[each.week]): each.reviewed for each in said})


def state_of(node: NodeShown) -> str:
    """Return the worst that is to be said of a node."""
    if node.heard_s is None:
        return "unheard"
    if node.stale:
        return "stale"
    if node.refused:
        return "refused"
    return "astray" if node.drifted else "well"


def _counted(states: Sequence[str], found: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield how many there are of each state, of none as well: what vanishes would be no 0."""
    counts = collections.Counter(found)
    return ((state, counts[state]) for state in states)


def _gauge(name: str, values: Mapping[tuple[str, ...], float]) -> Metric:
    spec = _spec(name)
    family = GaugeMetricFamily(spec.name, spec.help, labels=spec.labels)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


def _spec(name: str) -> MetricSpec:
    return next(spec for spec in SPECS if spec.name == name)


class ControlMetrics:
    """The metrics of one control server."""

    def __init__(self) -> None:
        """Count nothing yet."""
        self._registry = CollectorRegistry()
        store = _spec("checkstream_control_store_seconds")
        self.store = Histogram(store.name, store.help, buckets=store.buckets, registry=self._registry)
        api = Histogram(_API.name, _API.help, _API.labels, buckets=_API.buckets, registry=self._registry)
        self.api = Family(api, len(_API.labels))
        ends = Gauge(_ENDS.name, _ENDS.help, _ENDS.labels, registry=self._registry)
        self.tls_ends = Family(ends, len(_ENDS.labels))
        reloads = Counter(_RELOADS.name, _RELOADS.help, _RELOADS.labels, registry=self._registry)
        self.tls_reloads = Family(reloads, len(_RELOADS.labels))

    def render(self, standing: Standing | None) -> bytes:
        """Return all metrics in the Prometheus text format; None: the store can't be read. Not for the event loop."""
        told = CollectorRegistry()
        told.register(_Told(standing))
        return generate_latest(told) + generate_latest(self._registry)


class _Told(Collector):
    """What the store had when it was asked."""

    def __init__(self, standing: Standing | None) -> None:
        self._standing = standing

    def collect(self) -> Iterator[Metric]:
        """Yield it."""
        yield _gauge("checkstream_control_store_up", {(): self._standing is not None})
        if self._standing is not None:
            yield from families(self._standing)
