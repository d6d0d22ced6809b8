"""What a process that serves tells of its exchanges by route, model and policy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from checkstream.app import App
from checkstream.app.telling import Telling
from checkstream.config import OtlpSettings, load_config
from checkstream.demo.llm import ScriptedLlm
from checkstream.demo.scenario import Scenario, read_scenario
from checkstream.errors import PolicyError
from checkstream.telemetry.totals import Figures
from tests.watchdog import MOST_S, pace, watched_loop

POLICY = """
pack: {name: t, version: 1.0.0}
policies:
  - {name: r, id: R-1, stage: [midstream], entities: [EMAIL], actions: [{type: redact}]}
  - {name: s, id: S-1, stage: [midstream], phrases: [zero risk], actions: [{type: stop, message: Halt.}]}
  - {name: i, id: I-1, stage: [ingress], phrases: [do evil], actions: [{type: reject}]}
  - {name: j, id: J-1, stage: [ingress], classifiers: [{name: lexicon.injection, threshold: 0.99}],
     actions: [{type: reject}]}
"""
LONG = read_scenario("long", json.dumps({"choices": [{"content": "words and words " * 20}]}).encode())
MAIL = read_scenario("mail", b'choices: [{content: "write to joe@example.com now"}]')
GONE = read_scenario("gone", b"error: {status: 404, message: no such model}")
STOPS = read_scenario("stops", b'choices: [{content: "it has zero risk for you"}]')
Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]


def read(text: str) -> Samples:
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def app(folder: Path, llm: str, **telemetry: str) -> App:
    settings: dict[str, Any] = {
        "server": {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "drain_ms": 1000, "limits": {"streams": 7}},
        "upstreams": {"llm": {"url": llm}},
        "routes": [
            {"name": "c", "match": {"path": "/v1/chat/completions"}, "upstream": "llm", "policies": ["policy.yaml"]},
        ],
        "telemetry": telemetry,
    }
    (folder / "policy.yaml").write_text(POLICY)
    file = folder / "checkstream.yaml"
    file.write_text(json.dumps(settings))
    return App(lambda: load_config(file), config_file=file)


@asynccontextmanager
async def serving(
    folder: Path, *scenarios: Scenario, **telemetry: str
) -> AsyncIterator[tuple[App, aiohttp.ClientSession]]:
    known = {scenario.name: scenario for scenario in scenarios}
    async with (
        ScriptedLlm(known) as llm,
        app(folder, llm.url, **telemetry) as proxy,
        aiohttp.ClientSession() as session,
    ):
        yield proxy, session


async def ask(session: aiohttp.ClientSession, app: App, model: str, said: str = "hi", *, stream: bool = True) -> None:
    asked = {"model": model, "stream": stream, "messages": [{"role": "user", "content": said}]}
    async with session.post(f"http://{app.listener.address}/v1/chat/completions", json=asked) as response:
        await response.read()


async def told(session: aiohttp.ClientSession, app: App) -> Samples:
    async with session.get(f"http://{app.admin.address}/metrics") as response:
        return read(await response.text())


def of(model: str, **more: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({"route": "c", "model": model, **more}.items()))


async def test_exchanges_are_counted_by_route_model_and_action(tmp_path: Path) -> None:
    async with serving(tmp_path, LONG, MAIL, STOPS, GONE) as (proxy, session):
        await ask(session, proxy, "long")
        await ask(session, proxy, "long", stream=False)
        await ask(session, proxy, "mail")
        await ask(session, proxy, "stops")
        await ask(session, proxy, "long", "do evil")
        await ask(session, proxy, "sk-proj-abcdefgh", "do evil")
        await ask(session, proxy, "gone")
        found = await told(session, proxy)
    assert found["checkstream_actions_total"] == {
        of("long", action="allow"): 2,
        of("long", action="reject"): 1,
        of("other", action="redact"): 1,  # rules fired: that the upstream takes such a name says nothing of it
        of("other", action="stop"): 1,
        of("other", action="reject"): 1,
        of("other", action="allow"): 1,  # the upstream has refused it
    }
    assert found["checkstream_ttft_seconds_count"] == {of("long"): 1, of("other"): 2}
    assert found["checkstream_stream_tokens_per_second_count"] == {of("long"): 1}, "the others were too short"
    assert found["checkstream_tokens_total"][of("long", direction="out")] == 160
    assert "sk-proj" not in str(found)


async def test_what_is_timed_of_a_stream_is_told_by_route(tmp_path: Path) -> None:
    async with serving(tmp_path, LONG, STOPS) as (proxy, session):
        await ask(session, proxy, "long")
        await ask(session, proxy, "stops")
        found = await told(session, proxy)
    route = (("route", "c"),)
    for name, count in (("ingress", 2), ("added_ttft", 2), ("policy", 2), ("cutoff", 1)):
        assert found[f"checkstream_{name}_seconds_count"] == {route: count}, name
    assert found["checkstream_inter_token_seconds_count"][route] > 0
    asked = found["checkstream_decision_seconds_count"]
    assert asked == {(*route, ("stage", "ingress")): 2, (*route, ("stage", "midstream")): 0}
    assert found["checkstream_decision_seconds_sum"][*route, ("stage", "ingress")] > 0
    assert found["checkstream_verdicts_total"] == {
        (("action", "stop"), ("mode", "enforce"), ("policy", "t"), ("rule_id", "S-1"), ("stage", "midstream")): 1
    }


async def test_only_models_that_routes_name_are_told_apart_where_that_is_wanted(tmp_path: Path) -> None:
    async with serving(tmp_path, LONG, models="configured") as (proxy, session):
        await ask(session, proxy, "long")
        found = await told(session, proxy)
    assert found["checkstream_actions_total"] == {of("other", action="allow"): 1}


async def test_what_is_in_force_and_how_much_there_may_be_is_told(tmp_path: Path) -> None:
    async with serving(tmp_path, LONG) as (proxy, session):
        found = await told(session, proxy)
        assert found["checkstream_route_policies"] == {(("policy", "t@1.0.0"), ("route", "c")): 1}
        assert found["checkstream_capacity"] == {(("of", "streams"),): 7, (("of", "held_bytes"),): 268_435_456}
        assert found["checkstream_audit_failed"] == {(): 0}
        none = {(("outcome", "accepted"),): 0, (("outcome", "refused"),): 0}
        assert found["checkstream_reloads_total"] == none, "who counts from nothing on misses the first"
        (tmp_path / "policy.yaml").write_text(POLICY.replace("1.0.0", "2.0.0"))
        await proxy.reload()
        (tmp_path / "policy.yaml").write_text("pack: 3")
        with pytest.raises(PolicyError):
            await proxy.reload()
        found = await told(session, proxy)
    assert found["checkstream_route_policies"] == {(("policy", "t@2.0.0"), ("route", "c")): 1}
    assert found["checkstream_reloads_total"] == {(("outcome", "accepted"),): 1, (("outcome", "refused"),): 1}


class Kept:
    """Takes what a collector would be told."""

    def __init__(self) -> None:
        self.figures: list[Figures] = []

    def put(self, _: object) -> None:
        raise AssertionError("no exchange has run")

    def put_metrics(self, figures: Figures) -> None:
        self.figures.append(figures)


async def test_g33_whoever_is_told_what_was_counted_of_many_routes_and_models_the_loop_goes_on(tmp_path: Path) -> None:
    async with serving(tmp_path, LONG) as (proxy, _):
        metrics = proxy._parts.metrics
        for route in range(20):
            for model in range(20):
                metrics.ttft.of(f"r{route}", f"m{model}").observe(0.2)
        for route in range(200):
            metrics.policy.of(f"r{route}").observe(0.001)
        metrics.scores.count({f"own.label{number}": 0.3 for number in range(100)}, "midstream")
        kept = Kept()
        telling = Telling(OtlpSettings(endpoint="http://127.0.0.1:9"), kept, metrics)  # type: ignore[arg-type]
        slow: dict[str, float] = {}
        ways: dict[str, Callable[[], Coroutine[Any, Any, object]]]
        ways = {
            "scrape": proxy.metrics,
            "parent": proxy.figures,
            "collector": lambda: telling._tell_once(lambda: None),
            "agent": proxy._told_of_itself,
        }
        for way, tell in ways.items():
            taken: list[float] = []
            while len(taken) < 4 and min(taken, default=1.0) > MOST_S:
                with watched_loop() as steps:
                    await asyncio.create_task(tell())
                taken.append(max(steps) / pace())
            slow[way] = min(taken)
        assert b'checkstream_ttft_seconds_count{model="m7",route="r7"} 1.0' in await proxy.metrics()
    assert {way: round(1000 * each, 1) for way, each in slow.items() if each > MOST_S} == {}
    assert any(family.name == "checkstream_ttft_seconds" for family in kept.figures[0])
