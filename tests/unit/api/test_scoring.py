"""The designs over HTTP: every worked case of theirs comes out alike, hostile requests are refused."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from checkstream.api.scoring import ANSWER_CHARS, MOST_CLAIMS, MOST_PASSAGES, MOST_REQUESTS, Scoring
from checkstream.grounding.claim_judge import ClaimJudge
from checkstream.grounding.embedded import EmbeddedVerifier
from checkstream.grounding.evidence_check import pair_of
from checkstream.grounding.rag import RagJudge
from checkstream.grounding.terms import Claim, Entailment, Judgement, Passage, Verifier
from tests.api_serving import ask, serving
from tests.conformance.case import Case, differences, read

CASES = [
    case
    for path in sorted((Path(__file__).parents[2] / "conformance" / "cases").glob("*.jsonl"))
    for case in read(path)
]
PATHS = {"analyze": "/api/analyze", "analyze_batch": "/api/analyze_batch", "verify": "/api/verify"}
OF_ANOTHER_TYPE = "wd-26-wrong-type"
"""Its answer is a number, which a function survives and an API refuses."""


class Scripted:
    """Says what a case says that its judge says."""

    name, version = "scripted", "1"

    def __init__(self) -> None:
        self.replies: dict[str, str | None] = {}
        self.pairs: list[Entailment] = []

    async def alignment(self, query: str, answer: str, passages: Sequence[Passage]) -> str | None:
        del query, answer, passages
        return self.replies.get("alignment")

    async def facts(self, answer: str, passages: Sequence[Passage]) -> str | None:
        del answer, passages
        return self.replies.get("facts")

    async def judge(self, claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Judgement]:
        raise AssertionError(claims, passages)

    async def entailed(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        assert len(pairs) == len(self.pairs)
        return self.pairs


@pytest_asyncio.fixture
async def scripted() -> AsyncIterator[tuple[str, Scripted]]:
    script = Scripted()
    async with served(script, script) as url:
        yield url, script


@pytest_asyncio.fixture
async def embedded() -> AsyncIterator[str]:
    verifier = EmbeddedVerifier()
    async with served(verifier, ClaimJudge(verifier)) as url:
        yield url


@asynccontextmanager
async def served(verifier: Verifier, judge: RagJudge) -> AsyncIterator[str]:
    with ThreadPoolExecutor(1) as threads:
        async with serving(Scoring(verifier, judge, threads).operations, body_bytes=1 << 20) as (url, _):
            yield url


def posted(case: Case) -> Any:
    """Return a case's input as a request: what its judge says is no part of it."""
    if not isinstance(case.input, dict):
        return case.input
    return {name: value for name, value in case.input.items() if name != "judge"}


async def test_every_case_of_the_designs_comes_out_alike(scripted: tuple[str, Scripted]) -> None:
    url, script = scripted
    cases = [case for case in CASES if case.fn in PATHS and case.id != OF_ANOTHER_TYPE]
    assert len(cases) > 130
    for case in cases:
        script.replies = case.input.get("judge", {}) if isinstance(case.input, dict) else {}
        status, found = await ask("POST", url + PATHS[case.fn], posted(case))
        assert status == 200, case.id
        assert list(differences(case.expected, found, case.tolerance, "")) == [], case.id


async def test_every_case_of_the_evidence_budget_comes_out_alike(scripted: tuple[str, Scripted]) -> None:
    url, script = scripted
    cases = [case for case in CASES if case.fn == "check" and case.input["claims"]]
    assert len(cases) > 10
    for case in cases:
        # Cases name claims; an answer that has them is one sentence for each, long enough to be one.
        text = {claim["text"]: f"This is what we call {claim['text']}" for claim in case.input["claims"]}
        answer = " ".join(
            f"{text[claim['text']]}{''.join(f' [{id_}]' for id_ in claim['citing'])}." for claim in case.input["claims"]
        )
        pairs = [pair_of(pair) for pair in case.input["probabilities"]]
        script.pairs = [side for pair in pairs for side in (pair.posterior, pair.prior)]
        asked = {
            "answer": answer,
            "docs": [{"id": "S0", "text": "x"}],
            "profile": case.input.get("profile", "seed"),
            "language": case.input.get("language", "en"),
        }
        status, found = await ask("POST", f"{url}/api/ground", asked)
        assert status == 200, case.id
        expected = {name: value for name, value in case.expected.items() if name != "claims"}
        expected["claims"] = [
            {**claim, **({"text": text[claim["text"]]} if "text" in claim else {})}
            for claim in case.expected.get("claims", [])
        ] or [{} for _ in case.input["claims"]]
        warning = expected.pop("warning", found["warning"])
        assert list(differences(expected, found["hallucination_check"], case.tolerance, "")) == [], case.id
        assert found["warning"] == warning, case.id


async def test_the_shapes_are_those_of_the_designs(embedded: str) -> None:
    answer = "Goods can be returned within 90 days [S0]. We are open on Sunday."
    text = "Goods can be returned within 30 days."
    _, risk = await ask("POST", f"{embedded}/api/analyze", {"llm_response": answer, "rag_results": [{"content": text}]})
    assert list(risk) == ["risk_score", "risk_level", "signals", "explanation", "claims"]
    assert list(risk["signals"]) == ["rag_contradiction", "rag_unverified", "internal_contradiction", "overconfidence"]
    chunks = [{"chunk_id": "c1", "text": text}]
    _, checked = await ask("POST", f"{embedded}/api/verify", {"query": "q", "answer": answer, "chunks": chunks})
    assert list(checked) == [
        *("overall_score", "answer_source_alignment", "citation_coverage", "fact_verification_score", "issues"),
        *("verified_sources", "unverified_claims", "degraded"),
    ]
    _, found = await ask("POST", f"{embedded}/api/ground", {"answer": answer, "docs": [{"id": "S0", "text": text}]})
    assert list(found) == ["hallucination_check", "warning"]
    check = found["hallucination_check"]
    assert {"overall_grounded", "grounded_claims", "total_claims", "grounding_ratio", "errors", "claims"} <= set(check)
    assert {"text", "citing", "p1", "p0", "confidence", "grounded", "warning"} <= set(check["claims"][0])
    assert [claim["grounded"] for claim in check["claims"]] == [False, False]


async def test_a_configured_verifier_judges_where_it_is_asked_to(embedded: str) -> None:
    asked = {
        "llm_response": "Goods can be returned within 90 days.",
        "rag_results": [{"content": "Goods can be returned within 30 days."}],
    }
    _, by_words = await ask("POST", f"{embedded}/api/analyze", asked)
    _, verified = await ask("POST", f"{embedded}/api/analyze", {**asked, "verified": True})
    assert [claim["rag_status"] for claim in by_words["claims"]] == ["SUPPORTED"]
    assert [claim["rag_status"] for claim in verified["claims"]] == ["CONTRADICTED"]


class Broken:
    name, version = "broken", "1"

    async def judge(self, claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Judgement]:
        assert claims
        assert passages
        raise ZeroDivisionError("a verifier broke its promise")

    async def entailed(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        raise AssertionError(pairs)


async def test_a_verifier_that_breaks_is_never_no_risk_and_is_asked_nothing_without_evidence() -> None:
    asked = {"llm_response": "Opened software is refundable.", "verified": True}
    async with served(Broken(), ClaimJudge(Broken())) as url:
        _, plain = await ask("POST", f"{url}/api/analyze", asked)
        status, found = await ask("POST", f"{url}/api/analyze", {**asked, "rag_results": [{"content": "x"}]})
    assert [claim["rag_status"] for claim in plain["claims"]] == ["UNVERIFIED"]
    assert (status, found["risk_score"], found["explanation"]) == (200, 35, "Analysis failed: ZeroDivisionError")


async def test_of_a_long_answer_the_first_claims_are_judged_and_the_rest_confirmed_by_nothing(embedded: str) -> None:
    answer = " ".join(f"Parcel number {number} weighs {number} kilograms." for number in range(1000, 1250))
    asked = {"llm_response": answer, "rag_results": [{"content": answer}], "verified": True}
    _, found = await ask("POST", f"{embedded}/api/analyze", asked)
    statuses = [claim["rag_status"] for claim in found["claims"]]
    assert (len(statuses), set(statuses[:MOST_CLAIMS])) == (250, {"SUPPORTED"})
    assert set(statuses[MOST_CLAIMS:]) == {"UNVERIFIED"}


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("analyze", {"llm_response": 5}, "$.llm_response"),
        ("analyze", {"prompt": "x"}, None),
        ("analyze", {"llm_response": "x" * (ANSWER_CHARS + 1)}, "$.llm_response"),
        ("analyze", {"llm_response": "x", "prompt": ["x"]}, "$.prompt"),
        ("analyze", {"llm_response": "x", "rag_result": []}, None),
        ("analyze", {"llm_response": "x", "verified": "yes"}, "$.verified"),
        ("analyze_batch", {}, None),
        ("analyze_batch", [5, {"llm_response": "x" * (ANSWER_CHARS + 1)}], "$[1].llm_response"),
        ("analyze_batch", [{"llm_response": 5, "prompt": "x" * (ANSWER_CHARS + 1)}], "$[0].prompt"),
        ("analyze_batch", [{}] * (MOST_REQUESTS + 1), None),
        ("verify", {"query": "q", "answer": None}, "$.answer"),
        ("verify", {"query": "q", "answer": "a", "identifiers": ["x"] * 17}, "$.identifiers"),
        ("verify", {"query": "q", "answer": "a", "strict": 1}, "$.strict"),
        ("analyze", {"llm_response": "a", "rag_results": [{}] * (MOST_PASSAGES + 1), "verified": True}, None),
        ("verify", {"query": "q", "answer": "a", "chunks": [{}] * (MOST_PASSAGES + 1)}, None),
        ("ground", {"answer": "a", "docs": {}}, "$.docs"),
        ("ground", {"answer": "a", "docs": [{"id": "S0"}]}, "$.docs[0]"),
        ("ground", {"answer": "a", "docs": [{"id": "", "text": "x"}]}, "$.docs[0].id"),
        ("ground", {"answer": "a", "docs": [{"id": "S0", "text": "x"}] * (MOST_PASSAGES + 1)}, "$.docs"),
        ("ground", {"answer": "a", "docs": [], "profile": "lenient"}, "$.profile"),
    ],
)
async def test_what_is_of_the_wrong_form_is_refused_with_its_place(
    embedded: str, path: str, body: object, param: str | None
) -> None:
    status, answer = await ask("POST", f"{embedded}/api/{path}", body)
    assert (status, answer["error"]["param"]) == (400, param), answer


HOSTILE = (
    "", " ", "\x00", "\u202e\u200b", "[S0]" * 5000, "[" * 5000, "." * 50_000, "a" * ANSWER_CHARS, "1e999 NaN -inf",
    "]]> <script>alert(1)</script> ${7*7} {{7*7}}", "and " * 10_000, "\U0001f600" * 1000, "S0] [S1", "\n" * 10_000,
)  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_texts_get_an_answer_that_trusts_nothing(embedded: str, text: str) -> None:
    status, risk = await ask(
        "POST", f"{embedded}/api/analyze", {"llm_response": text, "rag_results": [{"content": text}]}
    )
    assert (status, "error" in risk) == (200, False)
    shapes: tuple[object, ...] = (text, {}, [[]], [None, {"content": 5}], 5)
    for rag_results in shapes:
        status, risk = await ask("POST", f"{embedded}/api/analyze", {"llm_response": text, "rag_results": rag_results})
        assert (status, "error" in risk) == (200, False)
    chunks = [{"chunk_id": "c", "text": text, "metadata": {"ticker": text[:100], "year": None, "x": {"y": []}}}, text]
    asked = {"query": text, "answer": text, "chunks": chunks}
    status, checked = await ask("POST", f"{embedded}/api/verify", asked)
    assert status == 200
    assert all(0 <= checked[name] <= 1 for name in checked if name.endswith(("score", "alignment", "coverage")))
    status, found = await ask("POST", f"{embedded}/api/ground", {"answer": text, "docs": [{"id": "S0", "text": text}]})
    assert status == 200
    ratio = found["hallucination_check"]["grounding_ratio"]
    assert ratio is None or 0 <= ratio <= 1


async def test_no_documents_ground_nothing(embedded: str) -> None:
    _, found = await ask("POST", f"{embedded}/api/ground", {"answer": "Goods can be returned.", "docs": []})
    assert found["hallucination_check"]["overall_grounded"] is False
