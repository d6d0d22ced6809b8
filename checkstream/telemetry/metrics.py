"""Every metric of the process, in one table, in a registry of its own.

The table is the documentation: `checkstream/telemetry/README.md` repeats it and a test compares the two.
Children of labelled metrics are bound once and kept, since looking one up costs more than counting.
INVARIANT: label values come from closed sets (rule ids, detectors, stages), never from callers' text, so the
number of series is bounded by the policies in force.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, Literal, TypeVar, cast

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from checkstream.telemetry.drift import BOUNDS, Counts, Drift, Key, cumulated, drifts
from checkstream.telemetry.models import ModelNames
from checkstream.telemetry.scores import Scores
from checkstream.telemetry.tallies import MAX_SERIES, Tallies

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""What `Metrics.render` returns, as HTTP names it."""

_FIRST = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
_SPEEDS = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 80.0, 100.0, 150.0, 200.0, 300.0, 500.0, 1000.0)
_DECISIONS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
_WAITS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_CALLS = (0.0025, 0.01, 0.025, 0.1, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0)
_CHECKS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25)
_TOKEN_GAPS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_FAST = (0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01)
_RISKS = (0.0, 15.0, 34.0, 50.0, 69.0, 80.0, 90.0, 100.0)
"""The bands LOW, MEDIUM and HIGH end at 34, 69 and 100."""
_CAUSES = ("crash", "hang", "start")
_RELOADS = ("accepted", "refused")
_LOOKS = ("same", "accepted", "refused", "unreachable", "failed")
_LOST = ("dead", "evicted", "store_failed", "dropped_buffer", "dropped_store", "dropped_invalid")
_OF_SCORES = ("classifier", "stage")
_OF_VERDICTS = ("action", "rule_id", "stage", "mode", "policy")
_OF_ACTIONS = ("route", "model", "action")
_OF_MODELS = ("route", "model")
_OF_ANSWERS = ("route", "profile")
_OF_SIGNALS = ("signal", "outcome")
_OF_TOKENS = ("route", "model", "direction")


class MetricSpec(msgspec.Struct, frozen=True):
    """One line of the table."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    begins: tuple[str, ...] = ()
    """Values of its one label that are told from the start: to whom a first count is news, 0 must have been told."""
    common: bool = False
    """Of a gauge: all processes that share a port tell of the same thing, so the highest counts and not the sum."""


SPECS = (
    MetricSpec("checkstream_requests_total", "counter", "Requests answered, by what callers got", ("route", "status")),
    MetricSpec("checkstream_streams", "gauge", "Exchanges running now"),
    MetricSpec("checkstream_verdicts_total", "counter", "Rules that fired", _OF_VERDICTS),
    MetricSpec("checkstream_exchanges_total", "counter", "How guarded exchanges ended", ("route", "outcome")),
    MetricSpec("checkstream_actions_total", "counter", "The strictest that was done to an exchange", _OF_ACTIONS),
    MetricSpec("checkstream_messages_total", "counter", "Messages to servers of tools", ("route", "method", "outcome")),
    MetricSpec("checkstream_ttft_seconds", "histogram", "Time to a stream's first text", _OF_MODELS, _FIRST),
    MetricSpec("checkstream_added_ttft_seconds", "histogram", "Time added before the first token", ("route",), _WAITS),
    MetricSpec("checkstream_stream_tokens_per_second", "histogram", "Speed of streamed answers", _OF_MODELS, _SPEEDS),
    MetricSpec("checkstream_hold_seconds", "histogram", "Time that released text was held", ("route",), _WAITS),
    MetricSpec("checkstream_inter_token_seconds", "histogram", "Time between two writes", ("route",), _TOKEN_GAPS),
    MetricSpec("checkstream_decision_seconds", "histogram", "Time to decide a text", ("route", "stage"), _DECISIONS),
    MetricSpec("checkstream_cutoff_seconds", "histogram", "Time until a stream was cut off", ("route",), _WAITS),
    MetricSpec("checkstream_check_seconds", "histogram", "Time of one check by a detector", ("detector",), _CHECKS),
    MetricSpec("checkstream_ingress_seconds", "histogram", "Time that a prompt's checks took", ("route",), _WAITS),
    MetricSpec("checkstream_policy_seconds", "histogram", "Time of the guard for an exchange", ("route",), _FAST),
    MetricSpec("checkstream_candidate_exchanges_total", "counter", "Exchanges that a candidate decided", ("outcome",)),
    MetricSpec("checkstream_candidate_policy_seconds", "histogram", "Time of the guard for one of those", (), _FAST),
    MetricSpec("checkstream_candidate_score", "histogram", "Scores of classifiers for them", _OF_SCORES, BOUNDS),
    MetricSpec("checkstream_score", "histogram", "Scores of classifiers, 0 to 1", _OF_SCORES, BOUNDS),
    MetricSpec("checkstream_score_day", "gauge", "Scores of 24 hours, up to `le`", (*_OF_SCORES, "le")),
    MetricSpec(
        "checkstream_score_reference",
        "gauge",
        "Scores of calm texts, up to `le`, that the day is held against",
        (*_OF_SCORES, "le"),
        common=True,
    ),
    MetricSpec("checkstream_drift_psi", "gauge", "Population stability index of the day's scores", _OF_SCORES),
    MetricSpec("checkstream_drift_ks", "gauge", "Widest gap between the day's scores and the reference", _OF_SCORES),
    MetricSpec("checkstream_held_bytes", "gauge", "Bytes received and not yet sent, all streams"),
    MetricSpec("checkstream_capacity", "gauge", "What there may be at once of `streams` and `held_bytes`", ("of",)),
    MetricSpec("checkstream_degraded_total", "counter", "Checks that ran less, later or not at all", ("reason",)),
    MetricSpec("checkstream_unscanned_total", "counter", "Exchanges of which something was not read", ("stage",)),
    MetricSpec("checkstream_pseudonyms_total", "counter", "Placeholders: given, put back, not known", ("what",)),
    MetricSpec("checkstream_upstream_errors_total", "counter", "Failures of upstreams", ("route", "kind")),
    MetricSpec("checkstream_upstream_responses_total", "counter", "Answers of upstreams", ("route", "status")),
    MetricSpec("checkstream_audit_entries_total", "counter", "Entries appended to the audit chain"),
    MetricSpec("checkstream_audit_failed", "gauge", "Processes whose audit chain can't be written"),
    MetricSpec("checkstream_recordings_total", "counter", "Exchanges of the recorded sample", ("outcome",)),
    MetricSpec("checkstream_jobs", "gauge", "Background jobs by where they are", ("state",)),
    MetricSpec("checkstream_job_events_total", "counter", "What became of background jobs", ("event",), begins=_LOST),
    MetricSpec("checkstream_grounding_risk", "histogram", "Risk of scored answers, 0 to 100", _OF_ANSWERS, _RISKS),
    MetricSpec("checkstream_grounding_high_total", "counter", "Answers of a high risk", _OF_ANSWERS),
    MetricSpec("checkstream_rescored_total", "counter", "Released answers judged again", ("route", "result")),
    MetricSpec(
        "checkstream_rescored_cutoff_seconds", "histogram", "From what had left to the cut-off", ("route",), _WAITS
    ),
    MetricSpec("checkstream_api_seconds", "histogram", "Time to answer at the API", ("path", "status"), _CALLS),
    MetricSpec("checkstream_conversations", "gauge", "Conversations of which something is known", common=True),
    MetricSpec("checkstream_conversation_alarms_total", "counter", "Requests whose conversation added up", ("route",)),
    MetricSpec("checkstream_conversation_verdicts_total", "counter", "Rules fired for a conversation", ("rule_id",)),
    MetricSpec("checkstream_texts_again_total", "counter", "Texts of prompts, had they come before", ("known",)),
    MetricSpec("checkstream_workers", "gauge", "Processes that serve callers"),
    MetricSpec("checkstream_worker_exits_total", "counter", "Processes that ended unasked", ("cause",), begins=_CAUSES),
    MetricSpec("checkstream_route_policies", "gauge", "1: in force on a route", ("route", "policy"), common=True),
    MetricSpec("checkstream_reloads_total", "counter", "Loads of configuration", ("outcome",), begins=_RELOADS),
    MetricSpec("checkstream_bundle_looks_total", "counter", "Looks for a newer bundle", ("outcome",), begins=_LOOKS),
    MetricSpec("checkstream_telemetry_attempts_total", "counter", "Deliveries to the control server", ("outcome",)),
    MetricSpec("checkstream_telemetry_records_total", "counter", "Records for the control server", ("outcome",)),
    MetricSpec("checkstream_telemetry_waiting_bytes", "gauge", "Bytes of the audit log that wait to be sent"),
    MetricSpec("checkstream_evidence_total", "counter", "Evidence of exchanges, sealed and sent", ("outcome",)),
    MetricSpec("checkstream_fleet_machines", "gauge", "Machines that count as one; 0: none are known"),
    MetricSpec("checkstream_tls_ends_seconds", "gauge", "When a certificate ends, Unix time", ("face",), common=True),
    MetricSpec("checkstream_tls_reloads_total", "counter", "Changes of certificates", ("face", "outcome")),
    MetricSpec("checkstream_otlp_total", "counter", "Spans, and tellings of metrics, for a collector", _OF_SIGNALS),
    MetricSpec("checkstream_tokens_total", "counter", "Tokens seen (prompt: in, answer: out)", _OF_TOKENS),
)


_Child = TypeVar("_Child", bound=MetricWrapperBase)
_Collector = TypeVar("_Collector", bound=Collector)


class Family(Generic[_Child]):
    """A labelled metric whose children are bound when first used."""

    def __init__(self, metric: _Child, labels: int) -> None:
        """Wrap a metric with so many labels."""
        self._metric = metric
        self._labels = labels
        self._children: dict[tuple[str, ...], _Child] = {}

    def of(self, *values: str) -> _Child:
        """Return the child for these label values, in the order of the table.

        Raises:
            ValueError: not as many values as labels: a bug of the caller.
        """
        child = self._children.get(values)
        if child is None:
            if len(values) != self._labels:
                raise ValueError(f"{len(values)} label values for {self._labels} labels")
            if len(self._children) >= MAX_SERIES:
                return self._metric.labels(*("other",) * self._labels)
            child = self._children[values] = self._metric.labels(*values)
        return child

    def collect(self) -> Iterable[Metric]:
        """Return what all children have counted."""
        return self._metric.collect()


class Scored(Collector):
    """The scores of one process, and how far they are from what they are held against."""

    def __init__(self, scores: Scores) -> None:
        """Tell of `scores`."""
        self._scores = scores

    def collect(self) -> Iterator[Metric]:
        """Yield what has been counted."""
        every = HistogramMetricFamily(*_head("checkstream_score"), labels=_OF_SCORES)
        for key, tally in self._scores.total.items():
            every.add_metric(key, cumulated(tally.counts), tally.sum)
        yield every
        today, reference = self._scores.today, self._scores.reference
        yield of_bins("checkstream_score_day", today)
        yield of_bins("checkstream_score_reference", reference)
        yield from of_drifts(drifts(reference, today))


def of_bins(name: str, histograms: Mapping[Key, Counts]) -> Metric:
    """Return histograms as a gauge of the table: they may fall."""
    family = GaugeMetricFamily(*_head(name), labels=(*_OF_SCORES, "le"))
    for key, counts in histograms.items():
        for end, count in cumulated(counts):
            family.add_metric((*key, end), count)
    return family


def of_drifts(drifts: Mapping[Key, Drift]) -> Iterator[Metric]:
    """Yield how far scores are from what they are held against, as gauges of the table."""
    for what in ("psi", "ks"):
        family = GaugeMetricFamily(*_head(f"checkstream_drift_{what}"), labels=_OF_SCORES)
        for key, drift in drifts.items():
            family.add_metric(key, getattr(drift, what))
        yield family


def _spec(name: str) -> MetricSpec:
    return next(spec for spec in SPECS if spec.name == name)


def _head(name: str) -> tuple[str, str]:
    spec = _spec(name)
    return spec.name, spec.help


class Metrics:
    """The metrics of one process. Plain attributes, so that the hot path counts without a look-up."""

    def __init__(self) -> None:  # noqa: PLR0915 - a table: one line for each metric
        """Create every metric of `SPECS` in a fresh registry."""
        self.registry = CollectorRegistry(auto_describe=True)
        self.models = ModelNames()
        self.requests = Family(self._make(Counter, "checkstream_requests_total"), 2)
        self.streams = self._make(Gauge, "checkstream_streams")
        self.verdicts = Family(self._make(Counter, "checkstream_verdicts_total"), 5)
        self.exchanges = Family(self._make(Counter, "checkstream_exchanges_total"), 2)
        self.actions = Family(self._make(Counter, "checkstream_actions_total"), 3)
        self.messages = Family(self._make(Counter, "checkstream_messages_total"), 3)
        self.ttft = self._tally("checkstream_ttft_seconds")
        self.added_ttft = self._tally("checkstream_added_ttft_seconds")
        self.speed = self._tally("checkstream_stream_tokens_per_second")
        self.hold = self._tally("checkstream_hold_seconds")
        self.inter_token = self._tally("checkstream_inter_token_seconds")
        self.decision = self._tally("checkstream_decision_seconds")
        self.cutoff = self._tally("checkstream_cutoff_seconds")
        self.check = Family(self._make(Histogram, "checkstream_check_seconds"), 1)
        self.ingress = self._tally("checkstream_ingress_seconds")
        self.policy = self._tally("checkstream_policy_seconds")
        self.candidate_exchanges = Family(self._make(Counter, "checkstream_candidate_exchanges_total"), 1)
        self.candidate_policy = self._tally("checkstream_candidate_policy_seconds")
        self.candidate_scores = self._tally("checkstream_candidate_score")
        self.scores = Scores()
        self._registered(Scored(self.scores))
        self.held_bytes = self._make(Gauge, "checkstream_held_bytes")
        self.capacity = Family(self._make(Gauge, "checkstream_capacity"), 1)
        self.degraded = Family(self._make(Counter, "checkstream_degraded_total"), 1)
        self.unscanned = Family(self._make(Counter, "checkstream_unscanned_total"), 1)
        self.pseudonyms = Family(self._make(Counter, "checkstream_pseudonyms_total"), 1)
        self.upstream_errors = Family(self._make(Counter, "checkstream_upstream_errors_total"), 2)
        self.upstream_responses = Family(self._make(Counter, "checkstream_upstream_responses_total"), 2)
        self.audit_entries = self._make(Counter, "checkstream_audit_entries_total")
        self.audit_failed = self._make(Gauge, "checkstream_audit_failed")
        self.recordings = Family(self._make(Counter, "checkstream_recordings_total"), 1)
        self.jobs = Family(self._make(Gauge, "checkstream_jobs"), 1)
        self.job_events = Family(self._make(Counter, "checkstream_job_events_total"), 1)
        self.grounding_risk = Family(self._make(Histogram, "checkstream_grounding_risk"), 2)
        self.grounding_high = Family(self._make(Counter, "checkstream_grounding_high_total"), 2)
        self.rescored = Family(self._make(Counter, "checkstream_rescored_total"), 2)
        self.rescored_cutoff = Family(self._make(Histogram, "checkstream_rescored_cutoff_seconds"), 1)
        self.api = Family(self._make(Histogram, "checkstream_api_seconds"), 2)
        self.conversations = self._make(Gauge, "checkstream_conversations")
        self.alarms = Family(self._make(Counter, "checkstream_conversation_alarms_total"), 1)
        self.added_up = Family(self._make(Counter, "checkstream_conversation_verdicts_total"), 1)
        self.texts_again = Family(self._make(Counter, "checkstream_texts_again_total"), 1)
        self.workers = self._make(Gauge, "checkstream_workers")
        self.worker_exits = Family(self._make(Counter, "checkstream_worker_exits_total"), 1)
        self.route_policies = self._make(Gauge, "checkstream_route_policies")
        self.reloads = Family(self._make(Counter, "checkstream_reloads_total"), 1)
        self.bundle_looks = Family(self._make(Counter, "checkstream_bundle_looks_total"), 1)
        self.telemetry_attempts = Family(self._make(Counter, "checkstream_telemetry_attempts_total"), 1)
        self.telemetry_records = Family(self._make(Counter, "checkstream_telemetry_records_total"), 1)
        self.telemetry_waiting = self._make(Gauge, "checkstream_telemetry_waiting_bytes")
        self.evidence = Family(self._make(Counter, "checkstream_evidence_total"), 1)
        self.fleet_machines = self._make(Gauge, "checkstream_fleet_machines")
        self.tls_ends = Family(self._make(Gauge, "checkstream_tls_ends_seconds"), 1)
        self.tls_reloads = Family(self._make(Counter, "checkstream_tls_reloads_total"), 2)
        self.otlp = Family(self._make(Counter, "checkstream_otlp_total"), 2)
        self.tokens = Family(self._make(Counter, "checkstream_tokens_total"), 3)

    def _make(self, kind: type[_Child], name: str) -> _Child:
        spec = _spec(name)
        if spec.buckets:
            histogram = Histogram(spec.name, spec.help, spec.labels, registry=self.registry, buckets=spec.buckets)
            return cast("_Child", histogram)
        metric = kind(spec.name, spec.help, spec.labels, registry=self.registry)
        for value in spec.begins:
            metric.labels(value)
        return metric

    def _tally(self, name: str) -> Tallies:
        spec = _spec(name)
        return self._registered(Tallies(spec.name, spec.help, spec.labels, spec.buckets))

    def _registered(self, collector: _Collector) -> _Collector:
        self.registry.register(collector)
        return collector

    def in_force(self, policies: Iterable[tuple[str, str]]) -> None:
        """Say which policies (`name@version`) routes have now: (route, policy) of each."""
        self.route_policies.clear()
        for route, policy in policies:
            self.route_policies.labels(route, policy).set(1)

    def judged(self) -> Iterator[Metric]:
        """Yield what rollouts are judged by besides scores: how exchanges ended, and what took how long."""
        yield from self.exchanges.collect()
        yield from self.check.collect()
        yield from self.policy.collect()
        yield from self.candidate_exchanges.collect()
        yield from self.candidate_policy.collect()
        yield from self.candidate_scores.collect()

    def render(self) -> bytes:
        """Return all metrics in the Prometheus text format. Takes long where there are many: not for the event loop."""
        return generate_latest(self.registry)
