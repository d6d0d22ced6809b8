"""Models of a process: only those that policies ask, opened once, freed when nobody uses them any more."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
import yaml

from checkstream.app import App
from checkstream.config import load_config
from checkstream.demo.llm import ScriptedLlm
from checkstream.demo.scenario import read_scenario
from checkstream.errors import ConfigError, ScoringError
from checkstream.scoring import Model, Scorer, Session, open_session
from checkstream.scoring.provenance import files_folder
from checkstream.scoring.pull import pull
from tests import tiny_models
from tests.tiny_tokenizers import wordpiece

POLICY = """
pack: {name: t, version: 1.0.0}
policies: [{name: r, id: R-1, classifiers: [{name: guard.alarm, threshold: 0.5}], actions: [{type: stop}]}]
"""
SLOW = read_scenario("slow", json.dumps({"choices": [{"content": "word " * 40}], "timing": {"token_ms": 50}}).encode())
ASK = {"model": "slow", "stream": True, "messages": [{"role": "user", "content": "hi"}]}


class Rig:
    def __init__(self, folder: Path, llm: str) -> None:
        self.folder = folder
        self.opened: list[str] = []
        (folder / "tokenizer.json").write_bytes(wordpiece())
        models = [
            {
                "name": name,
                "kind": "sequence",
                "source": {"path": "."},
                "graph": f"{name}.onnx",
                "config": None,
                "columns": ["alarm"],
                "activation": "sigmoid",
                "labels": {"alarm": "alarm"},
                "window_tokens": 32,
                "overlap_tokens": 8,
            }
            for name in ("guard", "other")
        ]
        (folder / "models.yaml").write_text(yaml.safe_dump({"models": models}))
        (folder / "policy.yaml").write_text(POLICY)
        route = {
            "name": "c",
            "match": {"path": "/v1/chat/completions"},
            "upstream": "llm",
            "policies": ["policy.yaml"],
            "deadline": {"check_ms": 20_000},
        }
        settings: dict[str, Any] = {
            "server": {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "drain_ms": 1000},
            "upstreams": {"llm": {"url": llm}},
            "routes": [route],
            "models": "models.yaml",
        }
        (folder / "checkstream.yaml").write_text(json.dumps(settings))

    async def put(self, logit: float) -> None:
        head = {"head.weight": np.zeros((1, 16), np.float32), "head.bias": np.array([logit], np.float32)}
        for name in ("guard", "other"):
            (self.folder / f"{name}.onnx").write_bytes(tiny_models.graph(1, changed=head))
        await pull(self.folder / "models.yaml", update=True)

    def app(self) -> App:
        def opened(model: Model) -> Session:
            self.opened.append(model.name)
            return open_session(model)

        file = self.folder / "checkstream.yaml"
        return App(lambda: load_config(file), config_file=file, open_session=opened)


def threads() -> int:
    return sum(thread.name.startswith("score-") for thread in threading.enumerate())


async def test_only_models_that_policies_ask_are_opened_and_a_reload_opens_none_anew(tmp_path: Path) -> None:
    async with ScriptedLlm({"slow": SLOW}) as llm:
        rig = Rig(tmp_path, llm.url)
        await rig.put(-4)
        async with rig.app() as app:
            assert rig.opened == ["guard"]
            assert app.status().models == ("guard@1.0.0",)
            (tmp_path / "policy.yaml").write_text(POLICY.replace("1.0.0", "2.0.0"))
            before = app.force.scorer
            await app.reload()
            assert app.force.scorer is before
            (tmp_path / "policy.yaml").write_text(POLICY.replace("guard.alarm", "other.alarm"))
            await app.reload()
            assert rig.opened == ["guard", "other"]
            assert app.status().models == ("other@1.0.0",)
    assert threads() == 0


def is_open(scorer: Scorer) -> bool:
    """Tell whether a scorer can be asked."""
    try:
        scorer.ask(("guard",), "x", 1000).leave()
    except ScoringError:
        return False
    return True


async def test_a_model_is_freed_when_the_last_stream_that_began_with_it_ends(tmp_path: Path) -> None:
    async with ScriptedLlm({"slow": SLOW}) as llm:
        rig = Rig(tmp_path, llm.url)
        await rig.put(-4)
        async with rig.app() as app, aiohttp.ClientSession() as session:
            first = app.force.scorer
            url = f"http://{app.listener.address}/v1/chat/completions"
            async with session.post(url, json=ASK) as response:
                await response.content.readany()
                await rig.put(4)
                await app.reload()
                await app._parts.current.free(app.proxy.uses)
                assert is_open(first)
                running = threads()
                assert (await response.text()).endswith("[DONE]\n\n")
            async with asyncio.timeout(10):
                while is_open(first):
                    await app._parts.current.free(app.proxy.uses)
                    await asyncio.sleep(0)
            assert threads() < running
            assert app.force.scorer is not first
    assert threads() == 0


async def test_a_reload_that_is_refused_closes_what_it_opened(tmp_path: Path) -> None:
    async with ScriptedLlm({"slow": SLOW}) as llm:
        rig = Rig(tmp_path, llm.url)
        await rig.put(-4)
        async with rig.app() as app:
            before, running = app.force, threads()
            await rig.put(4)
            settings = json.loads((tmp_path / "checkstream.yaml").read_text())
            settings["server"]["drain_ms"] = 999
            (tmp_path / "checkstream.yaml").write_text(json.dumps(settings))
            with pytest.raises(ConfigError, match="restart"):
                await app.reload()
            assert app.force is before
            assert threads() == running


async def test_a_model_that_is_not_the_pinned_one_stops_the_start(tmp_path: Path) -> None:
    async with ScriptedLlm({"slow": SLOW}) as llm:
        rig = Rig(tmp_path, llm.url)
        await rig.put(-4)
        for file in files_folder(tmp_path / "models.yaml").rglob("guard*.onnx"):
            file.write_bytes(b"x")
        with pytest.raises(ConfigError, match="model guard"):
            async with rig.app():
                pass
