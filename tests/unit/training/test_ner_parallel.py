"""Labels go where words belong together, and a sentence in which one got lost is left out."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tokenizers import Tokenizer

from tests.tiny_tokenizers import wordpiece
from tests.train_packages import TRAIN

pytest.importorskip("torch", reason=TRAIN)
pytest.importorskip("safetensors", reason=TRAIN)
pytest.importorskip("faker", reason=TRAIN)

from models.training.ner.marked import Marked, Span
from models.training.ner.parallel import carried, joined_sentences, pairs

WORDS = Tokenizer.from_str(wordpiece().decode())
MEANT = {"ann": 0, "anna": 0, "rome": 1, "rom": 1, "acme": 2, "lives": 3, "wohnt": 3, "in": 4, "die": 5, ".": 6}
"""What a word means; one that isn't here means something of its own."""


class Lexicon:
    """Sees two words as alike when they mean the same, in the place of an encoder."""

    def __init__(self) -> None:
        self._meant = dict(MEANT)

    def pieces(self, text: str) -> tuple[NDArray[np.float32], list[tuple[int, int]]]:
        places, at = [], 0
        for word in text.replace(".", " .").split():
            start = text.index(word, at)
            at = start + len(word)
            places.append((start, at))
        meant = [self._meant.setdefault(text[a:b].lower(), len(self._meant)) for a, b in places]
        return np.eye(64, dtype=np.float32)[meant], places

    def whole(self, text: str) -> NDArray[np.float32]:
        row: NDArray[np.float32] = self.pieces(text)[0].sum(0)
        return (row / np.linalg.norm(row)).astype(np.float32)


def landed(english: Marked, text: str) -> list[tuple[str, list[tuple[str, str]]]]:
    found = carried(english, text, Lexicon(), WORDS)
    return [(one.text, [(one.text[s.start : s.end], s.entity) for s in one.spans]) for one in found]


def test_names_land_on_the_words_that_mean_them() -> None:
    english = Marked("Ann lives in Rome.", (Span(0, 3, "PERSON"), Span(13, 17, "LOCATION")))
    assert landed(english, "Anna wohnt in Rom.") == [("Anna wohnt in Rom.", [("Anna", "PERSON"), ("Rom", "LOCATION")])]


def test_a_sentence_whose_name_is_lost_is_left_out_and_the_others_stay() -> None:
    english = Marked("Ann lives. Acme in Rome.", (Span(0, 3, "PERSON"), Span(11, 15, "ORGANIZATION")))
    assert landed(english, "Anna wohnt. Firma in Rom.") in (
        [("Anna wohnt.", [("Anna", "PERSON")])],
        [("Firma in Rom.", [])],
    )


def test_translations_are_the_nearest_of_each_other_by_far() -> None:
    reader = Lexicon()
    english = ["Ann lives in Rome.", "Acme ."]
    ours = np.stack([reader.whole(text) for text in english])
    assert pairs(ours, ["Acme .", "Anna wohnt in Rom.", "other words"], reader) == [(0, 1), (1, 0)]


@given(st.lists(st.sampled_from(["Ann left.", "In Rome.", "Nobody came here today."]), max_size=9), st.integers(5, 60))
def test_joined_sentences_keep_what_spans_say(sentences: list[str], most: int) -> None:
    names = {"Ann left.": (Span(0, 3, "PERSON"),), "In Rome.": (Span(3, 7, "LOCATION"),)}
    marked = [Marked(text, names.get(text, ())) for text in sentences]
    whole = list(joined_sentences(marked, most))
    assert " ".join(text.text for text in whole) == " ".join(sentences)
    for text in whole:
        assert all(text.text[s.start : s.end] in {"Ann", "Rome"} for s in text.spans)
        assert all(a.end <= b.start for a, b in pairwise(text.spans))
        assert len(text.text) <= most or text.text in sentences
