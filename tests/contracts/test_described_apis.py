"""The APIs are as they are described, whoever asks and whatever is sent (schemathesis)."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from checkstream.api.evaluation import Evaluation, Runs
from checkstream.api.scoring import Scoring
from checkstream.gate.ledger import Ledger
from checkstream.gate.report import Report
from checkstream.gate.settings import GateSettings
from checkstream.grounding.claim_judge import ClaimJudge
from checkstream.grounding.embedded import EmbeddedVerifier
from tests.api_serving import KEY, serving
from tests.controlled import PEOPLE, Server, asked, attestation, key_of
from tests.described import Asking, Headers


async def described(url: str) -> dict[str, Any]:
    async with aiohttp.ClientSession() as client, client.get(f"{url}/openapi.json") as response:
        found: dict[str, Any] = await response.json()
        return found


def key(person: str) -> Headers:
    return lambda *_: {"authorization": f"Bearer {key_of(person)}"}


@pytest.mark.parametrize(
    "examples",
    [pytest.param(1, id="few"), pytest.param(20, id="many", marks=pytest.mark.nightly)],
)
async def test_the_control_server_s_api_is_as_described_for_each_role(tmp_path: Path, examples: int) -> None:
    async with Server(tmp_path).serving() as server:
        offer = {"digest": "d" * 64, "version": "1"}
        node = server.nodes["n1"]
        await asked("POST", server.url, "/v1/attestations", attestation(offered=[offer]), node=node)
        asking = Asking(
            await described(server.url), server.url, examples, {"fleet": "shop", "version": "1", "rollout": 1}
        )
        await asyncio.to_thread(asking.ask_all, {role: key(name) for name, role in PEOPLE.items()})
        await asyncio.to_thread(asking.ask_all, {"node": node.headers}, "node")
    assert not asking.faults, "\n\n".join(f"{name}: {fault}" for name, fault in asking.faults.items())
    assert {name for (name, status) in asking.statuses if status == 200} >= {
        "GET /v1/fleets/{fleet}", "GET /v1/rollouts", "POST /v1/rollouts", "POST /v1/allowances", "GET /v1/events",
    }  # fmt: skip


@pytest.mark.parametrize(
    "examples",
    [pytest.param(1, id="few"), pytest.param(20, id="many", marks=pytest.mark.nightly)],
)
async def test_the_scoring_and_gate_apis_are_as_described(tmp_path: Path, examples: int) -> None:
    verifier = EmbeddedVerifier()
    scoring = Scoring(verifier, ClaimJudge(verifier), ThreadPoolExecutor(1))
    gate = Evaluation({"ci": Runs(never, Ledger(tmp_path / "gate.db"))}, root=tmp_path)
    async with serving(scoring.operations + gate.operations) as (url, _):
        asking = Asking(await described(url), url, examples, {})
        await asyncio.to_thread(asking.ask_all, {"ci": lambda *_: KEY})
    assert not asking.faults, "\n\n".join(f"{name}: {fault}" for name, fault in asking.faults.items())


async def never(config: GateSettings, *, resume: str | None = None) -> Report:
    raise AssertionError(config, resume)
