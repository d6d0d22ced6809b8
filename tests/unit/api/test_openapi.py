"""The description: valid OpenAPI 3.1, and true of every operation that is served."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from checkstream.api.evaluation import Evaluation, Runs
from checkstream.api.openapi import description
from checkstream.api.operation import Operation
from checkstream.api.scoring import Scoring
from checkstream.gate.ledger import Ledger
from checkstream.gate.report import Report
from checkstream.gate.settings import GateSettings
from checkstream.grounding.claim_judge import ClaimJudge
from checkstream.grounding.embedded import EmbeddedVerifier
from tests.api_serving import ask, serving

ANSWER = "Goods can be returned within 30 days [S0]."
ASKED: dict[str, Any] = {
    "/api/analyze": {"prompt": "q", "llm_response": ANSWER, "rag_results": [{"content": ANSWER}]},
    "/api/analyze_batch": [{"llm_response": ANSWER}, 5],
    "/api/verify": {"query": "q", "answer": ANSWER, "chunks": [{"chunk_id": "c", "text": ANSWER}]},
    "/api/ground": {"answer": ANSWER, "docs": [{"id": "S0", "text": ANSWER}]},
}


async def never(config: GateSettings, *, resume: str | None = None) -> Report:
    raise AssertionError(config, resume)


def operations(folder: Path) -> tuple[Operation, ...]:
    verifier = EmbeddedVerifier()
    scoring = Scoring(verifier, ClaimJudge(verifier), ThreadPoolExecutor(1))
    return scoring.operations + Evaluation({"ci": Runs(never, Ledger(folder / "gate.db"))}, root=folder).operations


@pytest.mark.parametrize("keys", [True, False])
def test_it_is_valid(tmp_path: Path, *, keys: bool) -> None:
    told = description(operations(tmp_path), "1.0", keys=keys)
    OpenAPIV31SpecValidator(told).validate()
    assert ("security" in told) is keys
    assert set(told["paths"]) == {
        *ASKED, "/evaluate", "/runs", "/runs/{run_id}", "/trend", "/search"
    }  # fmt: skip


def schema_of(told: dict[str, Any], path: str, status: str) -> dict[str, Any]:
    (method,) = told["paths"][path].values()
    found = method["responses"][status]["content"]["application/json"]["schema"]
    return {**found, "components": told["components"]}


async def test_what_is_answered_is_as_described(tmp_path: Path) -> None:
    async with serving(operations(tmp_path)) as (url, _):
        _, told = await ask("GET", f"{url}/openapi.json", headers={})
        for path, asked in ASKED.items():
            status, answer = await ask("POST", url + path, asked)
            assert status == 200
            jsonschema.validate(answer, schema_of(told, path, "200"))
        for path in ("/runs", "/trend", "/search?q=x"):
            status, answer = await ask("GET", url + path)
            assert status == 200
            jsonschema.validate(answer, schema_of(told, path.partition("?")[0], "200"))
        _, answer = await ask("POST", f"{url}/api/ground", {})
        jsonschema.validate(answer, schema_of(told, "/api/ground", "400"))
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"risk_score": "high"}, schema_of(told, "/api/analyze", "200"))


def test_parameters_are_told_with_their_bounds(tmp_path: Path) -> None:
    told = description(operations(tmp_path), "1.0", keys=True)
    (limit,) = [each for each in told["paths"]["/runs"]["get"]["parameters"] if each["name"] == "limit"]
    assert (limit["in"], limit["required"], limit["schema"]["maximum"]) == ("query", False, 1000)
    (run,) = told["paths"]["/runs/{run_id}"]["get"]["parameters"]
    assert (run["in"], run["required"]) == ("path", True)
    assert not {"RunsQuery", "RunQuery"} & set(told["components"]["schemas"])
