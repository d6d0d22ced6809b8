"""Spans and metrics in the words of OpenTelemetry's SDK, and their delivery. The only importer of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import requests
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import export as sdk
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from checkstream.telemetry.totals import Family, Figures, Sample
from checkstream.telemetry.traces import Span

_SCOPE = InstrumentationScope("checkstream")
_NAMES: Mapping[str, tuple[str, str]] = {
    "checkstream_ttft_seconds": ("gen_ai.server.time_to_first_token", "s"),
}
"""Metrics for which there is a name in the GenAI conventions -> that name, and its unit."""
_LABELS = {"model": "gen_ai.request.model"}
_CUMULATIVE = sdk.AggregationTemporality.CUMULATIVE
_Labels = tuple[tuple[str, str], ...]


class Wire:
    """What sends. Blocks; belongs to one thread."""

    def __init__(
        self, endpoint: str, headers: Mapping[str, str], resource: Mapping[str, str], *, timeout_s: float
    ) -> None:
        """Connect at the first call.

        Args:
            endpoint: Root of the collector's addresses.
            headers: Sent along.
            resource: Attributes of this process.
            timeout_s: Of one delivery, with all its tries.
        """
        root, given = endpoint.rstrip("/"), dict(headers)
        self._spans = OTLPSpanExporter(
            f"{root}/v1/traces", headers=given, timeout=timeout_s, compression=Compression.Gzip, session=_session()
        )
        self._metrics = OTLPMetricExporter(
            f"{root}/v1/metrics", headers=given, timeout=timeout_s, compression=Compression.Gzip, session=_session()
        )
        self._timeout_ms = timeout_s * 1000
        self._resource = Resource(dict(resource))
        self._began_ns = time.time_ns()

    def send_spans(self, spans: Sequence[Span]) -> bool:
        """Deliver spans; tell whether they have arrived."""
        return self._spans.export([_span(span, self._resource) for span in spans]) is SpanExportResult.SUCCESS

    def send_metrics(self, figures: Figures, at_ns: int) -> bool:
        """Deliver what metrics stood at; tell whether that has arrived."""
        scope = sdk.ScopeMetrics(_SCOPE, list(metrics_of(figures, self._began_ns, at_ns)), "")
        data = sdk.MetricsData([sdk.ResourceMetrics(self._resource, [scope], "")])
        return self._metrics.export(data, self._timeout_ms) is sdk.MetricExportResult.SUCCESS

    def close(self) -> None:
        """Give up what is being sent."""
        self._spans.shutdown()  # type: ignore[no-untyped-call]
        self._metrics.shutdown()


def _session() -> requests.Session:
    """Return what follows no redirection: who is sent elsewhere is sent the headers, too, and asks there by GET."""
    session = requests.Session()
    session.hooks["response"].append(_refuse_redirection)
    return session


def _refuse_redirection(response: requests.Response, *_: object, **__: object) -> None:
    """Fail at an answer that is neither that it was taken nor why it was not: the exporters take it for the first.

    Raises:
        RequestException: it is a redirection.
    """
    if 300 <= response.status_code < 400:
        response.close()
        raise requests.RequestException(f"the collector answers {response.status_code}; give its own address")


def _span(span: Span, resource: Resource) -> ReadableSpan:
    context = span.context
    flags = TraceFlags(TraceFlags.SAMPLED)
    trace = int(context.trace, 16)
    parent = SpanContext(trace, int(context.parent, 16), is_remote=True, trace_flags=flags) if context.parent else None
    return ReadableSpan(
        span.name,
        context=SpanContext(trace, int(context.span, 16), is_remote=False, trace_flags=flags),
        parent=parent,
        resource=resource,
        attributes=dict(span.attributes),
        events=[Event(each.name, dict(each.attributes), each.at_ns) for each in span.events],
        kind=SpanKind.SERVER,
        status=Status(StatusCode.ERROR if span.failed else StatusCode.UNSET),
        start_time=span.begun_ns,
        end_time=span.ended_ns,
        instrumentation_scope=_SCOPE,
    )


def metrics_of(figures: Figures, began_ns: int, at_ns: int) -> Iterator[sdk.Metric]:
    """Return figures as OpenTelemetry has them: sums, gauges and histograms since a time."""
    for family in figures:
        name, unit = _NAMES.get(family.name, (family.name, ""))
        data = _data(family, began_ns, at_ns)
        if data is not None:
            yield sdk.Metric(name, family.help, unit, data)


def _data(family: Family, began_ns: int, at_ns: int) -> sdk.Sum | sdk.Gauge | sdk.Histogram | None:
    if family.kind == "histogram":
        made = list(_histograms(family, began_ns, at_ns))
        return sdk.Histogram(made, _CUMULATIVE) if made else None
    points = [
        sdk.NumberDataPoint(_attributes(sample.labels), began_ns, at_ns, sample.value)
        for sample in family.samples
        if not sample.name.endswith("_created")
    ]
    if not points:
        return None
    return sdk.Gauge(points) if family.kind == "gauge" else sdk.Sum(points, _CUMULATIVE, is_monotonic=True)


def _histograms(family: Family, began_ns: int, at_ns: int) -> Iterator[sdk.HistogramDataPoint]:
    buckets: dict[_Labels, list[tuple[float, float]]] = {}
    sums: dict[_Labels, float] = {}
    for sample in family.samples:
        if sample.name.endswith("_sum"):
            sums[sample.labels] = sample.value
        elif sample.name.endswith("_bucket"):
            labels = tuple(pair for pair in sample.labels if pair[0] != "le")
            buckets.setdefault(labels, []).append((_end_of(sample), sample.value))
    for labels, some in buckets.items():
        ends = sorted(some)
        counts = [int(more - less) for less, more in pairwise([0.0, *(count for _, count in ends)])]
        yield sdk.HistogramDataPoint(
            attributes=_attributes(labels),
            start_time_unix_nano=began_ns,
            time_unix_nano=at_ns,
            count=sum(counts),
            sum=sums.get(labels, 0.0),
            bucket_counts=counts,
            explicit_bounds=[end for end, _ in ends[:-1]],
            min=None,  # type: ignore[arg-type]  # nobody has kept the least and the most; the encoder leaves them out
            max=None,  # type: ignore[arg-type]
        )


def _end_of(sample: Sample) -> float:
    return float(dict(sample.labels)["le"])


def _attributes(labels: _Labels) -> dict[str, str]:
    return {_LABELS.get(name, name): value for name, value in labels}
