"""A process with two bundles in force: who is answered by which, what is counted of each, and what a reload does."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from checkstream.app import App
from checkstream.app.following import Beside, Found
from checkstream.config import BundleSettings, load_config
from checkstream.control.attestation import Running
from checkstream.demo.llm import ScriptedLlm
from checkstream.demo.scenario import read_scenario
from checkstream.errors import ConfigError, ModelError
from checkstream.proxy.candidate import Chosen
from checkstream.scoring import Model, Session
from tests.bundled import LOGS, STOPS, World
from tests.controlled import node_key
from tests.unit.app.test_following import put

REDACTS = "{name: r, id: R-5, stage: [midstream], phrases: [blue], actions: [{type: redact}]}"
TOXIC = (
    "{name: t, id: R-6, stage: [midstream], classifiers: [{name: safety.toxicity, threshold: 0.9}], "
    "actions: [{type: stop}]}"
)
SAYS = read_scenario("said", b'choices: [{content: "All is blue."}]')
SLOW = read_scenario(
    "slow", b"timing: {token_ms: 50}\nchoices: [{content: 'One two three four five six seven eight nine blue.'}]"
)
CALLERS = [f"app-{number}" for number in range(20)]
SALT = "6a"
FIRST = {"app-5"}
"""Of these 20, who is among the first 10 %; see `tests/unit/proxy/test_candidate.py`."""


class Rig:
    """A node without a control server that could be reached; `current` is written as its agent would."""

    def __init__(self, folder: Path, llm: str) -> None:
        self.folder = folder
        self.bundles = BundleSettings(source="s", root="r", name="retail", dir=str(folder / "bundles"))
        (folder / "world").mkdir()
        self.world = world = World(folder / "world")
        self.base = put(world, self.bundles, LOGS, version="1")
        self.beside = put(world, self.bundles, LOGS, REDACTS, version="2")
        self.other = put(world, self.bundles, LOGS, STOPS, version="3")
        node_key("n1", folder / "keys")
        self.written: dict[str, Any] = {
            "server": {
                "listen": "127.0.0.1:0",
                "admin": "127.0.0.1:0",
                "callers": [{"name": name, "key": {"env": f"KEY_{name}"}} for name in CALLERS],
            },
            "upstreams": {"llm": {"url": llm}},
            "routes": [
                {
                    "name": "c",
                    "match": {"path": "/v1/chat/completions"},
                    "upstream": "llm",
                    "policies": ["bundle:chat"],
                }
            ],
            "bundles": {"source": "s", "root": "r", "name": "retail", "dir": self.bundles.dir},
            "control": {"url": "http://127.0.0.1:1", "node": "n1", "key": "keys/n1.pub"},
            "audit": {"dir": str(folder / "audit")},
        }
        self.current(self.base)

    def current(self, base: Found, candidate: Found | None = None, share: int = 10) -> None:
        """Say what is to be in force."""
        beside = None
        if candidate is not None:
            found = candidate.pointer
            beside = Beside(digest=found.digest, weight=found.weight, share=share, salt=SALT)
        pointer = msgspec.structs.replace(base.pointer, candidate=beside)
        Path(self.bundles.dir, "current").write_bytes(msgspec.json.encode(pointer))

    @asynccontextmanager
    async def served(self, open_session: Callable[[Model], Session] | None = None) -> AsyncIterator[App]:
        file = self.folder / "checkstream.yaml"
        file.write_text(json.dumps(self.written))
        async with App(lambda: load_config(file), config_file=file, open_session=open_session) as app:
            yield app


@pytest.fixture
async def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    for name in CALLERS:
        monkeypatch.setitem(os.environ, f"KEY_{name}", f"key-of-{name}")
    async with ScriptedLlm({"said": SAYS, "slow": SLOW}) as llm:
        yield await asyncio.to_thread(Rig, tmp_path, llm.url)


async def ask(app: App, caller: str | None = None, model: str = "said", **headers: str) -> str:
    """Return what a caller gets, to its end."""
    if caller is not None:
        headers["authorization"] = f"Bearer key-of-{caller}"
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}], "stream": model == "slow"}
    url = f"http://{app.listener.address}/v1/chat/completions"
    async with aiohttp.ClientSession() as client, client.post(url, json=body, headers=headers) as response:
        assert response.status == 200
        return await response.text()


async def redacted(app: App) -> set[str]:
    """Return the callers who are answered by the candidate."""
    said = {name: await ask(app, name) for name in CALLERS}
    return {name for name, answer in said.items() if "blue" not in answer}


async def told(app: App) -> Running:
    return await app._told_of_itself()


async def test_each_caller_is_answered_by_one_and_counted_there(rig: Rig) -> None:
    async with rig.served() as app:
        assert await redacted(app) == set()
        rig.current(rig.base, rig.beside)
        await app.reload()
        assert await redacted(app) == FIRST
        said = await told(app)
        assert said.candidate is not None
        assert said.figures is not None
        assert said.candidate.figures is not None
        assert (said.bundle, said.candidate.wanted.bundle) == (rig.base.pointer.digest, rig.beside.pointer.digest)
        assert (said.figures.exchanges, said.candidate.figures.exchanges) == (39, 1)
        assert len(said.programs) == 2
        rig.current(rig.base, rig.beside, share=50)
        await app.reload()
        half = {name for name in CALLERS if Chosen(share=50, salt=SALT).has(f"caller {name}")}
        assert half > FIRST
        assert await redacted(app) == half
        assert (
            b'checkstream_candidate_exchanges_total{outcome="complete"} %d.0' % (1 + len(half)) in await app.metrics()
        )
        rig.current(rig.beside)
        await app.reload()
        assert await redacted(app) == set(CALLERS)
        assert (await told(app)).candidate is None


async def test_g25_a_stream_keeps_the_bundle_that_it_began_with(rig: Rig) -> None:
    rig.current(rig.base, rig.beside)
    async with rig.served() as app:  # as it is after a start, too
        running = asyncio.create_task(ask(app, "app-5", "slow"))
        while not app.status().streams:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.001)
        rig.current(rig.base)
        await app.reload()
        assert "blue" in await ask(app, "app-5")
        assert not running.done()
        assert "blue" not in await running
        assert app.force.candidate is None
        rig.current(rig.base, rig.other)
        await app.reload()
        assert "blue" in await ask(app, "app-5")


async def test_a_candidate_that_is_damaged_costs_nobody_an_answer(rig: Rig) -> None:
    rig.current(rig.base, rig.beside)
    (rig.beside.folder / "bundle.json").write_bytes(b"{}")
    async with rig.served() as app:
        assert await redacted(app) == set()
        assert any("the candidate can't be used" in warning for warning in app.status().warnings)
        said = await told(app)  # which the control server sees
        assert (said.candidate, said.left_out.startswith("the candidate can't be used")) == (None, True)


async def test_a_candidate_whose_models_can_not_be_opened_keeps_nobody_from_starting(rig: Rig) -> None:
    def broken(_: Model) -> Session:
        raise ModelError("its graph can't be run here")

    asks = await asyncio.to_thread(put, rig.world, rig.bundles, LOGS, TOXIC, version="4")
    async with rig.served(broken) as app:
        for step in range(2):
            rig.current(rig.base, asks if step else None)
            await app.reload()
            assert (app.force.candidate, app.force.models) == (None, ())
            assert "blue" in await ask(app, "app-5")
    async with rig.served(broken) as app:  # as it would start with what it was told last
        assert "its graph can't be run here" in (await told(app)).left_out
    rig.current(asks)
    with pytest.raises(ConfigError, match="can't be run here"):
        async with rig.served(broken):
            pytest.fail("it serves without what its policies ask")


async def test_callers_without_names_go_by_conversation_and_else_by_address(rig: Rig) -> None:
    rig.written["server"]["callers"] = "none"
    rig.current(rig.base, rig.beside, share=50)
    async with rig.served() as app:
        names = [f"c{number}" for number in range(12)]
        for _ in range(2):
            said = {name: "blue" not in await ask(app, **{"x-checkstream-conversation": name}) for name in names}
            assert said == {name: Chosen(share=50, salt=SALT).has(f"conversation {name}") for name in names}
            assert set(said.values()) == {True, False}
            assert ("blue" not in await ask(app)) == Chosen(share=50, salt=SALT).has("address 127.0.0.1")
