"""The console of a whole process: its pages tell what the process did, and nothing of them blocks the loop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
from blockbuster import blockbuster_ctx

from checkstream.app import App
from checkstream.config import Config, default_config, load_config
from checkstream.demo.llm import ScriptedLlm
from checkstream.demo.scenario import read_scenario
from checkstream.telemetry.tallies import MAX_SERIES
from tests.records import head, seal_all, start, stream, write_chain
from tests.watchdog import MOST_S, pace, watched_loop

POLICY = """pack: {name: t, version: 1.0.0}
policies:
  - {name: mail, id: R-1, entities: [EMAIL], actions: [{type: redact}]}
"""
CONFIG = """
server: {{listen: "127.0.0.1:0", admin: "127.0.0.1:0"}}
upstreams: {{llm: {{url: "{url}"}}}}
routes:
  - {{name: chat, match: {{path: /v1/chat/completions}}, upstream: llm, policies: [ours.yaml]}}
audit: {{durability: strict}}
"""
MAIL = read_scenario("mail", b'choices: [{content: "write to joe@example.com now"}]')


async def test_all_pages_tell_what_the_process_did_and_none_blocks_the_loop(tmp_path: Path) -> None:
    (tmp_path / "ours.yaml").write_text(POLICY)
    file = tmp_path / "checkstream.yaml"
    async with ScriptedLlm({"mail": MAIL}) as llm, aiohttp.ClientSession() as session:
        file.write_text(CONFIG.format(url=llm.url))
        app = App(lambda: load_config(file), config_file=file)
        with blockbuster_ctx("checkstream"):
            async with app:
                ask = {"model": "mail", "messages": [{"role": "user", "content": "hi"}]}
                async with session.post(f"http://{app.listener.address}/v1/chat/completions", json=ask) as response:
                    stream = response.headers["x-checkstream-stream"]
                await asyncio.sleep(0)

                async def page(path: str) -> str:
                    async with session.get(f"http://{app.admin.address}/console/{path}") as response:
                        assert response.status == 200, path
                        return await response.text()

                now = await page("")
                assert "<dt>Requests</dt><dd>1</dd>" in now
                assert "<dt>Kept back in answers</dt><dd>1</dd>" in now
                found = await page(f"exchanges?stream={stream[:8]}")
                place = found.partition('href="/console/exchanges/')[2].partition('"')[0]
                assert stream in await page(f"exchanges/{place}")
                policies = await page("policies")
                assert 'href="/console/policies/source?file=0#L3"' in policies
                assert "entities: [EMAIL]" in await page("policies/source?file=0")
                assert stream in await page("live")


async def test_g33_no_page_keeps_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sealed = seal_all([start(), *(stream(at) for at in range(2000))])
    write_chain(tmp_path / "var" / "audit", [[each.line for each in sealed]], [head(sealed[-1])])
    pages = ("", "exchanges?rule=nobody", "exchanges/c1/7", "exchanges/c1/7/proof", "policies", "live", "quality")

    def read() -> Config:
        return default_config("http://127.0.0.1:9", listen="127.0.0.1:0", admin="127.0.0.1:0", log="json")

    async with App(read) as app, aiohttp.ClientSession() as session:
        metrics = app._parts.metrics
        for at in range(MAX_SERIES):
            metrics.verdicts.of("redact", f"R-{at}", "midstream", "enforce", "p@1").inc()
        for at in range(MAX_SERIES // 10):
            metrics.hold.of(f"route{at}").observe(0.01)
        slow: dict[str, float] = {}
        for page in pages:
            taken: list[float] = []
            while len(taken) < 4 and min(taken, default=1.0) > MOST_S:
                with watched_loop() as steps:
                    async with session.get(f"http://{app.admin.address}/console/{page}") as response:
                        assert response.status == 200, page
                        await response.read()
                taken.append(max(steps) / pace())
            slow[page] = min(taken)
    assert {page: round(1000 * each, 1) for page, each in slow.items() if each > MOST_S} == {}
