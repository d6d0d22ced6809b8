"""A flip changes one fact of a sentence that stands in its document, and nothing else."""

import random
from difflib import SequenceMatcher

import pytest

from bench.flips import KINDS, flips

DOCUMENT = (
    "The museum was opened in March 1998 by Anna Weber and has 12,400 visitors a year. "
    "It is not open on Mondays, and it can be rented for 350 euros. Short."
)


def test_every_kind_of_change_leaves_the_rest_of_the_sentence() -> None:
    found = [flip for seed in range(30) for flip in flips([DOCUMENT], seed)]
    assert {flip.kind for flip in found} == set(KINDS)
    for flip in found:
        assert flip.true in DOCUMENT
        assert flip.false != flip.true
        changed = SequenceMatcher(None, flip.true.split(), flip.false.split()).get_opcodes()
        assert sum(code[0] != "equal" for code in changed) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_sentence_without_such_a_fact_is_left(kind: str) -> None:
    assert KINDS[kind]("penguins eat fish", random.Random(1)) is None


def test_a_denial_is_taken_away_where_there_is_one() -> None:
    assert KINDS["negation"]("It is not open.", random.Random(1)) == "It is open."
    assert KINDS["negation"]("It is open.", random.Random(1)) == "It is not open."


def test_the_same_seed_gives_the_same_flips_and_documents_without_sentences_none() -> None:
    assert list(flips([DOCUMENT], 3)) == list(flips([DOCUMENT], 3))
    assert not list(flips(["", "a", "lower case without an end " * 4], 3))
