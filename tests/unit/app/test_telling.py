"""A proxy and a collector of OpenTelemetry that decodes what it is sent, as its protocol says."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from blockbuster import blockbuster_ctx
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from checkstream.app import App
from checkstream.config import load_config
from checkstream.demo.llm import ScriptedLlm
from checkstream.demo.scenario import read_scenario

POLICY = """
pack: {name: t, version: 1.0.0}
policies: [{name: r, id: R-1, stage: [midstream], entities: [EMAIL], actions: [{type: redact}]}]
"""
SCENARIOS = {
    "mail": read_scenario("mail", b'choices: [{content: "write to joe@example.com now"}]'),
    "calm": read_scenario("calm", b'choices: [{content: "nothing to see here"}]'),
    "gone": read_scenario("gone", b"error: {status: 503, message: busy}"),
}
SPANS: Any = ExportTraceServiceRequest
METRICS: Any = ExportMetricsServiceRequest
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collector:
    """Takes what comes at the two addresses; answers with `status`."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.resources: list[dict[str, str]] = []
        self.metrics: list[Any] = []
        self.headers: list[str] = []
        self.status = 200
        self.came = asyncio.Event()

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        if request.headers.get("content-encoding") == "gzip" and body[:2] == b"\x1f\x8b":
            body = gzip.decompress(body)
        self.headers.append(request.headers.get("x-token", ""))
        if self.status == 200 and request.path == "/v1/traces":
            for of in SPANS.FromString(body).resource_spans:
                self.resources.append({each.key: each.value.string_value for each in of.resource.attributes})
                self.spans += [span for scope in of.scope_spans for span in scope.spans]
        elif self.status == 200 and request.path == "/v1/metrics":
            for measured in METRICS.FromString(body).resource_metrics:
                self.metrics += [metric for scope in measured.scope_metrics for metric in scope.metrics]
        self.came.set()
        return web.Response(status=self.status)

    async def until(self, what: Any) -> None:
        async with asyncio.timeout(30):
            while not what():
                self.came.clear()
                await self.came.wait()


@asynccontextmanager
async def rig(
    folder: Path, **settings: Any
) -> AsyncIterator[tuple[App, Collector, ScriptedLlm, aiohttp.ClientSession]]:
    collector = Collector()
    runner = web.AppRunner(serving := web.Application())
    serving.router.add_post("/{path:.*}", collector.answer)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    (folder / "policy.yaml").write_text(POLICY)
    file = folder / "checkstream.yaml"
    async with ScriptedLlm(SCENARIOS) as llm, aiohttp.ClientSession() as session:
        told = {
            "server": {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "drain_ms": 1000},
            "upstreams": {"llm": {"url": llm.url}},
            "routes": [
                {"name": "c", "match": {"path": "/v1/chat/completions"}, "upstream": "llm", "policies": ["policy.yaml"]}
            ],
            "telemetry": {"otlp": {"endpoint": f"http://{host}:{port}", "sample": 1, "metrics_s": 1, **settings}},
        }
        file.write_text(json.dumps(told))
        async with App(lambda: load_config(file), config_file=file) as app:
            yield app, collector, llm, session
    await runner.cleanup()


async def ask(session: aiohttp.ClientSession, app: App, model: str, **headers: str) -> None:
    asked = {"model": model, "stream": True, "messages": [{"role": "user", "content": "my secret question"}]}
    url = f"http://{app.listener.address}/v1/chat/completions"
    async with session.post(url, json=asked, headers=headers) as response:
        await response.read()


def attributes(of: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in of.attributes}


async def test_a_span_for_each_exchange_and_its_verdicts_are_told_and_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTLP_TOKEN", "k1")
    async with rig(tmp_path, headers={"x-token": {"env": "OTLP_TOKEN"}}) as (app, collector, llm, session):
        with blockbuster_ctx("checkstream"):
            await ask(session, app, "calm", traceparent=f"00-{TRACE}-{PARENT}-01", tracestate="a=b")
            await ask(session, app, "mail")
            await ask(session, app, "gone")
            await collector.until(lambda: len(collector.spans) == 3)
        calm, mail, gone = sorted(collector.spans, key=lambda span: span.start_time_unix_nano)
        sent = [dict(received.headers) for received in llm.requests]
    assert calm.trace_id.hex() == TRACE
    assert calm.parent_span_id.hex() == PARENT
    assert mail.parent_span_id == b""
    assert (calm.name, mail.name, gone.name) == ("chat calm", "chat", "chat")
    assert calm.kind == calm.SPAN_KIND_SERVER
    said = attributes(calm)
    for name, value in {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "calm",
        "http.response.status_code": 200,
        "checkstream.route": "c",
        "checkstream.action": "allow",
        "checkstream.outcome": "complete",
    }.items():
        assert said[name] == value
    (event,) = mail.events
    assert event.name == "checkstream.verdict"
    assert attributes(event)["checkstream.rule_id"] == "R-1"
    assert mail.start_time_unix_nano < event.time_unix_nano < mail.end_time_unix_nano
    assert attributes(gone)["error.type"] == "upstream_failed"
    assert gone.status.code == gone.status.STATUS_CODE_ERROR
    assert all(resource["service.name"] == "checkstream" for resource in collector.resources)
    assert set(collector.headers) == {"k1"}
    for text in ("secret", "joe@", "write to", "nothing to see"):
        assert text not in str(collector.spans)
    by_name = [{name.lower(): value for name, value in headers.items()} for headers in sent]
    assert [headers["traceparent"] for headers in by_name] == [
        f"00-{span.trace_id.hex()}-{span.span_id.hex()}-01" for span in (calm, mail, gone)
    ]
    assert by_name[0]["tracestate"] == "a=b"


async def test_metrics_are_told_too_under_the_names_of_the_conventions_where_there_are_some(tmp_path: Path) -> None:
    async with rig(tmp_path, sample=0) as (app, collector, _, session):
        await ask(session, app, "calm")
        await collector.until(lambda: any(metric.name.startswith("gen_ai") for metric in collector.metrics))
        found = {metric.name: metric for metric in collector.metrics}
    (point,) = found["gen_ai.server.time_to_first_token"].histogram.data_points
    assert attributes(point) == {"gen_ai.request.model": "calm", "route": "c"}
    assert point.count == sum(point.bucket_counts) == 1
    assert len(point.explicit_bounds) == len(point.bucket_counts) - 1
    assert not point.HasField("min")
    requests = found["checkstream_requests"].sum
    assert requests.is_monotonic
    assert requests.data_points[0].as_double == 1
    assert found["checkstream_workers"].gauge.data_points[0].as_double == 1
    assert not collector.spans


async def test_a_collector_that_is_away_costs_no_answer_and_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with rig(tmp_path, metrics_s=0) as (app, collector, _, session):
        collector.status = 400  # which is not tried again
        await ask(session, app, "calm")
        await collector.until(lambda: collector.headers)
        collector.status = 200
        await ask(session, app, "calm")
        await collector.until(lambda: collector.spans)
        async with session.get(f"http://{app.admin.address}/metrics") as response:
            metrics = await response.text()
    assert 'checkstream_otlp_total{outcome="failed",signal="traces"} 1.0' in metrics
    assert len(collector.spans) == 1
    events = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    assert [event for event in events if event.startswith("otlp.")] == ["otlp.away", "otlp.back"]


async def test_what_was_not_sampled_is_passed_on_as_such(tmp_path: Path) -> None:
    async with rig(tmp_path, sample=0, metrics_s=0) as (app, collector, llm, session):
        await ask(session, app, "calm")
        await ask(session, app, "calm", traceparent=f"00-{TRACE}-{PARENT}-00")
        own, passed = ({n.lower(): v for n, v in dict(r.headers).items()}["traceparent"] for r in llm.requests)
    assert own.endswith("-00")
    assert passed.startswith(f"00-{TRACE}-")
    assert passed.endswith("-00")
    assert not collector.spans
