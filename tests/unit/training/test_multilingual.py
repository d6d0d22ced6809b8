"""Pretrained pieces become word pieces: every sign can stand anywhere, and the proxy reads them word by word."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.train_packages import TRAIN

pytest.importorskip("torch", reason=TRAIN)
pytest.importorskip("onnx", reason=TRAIN)
pytest.importorskip("safetensors", reason=TRAIN)

from checkstream.scoring.tokenizer import Tokenizer
from models.training.encoder import SPECIALS
from models.training.multilingual import tokenizer, word_pieces

PIECES = (
    "<s>",
    "\u2581",
    "\u2581Ber",
    "lin",
    "\u2581in",
    "a",
    "\u2581a",
    ",",
    "\u4eac",
    "\u2581\u4eac",
    "##x",
    "\u3055",
)


def test_a_marked_piece_begins_a_word_and_another_goes_on() -> None:
    rows = word_pieces(PIECES)
    assert rows["Ber"] == 2
    assert rows["##lin"] == 3
    assert rows["a"] == 6
    assert rows["##a"] == 5
    assert rows[","] == 7
    assert "##x" not in rows
    assert "##" not in rows


def test_a_sign_that_is_a_word_of_its_own_has_the_row_that_is_not_marked_as_a_beginning() -> None:
    rows = word_pieces(PIECES)
    assert rows["\u4eac"] == 8
    assert rows["\u3055"] == 11
    assert rows["##\u3055"] == 11


def own() -> Tokenizer:
    rows = word_pieces(PIECES)
    return Tokenizer(tokenizer({name: number for number, name in enumerate((*SPECIALS, *rows))}).encode())


def test_the_proxy_reads_it_word_by_word_with_exact_bounds() -> None:
    reader = own()
    assert reader.by_words
    text = "Berlin,\u4eac\u3055\u3055 a"
    words = [
        text[at + begin : at + end] for at, unit in reader.units(text, placed=True) for _, begin, end in unit.words
    ]
    assert words == ["Berlin", ",", "\u4eac", "\u3055", "\u3055", "a"]


@given(st.text("Berlina,\u4eac\u3055\u30c8 \u00e9E", max_size=40))
def test_words_are_in_order_and_apart_whatever_the_text(text: str) -> None:
    places = [(at + begin, at + end) for at, unit in own().units(text, placed=True) for _, begin, end in unit.words]
    assert all(a < b <= c for (a, b), (c, _) in pairwise(places))


def test_letters_keep_their_case_and_accents() -> None:
    described = json.loads(tokenizer({name: number for number, name in enumerate(SPECIALS)}))
    bert = described["normalizer"]["normalizers"][1]
    assert bert["lowercase"] is False
    assert bert["strip_accents"] is False
