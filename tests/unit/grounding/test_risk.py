"""The risk engine around its worked cases: verdicts in place of words, batches, failures."""

from __future__ import annotations

import msgspec
import pytest

from checkstream.grounding import coverage, risk
from checkstream.grounding.coverage import Documents, RagStatus, terms
from checkstream.grounding.terms import Judgement, Verdict

RAG = [{"content": "Opened software is not refundable.", "metadata": {"page": 3}}]


@pytest.mark.parametrize(
    ("verdict", "score", "statuses"),
    [
        (Verdict.SUPPORTED, 0, [RagStatus.SUPPORTED]),
        (Verdict.WEAKLY_SUPPORTED, 15, [RagStatus.UNVERIFIED]),
        (Verdict.UNSUPPORTED, 15, [RagStatus.UNVERIFIED]),
        (Verdict.CONTRADICTED, 35, [RagStatus.CONTRADICTED]),
        (Verdict.NOT_CHECKABLE, 0, []),
    ],
)
def test_what_a_verifier_says_counts_as_what_words_say(verdict: Verdict, score: int, statuses: list[RagStatus]) -> None:
    answer = "Opened software is refundable."
    (claim,) = risk.claims_of(answer)
    rated = risk.rated_by([Judgement(claim=claim, verdict=verdict, score=0.5, reason="told")])
    assert [each.rag_status for each in rated] == statuses
    assert risk.rate("", answer, rated).risk_score == score


def test_the_output_has_the_fields_of_the_design_and_no_error_unless_there_is_one() -> None:
    sent = msgspec.json.decode(msgspec.json.encode(risk.analyze("", "The office is open.", RAG)))
    assert list(sent) == ["risk_score", "risk_level", "signals", "explanation", "claims"]
    assert set(sent["signals"]) == {"rag_contradiction", "rag_unverified", "internal_contradiction", "overconfidence"}
    assert list(sent["claims"][0]) == ["text", "rag_status"]


def test_a_batch_keeps_its_order() -> None:
    answers = ["The result is 100% right.", "", "The office is open."]
    batch = risk.analyze_batch([{"prompt": "", "llm_response": answer, "rag_results": RAG} for answer in answers])
    assert batch == [risk.analyze("", answer, RAG) for answer in answers]


@pytest.mark.parametrize(("total", "level"), [(0, "LOW"), (34, "LOW"), (35, "MEDIUM"), (69, "MEDIUM"), (70, "HIGH")])
def test_bands_begin_where_the_design_says(total: int, level: str) -> None:
    assert risk.level(total) == level


def test_terms_are_words_and_in_scripts_without_spaces_pairs_of_letters() -> None:
    assert terms("The Museum's doors") == {"museum", "doors"}
    assert terms("הספרייה של") == {"הספרייה"}
    assert terms("博物馆开") == {"博物", "物馆", "馆开"}


@pytest.mark.parametrize("claim", ["", "it is so", "!!!"])
def test_a_claim_without_terms_is_not_verified(claim: str) -> None:
    assert Documents(["it is so"]).status(claim) == RagStatus.UNVERIFIED


def test_work_does_not_grow_with_claims_times_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []

    def spied(sentence: object, _: frozenset[str]) -> bool:
        looked.append(sentence)
        return False

    monkeypatch.setattr(coverage, "_speaks_against", spied)
    text = "".join(f"Acme has {10_000 + number} friendly dogs. " for number in range(1500))
    analysis = risk.analyze("", text, [{"content": text}])
    assert len(analysis.claims) == 1500
    assert len(looked) < 1500 * 600


def test_a_contradiction_is_found_behind_sentences_that_share_a_frequent_word() -> None:
    text = "The company grew. " * 1000 + "The company was not profitable."
    assert Documents([text]).status("The company was profitable") == RagStatus.CONTRADICTED


@pytest.mark.parametrize(
    ("evidence", "claim", "status"),
    [
        ("La garantía es de 24 meses y no cubre daños.", "La garantía es de 24 meses.", RagStatus.SUPPORTED),
        ("Delivery is free, but it is not insured.", "Delivery is free.", RagStatus.SUPPORTED),
        (
            "Opened software, games and music are not refundable.",
            "Opened games are refundable.",
            RagStatus.CONTRADICTED,
        ),
        ("Refunds are possible, but not for software.", "Refunds for software.", RagStatus.CONTRADICTED),
    ],
)
def test_a_negative_word_speaks_of_its_own_clause(evidence: str, claim: str, status: RagStatus) -> None:
    assert Documents([evidence]).status(claim) == status
