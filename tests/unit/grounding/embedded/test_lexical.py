"""What a stretch of evidence says of a sentence: words, order, numbers, names and polarity each count."""

import pytest

from checkstream.grounding.embedded.lexical import SUPPORTED, Conflict, Coverage, Sentence, coverage, prepared
from checkstream.grounding.embedded.reading import reading, words

EVIDENCE = "The refund is paid within 30 days to customers in Germany, and the shop is open on Sunday."


def sentence(text: str) -> Sentence:
    return prepared(text, words(text))


def covered(claim: str, evidence: str = EVIDENCE, passage: str | None = None) -> Coverage:
    whole = passage or evidence
    return coverage(sentence(claim), sentence(evidence), reading(whole, words(whole)))


def test_the_same_sentence_is_wholly_covered() -> None:
    said = covered(EVIDENCE)
    assert said.score == pytest.approx(1.0)
    assert not said.found
    assert not said.missing


def test_a_shorter_true_sentence_is_covered() -> None:
    assert covered("The refund is paid within 30 days.").score >= SUPPORTED
    assert covered("Refunds are paid within thirty days.").score >= SUPPORTED


def test_a_word_that_is_missing_lowers_the_score_and_is_named() -> None:
    said = covered("The refund is paid within 30 days by cheque.")
    assert said.score < covered("The refund is paid within 30 days.").score
    assert said.missing == ("cheque",)


def test_words_in_another_order_say_less() -> None:
    one = "John beat Mary in the final match in Rome"
    assert covered("Mary beat Rome in the final John match", one).score < covered(one, one).score - 0.1


@pytest.mark.parametrize(
    ("claim", "conflict", "there"),
    [
        ("The refund is paid within 60 days.", Conflict.NUMBER, "30 days"),
        ("The refund is paid to customers in France.", Conflict.NAME, "Germany"),
        ("The refund is not paid within 30 days.", Conflict.NEGATION, "paid"),
        ("The shop is closed on Sunday.", Conflict.OPPOSITE, "open"),
    ],
)
def test_one_changed_fact_is_found_shown_and_no_longer_supported(claim: str, conflict: Conflict, there: str) -> None:
    said = covered(claim)
    assert said.score < SUPPORTED
    assert [(each.conflict, each.there) for each in said.found] == [(conflict, there)]


def test_a_number_that_evidence_lacks_is_found_without_another_in_its_place() -> None:
    (found,) = covered("The shop is open on Sunday for 80 guests.", "The shop is open on Sunday for guests.").found
    assert (found.conflict, found.said, found.there) == (Conflict.NUMBER, "80", "")


def test_a_name_elsewhere_in_the_passage_is_carried_over_by_a_pronoun() -> None:
    passage = "Elvis Presley was a singer. He recorded his first song in 1954."
    said = covered("Elvis recorded his first song in 1954.", "He recorded his first song in 1954.", passage)
    assert said.score >= SUPPORTED
    assert not said.found


def test_a_claim_of_function_words_alone_is_not_covered_by_other_words() -> None:
    assert covered("", EVIDENCE).score == 0
    assert 0 <= covered("It is.", EVIDENCE).score <= 1


def test_a_bare_number_has_the_same_value_in_words() -> None:
    assert covered("Twelve people came to the party.", "12 people came to the party.").score >= SUPPORTED
