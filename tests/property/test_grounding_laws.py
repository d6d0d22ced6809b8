"""Laws of grounding: sentences cover their text, formulas keep their reduced forms, nothing is ever NaN."""

from __future__ import annotations

import math
from itertools import pairwise, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from checkstream.grounding import budget, decision, entailment, fusion, rag, replies, risk
from checkstream.grounding.citations import citations
from checkstream.grounding.claims import Level, claims
from checkstream.grounding.coverage import RagStatus
from checkstream.grounding.evidence_check import Pair, decided, masked
from checkstream.grounding.sentences import sentences
from checkstream.grounding.terms import Claim, Entailment, Passage
from checkstream.grounding.windows import windows

PIECES = st.sampled_from(
    [
        *(
            "The office is open",
            " closed",
            " and merged with",
            " Dr",
            "e.g",
            "U.S",
            "4.2%",
            "15.03.2023",
            "v2.0",
            " 1",
            "[S0]",
        ),
        *(
            "[1, 2]",
            "(Source: 1)",
            "[",
            "]",
            "(",
            ")",
            ".",
            ". ",
            "? ",
            "!",
            "...",
            "。",
            "؟ ",
            "।",
            "\n",
            "\n\n",
            "- ",
            "# ",
            " ",
        ),
        *(
            "שלום",
            "הערעור נדחה",
            "今天天气",
            '"',
            "”",
            ", and shipping is free",
            "; ",
            "no",
            "Yes",
            " 5,000 employees",
            "\ud800",
        ),
    ]
)
TEXTS = st.one_of(st.lists(PIECES, max_size=40).map("".join), st.text(max_size=80))
SHARES = st.floats(0, 1)


@given(TEXTS)
@example(". [S0]\n[S0].")
def test_sentences_cover_the_text_in_order_and_nothing_twice(text: str) -> None:
    at = 0
    for span in sentences(text):
        assert at <= span.start < span.end <= len(text)
        assert not text[at : span.start].strip()
        assert text[span.start : span.end] == text[span.start : span.end].strip()
        at = span.end
    assert not text[at:].strip()


@given(TEXTS)
def test_no_sentence_ends_inside_a_citation(text: str) -> None:
    edges = {edge for span in sentences(text) for edge in (span.start, span.end)}
    for citation in citations(text):
        assert edges.isdisjoint(range(citation.start + 1, citation.end))


@given(TEXTS, st.sampled_from(Level))
@example(".  and merged with and merged with", Level.ATOMIC)
@example("A [S0] b and merged with others", Level.ATOMIC)
def test_claims_lie_in_their_sentences_and_are_the_same_each_time(text: str, level: Level) -> None:
    found = claims(text, level)
    assert found == claims(text, level)
    spans = sentences(text)
    for claim in found:
        assert any(span.start <= claim.start < claim.end <= span.end for span in spans)
        assert claim.text == " ".join(claim.text.split())


@given(TEXTS)
def test_a_finer_level_never_has_fewer_claims(text: str) -> None:
    counts = [len(claims(text, level)) for level in Level]
    assert counts[0] <= counts[1]
    assert counts[0] <= counts[2]


@given(SHARES, SHARES, st.booleans(), st.sampled_from(["seed", "strict"]))
@example(0.85, 0.7, True, "seed")
@example(0.4, 0.1, True, "seed")
@example(1.0, 0.0, True, "strict")
def test_the_budget_decides_by_its_reduced_form(p1: float, p0: float, cited: bool, profile: budget.Profile) -> None:
    found = budget.grounding(p1, p0, cited=cited, profile=profile)
    use = max(0.0, round(p1 - p0, 9))
    expected = p1 > 0.7 if not cited else use > 0.15 if p1 > 0.7 else use > 0.3
    likely = profile == "seed" or p1 >= 0.5
    near = min(abs(use - 0.15), abs(use - 0.3)) < 1e-8
    assert near or found.grounded == (expected and likely)


@given(SHARES, SHARES, st.booleans())
def test_no_figure_of_the_budget_is_nan_or_infinite(p1: float, p0: float, cited: bool) -> None:
    found = budget.grounding(p1, p0, cited=cited)
    figures = [found.confidence, found.observed_bits, found.required_bits, found.budget_gap_bits, found.evidence_use]
    figures += [found.audit.required_bits, found.audit.observed_bits_signed, found.audit.gap_bits]
    assert all(math.isfinite(figure) for figure in figures)
    assert 0 <= found.confidence <= 1
    assert found.audit.observed_bits_signed * (p1 - p0) >= 0


@given(SHARES, SHARES)
def test_a_divergence_is_not_negative_and_none_from_itself(p: float, q: float) -> None:
    assert budget.kl_bernoulli(p, q) >= -1e-12
    assert budget.kl_bernoulli(p, p) == pytest.approx(0.0)


@given(st.lists(st.none() | st.tuples(SHARES, SHARES), max_size=12))
def test_every_claim_is_grounded_ungrounded_or_an_error(given_pairs: list[tuple[float, float] | None]) -> None:
    failed = Entailment(low=0.0, high=1.0, error="late")
    known = [pair and tuple(Entailment(low=share, high=share) for share in pair) for pair in given_pairs]
    pairs = [Pair(posterior=pair[0], prior=pair[1]) if pair else Pair(posterior=failed, prior=failed) for pair in known]
    found = decided([Claim(text="x", start=0, end=1, citing=("S0",)) for _ in pairs], pairs)
    assert found.grounded_claims + found.ungrounded + found.errors == len(pairs)
    assert found.grounding_ratio is None or 0 <= found.grounding_ratio <= 1
    assert (found.overall_grounded is None) == bool(pairs and found.errors == len(pairs))


def test_the_risk_has_only_the_totals_that_its_weights_reach() -> None:
    totals = {
        risk.score(risk.Signals(**dict(zip(risk.Signals.__struct_fields__, on, strict=True))))
        for on in product((False, True), repeat=4)
    }
    assert totals == {0, 15, 20, 35, 40, 50, 55, 60, 70, 75, 90, 95, 100}


@given(TEXTS, TEXTS, st.one_of(st.none(), st.lists(TEXTS.map(lambda text: {"content": text}), max_size=3)))
def test_an_analysis_of_any_text_succeeds_and_is_the_same_each_time(
    prompt: str, answer: str, documents: object
) -> None:
    found = risk.analyze(prompt, answer, documents)
    assert found == risk.analyze(prompt, answer, documents)
    assert found.error is None
    assert found.risk_score == risk.score(found.signals)
    high_needs = found.signals.internal_contradiction or found.signals.rag_contradiction
    assert found.risk_level != "HIGH" or high_needs


@given(TEXTS)
def test_without_evidence_nothing_is_supported(answer: str) -> None:
    assert all(
        claim.rag_status == RagStatus.UNVERIFIED for claim in risk.analyze("", answer, [{"content": " "}]).claims
    )


@given(TEXTS)
def test_ten_documents_that_share_no_term_change_no_claim(answer: str) -> None:
    own = [{"content": "The office is open. It merged with SNU."}]
    foreign = [{"content": f"Zebras graze quietly near lake number {at}."} for at in range(10)]
    assert risk.analyze("", answer, own) == risk.analyze("", answer, own + foreign)


@given(TEXTS, st.lists(TEXTS, max_size=4), st.none() | TEXTS, st.none() | TEXTS, st.booleans())
def test_a_verification_is_within_its_bounds(
    answer: str,
    texts: list[str],
    alignment: str | None,
    facts: str | None,
    strict: bool,
) -> None:
    chunks = [Passage(id=str(at), text=text, metadata={"ticker": text[:5]}) for at, text in enumerate(texts)]
    found = rag.reckoned(answer, chunks, alignment, facts, strict=strict)
    for score in (
        found.overall_score,
        found.answer_source_alignment,
        found.citation_coverage,
        found.fact_verification_score,
    ):
        assert 0 <= score <= 1


@given(st.text(alphabet='{}[]",:\\ a1.nul', max_size=60))
def test_reading_a_reply_never_raises(reply: str) -> None:
    assert replies.first_object(reply) is None or isinstance(replies.first_object(reply), dict)


@given(st.lists(st.tuples(st.text(max_size=4), st.floats(max_value=5)), max_size=6))
def test_a_probability_of_yes_is_an_interval(shown: list[tuple[str, float]]) -> None:
    found = entailment.p_yes(shown)
    assert 0 <= found.low <= found.high <= 1


@given(
    st.lists(
        st.one_of(st.sampled_from(["supported", "weakly supported", "unsupported"]), st.text(max_size=9), st.none())
    )
)
def test_the_gate_counts_every_claim_once(labels: list[str | None]) -> None:
    found = decision.score_risk(labels, decision.Thresholds())
    assert found.supported + found.weakly_supported + found.unsupported == found.total_claims == len(labels)
    assert 0 <= found.risk <= 1


@given(st.integers(0, 300), st.integers(1, 40), st.data())
def test_windows_cover_everything_and_overlap_by_what_was_asked(count: int, size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    found = windows(count, size, overlap)
    assert [at for span in found for at in range(span.start + (overlap if span.start else 0), span.end)] == list(
        range(count)
    )
    assert all(span.end - span.start == size for span in found[:-1])
    assert all(later.end > earlier.end for earlier, later in pairwise(found))


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), max_size=4))
def test_fused_ranks_hold_every_id_once_and_fall(lists: list[list[str]]) -> None:
    found = fusion.reciprocal_rank(lists)
    assert sorted(id_ for id_, _ in found) == sorted({id_ for ranked in lists for id_ in ranked})
    assert found == sorted(found, key=lambda scored: (-scored[1], scored[0]))


@given(TEXTS)
def test_masking_adds_no_statement(text: str) -> None:
    assert set(masked(text).replace("[QUESTION]", "")) <= set(text)
