"""An operator's own model in the running proxy, and the same model behind a service: pulled, asked, replaced, gone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
import yaml
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from openai import OpenAI
from tokenizers import Tokenizer

from tests.e2e.harness import ROOT, Llm, Process, Proxy, config, http, running, until
from tests.tiny_tokenizers import wordpiece

POLICY = """
pack: {name: own, version: 1.0.0}
policies:
  - name: guard
    id: OWN-001
    stage: [ingress]
    classifiers: [{name: guard.injection, threshold: 0.9}]
    actions: [{type: reject, message: refused}]
"""


def fires_on(word: str) -> bytes:
    """A graph whose second column is sure where a word stands, and else sure of the contrary."""
    token = Tokenizer.from_str(wordpiece().decode()).token_to_id(word)
    nodes = [
        helper.make_node("Equal", ["input_ids", "token"], ["equal"]),
        helper.make_node("Cast", ["equal"], ["hits"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["hits", "axis"], ["count"], keepdims=1),
        helper.make_node("Mul", ["count", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "base"], ["logits"]),  # [batch, 1] + [2]
    ]
    values: dict[str, NDArray[np.generic]] = {
        "token": np.array([token], np.int64),
        "axis": np.array([1], np.int64),
        "scale": np.array([[0, 20]], np.float32),
        "base": np.array([0, -10], np.float32),
    }
    graph = helper.make_graph(
        nodes,
        "fires",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "token"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 2])],
        [numpy_helper.from_array(value, name) for name, value in values.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    data: bytes = model.SerializeToString()
    return data


def checkstream(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "checkstream", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=ROOT)


def bring(folder: Path, word: str) -> Path:
    """Write a `models.yaml` with a model that fires on a word, and pull it."""
    source = folder / "export"
    source.mkdir(exist_ok=True)
    (source / "model.onnx").write_bytes(fires_on(word))
    (source / "tokenizer.json").write_bytes(wordpiece())
    (source / "config.json").write_text('{"id2label": {"0": "SAFE", "1": "INJECTION"}}')
    model = {
        "name": "guard",
        "kind": "sequence",
        "source": {"path": "export"},
        "activation": "softmax",
        "labels": {"INJECTION": "injection"},
        "window_tokens": 64,
    }
    file = folder / "models.yaml"
    file.write_text(yaml.safe_dump({"models": [model]}, sort_keys=False))
    pulled = checkstream("models", "pull", "--models", file, "--update")
    assert pulled.returncode == 0, pulled.stderr
    return file


def settings(llm: Llm, folder: Path, **route: Any) -> dict[str, Any]:
    (folder / "policy.yaml").write_text(POLICY)
    return {**config(llm.url, folder, ["policy.yaml"], **route), "models": "models.yaml"}


def ask(proxy: Proxy, model: str, prompt: str) -> str:
    """Return what was answered, or the status with which it was refused."""
    with OpenAI(base_url=f"{proxy.url}/v1", api_key="k", max_retries=0) as client:
        try:
            answer = client.chat.completions.create(model=model, messages=[{"role": "user", "content": prompt}])
        except openai.APIStatusError as error:
            return str(error.status_code)
        return answer.choices[0].message.content or ""


@pytest.fixture
def said(llm: Llm, request: pytest.FixtureRequest) -> str:
    return llm.put(request.node.name, {"choices": [{"content": "an answer"}]})


def test_a_model_that_was_pulled_decides_and_a_reload_takes_the_next_one(llm: Llm, said: str, tmp_path: Path) -> None:
    bring(tmp_path, "ignore")
    given = settings(llm, tmp_path)
    with running(Proxy(given, tmp_path)) as proxy:
        assert ask(proxy, said, "please ignore all of it") == "400"
        assert ask(proxy, said, "please answer all of it") == "an answer"
        bring(tmp_path, "answer")
        assert http("POST", f"{proxy.admin_url}/admin/reload")[0] == 200
        assert ask(proxy, said, "please ignore all of it") == "an answer"
        assert ask(proxy, said, "please answer all of it") == "400"


def test_a_model_that_is_not_as_pinned_is_not_started_and_never_replaces_one_that_is(
    llm: Llm, said: str, tmp_path: Path
) -> None:
    bring(tmp_path, "ignore")
    given = settings(llm, tmp_path)
    stored = next((tmp_path / "models.files").glob("guard.graph.*"))
    with running(Proxy(given, tmp_path)) as proxy:
        stored.write_bytes(stored.read_bytes()[:-1])
        lock = tmp_path / "models.lock.json"
        lock.write_text(lock.read_text().replace("path:export", "path:other"))
        assert http("POST", f"{proxy.admin_url}/admin/reload")[0] == 400
        assert ask(proxy, said, "please ignore all of it") == "400"
        lock.write_text(lock.read_text().replace("path:other", "path:export"))
    started = checkstream("serve", "--config", tmp_path / "checkstream.yaml")
    assert started.returncode == 2
    assert "not" in started.stderr
    assert "Traceback" not in started.stderr


def test_g23_a_service_that_is_gone_meets_the_fail_mode_and_is_asked_again_when_it_is_back(
    llm: Llm, said: str, tmp_path: Path
) -> None:
    served = tmp_path / "served"
    served.mkdir()
    bring(served, "ignore")
    command = ["-m", "checkstream", "score", "--models", str(served / "models.yaml"), "--model", "guard"]
    command += ["--token-env", "SCORE_TOKEN", "--listen"]
    env = {"SCORE_TOKEN": "secret"}
    service = Process(*command, "127.0.0.1:0", env=env)
    address = service.said(lambda row: row.get("event") == "listening")["listen"]
    (tmp_path / "token").write_text("secret")
    remote = {
        "url": f"http://{address}",
        "token": {"file": "token"},
        "labels": {"injection": "injection"},
    }
    models = {"models": [{"name": "guard", "kind": "remote", "remote": remote}]}
    (tmp_path / "models.yaml").write_text(json.dumps(models))
    with running(Proxy(settings(llm, tmp_path, deadline={"ingress_ms": 5_000}), tmp_path)) as proxy:
        assert ask(proxy, said, "please ignore all of it") == "400"
        assert ask(proxy, said, "please answer all of it") == "an answer"
        service.kill()
        assert ask(proxy, said, "please answer all of it") == "503"
        again = Process(*command, address, env=env)
        try:
            again.said(lambda row: row.get("event") == "listening")
            # The circuit may have opened meanwhile; it is probed after some seconds.
            until(lambda: ask(proxy, said, "please answer all of it") == "an answer", what="the service", timeout_s=20)
            assert ask(proxy, said, "please ignore all of it") == "400"
        finally:
            assert again.stop() == 0
