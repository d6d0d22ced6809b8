"""The verifier that reads: a model and the embedded verifier judge together, and surfaces have a veto."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Iterator
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.errors import ScoringError
from checkstream.grounding.embedded import EmbeddedVerifier
from checkstream.grounding.reader import MOST_READ, SUPPORTED, ReaderVerifier, held_down, together
from checkstream.grounding.terms import Claim, Judgement, Passage, Verdict
from checkstream.scoring.pairs import PairReading

SAID = "The physician treated the child at the clinic for three weeks."
SHARE = st.floats(0, 1)


class Saying:
    """Reads as it is told: premises that hold a word are supported or denied so surely."""

    name, version = "reader", "1.0.0"

    def __init__(self, supported: float = 0.9, denied: float = 0.05, fails: Literal["crash"] | None = None) -> None:
        self.asked: list[tuple[str, str]] = []
        self._said = (supported, denied)
        self._fails = fails

    def read(self, premise: str, claim: str) -> Iterator[PairReading]:
        self.asked.append((premise, claim))
        if self._fails is not None:
            raise ScoringError("it is broken", reason=self._fails)
        yield PairReading(0, len(premise), dict(zip(("entailment", "contradiction"), self._said, strict=True)))


def claim(text: str) -> Claim:
    return Claim(text=text, start=0, end=len(text))


async def judged(reader: Saying, text: str, *passages: str) -> Judgement:
    texts = [Passage(id=str(number), text=passage) for number, passage in enumerate(passages or (SAID,))]
    (found,) = await ReaderVerifier(reader).judge([claim(text)], texts)
    return found


async def test_other_words_for_the_same_are_supported_with_what_was_read() -> None:
    found = await judged(Saying(0.97, 0.01), "The doctor looked after the kid at the hospital.")
    assert found.verdict is Verdict.SUPPORTED
    assert found.score >= SUPPORTED
    assert found.reason == "read together, the evidence says it (probability 0.97)"
    assert [(each.passage_id, each.start, each.end) for each in found.excerpts] == [("0", 0, len(SAID))]


async def test_the_same_words_keep_the_reason_of_the_embedded_verifier() -> None:
    found = await judged(Saying(), SAID)
    assert (found.verdict, found.reason) == (Verdict.SUPPORTED, "the evidence says it in nearly the same words")


async def test_words_in_another_order_are_not_supported_where_the_model_denies_it() -> None:
    found = await judged(Saying(0.02, 0.95), "The child treated the physician at the clinic for three weeks.")
    assert (found.verdict, found.reason) == (
        Verdict.CONTRADICTED,
        "read together, the evidence denies it (probability 0.95)",
    )
    assert found.score < SUPPORTED


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (SAID.replace("three", "five"), "the claim says `five weeks`, the evidence `three weeks`"),
        ("Ann Lee met Bob on 4 May 2021.", "the claim says `4 May 2021`, the evidence `4 May 2020`"),
        ("Ann Lee met Carl on 4 May 2020.", "the claim names `Carl`, the evidence `Bob`"),
        ("Ann Lee never met Bob on 4 May 2020.", "claim and evidence differ in whether `met` is denied"),
    ],
)
async def test_another_number_date_or_name_is_never_voted_down(text: str, reason: str) -> None:
    found = await judged(Saying(0.999, 0.0), text, SAID, "Ann Lee met Bob on 4 May 2020.")
    assert (found.verdict, found.reason) == (Verdict.CONTRADICTED, reason)
    assert found.score < SUPPORTED


async def test_what_neither_sees_is_unsupported_and_both_say_why() -> None:
    found = await judged(Saying(0.01, 0.02), "Penguins live in the south.")
    assert (found.verdict, found.score < 0.2) == (Verdict.UNSUPPORTED, True)
    assert found.reason.endswith("; read together, the evidence does not say it (probability 0.01)")
    assert "`Penguins`" in found.reason


async def test_without_evidence_or_a_claim_nothing_is_read() -> None:
    reader = Saying()
    assert (await judged(reader, SAID, " \n")).verdict is Verdict.UNSUPPORTED
    assert (await judged(reader, "?!")).verdict is Verdict.NOT_CHECKABLE
    greeting = Claim(text="Hello!", start=0, end=6, not_checkable="a greeting")
    (found,) = await ReaderVerifier(reader).judge([greeting], [Passage(id="0", text=SAID)])
    assert (found.verdict, found.reason) == (Verdict.NOT_CHECKABLE, "a greeting")
    assert not reader.asked


async def test_what_the_model_fails_the_embedded_verifier_judges_and_it_is_told() -> None:
    passage = [Passage(id="0", text=SAID)]
    (own,) = await EmbeddedVerifier().judge([claim(SAID)], passage)
    (found,) = await ReaderVerifier(Saying(fails="crash")).judge([claim(SAID)], passage)
    assert (found.verdict, found.score, found.reason) == (own.verdict, own.score, own.reason)
    assert found.degraded == ("reader:crash",)
    (chance,) = await ReaderVerifier(Saying(fails="crash")).entailed([(SAID, SAID)])
    assert (chance.low, chance.high) == (own.score, own.score)


async def test_a_claim_that_takes_too_long_is_judged_without_the_model() -> None:
    gate = threading.Event()

    class Slow(Saying):
        def read(self, premise: str, claim: str) -> Iterator[PairReading]:
            gate.wait(20)
            return super().read(premise, claim)

    (late,) = await ReaderVerifier(Slow(), claim_s=0.05).judge([claim(SAID)], [Passage(id="0", text=SAID)])
    gate.set()
    assert (late.verdict, late.degraded) == (Verdict.SUPPORTED, ("reader:deadline",))


async def test_of_many_passages_those_are_read_that_share_most_with_the_claim() -> None:
    reader = Saying()
    strangers = [f"Goods of kind {number} are sent by ship and stored in halls." for number in range(10)]
    near = [SAID, SAID.replace("clinic", "ward"), SAID.replace("child", "boy"), SAID.replace("weeks", "months")]
    await judged(reader, SAID, *strangers, *near)
    read = [premise for premise, _ in reader.asked]
    assert len(read) == MOST_READ
    assert set(read) <= set(near)
    assert SAID in read


async def test_passages_that_share_little_with_a_claim_move_no_score() -> None:
    alone = await judged(Saying(), SAID)
    strangers = [f"Goods of kind {number} are sent by ship and stored in halls." for number in range(10)]
    assert (await judged(Saying(), SAID, *strangers, SAID)).score == alone.score


async def test_calls_that_come_together_take_turns_at_the_model() -> None:
    inside = [0, 0]

    class Counting(Saying):
        def read(self, premise: str, claim: str) -> Iterator[PairReading]:
            inside[0] += 1
            inside[1] = max(inside)
            yield from super().read(premise, claim)
            inside[0] -= 1

    verifier = ReaderVerifier(Counting())
    await asyncio.gather(*(verifier.judge([claim(SAID)], [Passage(id="0", text=SAID)]) for _ in range(8)))
    assert inside == [0, 1]


@given(SHARE, SHARE, SHARE, SHARE)
def test_a_score_rises_with_what_speaks_for_a_claim_and_a_veto_keeps_it_down(
    supported: float, denied: float, surface: float, other: float
) -> None:
    score = together(supported, denied, surface)
    assert 0 < score < 1
    assert together(max(supported, other), denied, surface) >= score
    assert together(supported, denied, max(surface, other)) >= score
    assert together(supported, max(denied, other), surface) <= score
    assert 0 < held_down(score) < SUPPORTED
    assert math.isfinite(held_down(score))
