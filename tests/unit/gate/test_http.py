from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from checkstream.config import Address
from checkstream.errors import StepFailed
from checkstream.gate.http import GateFace
from checkstream.gate.ledger import Ledger
from checkstream.gate.report import Report
from checkstream.gate.settings import GateSettings
from checkstream.gate.terms import Run
from checkstream.listen import Admission, Callers, Listener, Times

TIMES = Times(header_s=5, write_s=5)
KEY = {"authorization": "Bearer secret"}
LEAST = {
    "use_case": "bot",
    "thresholds": {"deploy": 0.1, "warn": 0.25},
    "model": {"provider": "openai", "model_id": "m", "url": "http://localhost:8000"},
}


def report(config: GateSettings) -> Report:
    return Report(
        run_id="r1", begun=1.0, ended=2.0, score=0.0, decision="deploy", reason="", total_claims=0, supported=0,
        unsupported=0, weakly_supported=0, contradicted=0, not_checkable=0, details=(), use_case=config.use_case,
        target="t", verifier="v", config_hash="c", snapshot="s", thresholds={}, prompts=(), responses=(),
    )  # fmt: skip


@pytest_asyncio.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[str, Path]]:
    async def evaluate(config: GateSettings) -> Report:
        if config.use_case == "failing":
            raise StepFailed("responses", "p1", "model `m` can't be reached")
        return report(config)

    root = tmp_path / "root"
    root.mkdir()
    ledger = Ledger(tmp_path / "gate.db")
    for name, at in (("r0", 100.0), ("r1", 200.0)):
        run = Run(run_id=name, config_hash="c", target="t", verifier="v", snapshot="s", begun=at)
        ledger.begin(run)
        if name == "r0":
            ledger.end(msgspec.structs.replace(run, ended=at, decision="deploy", risk=0.0), '{"run_id":"r0"}')
    face = GateFace(
        evaluate,
        ledger,
        root=root,
        callers=Callers({"ci": "secret"}),
        admission=Admission(streams=2, held_bytes=1 << 20),
        times=TIMES,
        body_bytes=4096,
    )
    listener = Listener(face.respond, TIMES)
    await listener.open(Address("127.0.0.1", 0))
    try:
        yield f"http://{listener.address}", root
    finally:
        await listener.close()


async def ask(method: str, url: str, body: object = None, headers: dict[str, str] | None = None) -> tuple[int, object]:
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    async with (
        aiohttp.ClientSession() as client,
        client.request(method, url, data=data, headers=KEY if headers is None else headers) as response,
    ):
        return response.status, json.loads(await response.read())


async def test_an_inline_configuration_is_evaluated(served: tuple[str, Path]) -> None:
    status, found = await ask("POST", f"{served[0]}/evaluate", {"config": LEAST})
    assert status == 200
    assert isinstance(found, dict)
    assert {
        "run_id",
        "score",
        "decision",
        "total_claims",
        "supported",
        "unsupported",
        "weakly_supported",
        "details",
    } <= set(found)


async def test_a_file_below_the_root_is_evaluated_and_the_usual_name_by_default(served: tuple[str, Path]) -> None:
    url, root = served
    (root / "sub").mkdir()
    for path in (root / ".llm-reliability.yaml", root / "sub" / "own.yaml"):
        path.write_text(json.dumps(LEAST))
    assert (await ask("POST", f"{url}/evaluate", {}))[0] == 200
    assert (await ask("POST", f"{url}/evaluate", b""))[0] == 200
    assert (await ask("POST", f"{url}/evaluate", {"config_path": "sub/own.yaml"}))[0] == 200


@pytest.mark.parametrize(
    "path",
    ["../gate.db", "/etc/passwd", "sub/../../gate.db", "missing.yaml", "", ".", "a\x00b", "link.yaml", "x" * 5000],
)
async def test_no_path_leads_out_of_the_root(served: tuple[str, Path], path: str) -> None:
    url, root = served
    (root / "link.yaml").symlink_to("/etc/passwd")
    status, found = await ask("POST", f"{url}/evaluate", {"config_path": path})
    assert status in {404, 413}
    assert "root:" not in json.dumps(found)


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        (b"{", 400, "not of the form"),
        (b"\xff", 400, "not of the form"),
        (b"[" * 3000, 400, "not of the form"),
        ({"config": LEAST, "config_path": "x"}, 400, "both given"),
        ({"unknown": 1}, 400, "not of the form"),
        ({"config": {"use_case": "x"}}, 400, "missing risk_tolerance"),
        ({"config": {**LEAST, "use_case": "failing"}}, 502, "step `responses` failed at item `p1`"),
        (b'{"config": {"use_case": "' + b"x" * 5000, 413, "bytes"),
    ],
)
async def test_what_can_not_be_evaluated_is_told(served: tuple[str, Path], body: object, status: int, why: str) -> None:
    found, answer = await ask("POST", f"{served[0]}/evaluate", body)
    assert found == status
    assert why in json.dumps(answer)


async def test_a_file_that_is_no_configuration_is_told(served: tuple[str, Path]) -> None:
    url, root = served
    (root / "bad.yaml").write_text("{")
    status, found = await ask("POST", f"{url}/evaluate", {"config_path": "bad.yaml"})
    assert (status, "`bad.yaml` is no YAML" in json.dumps(found)) == (400, True)


async def test_nothing_is_told_to_who_has_no_key(served: tuple[str, Path]) -> None:
    for method, path in (
        ("POST", "/evaluate"),
        ("GET", "/runs"),
        ("GET", "/runs/r0"),
        ("GET", "/trend"),
        ("GET", "/search"),
    ):
        assert (await ask(method, f"{served[0]}{path}", headers={}))[0] == 401


async def test_runs_are_told(served: tuple[str, Path]) -> None:
    url, _ = served
    assert (await ask("GET", f"{url}/runs/r0"))[1] == {"run_id": "r0"}
    status, found = await ask("GET", f"{url}/runs/r1")
    assert (status, isinstance(found, dict) and found["decision"]) == (200, None)
    _, listed = await ask("GET", f"{url}/runs?since=150")
    assert isinstance(listed, dict)
    assert [each["run_id"] for each in listed["runs"]] == ["r1"]
    _, trend = await ask("GET", f"{url}/trend")
    assert isinstance(trend, dict)
    assert [point["run_id"] for point in trend["trends"][0]["points"]] == ["r0"]
    assert (await ask("GET", f"{url}/search?q=%22%20OR%20x"))[1] == {"found": []}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/runs/none", 404),
        ("GET", "/nothing", 404),
        ("GET", "/evaluate", 405),
        ("POST", "/runs", 405),
        ("GET", "/runs?since=yesterday", 400),
        ("GET", "/runs?since=nan", 400),
        ("GET", "/runs?limit=-1", 400),
    ],
)
async def test_wrong_requests_get_an_answer(served: tuple[str, Path], method: str, path: str, status: int) -> None:
    found, answer = await ask(method, f"{served[0]}{path}")
    assert found == status
    assert isinstance(answer, dict)
    assert answer["error"]["message"]
