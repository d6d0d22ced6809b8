"""The process in one loop with a scripted model: nothing blocks the loop, reloads are whole or not at all."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from blockbuster import blockbuster_ctx

from checkstream.app import App
from checkstream.config import load_config
from checkstream.demo.llm import ScriptedLlm
from checkstream.demo.scenario import read_scenario
from checkstream.errors import ConfigError, PolicyError
from checkstream.jobs import Message, open_queue
from checkstream.jobs.exchange import read_scoring_job

POLICY = """
pack: {{name: t, version: {version}}}
policies: [{{name: r, id: R-1, entities: [EMAIL], actions: [{{type: redact}}]}}]
"""
SCENARIO = read_scenario("mail", b'choices: [{content: "write to joe@example.com now"}]')
ASK = {"model": "mail", "messages": [{"role": "user", "content": "hi"}]}


class Rig:
    def __init__(self, folder: Path, llm: str) -> None:
        self.file = folder / "checkstream.yaml"
        self.policy = folder / "policy.yaml"
        self.settings: dict[str, Any] = {
            "server": {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "drain_ms": 1000},
            "upstreams": {"llm": {"url": llm}},
            "routes": [
                {
                    "name": "c",
                    "match": {"path": "/v1/chat/completions"},
                    "upstream": "llm",
                    "policies": ["policy.yaml"],
                },
                {"name": "m", "match": {"path": "/v1/models", "method": "GET"}, "upstream": "llm", "pass": True},
            ],
            "audit": {"durability": "strict"},
        }
        self.write("1.0.0")

    def write(self, version: str) -> None:
        self.policy.write_text(POLICY.format(version=version))
        self.file.write_text(json.dumps(self.settings))

    def app(self) -> App:
        return App(lambda: load_config(self.file), config_file=self.file)


@asynccontextmanager
async def rig(folder: Path) -> AsyncIterator[Rig]:
    async with ScriptedLlm({"mail": SCENARIO}) as llm:
        yield Rig(folder, llm.url)


async def test_nothing_blocks_the_loop(tmp_path: Path) -> None:
    async with rig(tmp_path) as given, aiohttp.ClientSession() as session:
        app = given.app()
        with blockbuster_ctx("checkstream"):
            async with app:
                url = f"http://{app.listener.address}/v1/chat/completions"
                for streaming in (True, False):
                    async with session.post(url, json={**ASK, "stream": streaming}) as response:
                        body = await response.text()
                    assert response.status == 200
                    assert "joe@" not in body
                    assert "EMAIL" in body
                async with session.get(f"http://{app.listener.address}/v1/models") as response:
                    assert response.status == 200
                await app.reload()
                async with session.get(f"http://{app.admin.address}/admin/audit") as response:
                    kinds = [row["entry"]["kind"] for row in await response.json()]
        assert kinds == ["start", "stream", "stream", "pass", "reload"]


async def test_g17_one_models_entry_is_passed_on_and_recorded_as_such(tmp_path: Path) -> None:
    async with rig(tmp_path) as given:
        given.settings["routes"].append(
            {"name": "m1", "match": {"path": "/v1/models/*", "method": "GET"}, "upstream": "llm", "pass": True}
        )
        given.write("1.0.0")
        async with given.app() as app, aiohttp.ClientSession() as session:
            async with session.get(f"http://{app.listener.address}/v1/models/org%2Fmail") as response:
                assert response.headers["x-checkstream-stream"]
                status = response.status
            async with session.get(f"http://{app.listener.address}/v1/models/x/%2e%2e/%2e%2e/files") as response:
                assert response.status == 404
                assert (await response.json())["error"]["type"] == "not_found"
            async with session.get(f"http://{app.admin.address}/admin/audit") as response:
                entries = [row["entry"] for row in await response.json()]
    passed = [(e["route"], e["method"], e["path"], e["status"]) for e in entries if e["kind"] == "pass"]
    assert passed == [("m1", "GET", "/v1/models/org%2Fmail", status)]


async def test_g24_requests_over_a_budget_are_shed_and_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkstream.listen.admission._SHED_S", 0.2)
    async with rig(tmp_path) as given:
        given.policy.write_text(
            "pack: {name: t, version: 1.0.0}\npolicies: [{name: i, id: I-1, stage: [ingress], classifiers: "
            "[{name: lexicon.injection, threshold: 0.9}], actions: [{type: reject}]}]\n"
        )
        given.settings["routes"][0]["budget"] = {"ingress_ms": 1e-6, "on_exceeded": "shed"}
        given.file.write_text(json.dumps(given.settings))
        async with given.app() as app, aiohttp.ClientSession() as session:
            url = f"http://{app.listener.address}/v1/chat/completions"
            async with session.post(url, json=ASK) as response:
                assert response.status == 200
            async with session.post(url, json=ASK) as response:
                assert (response.status, response.headers["retry-after"]) == (429, "1")
                assert (await response.json())["error"]["type"] == "overloaded"
            async with session.get(f"http://{app.listener.address}/v1/models") as response:
                assert response.status == 200  # another route is not shed
            await asyncio.sleep(0.25)
            async with session.post(url, json=ASK) as response:
                assert response.status == 200
            async with session.get(f"http://{app.admin.address}/admin/audit") as response:
                entries = [row["entry"] for row in await response.json()]
    assert [e["record"]["degradations"] for e in entries if e["kind"] == "stream"] == [["ingress_over_budget"]] * 2


async def test_g25_a_reload_is_whole_or_not_at_all(tmp_path: Path) -> None:
    async with rig(tmp_path) as given, given.app() as app:
        before = app.status()
        given.write("2.0.0")
        await app.reload()
        after = app.status()
        assert (before.routes[0].policies, after.routes[0].policies) == ("t@1.0.0", "t@2.0.0")
        assert after.generation == 2
        given.policy.write_text("pack: 3")
        with pytest.raises(PolicyError):
            await app.reload()
        given.policy.unlink()
        with pytest.raises(ConfigError):
            await app.reload()
        shown = app.status()
        assert shown.routes == after.routes
        assert shown.reload is not None
        assert not shown.reload.accepted
        assert shown.ready


async def test_an_upstream_that_did_not_change_keeps_its_connections(tmp_path: Path) -> None:
    async with rig(tmp_path) as given, given.app() as app, aiohttp.ClientSession() as session:
        url = f"http://{app.listener.address}/v1/chat/completions"
        async with session.post(url, json=ASK) as response:
            assert response.status == 200
        first = app.proxy
        given.write("2.0.0")
        await app.reload()
        given.settings["upstreams"]["llm"]["retries"] = 0
        given.write("2.0.0")
        await app.reload()
        assert app.proxy is first
        async with session.post(url, json=ASK) as response:
            assert response.status == 200


async def test_what_is_due_to_be_collected_is_collected_when_the_last_stream_has_ended(tmp_path: Path) -> None:
    async with rig(tmp_path) as given, given.app() as app, aiohttp.ClientSession() as session:
        url = f"http://{app.listener.address}/v1/chat/completions"
        gc.collect()
        full = gc.get_stats()[2]["collections"]
        async with session.post(url, json=ASK) as response:
            assert response.status == 200
        await asyncio.sleep(0)
        assert gc.get_stats()[2]["collections"] == full
        for _ in range(10):
            gc.collect(1)
        async with session.post(url, json=ASK) as response:
            await response.read()
        await asyncio.sleep(0)
        assert gc.get_stats()[2]["collections"] > full


async def test_it_is_ready_though_nothing_was_heard_of_a_service_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text(
        "models: [{name: lexicon, kind: remote, remote: {url: 'http://127.0.0.1:9'}}]"
    )
    async with rig(tmp_path) as given, aiohttp.ClientSession() as session:
        given.settings["models"] = "models.yaml"
        given.policy.write_text(
            "pack: {name: t, version: 1.0.0}\n"
            "policies:\n"
            "  - {name: r, id: R, classifiers: [{name: lexicon.toxicity, threshold: 0.5}], actions: [{type: stop}]}"
        )
        given.file.write_text(json.dumps(given.settings))
        async with given.app() as app:
            assert app.status().unheard == ("lexicon",)
            async with session.get(f"http://{app.admin.address}/readyz") as response:
                assert response.status == 200
                text = await response.text()
    assert text == "ready\nnothing heard yet of the service of model `lexicon`\n"


async def test_while_draining_it_is_not_ready_and_takes_nothing(tmp_path: Path) -> None:
    async with rig(tmp_path) as given, aiohttp.ClientSession() as session:
        async with given.app() as app:
            address = app.listener.address
            admin = app.admin.address
            async with session.get(f"http://{admin}/readyz") as response:
                assert response.status == 200
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.post(f"http://{address}/v1/chat/completions", json=ASK)
        assert app.status().not_ready[0] == "draining"


async def test_faults_of_every_route_come_together(tmp_path: Path) -> None:
    async with rig(tmp_path) as given:
        (tmp_path / "a.yaml").write_text("pack: 1")
        (tmp_path / "b.yaml").write_text("pack: 2")
        given.settings["routes"] += [
            {"name": name, "match": {"path": "/v1/completions"}, "upstream": "llm", "policies": [f"{name}.yaml"]}
            for name in ("a", "b")
        ]
        given.write("1.0.0")
        with pytest.raises(PolicyError) as caught:
            async with given.app():
                pass
        assert {Path(fault.file).name for fault in caught.value.faults} == {"a.yaml", "b.yaml"}
        assert len(asyncio.all_tasks()) < 5


async def test_an_address_in_use_is_named_and_the_failed_start_has_its_end_on_record(tmp_path: Path) -> None:
    async with rig(tmp_path) as given, given.app() as app:
        given.settings["server"]["listen"] = str(app.listener.address)
        given.settings["audit"]["dir"] = "second"
        given.write("1.0.0")
        with pytest.raises(
            ConfigError, match=rf"can.t listen on `{app.listener.address}` \(`listen`\): address already in use;"
        ):
            async with given.app():
                pass
    (log,) = (tmp_path / "second").glob("*.jsonl")
    assert [json.loads(line)["kind"] for line in log.read_text().splitlines()] == ["start", "stop"]


async def test_a_file_that_was_refused_is_not_reported_again_by_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkstream.app.app._POLL_S", 0.01)
    async with rig(tmp_path) as given, given.app() as app:
        watching = asyncio.create_task(app._watch(asyncio.Event()))
        try:
            given.policy.write_text("pack: 3")
            with pytest.raises(PolicyError):
                await app.reload()
            await asyncio.sleep(0.1)  # several looks
            entries = [type(latest.entry).__name__ for latest in app._parts.trail.latest(9)]
        finally:
            watching.cancel()
    assert entries == ["StartEntry", "ReloadEntry"]


async def test_every_entry_and_every_score_is_counted(tmp_path: Path) -> None:
    async with rig(tmp_path) as given:
        given.policy.write_text(
            "pack: {name: t, version: 1.0.0}\npolicies: [{name: i, id: I-1, stage: [ingress], classifiers: "
            "[{name: lexicon.injection, threshold: 0.9}], actions: [{type: reject}]}]\n"
        )
        async with given.app() as app, aiohttp.ClientSession() as session:
            async with session.post(f"http://{app.listener.address}/v1/chat/completions", json=ASK) as response:
                assert response.status == 200
            async with session.get(f"http://{app.listener.address}/v1/models") as response:
                assert response.status == 200
            async with session.get(f"http://{app.admin.address}/metrics") as response:
                metrics = await response.text()
    assert "checkstream_audit_entries_total 3.0" in metrics  # start, stream, pass
    assert 'checkstream_score_count{classifier="lexicon.injection",stage="ingress"} 1.0' in metrics


SAFE = """
pack: {name: t, version: 1.0.0}
policies: [{name: r, id: SAFE-1, stage: [ingress], phrases: [x], actions: [{type: safe_mode, bad_words: [boom]}]}]
"""


async def test_g08_a_policy_that_a_routes_upstream_can_not_carry_out_is_refused_by_name(tmp_path: Path) -> None:
    async with rig(tmp_path) as given:
        given.policy.write_text(SAFE)
        with pytest.raises(PolicyError) as raised:
            await given.app().__aenter__()
        (fault,) = raised.value.faults
        assert "`safe_mode` of rule `SAFE-1` needs an upstream that can `bad_words`" in fault.reason
        assert "route `c`" in fault.reason
        assert fault.advice == "add `can: [bad_words]` to upstream `llm` if it does, or remove `bad_words`"
        given.settings["upstreams"]["llm"]["can"] = ["bad_words"]
        given.file.write_text(json.dumps(given.settings))
        async with given.app() as app:
            assert app.listener.address.port


async def test_g08_each_route_that_shares_a_policy_is_asked(tmp_path: Path) -> None:
    async with rig(tmp_path) as given:
        given.policy.write_text(SAFE.replace("safe_mode, bad_words: [boom]", "adapt_tone, instruction: be kind"))
        route = {"match": {"path": "/v1/completions"}, "name": "old", "upstream": "llm", "policies": ["policy.yaml"]}
        given.file.write_text(json.dumps(given.settings | {"routes": [given.settings["routes"][0], route]}))
        with pytest.raises(PolicyError, match="route `old`"):
            await given.app().__aenter__()


async def test_answers_of_sampled_routes_are_queued_and_a_reload_may_begin_that(tmp_path: Path) -> None:
    async with rig(tmp_path) as given, aiohttp.ClientSession() as session, given.app() as app:
        url = f"http://{app.listener.address}/v1/chat/completions"

        async def ask() -> str:
            async with session.post(url, json=ASK) as response:
                await response.read()
                return response.headers["x-checkstream-stream"]

        await ask()
        assert not (tmp_path / "var" / "jobs.db").exists()
        given.settings["routes"][0]["grounding"] = {"sample": 1.0}
        given.write("1.0.0")
        await app.reload()
        stream = await ask()
        with blockbuster_ctx("checkstream"):
            await ask()
    queue = open_queue(load_config(given.file).jobs, make=False)
    leases = queue.lease(9)
    queue.close()
    assert len(leases) == 2
    job = leases[0].job
    assert (job.stream, job.kind) == (stream, "score")
    profile, exchange = read_scoring_job(job)
    assert profile == "watchdog"
    assert exchange.answer == "write to [EMAIL] now"
    assert exchange.messages == (Message("user", "hi"),)
    assert (exchange.route, exchange.surface, exchange.model) == ("c", "openai.chat", "mail")
    assert exchange.policies == ("t@1.0.0",)


async def test_a_queue_that_cant_be_used_keeps_what_is_in_force(tmp_path: Path) -> None:
    async with rig(tmp_path) as given, given.app() as app:
        (tmp_path / "var").mkdir(exist_ok=True)
        (tmp_path / "var" / "jobs.db").write_text("no database, but long enough to be read as one " * 30)
        given.settings["routes"][0]["grounding"] = {"sample": 1.0}
        given.write("1.0.0")
        with pytest.raises(ConfigError, match=r"jobs\.db"):
            await app.reload()
        assert app.status().generation == 1


async def test_settings_of_the_queue_need_a_restart(tmp_path: Path) -> None:
    async with rig(tmp_path) as given, given.app() as app:
        given.settings["jobs"] = {"buffer": 7}
        given.write("1.0.0")
        with pytest.raises(ConfigError, match="`jobs` has changed"):
            await app.reload()
