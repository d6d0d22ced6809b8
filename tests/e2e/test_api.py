"""The scoring API as the process that it is: `checkstream worker --api`, asked with a key, and told to stop."""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from checkstream.app.api import GateFolder
from checkstream.app.evidence import evidence_embedder
from checkstream.gate.shared_past import SharedPast
from tests.e2e.harness import ROOT, Process, http
from tests.elastic.history import shared_history
from tests.gate_models import fill, serving

CONFIG = """
server: {callers: [{name: ci, key: {env: API_KEY}}]}
upstreams: {a: {url: http://x}}
routes: [{name: chat, match: {path: /v1/chat/completions}, upstream: a, policies: ["builtin:default"]}]
jobs: {store: "sqlite:jobs.db"}
"""
KEY = {"authorization": "Bearer secret"}
RIGHT = "Goods can be returned within 30 days of delivery."
WRONG = "Goods can be returned within 90 days of delivery."


def worker(folder: Path, *arguments: str) -> tuple[Process, str]:
    """Start a worker with its API on a free port, and return it with the address."""
    (folder / "checkstream.yaml").write_text(CONFIG)
    process = Process(
        *("-m", "checkstream", "worker", "--config", str(folder / "checkstream.yaml"), "--api", "127.0.0.1:0"),
        *arguments,
        env={"API_KEY": "secret"},
    )
    return process, f"http://{process.said(lambda row: row.get('event') == 'working')['api']}"


def asked(url: str, path: str, body: object, status: int = 200) -> Any:
    found, _, answer = http("POST", f"{url}{path}", body, headers=KEY, timeout_s=60)
    assert found == status, answer
    return json.loads(answer)


def test_answers_are_scored_by_all_three_designs(tmp_path: Path) -> None:
    process, url = worker(tmp_path)
    try:
        assert http("POST", f"{url}/api/analyze", {"llm_response": WRONG})[0] == 401
        assert http("GET", f"{url}/readyz")[0] == 200
        told = json.loads(http("GET", f"{url}/openapi.json")[2])
        assert set(told["paths"]) == {"/api/analyze", "/api/analyze_batch", "/api/verify", "/api/ground"}
        evidence = [{"content": RIGHT}]
        for answer, score in ((RIGHT, 0), (WRONG, 35)):
            body = {"llm_response": answer, "rag_results": evidence, "verified": True}
            assert asked(url, "/api/analyze", body)["risk_score"] == score
            found = asked(url, "/api/ground", {"answer": f"{answer[:-1]} [S0].", "docs": [{"id": "S0", "text": RIGHT}]})
            assert found["hallucination_check"]["overall_grounded"] is (answer == RIGHT)
            assert (found["warning"] is None) is (answer == RIGHT)
            chunks = [{"chunk_id": "c1", "text": RIGHT}]
            checked = asked(url, "/api/verify", {"query": "How long?", "answer": answer, "chunks": chunks})
            assert checked["verified_sources"] == (["c1"] if answer == RIGHT else [])
        assert asked(url, "/evaluate", {}, 404)["error"]["type"] == "not_found"
    finally:
        code = process.stop()
    assert code == 0


async def test_a_model_is_evaluated_and_its_runs_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "gate"
    folder.mkdir()
    await fill(str(folder / "evidence.db"), evidence_embedder())
    (folder / "prompts.txt").write_text("How long?\n")
    async with serving(lambda _model, _system, _question: WRONG) as llm:
        settings: dict[str, Any] = {
            "use_case": "support",
            "thresholds": {"deploy": 0.1, "warn": 0.25},
            "prompt_library": "prompts.txt",
            "model": {"provider": "openai", "model_id": "target", "url": llm, "api_key_env": "API_KEY"},
            "evidence": {"store": "sqlite:evidence.db"},
        }
        (folder / ".llm-reliability.yaml").write_text(json.dumps(settings))
        process, url = await asyncio.to_thread(worker, tmp_path, "--gate", str(folder), "--gate-inline")
        try:
            report = await asyncio.to_thread(asked, url, "/evaluate", {})
            inline = await asyncio.to_thread(asked, url, "/evaluate", {"config": settings}, 400)
            settings["model"] = {"provider": "openai", "model_id": "target", "url": llm}
            del settings["prompt_library"]
            settings["num_prompts"] = 1
            sent = await asyncio.to_thread(asked, url, "/evaluate", {"config": settings})
            kept = await asyncio.to_thread(http, "GET", f"{url}/runs/{report['run_id']}", headers=KEY)
            listed = await asyncio.to_thread(http, "GET", f"{url}/runs", headers=KEY)
            found = await asyncio.to_thread(http, "GET", f"{url}/search?q=90+days&kind=response", headers=KEY)
        finally:
            code = await asyncio.to_thread(process.stop)
        process, url = await asyncio.to_thread(worker, tmp_path, "--gate", str(folder))
        try:
            examples = [await asyncio.to_thread(run_example, each, url) for each in readme_examples()]
        finally:
            await asyncio.to_thread(process.stop)
    assert examples == [200] * 5
    assert (report["decision"], report["total_claims"], sent["decision"]) == ("block", 1, "block")
    assert "needs a key of this machine" in inline["error"]["message"]
    assert json.loads(kept[2]) == report
    assert len(json.loads(listed[2])["runs"]) == 2
    assert [each["text"] for each in json.loads(found[2])["found"]] == [WRONG, WRONG]
    assert code == 0


async def test_evaluations_are_kept_in_and_told_from_a_history_that_machines_share(tmp_path: Path) -> None:
    folder = tmp_path / "gate"
    folder.mkdir()
    await fill(str(folder / "evidence.db"), evidence_embedder("hashing"))
    async with shared_history() as history, serving(lambda _model, _system, _question: WRONG) as llm:
        settings = {
            "use_case": "support",
            "thresholds": {"deploy": 0.1, "warn": 0.25},
            "num_prompts": 1,
            "model": {"provider": "openai", "model_id": "target", "url": llm},
            "evidence": {"store": "sqlite:evidence.db", "embedder": "hashing"},
        }
        (folder / ".llm-reliability.yaml").write_text(json.dumps(settings))
        options = ("--gate", str(folder), "--gate-inline", "--gate-history", history)
        process, url = await asyncio.to_thread(worker, tmp_path, *options)
        try:
            told = [await asyncio.to_thread(http, "GET", f"{url}/runs", headers=KEY)]
            report = await asyncio.to_thread(asked, url, "/evaluate", {})
            await asyncio.to_thread(asked, url, "/evaluate", {"config": settings})
            told += [await asyncio.to_thread(http, "GET", f"{url}/{path}", headers=KEY) for path in ("runs", "trend")]
        finally:
            await asyncio.to_thread(process.stop)
        own = GateFolder(folder, folder / "var" / "gate.db", history=history).of("ci")
        kept = []
        for place in (own.history, history):
            shared = SharedPast.of(place)
            kept.append(await shared.report(report["run_id"]))
            await shared.close()
    empty, runs, trend = (json.loads(each[2]) for each in told)
    assert empty == {"runs": []}
    assert [run["run_id"] for run in runs["runs"]] == [report["run_id"]], "what a caller sent is not kept there"
    assert trend["trends"][0]["models"][0]["decisions"] == {"block": 1}
    assert json.loads(kept[0] or "") == report
    assert kept[1] is None, "an index of its own"
    assert own.runs.is_file()


def readme_examples() -> list[str]:
    """Return the `curl` commands of the API's page."""
    page = (ROOT / "checkstream" / "api" / "README.md").read_text("utf-8")
    block = page.partition("```sh\n")[2].partition("```")[0]
    return [f"curl {each}" for each in block.split("\ncurl ")[1:]]


def run_example(command: str, url: str) -> int:
    """Send what a `curl` command of the page sends, with the address and the key of this test; return the status."""
    _, address, *options = shlex.split(command, comments=True)
    given = dict(zip(options[::2], options[1::2], strict=True))
    assert given["-H"] == "authorization: Bearer KEY"
    body = given["-d"].encode() if "-d" in given else None
    address = address.replace("http://127.0.0.1:8095", url)
    return http("GET" if body is None else "POST", address, body, headers=KEY, timeout_s=60)[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--gate", "."], "`--gate` needs `--api`"),
        (["--api", "127.0.0.1:0", "--gate-inline"], "`--gate-inline` needs `--gate`"),
        (["--api", "127.0.0.1:0", "--gate", "no/such/folder"], "there is no folder `no/such/folder`"),
        (["--api", "0.0.0.0:0"], "without a key"),
        (["--api", "nowhere"], "is not an address"),
    ],
)
def test_what_can_not_be_served_is_told_at_the_start(tmp_path: Path, arguments: list[str], words: str) -> None:
    file = tmp_path / "checkstream.yaml"
    file.write_text(CONFIG.replace("[{name: ci, key: {env: API_KEY}}]", "none"))
    command = [sys.executable, "-m", "checkstream", "worker", "--config", str(file), *arguments]
    ran = subprocess.run(command, capture_output=True, check=False, cwd=ROOT)
    assert (ran.returncode, words in ran.stderr.decode()) == (2, True), ran.stderr
    assert b"Traceback" not in ran.stderr
