"""What waits for a collector is bounded, and what becomes of it is counted."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from checkstream.errors import ConfigError
from checkstream.telemetry import otlp_wire
from checkstream.telemetry.metrics import Metrics
from checkstream.telemetry.otlp import _MOST_SPANS, Otlp, OtlpTarget
from checkstream.telemetry.totals import figures
from checkstream.telemetry.traces import Context, Span

TARGET = OtlpTarget(endpoint="http://127.0.0.1:9", headers={}, resource={"service.name": "test"})
SPAN = Span(context=Context("a" * 32, "b" * 16), name="chat", begun_ns=1, ended_ns=2, attributes={})


class Wire:
    """Delivers nothing until it is let go."""

    def __init__(self) -> None:
        self.go, self.begun = threading.Event(), threading.Event()
        self.spans = self.metrics = 0

    def send_spans(self, spans: Sequence[Span]) -> bool:
        self.begun.set()
        self.go.wait(30)
        self.spans += len(spans)
        return True

    def send_metrics(self, *_: object) -> bool:
        self.metrics += 1
        raise RuntimeError("the collector answers nonsense")

    def close(self) -> None:
        self.go.set()


def counts(metrics: Metrics) -> dict[str, float]:
    lines = (line for line in metrics.render().decode().splitlines() if line.startswith("checkstream_otlp_total{"))
    return {line.partition("{")[2].partition("}")[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_g22_what_finds_no_room_is_dropped_and_counted_and_nobody_waits() -> None:
    metrics, away, wire = Metrics(), list[bool](), Wire()
    otlp = Otlp(TARGET, metrics, away.append)
    otlp._wire = wire  # type: ignore[assignment]
    for _ in range(256):  # a batch: it is sent at once
        otlp.put(SPAN)
    assert wire.begun.wait(30)
    for _ in range(_MOST_SPANS + 500):
        otlp.put(SPAN)
    told = figures(metrics)
    for _ in range(3):
        otlp.put_metrics(told)
    wire.go.set()
    otlp.close(30)
    assert wire.spans == 256 + _MOST_SPANS
    assert wire.metrics == 1
    assert away == [True]
    assert counts(metrics) == {
        'outcome="sent",signal="traces"': 256 + _MOST_SPANS,
        'outcome="dropped",signal="traces"': 500,
        'outcome="failed",signal="traces"': 0,
        'outcome="sent",signal="metrics"': 0,
        'outcome="dropped",signal="metrics"': 2,
        'outcome="failed",signal="metrics"': 1,
    }


def test_a_collector_that_is_not_there_fails_and_ends_in_time() -> None:
    metrics, away = Metrics(), list[bool]()
    otlp = Otlp(TARGET, metrics, away.append)
    otlp.put(SPAN)
    otlp.close(30)
    assert away == [True]
    assert counts(metrics)['outcome="failed",signal="traces"'] == 1


@pytest.mark.parametrize(("status", "well"), [(200, True), (202, True), (301, False), (302, False), (304, False),
                                              (307, False), (308, False), (400, False)])  # fmt: skip
def test_only_what_a_collector_says_it_has_taken_counts_and_nobody_is_followed(status: int, well: bool) -> None:
    asked: list[tuple[str, str]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append((self.command, self.path))
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.send_header("location", "/elsewhere")
            self.send_header("content-length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            asked.append((self.command, self.path))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        wire = otlp_wire.Wire(f"http://127.0.0.1:{server.server_port}", {"authorization": "s"}, {}, timeout_s=5.0)
        assert wire.send_spans([SPAN]) is well
        assert wire.send_metrics(figures(Metrics()), 1) is well
        wire.close()
        server.shutdown()
    assert asked == [("POST", "/v1/traces"), ("POST", "/v1/metrics")]


def test_without_the_extra_the_configuration_is_refused_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "checkstream.telemetry.otlp_wire", None)
    monkeypatch.delattr("checkstream.telemetry.otlp_wire", raising=False)
    with pytest.raises(ConfigError, match=r"pip install 'checkstream\[otel\]'"):
        Otlp(TARGET, Metrics(), lambda _: None)


def test_who_tells_no_collector_loads_nothing_of_it() -> None:
    code = "import sys, checkstream.app.app; print([name for name in sys.modules if name.startswith('opentelemetry')])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
