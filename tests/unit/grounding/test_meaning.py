"""The embedded verifier with a model beside it: other words for the same count, other facts don't."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from checkstream.app.evidence import sentence_encoder
from checkstream.core.terms import Span
from checkstream.errors import ScoringError
from checkstream.grounding.embedded import EmbeddedVerifier
from checkstream.grounding.embedded.nearness import Nearness, Rows
from checkstream.grounding.meaning import MeaningVerifier
from checkstream.grounding.terms import Claim, Judgement, Passage, Verdict, Verifier

EVIDENCE = "The physician treated the child at the clinic in Boston in 2019. The operation lasted 4 hours."


@pytest.fixture(scope="module")
def meaning() -> MeaningVerifier:
    return MeaningVerifier(sentence_encoder())


async def judged(verifier: Verifier, text: str, evidence: str = EVIDENCE) -> Judgement:
    (found,) = await verifier.judge([Claim(text=text, start=0, end=len(text))], [Passage(id="S0", text=evidence)])
    return found


async def test_other_words_for_the_same_count(meaning: MeaningVerifier) -> None:
    text = "The doctor treated the kid at the hospital in Boston."
    assert (await judged(meaning, text)).score > (await judged(EmbeddedVerifier(), text)).score + 0.1


@pytest.mark.parametrize(
    "text",
    [
        "The physician treated the child at the clinic in Boston in 2018.",
        "The physician treated the child at the clinic in Chicago in 2019.",
        "The physician did not treat the child at the clinic in Boston in 2019.",
        "The operation lasted 5 hours.",
        "Penguins live in the south.",
    ],
)
async def test_no_model_makes_a_wrong_fact_right(meaning: MeaningVerifier, text: str) -> None:
    with_model, without = await judged(meaning, text), await judged(EmbeddedVerifier(), text)
    assert with_model.verdict is not Verdict.SUPPORTED
    assert with_model.score < 0.5
    assert without.score < 0.5


async def test_a_model_that_fails_costs_its_part_alone() -> None:
    class Broken:
        name = "broken"

        async def words(self, asked: Sequence[tuple[str, Sequence[Span]]]) -> list[Rows]:
            del asked
            raise ScoringError("it is broken", reason="deadline")

    text = "The operation lasted 4 hours."
    found = await judged(MeaningVerifier(Broken()), text)
    assert found.degraded == ("embedding:deadline",)
    assert found.score == (await judged(EmbeddedVerifier(), text)).score


async def test_a_claim_that_is_its_evidence_may_be_longer_than_a_claim_is_read(meaning: MeaningVerifier) -> None:
    text = "the operation lasted four hours and " * 60
    found = await judged(meaning, text, text)
    assert found.verdict is Verdict.SUPPORTED


def test_nearness_is_nothing_for_unlike_words_and_all_for_the_same() -> None:
    there = np.eye(4, dtype=np.float32)
    said = np.array([[2, 0, 0, 0], [0, 3, 3, 0], [0, 0, 0, 0]], np.float32)
    near = Nearness(said, there)
    assert near.within(0, 4) == [1.0, pytest.approx((0.5**0.5 - 0.3) / 0.5, abs=1e-5), 0.0]
    assert near.within(1, 1) == [0.0, 0.0, 0.0]
    assert near.within(3, 4) == [0.0, 0.0, 0.0]


async def test_with_a_model_too_a_passage_more_never_lowers_a_score(meaning: MeaningVerifier) -> None:
    texts = (
        EVIDENCE,
        "A surgeon operated in 2018.",
        "Penguins walk over the ice.",
        "The clinic did not open in Boston.",
    )
    passages = [Passage(id=str(number), text=text) for number, text in enumerate(texts)]
    claims = [Claim(text=text, start=0, end=len(text)) for text in (*texts, f"{texts[1]} {texts[3]}")]
    before = [0.0] * len(claims)
    for count in range(1, len(passages) + 1):
        scores = [each.score for each in await meaning.judge(claims, passages[:count])]
        assert all(score >= least for score, least in zip(scores, before, strict=True))
        before = scores
