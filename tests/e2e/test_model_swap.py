"""A model that is exchanged while answers stream: new streams ask the new one, old streams the one they began with."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from checkstream.scoring.provenance import files_folder
from checkstream.scoring.pull import pull
from tests import tiny_models
from tests.e2e.harness import Llm, Proxy, RawCaller, config, http, running
from tests.tiny_tokenizers import wordpiece

POLICY = """
pack: {name: swap, version: 1.0.0}
policies:
  - name: alarmed
    id: SAFE-1
    stage: midstream
    channels: [content]
    classifiers: [{name: guard.alarm, threshold: 0.5}]
    actions: [{type: stop, message: "[cut]"}]
"""
ASK: Any = [{"role": "user", "content": "hello there"}]
PATIENT = {"check_ms": 20_000}
"""A busy machine must not decide what a test about models finds."""
SLOW = {"choices": [{"content": "word " * 60 + "and out."}], "timing": {"token_ms": 40}}
QUICK = {"choices": [{"content": "word " * 30 + "and out."}]}


def always(logit: float) -> bytes:
    """Return a graph that gives every text one score."""
    head = {"head.weight": np.zeros((1, 16), np.float32), "head.bias": np.array([logit], np.float32)}
    return tiny_models.graph(1, changed=head)


class Models:
    """A `models.yaml` with one model, and where it comes from."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "models.yaml"
        self._source = folder / "export"
        self._source.mkdir()
        (self._source / "tokenizer.json").write_bytes(wordpiece())
        model = {
            "name": "guard",
            "kind": "sequence",
            "source": {"path": str(self._source)},
            "config": None,
            "columns": ["alarm"],
            "activation": "sigmoid",
            "labels": {"alarm": "alarm"},
            "window_tokens": 32,
            "overlap_tokens": 8,
        }
        self.file.write_text(yaml.safe_dump({"models": [model]}))

    def put(self, logit: float) -> None:
        """Fetch and pin a model that always gives this logit."""
        (self._source / "model.onnx").write_bytes(always(logit))
        asyncio.run(pull(self.file, update=True))


@pytest.fixture
def models(tmp_path: Path) -> Models:
    made = Models(tmp_path)
    made.put(-4)
    return made


@pytest.fixture
def proxy(llm: Llm, tmp_path: Path, models: Models) -> Iterator[Proxy]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    settings = config(llm.url, tmp_path, ["policy.yaml"], deadline=PATIENT) | {"models": str(models.file)}
    with running(Proxy(settings, tmp_path)) as server:
        yield server


def reload(proxy: Proxy) -> tuple[int, Any]:
    status, _, body = http("POST", f"{proxy.admin_url}/admin/reload", b"")
    return status, json.loads(body)


def answer(proxy: Proxy, model: str) -> str:
    body = json.dumps({"model": model, "messages": ASK}).encode()
    _, _, data = http("POST", f"{proxy.url}/v1/chat/completions", body)
    content: str = json.loads(data)["choices"][0]["message"]["content"]
    return content


class Stream(threading.Thread):
    """Reads one streamed answer to its end, beside the test."""

    def __init__(self, proxy: Proxy, model: str) -> None:
        super().__init__()
        self.caller = RawCaller(proxy.url, {"model": model, "stream": True, "messages": ASK})
        self.caller.read_until(b"word")
        self.start()

    def run(self) -> None:
        self.caller.read_until(b"[DONE]")

    @property
    def text(self) -> bytes:
        self.join(30)
        assert not self.is_alive()
        self.caller.leave()
        return self.caller.received


def test_g25_a_stream_keeps_the_model_that_it_started_with(llm: Llm, proxy: Proxy, models: Models) -> None:
    slow, quick = llm.put("swap-slow", SLOW), llm.put("swap-quick", QUICK)
    assert answer(proxy, quick).endswith("and out.")
    old = Stream(proxy, slow)
    models.put(4)
    assert reload(proxy) == (200, {"ok": True, "generation": 2})
    assert answer(proxy, quick).startswith("[cut]")
    assert old.is_alive(), "the stream ended before the reload; it proves nothing"
    assert b"[cut]" not in old.text
    assert b"out" in old.text
    assert json.loads(http("GET", f"{proxy.admin_url}/admin/status")[2])["models"] == ["guard@1.0.0"]


def test_g25_a_model_that_is_not_the_pinned_one_is_refused_and_nothing_changes(
    llm: Llm, proxy: Proxy, models: Models
) -> None:
    quick = llm.put("swap-quick", QUICK)
    models.put(4)
    for file in files_folder(models.file).rglob("*.onnx"):
        file.write_bytes(always(4) + b"\x00")
    status, body = reload(proxy)
    assert status == 400
    assert body["faults"][0]["file"] == "model guard"
    assert answer(proxy, quick).endswith("and out.")
    models.file.write_text("models: 7")
    assert reload(proxy)[0] == 400
    assert answer(proxy, quick).endswith("and out.")
