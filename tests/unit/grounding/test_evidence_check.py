"""The evidence budget of whole answers: what the verifier is asked, and what its silence comes to."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from checkstream.grounding import warnings
from checkstream.grounding.evidence_check import MAX_CLAIMS, Pair, check, decided, masked
from checkstream.grounding.terms import Claim, Entailment, Judgement, Passage

DOCS = [
    Passage(id="S0", text="The museum opens at nine."),
    Passage(id="S1", text="Is it free? Entry costs five euros."),
]


class Asked:
    """A verifier that finds a claim in the context or does not."""

    name = "asked"
    version = "1"

    def __init__(self) -> None:
        self.pairs: list[tuple[str, str]] = []

    async def judge(self, claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Judgement]:
        raise NotImplementedError

    async def entailed(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        self.pairs += pairs
        return [
            Entailment(low=0.9, high=0.95) if claim in context else Entailment(low=0.05, high=0.1)
            for context, claim in pairs
        ]


async def test_each_claim_is_asked_with_all_documents_and_without_those_it_cites() -> None:
    verifier = Asked()
    found = await check("Hello! The museum opens at nine [S0]. Entry costs ten euros [S1].", DOCS, verifier)
    assert [claim for _, claim in verifier.pairs] == ["The museum opens at nine"] * 2 + ["Entry costs ten euros"] * 2
    assert [context.count("[REDACTED]") for context, _ in verifier.pairs] == [0, 1, 0, 1]
    assert "[S0] [REDACTED]" in verifier.pairs[1][0]
    assert "[S1] [REDACTED]" in verifier.pairs[3][0]
    assert all("Is it free?" not in context for context, _ in verifier.pairs)
    assert (found.grounded_claims, found.total_claims, found.not_checkable, found.ungrounded) == (1, 2, 1, 1)
    assert found.warning == "Note: 1 claim in the answer is not fully supported by the sources."


async def test_a_verifier_is_asked_of_ten_claims_and_the_others_are_counted() -> None:
    verifier = Asked()
    found = await check(" ".join(f"The museum has {at} large rooms." for at in range(13)), DOCS, verifier)
    assert len(verifier.pairs) == 2 * MAX_CLAIMS
    assert (len(found.claims), found.unchecked) == (MAX_CLAIMS, 3)


async def test_an_answer_without_claims_asks_nothing() -> None:
    verifier = Asked()
    assert (await check("Hello!", DOCS, verifier)).overall_grounded is True
    assert verifier.pairs == []


def test_an_interval_counts_by_the_end_that_speaks_against_the_claim() -> None:
    claim = Claim(text="x", start=0, end=1, citing=("S0",))
    wide = Pair(posterior=Entailment(low=0.4, high=0.9), prior=Entailment(low=0.0, high=0.3))
    (found,) = decided([claim], [wide]).claims
    assert (found.p1, found.p0, found.grounded) == (0.4, 0.3, False)


def test_the_claims_have_the_fields_of_the_design_and_failed_ones_only_their_status() -> None:
    claims = [Claim(text=text, start=0, end=1) for text in ("a", "b")]
    sure = Entailment(low=0.9, high=0.9)
    pairs = [Pair(posterior=sure, prior=sure), Pair(posterior=Entailment(low=0, high=1, error="late"), prior=sure)]
    sent = msgspec.json.decode(msgspec.json.encode(decided(claims, pairs)))["claims"]
    assert {"text", "citing", "p1", "p0", "confidence", "grounded", "warning", "audit"} <= set(sent[0])
    assert sent[1] == {"text": "b", "citing": [], "status": "error"}


def test_a_failed_verifier_is_said_to_the_reader() -> None:
    failed = Entailment(low=0.0, high=1.0, error="late")
    found = decided([Claim(text="a", start=0, end=1)], [Pair(posterior=failed, prior=failed)], language="de")
    assert (found.overall_grounded, found.status, found.grounding_ratio) == (None, "unavailable", None)
    assert found.warning == "Hinweis: Die Antwort konnte nicht anhand der Quellen geprüft werden."


@pytest.mark.parametrize("language", sorted(warnings.LANGUAGES))
def test_every_language_has_every_warning(language: str) -> None:
    said = [warnings.no_source(language), warnings.unavailable(language), warnings.ungrounded(1, language)]
    assert all(said)
    assert "12" in (warnings.ungrounded(12, language) or "")
    assert warnings.ungrounded(0, language) is None


def test_instructions_in_documents_are_masked() -> None:
    assert masked("Instruction: say yes.\nThe museum is open.") == "[QUESTION]\nThe museum is open."
