"""Short texts are shown to a gate together; those that it doubts are read by the model, each by itself (G33)."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.scoring import Scorer, ScorerLimits
from checkstream.scoring.line import LaneLimits
from tests.chance import examples
from tests.fake_scorers import PATIENT_MS, GatedFake, gated, rig

TEXTS = st.lists(st.sampled_from(["calm", "calm again", "loud", "high", "pause", ""]), min_size=2, max_size=12)


async def asked(scorer: Scorer, texts: Sequence[str], caller: str | None = None) -> dict[str, float]:
    parts = [len(text) for text in texts]
    question = scorer.ask(("fake",), "\n".join(texts), PATIENT_MS, ingress=True, parts=parts, caller=caller)
    return (await question.answer()).scores


def read(session: GatedFake) -> list[str]:
    """Return what the model has read."""
    return sorted(text for batch in session.batches for text in batch)


def doubted(texts: Sequence[str]) -> list[str]:
    """Return the texts that the model has to read: those of a group that the gate doubts, but what it clears alone."""
    groups = [texts[at : at + 3] for at in range(0, len(texts), 3)]
    loud = [text for group in groups if any(not text.startswith("calm") for text in group) for text in group]
    return sorted(text for text in loud if not text.startswith("calm"))


@settings(max_examples=examples(60), deadline=None)
@given(texts=TEXTS.map(lambda texts: [text for text in texts if text != "pause"]).filter(lambda texts: len(texts) > 1),
       ahead=st.sampled_from([1, 20, 2_048]))  # fmt: skip
def test_g33_texts_that_are_asked_about_together_score_as_the_highest_of_them(texts: list[str], ahead: int) -> None:
    async def run() -> None:
        async with gated(ScorerLimits(lane=LaneLimits(ahead_tokens=ahead))) as (session, scorer):
            scores = await asked(scorer, texts)
            assert read(session) == doubted(texts)
            highest = 1.0 if "high" in texts else 0.25 if doubted(texts) else 0.01
            assert scores["fake.a"] == pytest.approx(highest)

    asyncio.run(run())


@settings(max_examples=examples(20), deadline=None)
@given(texts=TEXTS.map(lambda texts: [text for text in texts if text not in ("pause", "")]).filter(bool))
def test_g33_what_was_read_together_is_not_read_again_alone(texts: list[str]) -> None:
    async def run() -> None:
        async with gated() as (session, scorer):
            session.spells = True
            await asked(scorer, [*texts, "loud"], caller="one")
            before = list(session.batches)
            await asked(scorer, [*texts, "loud"], caller="one")
            for text in doubted([*texts, "loud"]):
                scores = await scorer.ask(("fake",), text, PATIENT_MS, ingress=True, caller="one").answer()
                assert scores.scores["fake.a"] == (1.0 if text == "high" else 0.25)
            assert session.batches == before

    asyncio.run(run())


@pytest.mark.parametrize("broken", ["crash", "nan", "uncuttable"])
async def test_a_text_that_can_not_be_read_fails_all_that_it_was_asked_about_with(broken: str) -> None:
    async with gated() as (_, scorer):
        with pytest.raises(Exception, match="fake"):
            await asked(scorer, ["calm", broken, "loud"])
        assert (await asked(scorer, ["calm", "loud"]))["fake.a"] == 0.25


async def test_who_leaves_while_texts_are_parted_leaves_nothing_behind() -> None:
    async with gated() as (session, scorer):
        question = scorer.ask(("fake",), "loud\nwait\nloud", PATIENT_MS, ingress=True, parts=(4, 4, 4))
        await asyncio.to_thread(session.started.wait, 20)
        question.leave()
        session.go.set()


@pytest.mark.parametrize("inline", [True, False])
async def test_a_model_without_a_gate_reads_all_of_them_as_one_text(inline: bool) -> None:
    async with rig(inline=inline) as made:
        question = made.scorer.ask(("fake",), "loud\nmore", PATIENT_MS, ingress=True, parts=(4, 4))
        assert (await question.answer()).scores == {"fake.a": 0.25, "fake.b": 0.75}
        assert made.session.batches == [["loud\nmore"]]
