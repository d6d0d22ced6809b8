"""Claims: three grains, their places, and what is no claim."""

from __future__ import annotations

import pytest

from checkstream.grounding.claims import Level, checkable, claims
from checkstream.grounding.remarks import not_checkable

RULES = "Our return policy allows returns within 30 days, and shipping is free for orders over $50."
MERGED = "SSN College definitely closed in 2026 and merged with SNU."


def texts(answer: str, level: Level) -> list[str]:
    return [claim.text for claim in claims(answer, level)]


def test_a_claim_of_level_0_is_a_sentence() -> None:
    assert texts(f"{MERGED} {RULES}", Level.SENTENCE) == [MERGED[:-1], RULES[:-1]]


def test_level_1_cuts_before_a_verb_and_copies_no_subject() -> None:
    assert texts(MERGED, Level.CLAUSE) == ["SSN College definitely closed in 2026", "merged with SNU"]


@pytest.mark.parametrize(
    "whole",
    [
        "The office is open on weekdays and it is closed on Sundays",
        "She bought bread and red apples at the market",
        "It ran and ended",
        "Acme makes cars and trucks for the whole world",
    ],
)
def test_level_1_keeps_what_has_no_verb_or_is_short(whole: str) -> None:
    assert texts(whole, Level.CLAUSE) == [whole]


def test_level_2_copies_the_subject() -> None:
    assert texts(MERGED, Level.ATOMIC) == ["SSN College definitely closed in 2026", "SSN College merged with SNU"]


def test_a_subject_is_copied_without_its_citation() -> None:
    found = claims("The college [S0] definitely closed in 2026 and merged with SNU [S1].", Level.ATOMIC)
    assert [claim.text for claim in found] == ["The college definitely closed in 2026", "The college merged with SNU"]


def test_level_2_cuts_between_clauses_with_subjects_of_their_own() -> None:
    assert texts(RULES, Level.ATOMIC) == [
        "Our return policy allows returns within 30 days",
        "shipping is free for orders over $50",
    ]
    assert texts("It supports HTTP and HTTPS, but it does not support FTP; SSH is planned.", Level.ATOMIC) == [
        "It supports HTTP and HTTPS",
        "it does not support FTP",
        "SSH is planned",
    ]


def test_a_cut_never_falls_into_a_citation() -> None:
    (claim,) = claims("It rose [Source: terms; sales and is final] in May.", Level.ATOMIC)
    assert claim.text == "It rose in May"
    assert claim.citing == ("terms; sales and is final",)


@pytest.mark.parametrize("level", Level)
def test_places_lead_back_into_the_answer(level: Level) -> None:
    answer = f"Hello! {MERGED} [S0]\n- The price is 4.2 million."
    for claim in claims(answer, level):
        assert claim.text.rsplit(maxsplit=1)[-1] in answer[claim.start : claim.end]


def test_every_part_of_a_sentence_carries_its_citations() -> None:
    found = claims(f"{MERGED} [S0, S1]", Level.CLAUSE)
    assert [claim.citing for claim in found] == [("S0", "S1")] * 2


def test_marks_of_lists_are_no_part_of_a_claim() -> None:
    assert texts("- The first item\n2. The second item\n## The third item", Level.SENTENCE) == [
        "The first item",
        "The second item",
        "The third item",
    ]


def test_what_is_no_statement_is_marked_and_kept() -> None:
    found = claims("Hello! Is it open? I don't know. Ok. The office is open.")
    assert [claim.not_checkable for claim in found] == ["greeting", "question", "abstention", "fragment", ""]
    assert [claim.text for claim in checkable(found)] == ["The office is open"]


@pytest.mark.parametrize("answer", ["", "  ", "...", "[S0]", "***", "\ud800"])
def test_what_has_no_letters_has_no_claim(answer: str) -> None:
    assert claims(answer, Level.ATOMIC) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Hello!",
        "Hi there, Anna.",
        "Good morning",
        "Thank you for your question!",
        "You're welcome.",
        "I hope this helps!",
        "Let me know if you need anything else.",
        "שלום!",
        "תודה רבה",
        "Guten Tag!",
        "Vielen Dank für Ihre Frage.",
        "Bonjour !",
        "¡Hola!",
    ],
)
def test_greetings_are_told(sentence: str) -> None:
    assert not_checkable(sentence) == "greeting"


@pytest.mark.parametrize(
    "sentence",
    [
        "I don't know.",
        "I’m sorry, but I can’t answer that.",
        "Unfortunately, I do not have that information.",
        "As an AI, I cannot give advice.",
        "The provided documents do not mention refunds.",
        "אין לי מידע על כך.",
        "לצערי אני לא יודעת",
        "Leider habe ich dazu keine Informationen.",
        "Das weiß ich leider nicht.",
        "Je ne sais pas.",
        "Lo siento, no tengo información.",
    ],
)
def test_abstentions_are_told(sentence: str) -> None:
    assert not_checkable(sentence) == "abstention"


@pytest.mark.parametrize(
    "sentence",
    [
        "I don't know exactly, but the fee is $500.",
        "I'm not sure; the office closed in 2019.",
        "The provided documents do not mention refunds, but they allow exchanges within 30 days.",
        "Das weiß ich leider nicht, aber die Gebühr beträgt 5 Euro.",
        "אני לא יודע בדיוק, אבל העמלה היא 500 שקל.",
    ],
)
def test_a_statement_behind_an_abstention_is_checked(sentence: str) -> None:
    assert not_checkable(sentence) == ""


@pytest.mark.parametrize(
    "sentence",
    [
        "I don't know, but I can help you with other questions.",
        "I cannot answer that, but please contact our support team.",
        "I don't have that information, but feel free to ask me something else.",
        "I can't say: that is confidential.",
    ],
)
def test_an_offer_behind_an_abstention_is_no_statement(sentence: str) -> None:
    assert not_checkable(sentence) == "abstention"


@pytest.mark.parametrize(
    "sentence", ["Is it open?", "Really?!", 'He asked: "Why?"', "האם זה פתוח?", "هل هذا؟", "你呢？"]
)
def test_questions_are_told(sentence: str) -> None:
    assert not_checkable(sentence) == "question"


@pytest.mark.parametrize(
    "sentence",
    [
        "Hello Kitty was created in 1974.",
        "Welcome bonuses are paid in May.",
        "Sure, it costs 5 euros.",
        "Thanks to the grant, Acme hired 50 people.",
        "The documents mention refunds.",
        "Good afternoon tea costs 30 pounds.",
    ],
)
def test_a_statement_that_only_begins_so_stays_a_claim(sentence: str) -> None:
    assert not_checkable(sentence) == ""


@pytest.mark.parametrize(
    "line",
    ["## Refund policy overview", "**Key points:**", "1. **Supported systems**", "Supported systems:",
     "# Öffnungszeiten", "### מדיניות החזרים", "- **Coût de la livraison :**"],
)  # fmt: skip
def test_a_line_that_only_names_what_follows_is_a_heading(line: str) -> None:
    assert not_checkable(line) == "heading"


@pytest.mark.parametrize(
    "line",
    ["## Refunds take 14 days", "**Opened software is not refundable**", "The fee is as follows:", "# Kinder sind frei",
     "The warranty lasts long", "**Warranty** and shipping", "## החזר אינו אפשרי: אין", "## No refunds",
     "## A very long line of words that goes on and on and names so much"],
)  # fmt: skip
def test_a_heading_that_states_something_is_checked(line: str) -> None:
    assert not_checkable(line) == ""


def test_a_short_claim_in_a_wide_script_is_no_fragment() -> None:
    assert [claim.not_checkable for claim in claims("退款在30天内可以。是的。")] == ["", "fragment"]


def test_brackets_around_a_citation_go_with_it() -> None:
    assert texts("It is free (see [S0]) and fast ([1], [2]).", Level.SENTENCE) == ["It is free and fast"]
    assert texts("Call f() and wait [S0].", Level.SENTENCE) == ["Call f() and wait"]
