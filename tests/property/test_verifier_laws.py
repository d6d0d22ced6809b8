"""Laws of the embedded verifier: more evidence never lowers a score, excerpts lie in their passage, nothing is NaN."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from checkstream.grounding.embedded import EmbeddedVerifier
from checkstream.grounding.terms import Claim, Judgement, Passage, Verdict

_WORDS = (
    "the a is not no never refund refunds paid within 30 60 days -5 17:30 5 pm Acme Berlin grew fell open closed "
    "$50 4.2% 2019 March , . ? ! [S0] והחזר 30 ימים 東京 \ud800 \u0000 - ( )"
)
WORDS = st.sampled_from(_WORDS.split())
TEXTS = st.lists(WORDS, max_size=24).map(" ".join) | st.text(max_size=40)


def judged(claim: str, passages: Sequence[str]) -> Judgement:
    asked = EmbeddedVerifier().judge(
        [Claim(text=claim, start=0, end=len(claim))],
        [Passage(id=str(number), text=text) for number, text in enumerate(passages)],
    )
    try:
        asked.send(None)
    except StopIteration as told:
        found: list[Judgement] = told.value
        return found[0]
    raise AssertionError("the embedded verifier waited")


@given(TEXTS, st.lists(TEXTS, max_size=4), TEXTS)
def test_a_passage_more_never_lowers_a_score(claim: str, passages: list[str], more: str) -> None:
    assert judged(claim, [*passages, more]).score >= judged(claim, passages).score
    first, last = judged(claim, [more, *passages]), judged(claim, [*passages, more])
    assert (first.score, first.verdict) == (last.score, last.verdict)


@given(TEXTS, st.lists(TEXTS, max_size=3))
def test_a_judgement_is_a_number_with_a_reason_and_shows_what_is_there(claim: str, passages: list[str]) -> None:
    found = judged(claim, passages)
    assert math.isfinite(found.score)
    assert 0 <= found.score <= 1
    assert found.reason
    for excerpt in found.excerpts:
        assert 0 <= excerpt.start < excerpt.end <= len(passages[int(excerpt.passage_id)])
    if not any(passage.strip() for passage in passages):
        assert found.verdict in {Verdict.UNSUPPORTED, Verdict.NOT_CHECKABLE}


@given(st.lists(WORDS.filter(str.isalpha), min_size=2, max_size=12).map(lambda words: f"{' '.join(words)}."))
def test_a_sentence_supports_itself(sentence: str) -> None:
    assert judged(sentence, [sentence]).verdict in {Verdict.SUPPORTED, Verdict.NOT_CHECKABLE}
