"""Tells a collector of OpenTelemetry what spans there were and what metrics stand at, by OTLP over HTTP.

A thread of its own sends. What it is given waits in a bounded queue; what finds no room there, or can't be delivered in
time, is dropped and counted. So whatever the collector does, no exchange waits for it.
"""

from __future__ import annotations

import collections
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import ParamSpec

import msgspec

from checkstream.errors import ConfigError, Fault
from checkstream.telemetry.metrics import Metrics
from checkstream.telemetry.totals import Figures
from checkstream.telemetry.traces import Span

_Given = ParamSpec("_Given")
_MOST_SPANS = 2048
"""That wait."""
_BATCH = 256
_SOON_S = 2.0
"""How long the first span of a batch waits for others."""
_TIMEOUT_S = 5.0
"""Of one delivery, with all its tries."""


class OtlpTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Where a collector is, and who tells it."""

    endpoint: str
    """Root of its addresses, such as `http://127.0.0.1:4318`."""
    headers: Mapping[str, str]
    resource: Mapping[str, str]
    """Attributes of this process."""


class Otlp:
    """Sends what it is given. `put`, `put_metrics` and `close` are for the loop's thread."""

    def __init__(self, target: OtlpTarget, metrics: Metrics, told: Callable[[bool], None]) -> None:
        """Start the thread.

        Args:
            target: Where the collector is.
            metrics: Count what became of spans and metrics.
            told: Hears, on the thread, when the collector is away and when it is back.

        Raises:
            ConfigError: what sends is not installed.
        """
        try:
            from checkstream.telemetry import otlp_wire  # noqa: PLC0415 - by extra, and not for those who don't send
        except ImportError as error:
            reason, advice = "`telemetry.otlp` needs OpenTelemetry's SDK", "`pip install 'checkstream[otel]'`"
            raise ConfigError((Fault(file="telemetry", reason=reason, advice=advice),)) from error
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # each try would be a line: `told` says it once
        self._wire = otlp_wire.Wire(target.endpoint, target.headers, target.resource, timeout_s=_TIMEOUT_S)
        self._counted = {
            (signal, outcome): metrics.otlp.of(signal, outcome)
            for signal in ("traces", "metrics")
            for outcome in ("sent", "dropped", "failed")
        }
        self._told = told
        self._spans: collections.deque[Span] = collections.deque()
        self._latest: collections.deque[tuple[Figures, int]] = collections.deque()
        """What metrics stood at, and when; one at the most."""
        self._news, self._end = threading.Event(), threading.Event()
        self._away = False
        self._thread = threading.Thread(target=self._work, name="otlp", daemon=True)
        self._thread.start()

    def put(self, span: Span) -> None:
        """Have a span sent, if there is room."""
        if len(self._spans) >= _MOST_SPANS:
            self._counted["traces", "dropped"].inc()
            return
        self._spans.append(span)
        self._news.set()

    def put_metrics(self, figures: Figures) -> None:
        """Have metrics sent; those that still wait are out of date."""
        if self._latest:
            self._latest.clear()
            self._counted["metrics", "dropped"].inc()
        self._latest.append((figures, time.time_ns()))
        self._news.set()

    def close(self, timeout_s: float = 3.0) -> None:
        """Send what waits, for so long at most. Blocks."""
        self._end.set()
        self._news.set()
        self._thread.join(timeout_s)
        self._wire.close()

    # --- the thread

    def _work(self) -> None:
        while not self._end.is_set():
            self._news.wait()
            if len(self._spans) < _BATCH:
                self._end.wait(_SOON_S)
            self._news.clear()
            self._send_all()

    def _send_all(self) -> None:
        while self._spans:
            batch = [self._spans.popleft() for _ in range(min(_BATCH, len(self._spans)))]
            self._sent("traces", self._tried(self._wire.send_spans, batch), len(batch))
        while self._latest:
            self._sent("metrics", self._tried(self._wire.send_metrics, *self._latest.popleft()), 1)

    def _tried(self, send: Callable[_Given, bool], *given: _Given.args, **more: _Given.kwargs) -> bool:
        try:
            return send(*given, **more)
        except Exception:  # noqa: BLE001 - whatever the collector answers, the next batch is tried
            return False

    def _sent(self, signal: str, well: bool, count: int) -> None:
        self._counted[signal, "sent" if well else "failed"].inc(count)
        if well == self._away:
            self._away = not well
            self._told(self._away)
