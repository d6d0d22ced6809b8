"""A model of pairs as verifier: the best piece of any passage decides, and what the model fails is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from checkstream.errors import ScoringError
from checkstream.grounding.cross_encoder import CrossEncoderVerifier
from checkstream.grounding.embedded import EmbeddedVerifier
from checkstream.grounding.terms import Claim, Passage, Verdict
from checkstream.scoring.pairs import PairReading

CLAIM = Claim(text="The refund takes 30 days.", start=0, end=25)


class Numbers:
    """Reads each word of a premise as a piece: `e9` entails with 0.9, `c8` contradicts with 0.8; `!` fails."""

    name, version = "numbers", "1.0.0"

    def read(self, premise: str, claim: str) -> Iterator[PairReading]:
        del claim
        at = 0
        for word in premise.split():
            at = premise.index(word, at)
            if word == "!":
                raise ScoringError("it is broken", reason="crash")
            share = int(word[1:]) / 10
            scores = {"e": (share, 0.0), "c": (0.0, share)}.get(word[0], (0.0, 0.0))
            yield PairReading(at, at + len(word), dict(zip(("entailment", "contradiction"), scores, strict=True)))


@pytest.mark.parametrize(
    ("texts", "verdict", "score", "excerpt"),
    [
        (("e1 e9 e2",), Verdict.SUPPORTED, 0.9, ("0", 3, 5)),
        (("e1", "c9 e6"), Verdict.SUPPORTED, 0.6, ("1", 3, 5)),
        (("e4", "n0 c7"), Verdict.CONTRADICTED, 0.4, ("1", 3, 5)),
        (("e4", "e3 c4"), Verdict.WEAKLY_SUPPORTED, 0.4, ("0", 0, 2)),
        (("e1", "e2 c4"), Verdict.UNSUPPORTED, 0.2, ("1", 0, 2)),
    ],
)
async def test_the_best_piece_decides(
    texts: tuple[str, ...], verdict: Verdict, score: float, excerpt: tuple[str, int, int]
) -> None:
    passages = [Passage(id=str(number), text=text) for number, text in enumerate(texts)]
    (found,) = await CrossEncoderVerifier(Numbers()).judge([CLAIM], passages)
    assert (found.verdict, found.score) == (verdict, score)
    assert [(each.passage_id, each.start, each.end) for each in found.excerpts] == [excerpt]


async def test_more_evidence_never_lowers_a_score() -> None:
    verifier = CrossEncoderVerifier(Numbers())
    scores = []
    for count in range(1, 5):
        passages = [Passage(id=str(number), text=text) for number, text in enumerate(["e3", "c9", "e5", "e1"][:count])]
        (found,) = await verifier.judge([CLAIM], passages)
        scores.append(found.score)
    assert scores == sorted(scores)


async def test_what_the_model_fails_is_told_or_judged_by_the_fallback() -> None:
    passages = [Passage(id="0", text="e9 !"), Passage(id="1", text=CLAIM.text)]
    (alone,) = await CrossEncoderVerifier(Numbers()).judge([CLAIM], passages)
    assert (alone.verdict, alone.score, alone.degraded) == (Verdict.UNSUPPORTED, 0.5, ("cross_encoder:crash",))
    assert "it is broken" in alone.reason
    (other,) = await CrossEncoderVerifier(Numbers(), EmbeddedVerifier()).judge([CLAIM], passages)
    assert (other.verdict, other.degraded) == (Verdict.SUPPORTED, ("cross_encoder:crash",))
    good, bad = await CrossEncoderVerifier(Numbers()).entailed([("e7", "x"), ("!", "x")])
    assert (good.low, good.high, good.error) == (0.7, 0.7, "")
    assert (bad.low, bad.high, bad.error) == (0.0, 1.0, "it is broken")


async def test_a_claim_that_takes_too_long_is_told_and_the_next_one_is_judged() -> None:
    gate = threading.Event()

    class Slow(Numbers):
        def read(self, premise: str, claim: str) -> Iterator[PairReading]:
            if claim == "slow":
                gate.wait(20)
            return super().read(premise, claim)

    verifier = CrossEncoderVerifier(Slow(), claim_s=0.05)
    (late,) = await verifier.judge([Claim(text="slow", start=0, end=4)], [Passage(id="0", text="e9")])
    gate.set()
    assert late.degraded == ("cross_encoder:deadline",)
    verifier = CrossEncoderVerifier(Slow())
    (found,) = await verifier.judge([CLAIM], [Passage(id="0", text="e9")])
    assert found.verdict is Verdict.SUPPORTED


async def test_one_call_at_a_time_reads() -> None:
    """The reader is for one thread; calls that come together take turns."""
    inside = [0, 0]

    class Counting(Numbers):
        def read(self, premise: str, claim: str) -> Iterator[PairReading]:
            inside[0] += 1
            inside[1] = max(inside)
            yield from super().read(premise, claim)
            inside[0] -= 1

    import asyncio

    verifier = CrossEncoderVerifier(Counting())
    await asyncio.gather(*(verifier.judge([CLAIM], [Passage(id="0", text="e9 " * 50)]) for _ in range(8)))
    assert inside == [0, 1]
