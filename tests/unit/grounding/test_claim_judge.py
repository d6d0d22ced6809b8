"""RAG verification by a verifier of claims: what its replies come to in the design's own formulas."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from checkstream.grounding import rag
from checkstream.grounding.claim_judge import ClaimJudge
from checkstream.grounding.embedded import EmbeddedVerifier
from checkstream.grounding.terms import Claim, Entailment, Judgement, Passage, Verdict

PASSAGES = [
    Passage(id="k1", text="Shipping is free for orders over 50 euros."),
    Passage(id="k2", text="Goods can be returned within 30 days of delivery."),
]


async def verified(answer: str) -> rag.Verification:
    return await rag.verify("May I return it?", answer, PASSAGES, ClaimJudge(EmbeddedVerifier()))


async def test_a_supported_answer_names_the_source_that_says_it() -> None:
    found = await verified("Goods can be returned within 30 days of delivery.")
    assert found.answer_source_alignment > 0.9
    assert (found.fact_verification_score, found.verified_sources, found.degraded) == (1.0, ("k2",), ())


async def test_a_wrong_number_is_not_verified() -> None:
    found = await verified(
        "Goods can be returned within 90 days of delivery. Shipping is free for orders over 50 euros."
    )
    assert found.unverified_claims == ("Goods can be returned within 90 days of delivery",)
    assert (found.fact_verification_score, found.verified_sources) == (0.5, ("k1",))


@pytest.mark.parametrize("answer", ["", "   ", "Hello!", "How may I help you?", "!!!"])
async def test_an_answer_without_claims_is_judged_by_the_fallbacks_of_the_design(answer: str) -> None:
    found = await verified(answer)
    assert found.degraded == ("alignment", "fact_verification")
    assert found.fact_verification_score == rag.UNKNOWN_FACTS


async def test_six_claims_are_five_facts() -> None:
    answer = " ".join(f"Parcel number {number} weighs {number} kilograms." for number in range(10, 16))
    reply = await ClaimJudge(EmbeddedVerifier()).facts(answer, PASSAGES)
    assert len(json.loads(reply or "")["claims"]) == rag.MAX_CLAIMS


async def test_passages_of_one_id_are_named_by_the_first_number() -> None:
    passage = Passage(id="same", text="Goods can be returned within 30 days of delivery.")
    reply = await ClaimJudge(EmbeddedVerifier()).facts(passage.text, [passage, passage])
    assert json.loads(reply or "")["claims"][0]["supporting_sources"] == [1]


class Failing:
    name, version = "failing", "1"

    async def judge(self, claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Judgement]:
        del passages
        return [
            Judgement(claim=claim, verdict=Verdict.UNSUPPORTED, score=0.5, reason="down", degraded=("judge:deadline",))
            for claim in claims
        ]

    async def entailed(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        raise AssertionError(pairs)


async def test_a_verifier_that_failed_is_told_as_a_judge_that_failed() -> None:
    found = await rag.verify("q", "Goods can be returned within 30 days.", PASSAGES, ClaimJudge(Failing()))
    assert found.degraded == ("alignment", "fact_verification")
