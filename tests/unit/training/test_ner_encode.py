"""Tags and spans are two forms of the same thing, and windows lose no word."""

import json
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from tokenizers import Tokenizer

from tests.train_packages import TRAIN

pytest.importorskip("faker", reason=TRAIN)

from checkstream.scoring.tokenizer import Case
from models.training.graph import Float
from models.training.ner.encode import (
    ENTITIES,
    OVERLAP,
    TAGS,
    WINDOW,
    marked_example,
    merged,
    spans_of,
    tags_of,
    windows_of,
    words_of,
)
from models.training.ner.generate import documents
from models.training.ner.marked import Span


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """Letters alone, so that every word has many pieces."""
    signs = sorted({chr(code) for code in range(33, 127)} | set("äöüßéñçłşığİ"))
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *signs, *("##" + sign for sign in signs)]
    marks = [
        {"id": number, "content": mark, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
         "special": True}
        for number, mark in enumerate(pieces[:4])
    ]  # fmt: skip
    return Tokenizer.from_str(
        json.dumps(
            {
                "version": "1.0",
                "truncation": None,
                "padding": None,
                "added_tokens": marks,
                "normalizer": {
                    "type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                    "lowercase": True,
                },
                "pre_tokenizer": {"type": "BertPreTokenizer"},
                "post_processor": None,
                "decoder": None,
                "model": {
                    "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                    "max_input_chars_per_word": 100, "vocab": {piece: number for number, piece in enumerate(pieces)},
                },
            }
        )
    )  # fmt: skip


def certain(tags: list[int]) -> Float:
    rows: Float = np.eye(len(TAGS), dtype=np.float32)[tags]
    return rows


def test_spans_come_back_from_their_tags(tokenizer: Tokenizer) -> None:
    texts = list(documents(120, Random(8)))
    for text in texts:
        words = words_of(tokenizer, text.text)
        back = spans_of(words, certain(tags_of(words, text.spans)))
        # A span may end inside a word ("Sons" of "Sons."): it then takes the whole word.
        assert [span.entity for span in back] == [span.entity for span in text.spans], text.text
        for ours, theirs in zip(back, text.spans, strict=True):
            assert ours.start <= theirs.start
            assert ours.end >= theirs.end - 1


def test_the_case_of_a_word_is_that_of_all_its_pieces(tokenizer: Tokenizer) -> None:
    words = words_of(tokenizer, "Ann NATO 4th of I. Straße")
    assert words.cases == [
        Case.CAPITALISED, Case.UPPER, Case.DIGITS, Case.LOWER, Case.CAPITALISED, Case.LOWER, Case.CAPITALISED,
    ]  # fmt: skip
    (window,) = windows_of(tokenizer, words)
    assert window.types[0] == 0
    assert window.types[1:4] == [Case.CAPITALISED] * 3
    assert len(window.types) == len(window.ids)


def test_windows_hold_whole_words_overlap_and_cover_every_word(tokenizer: Tokenizer) -> None:
    random = Random(9)
    for _ in range(60):
        text = " ".join("x" * random.choice((1, 3, 9, 90)) for _ in range(random.randint(0, 200)))
        words = words_of(tokenizer, text)
        windows = list(windows_of(tokenizer, words))
        covered: set[int] = set()
        for before, after in pairwise(windows):
            assert after.first_word > before.first_word
            assert after.first_word <= before.first_word + before.words
        for window in windows:
            assert len(window.ids) <= WINDOW
            covered |= set(range(window.first_word, window.first_word + window.words))
        assert covered == set(range(len(words.pieces)))


def test_a_word_longer_than_a_window_is_cut_and_does_not_stop_the_rest(tokenizer: Tokenizer) -> None:
    text = "a " + "b" * 99 + " " + "c" * 99 + " d"
    windows = list(windows_of(tokenizer, words_of(tokenizer, text)))
    assert windows[-1].first_word + windows[-1].words == 4


def test_a_word_in_two_windows_is_judged_where_it_stands_deeper(tokenizer: Tokenizer) -> None:
    words = words_of(tokenizer, " ".join("abcd" for _ in range(60)))
    first, second = list(windows_of(tokenizer, words))[:2]
    parts = [
        np.full((len(window.ids), len(TAGS)), float(number), np.float32)
        for number, window in enumerate((first, second))
    ]
    parts[0][:, 1], parts[1][:, 3] = 50.0, 50.0
    rows = merged(words, (first, second), parts)
    shared = range(second.first_word, first.first_word + first.words)
    assert len(shared) * 4 >= OVERLAP
    assert rows[shared[0]].argmax() == 1
    assert rows[shared[-1]].argmax() == 3


def test_an_inside_tag_without_a_beginning_begins_a_span_and_thresholds_drop_doubtful_ones(
    tokenizer: Tokenizer,
) -> None:
    words = words_of(tokenizer, "ann lee of acme corp")
    person, organization = 2, 2 * ENTITIES.index("ORGANIZATION") + 2
    rows = certain([person, person, 0, organization, organization])
    rows[3:] *= 0.6
    assert spans_of(words, rows) == (Span(0, 7, "PERSON"), Span(11, 20, "ORGANIZATION"))
    assert spans_of(words, rows, [0.5, 0.5, 0.7, *[0.5] * (len(ENTITIES) - 3)]) == (Span(0, 7, "PERSON"),)


def test_only_the_first_piece_of_a_word_is_learnt(tokenizer: Tokenizer) -> None:
    text = next(iter(documents(1, Random(10))))
    for window, target in marked_example(tokenizer, text):
        assert {number for number, tag in enumerate(target) if tag != -100} == set(window.heads)
