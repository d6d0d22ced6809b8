"""Negation, opposites and negating prefixes are seen, whichever side has them."""

from collections.abc import Sequence

import pytest

from checkstream.grounding.embedded.polarity import opposite, turned
from checkstream.grounding.embedded.reading import Reading, reading, words


def read(text: str) -> Reading:
    return reading(text, words(text))


def found(claim: str, evidence: str, word: str) -> str | None:
    said, there = read(claim), read(evidence)
    at = [each.form for each in said.words].index(word)
    place = opposite(said, at, there)
    return None if place is None else there.words[place].form


@pytest.mark.parametrize(
    ("claim", "evidence", "word", "there"),
    [
        ("prices increased", "prices decreased", "increased", "decreased"),
        ("the shop is open", "the shop is closed", "open", "closed"),
        ("it was legal", "it was illegal", "legal", "illegal"),
        ("it is unlikely", "it is likely", "unlikely", "likely"),
        ("a disadvantage", "an advantage", "disadvantage", "advantage"),
        ("Umsätze gestiegen", "Umsätze gesunken", "gestiegen", "gesunken"),
        ("הכניסה מותר", "הכניסה אסור", "מותר", "אסור"),
    ],
)
def test_an_opposite_is_found(claim: str, evidence: str, word: str, there: str) -> None:
    assert found(claim, evidence, word) == there


def test_the_opposite_of_what_is_denied_is_no_opposite() -> None:
    assert found("the shop is open", "the shop is not closed", "open") is None


def test_words_that_share_letters_are_no_opposites() -> None:
    assert found("we import goods", "a port of goods", "import") is None


def placed(said: Reading, there: Reading) -> list[Sequence[int]]:
    return [there.places.get(word.stem, ()) for word in said.words]


def test_a_word_is_turned_when_one_side_denies_it_and_the_other_nowhere_does() -> None:
    said, there = read("it is not open"), read("it is open")
    assert turned(said, 3, there, placed(said, there))
    assert not turned(there, 2, there, placed(there, there))
    both = read("it is open now and was not open then")
    assert not turned(said, 3, both, placed(said, both))


def test_a_denial_that_stands_elsewhere_in_its_clause_is_the_same() -> None:
    said, there = read("refunds are not given after 30 days"), read("no refunds are given after 30 days")
    assert not any(turned(said, at, there, placed(said, there)) for at in range(len(said.words)))
    assert not any(turned(there, at, said, placed(there, said)) for at in range(len(there.words)))
    far = read("no fee is due and in all other cases and countries refunds are given after 30 days")
    assert turned(said, 3, far, placed(said, far))
