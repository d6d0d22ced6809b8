"""The gate over HTTP: evaluations, paths that stay below the folder, keys that stay here, and the history."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from checkstream.api.evaluation import Evaluation, Runs
from checkstream.errors import GateError, StepFailed
from checkstream.gate.ledger import Ledger
from checkstream.gate.report import Report
from checkstream.gate.settings import GateSettings
from checkstream.gate.shared_past import SharedPast
from checkstream.gate.terms import Run, Said
from tests.api_serving import ask, serving
from tests.elastic.history import shared_history

LEAST = {
    "use_case": "bot",
    "thresholds": {"deploy": 0.1, "warn": 0.25},
    "model": {"provider": "openai", "model_id": "m", "url": "http://localhost:8000"},
}


def report(config: GateSettings, run_id: str) -> Report:
    return Report(
        run_id=run_id, begun=1.0, ended=2.0, score=0.0, decision="deploy", reason="", total_claims=0, supported=0,
        unsupported=0, weakly_supported=0, contradicted=0, not_checkable=0, details=(), use_case=config.use_case,
        target="t", verifier="v", config_hash="c", snapshot="s", thresholds={}, prompts=(), responses=(),
    )  # fmt: skip


async def evaluate(config: GateSettings, *, resume: str | None = None) -> Report:
    if config.use_case == "failing":
        raise StepFailed("responses", "p1", "model `m` can't be reached")
    if resume == "none":
        raise GateError("there is no run `none` that could go on")
    return report(config, resume or "file")


async def inline(config: GateSettings, *, resume: str | None = None) -> Report:
    return report(config, resume or "inline")


@pytest_asyncio.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[str, Path]]:
    root = tmp_path / "root"
    root.mkdir()
    ledger = Ledger(tmp_path / "gate.db")
    for name, at in (("r0", 100.0), ("r1", 200.0)):
        run = Run(run_id=name, config_hash="c", target="t", verifier="v", snapshot="s", begun=at)
        ledger.begin(run)
        if name == "r0":
            ledger.end(msgspec.structs.replace(run, ended=at, decision="deploy", risk=0.0), '{"run_id": "r0"}')
    operations = Evaluation({"ci": Runs(evaluate, ledger, inline=inline)}, root=root).operations
    async with serving(operations, body_bytes=4096) as (url, _):
        yield url, root


async def test_a_file_below_the_folder_is_evaluated_and_the_usual_name_by_default(served: tuple[str, Path]) -> None:
    url, root = served
    (root / "sub").mkdir()
    for path in (root / ".llm-reliability.yaml", root / "sub" / "own.yaml"):
        path.write_text(json.dumps(LEAST))
    for asked in ({}, {"config_path": "sub/own.yaml"}):
        status, found = await ask("POST", f"{url}/evaluate", asked)
        assert (status, found["run_id"]) == (200, "file")
    assert {
        *("run_id", "score", "decision", "total_claims", "supported", "unsupported", "weakly_supported", "details")
    } <= set(found)
    assert (await ask("POST", f"{url}/evaluate", {"resume": "r1"}))[1]["run_id"] == "r1"
    status, found = await ask("POST", f"{url}/evaluate", {"resume": "none"})
    assert (status, "could go on" in found["error"]["message"]) == (400, True)


@pytest.mark.parametrize(
    "path",
    ["../x.yaml", "/etc/x.yaml", "sub/../../x.yaml", "no.yaml", "a.yaml/.yaml", "\x00.yaml", "link.yaml", "own.yaml",
     "x" * 3000 + ".yaml"],
)  # fmt: skip
async def test_no_path_leads_out_of_the_folder(served: tuple[str, Path], path: str) -> None:
    url, root = served
    for outside in (root.parent / "x.yaml", root / "secret.env"):
        outside.write_text("root: {}")
    (root / "link.yaml").symlink_to("/etc/passwd")
    (root / "own.yaml").symlink_to(root / "secret.env")
    status, found = await ask("POST", f"{url}/evaluate", {"config_path": path})
    assert status == 404
    assert "root:" not in json.dumps(found)


@pytest.mark.parametrize("path", ["secret.env", "var/gate.db", ".", "", ".yaml.txt", "a.YAML ", "x" * 3000])
async def test_only_what_is_named_as_a_configuration_is_read(served: tuple[str, Path], path: str) -> None:
    url, root = served
    (root / "secret.env").write_text("TOKEN: [abc")
    status, found = await ask("POST", f"{url}/evaluate", {"config_path": path})
    assert (status, "abc" in json.dumps(found)) == (404 if not path else 400, False)
    assert len(found["error"]["message"]) < 400


async def test_a_configuration_that_is_sent_is_evaluated_by_what_has_no_keys(served: tuple[str, Path]) -> None:
    status, found = await ask("POST", f"{served[0]}/evaluate", {"config": LEAST})
    assert (status, found["run_id"]) == (200, "inline")


@pytest.mark.parametrize(
    "more",
    [
        {"model": {**LEAST["model"], "api_key_env": "AWS_SECRET_ACCESS_KEY"}},  # type: ignore[dict-item]
        {"judge": {**LEAST["model"], "model_id": "j", "api_key_env": "HOME"}},  # type: ignore[dict-item]
        {"model": {"provider": "bedrock", "model_id": "m"}},
    ],
)
async def test_a_configuration_that_is_sent_can_name_no_key(served: tuple[str, Path], more: dict[str, Any]) -> None:
    status, found = await ask("POST", f"{served[0]}/evaluate", {"config": {**LEAST, **more}})
    assert (status, "needs a key of this machine" in found["error"]["message"]) == (400, True)


@pytest.mark.parametrize(
    "more",
    [
        {"prompt_library": "other.txt"},
        {"history": "https://h"},
        {"evidence": {"store": "https://h"}},
        {"evidence": {"store": "sqlite:x", "embedder": "titan"}},
        {"evidence": {"store": "postgresql://h/d"}},
    ],
)
async def test_a_configuration_that_is_sent_can_read_no_file_and_no_other_server(
    served: tuple[str, Path], more: dict[str, Any]
) -> None:
    status, found = await ask("POST", f"{served[0]}/evaluate", {"config": {**LEAST, **more}})
    assert (status, "names no `prompt_library`" in found["error"]["message"]) == (400, True)


async def test_a_configuration_that_is_sent_is_not_taken_unless_the_operator_says_so(tmp_path: Path) -> None:
    operations = Evaluation({"ci": Runs(evaluate, Ledger(tmp_path / "gate.db"))}, root=tmp_path).operations
    async with serving(operations) as (url, _):
        status, found = await ask("POST", f"{url}/evaluate", {"config": LEAST})
    assert (status, "is not taken here" in found["error"]["message"]) == (400, True)


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ({"config": LEAST, "config_path": "x"}, 400, "both given"),
        ({"unknown": 1}, 400, "`unknown`"),
        ({"config_path": 5}, 400, "$.config_path"),
        ({"config": {"use_case": "x"}}, 400, "missing risk_tolerance"),
        ({"config": {**LEAST, "categories": ["x"]}}, 400, "`categories`, which is not known"),
        (b'{"config": {"use_case": "' + b"x" * 5000, 413, "bytes"),
    ],
)
async def test_what_can_not_be_evaluated_is_told(served: tuple[str, Path], body: object, status: int, why: str) -> None:
    found, answer = await ask("POST", f"{served[0]}/evaluate", body)
    assert (found, why in json.dumps(answer)) == (status, True), answer


@pytest.mark.parametrize(
    "text",
    [
        "{", "use_case: 2026-13-45", "use_case: !!int x", "use_case: !!timestamp x", "a: &a [x]\nb: *a", "\x00", "[",
        "? {a: b}\n: c", "- " * 3000,
        "!!python/object/apply:os.system [id]", "use_case: !!float x", "{a: !!binary '*'}",
    ],
)  # fmt: skip
async def test_a_file_that_is_no_configuration_is_told(served: tuple[str, Path], text: str) -> None:
    url, root = served
    (root / "bad.yaml").write_text(text)
    status, found = await ask("POST", f"{url}/evaluate", {"config_path": "bad.yaml"})
    assert (status, found["error"]["type"]) == (400, "invalid_request_error")


@pytest.mark.parametrize(
    "text", ["a: b\nKEY=hunter2: x: y", "TOKEN: %hunter2", '{"hunter2": x}: 1', "{hunter2", "hunter2"]
)
async def test_a_refusal_holds_nothing_of_the_file(served: tuple[str, Path], text: str) -> None:
    url, root = served
    (root / ".env").write_text(text)
    status, found = await ask("POST", f"{url}/evaluate", {"config_path": ".env"})
    assert (status, "hunter2" in json.dumps(found)) == (400, False)


async def test_a_step_that_failed_is_told(served: tuple[str, Path]) -> None:
    url, root = served
    (root / ".llm-reliability.yaml").write_text(json.dumps({**LEAST, "use_case": "failing"}))
    status, found = await ask("POST", f"{url}/evaluate", {})
    assert (status, "step `responses` failed at item `p1`" in found["error"]["message"]) == (502, True)


async def test_more_evaluations_than_the_limit_are_told_to_come_back(tmp_path: Path) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def slow(config: GateSettings, *, resume: str | None = None) -> Report:
        begun.set()
        await go.wait()
        return report(config, resume or "slow")

    operations = Evaluation(
        {"ci": Runs(slow, Ledger(tmp_path / "gate.db"), inline=slow)}, root=tmp_path, at_once=1
    ).operations
    async with serving(operations) as (url, _):
        first = asyncio.ensure_future(ask("POST", f"{url}/evaluate", {"config": LEAST}))
        await begun.wait()
        assert (await ask("POST", f"{url}/evaluate", {"config": LEAST}))[0] == 429
        assert (await ask("GET", f"{url}/runs"))[0] == 200
        go.set()
        assert (await first)[0] == 200
        assert (await ask("POST", f"{url}/evaluate", {"config": LEAST}))[0] == 200


async def test_runs_are_told(served: tuple[str, Path]) -> None:
    url, _ = served
    assert (await ask("GET", f"{url}/runs/r0"))[1] == {"run_id": "r0"}
    status, found = await ask("GET", f"{url}/runs/r1")
    assert (status, found["decision"]) == (200, None)
    _, listed = await ask("GET", f"{url}/runs?since=150")
    assert [each["run_id"] for each in listed["runs"]] == ["r1"]
    _, listed = await ask("GET", f"{url}/runs?limit=1&config_hash=c&target=t")
    assert [each["run_id"] for each in listed["runs"]] == ["r1"]
    _, trend = await ask("GET", f"{url}/trend")
    assert [point["run_id"] for point in trend["trends"][0]["points"]] == ["r0"]
    assert (await ask("GET", f"{url}/search?q=%22%20OR%20x"))[1] == {"found": []}


@pytest.mark.parametrize(
    ("path", "status", "param"),
    [
        ("/runs/none", 404, None),
        ("/runs/%27%20OR%201=1", 404, None),
        ("/runs?since=yesterday", 400, "$.since"),
        ("/runs?since=nan", 400, "$.since"),
        ("/runs?since=-1", 400, "$.since"),
        ("/runs?limit=0", 400, "$.limit"),
        ("/runs?limit=1001", 400, "$.limit"),
        ("/runs?limit=1e9", 400, "$.limit"),
        ("/search", 400, None),
        ("/search?q=x&kind=secrets", 400, "$.kind"),
    ],
)
async def test_wrong_questions_get_an_answer(
    served: tuple[str, Path], path: str, status: int, param: str | None
) -> None:
    found, answer = await ask("GET", f"{served[0]}{path}")
    assert (found, answer["error"]["param"]) == (status, param), answer


@asynccontextmanager
async def told(folder: Path, history: str) -> AsyncIterator[str]:
    """Serve what a history tells, beside a run of this process that has not ended and one that is only kept here."""
    ledger = Ledger(folder / "gate.db")
    for name in ("going", "inline"):
        ledger.begin(Run(run_id=name, config_hash="c", target="t", verifier="v", snapshot="s", begun=5.0))
    ended = Run(run_id="inline", config_hash="c", target="t", verifier="v", snapshot="s", begun=5.0, decision="warn")
    ledger.end(ended, '{"run_id": "inline"}')
    past = SharedPast.of(history)
    async with serving(Evaluation({"ci": Runs(evaluate, ledger, past)}, root=folder).operations) as (url, _):
        yield url
    await past.close()


async def test_a_history_of_many_machines_is_told_from_when_there_is_one(tmp_path: Path) -> None:
    run = Run(
        run_id="elsewhere", config_hash="c", target="t", verifier="v", snapshot="s", begun=9.0, ended=10.0,
        decision="deploy", risk=0.0, total_claims=1, supported=1, weakly_supported=0, unsupported=0,
    )  # fmt: skip
    async with shared_history() as history, told(tmp_path, history) as url:
        assert await ask("GET", f"{url}/runs") == (200, {"runs": []})
        assert await ask("GET", f"{url}/trend") == (200, {"trends": []})
        shared = await SharedPast.open(history)
        said = Said(run_id="elsewhere", kind="claim", item="p1.c1", at=9.0, text="refunds take 5 days")
        await shared.record(run, '{"run_id": "elsewhere"}', [said])
        await shared.close()
        _, listed = await ask("GET", f"{url}/runs?target=t&since=1")
        assert [each["run_id"] for each in listed["runs"]] == ["elsewhere"]
        _, trend = await ask("GET", f"{url}/trend?config_hash=c")
        assert trend["trends"][0]["models"][0]["decisions"] == {"deploy": 1}
        _, found = await ask("GET", f"{url}/search?q=refunds&kind=claim")
        assert [each["text"] for each in found["found"]] == [said.text]
        for known in ("elsewhere", "inline"):
            assert await ask("GET", f"{url}/runs/{known}") == (200, {"run_id": known})
        assert (await ask("GET", f"{url}/runs/going"))[1]["decision"] is None
        assert (await ask("GET", f"{url}/runs/none"))[0] == 404


@pytest.mark.parametrize("path", ["/runs", "/runs/elsewhere", "/trend", "/search?q=refunds"])
async def test_a_history_that_is_away_is_told_with_what_to_do(tmp_path: Path, path: str) -> None:
    async with told(tmp_path, "http://127.0.0.1:1/gate") as url:
        status, answer = await ask("GET", f"{url}{path}")
        assert (status, answer["error"]["code"]) == (503, "evidence_unavailable")
        assert "the operator's log says" in answer["error"]["message"]
        assert "127.0.0.1" not in answer["error"]["message"]
        assert (await ask("GET", f"{url}/runs/going"))[0] == 200


async def test_a_file_of_runs_that_can_not_be_read_is_told_without_its_place(served: tuple[str, Path]) -> None:
    url, root = served
    with closing(sqlite3.connect(root.parent / "gate.db")) as other:
        other.execute("drop table runs")
    status, answer = await ask("GET", f"{url}/runs")
    assert (status, answer["error"]["code"]) == (503, "runs_unavailable"), answer
    assert "`gate.db`" in answer["error"]["message"]
    assert str(root.parent) not in answer["error"]["message"]


def runs_of(folder: Path, name: str) -> Runs:
    """Return the runs of a caller: one that was decided and said a word, and one that goes on."""
    ledger = Ledger(folder / f"{name}.db")
    for id_, at in ((f"{name}-done", 1.0), (f"{name}-going", 2.0)):
        ledger.begin(Run(run_id=id_, config_hash="c", target="t", verifier="v", snapshot="s", begun=at))
    said = Said(run_id=f"{name}-done", kind="claim", item="p1.c1", at=1.0, text=f"secret of {name}")
    done = Run(
        run_id=f"{name}-done", config_hash="c", target="t", verifier="v", snapshot="s", begun=1.0, ended=2.0,
        decision="deploy", risk=0.0,
    )  # fmt: skip
    ledger.end(done, json.dumps({"run_id": done.run_id}), [said])

    async def own(config: GateSettings, *, resume: str | None = None) -> Report:
        if resume is not None and ledger.run(resume) is None:
            raise GateError(f"there is no run `{resume}` that could go on")
        return report(config, resume or name)

    return Runs(own, ledger)


async def test_callers_are_shown_their_own_runs_alone(tmp_path: Path) -> None:
    (tmp_path / ".llm-reliability.yaml").write_text(json.dumps(LEAST))
    runs: dict[str | None, Runs] = {name: runs_of(tmp_path, name) for name in ("anna", "bert")}
    keys = {"anna": "key-a", "bert": "key-b"}
    async with serving(Evaluation(runs, root=tmp_path).operations, keys=keys) as (url, _):
        for name, other in (("anna", "bert"), ("bert", "anna")):
            key = {"authorization": f"Bearer {keys[name]}"}

            async def got(path: str, key: dict[str, str] = key) -> tuple[int, Any]:
                return await ask("GET", f"{url}{path}", headers=key)

            async def evaluated(asked: object, key: dict[str, str] = key) -> tuple[int, Any]:
                return await ask("POST", f"{url}/evaluate", asked, key)

            assert [each["run_id"] for each in (await got("/runs"))[1]["runs"]] == [f"{name}-going", f"{name}-done"]
            assert (await got("/trend"))[1]["trends"][0]["models"][0]["decisions"] == {"deploy": 1}
            assert [each["text"] for each in (await got("/search?q=secret"))[1]["found"]] == [f"secret of {name}"]
            for state in ("done", "going"):
                assert (await got(f"/runs/{name}-{state}"))[0] == 200
                status, answer = await got(f"/runs/{other}-{state}")
                assert (status, answer["error"]["code"]) == (404, "not_found")
            assert (await evaluated({"resume": f"{name}-going"}))[1]["run_id"] == f"{name}-going"
            assert (await evaluated({"resume": f"{other}-going"}))[0] == 400
            assert (await evaluated({}))[1]["run_id"] == name
