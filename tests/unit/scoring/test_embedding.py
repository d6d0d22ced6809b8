"""Embedders give one vector a text, of length 1, and the same one always."""

import numpy as np
import pytest

from checkstream.scoring.embedding import HashingEmbedder, unit_rows

TEXTS = (
    "The refund is paid within 30 days.",
    "Refunds are paid in thirty days.",
    "Penguins live in the south.",
    "",
    " \n\t",
    "\ud800 lone",
    "\u0000\u200b",
    "漢字 かな",
    "a" * 20_000,
)


@pytest.mark.parametrize("dimensions", [1, 7, 256])
async def test_every_vector_has_length_one_and_an_empty_text_is_all_zeros(dimensions: int) -> None:
    vectors = await HashingEmbedder(dimensions).embed(TEXTS)
    assert vectors.shape == (len(TEXTS), dimensions)
    assert vectors.dtype == np.float32
    lengths = np.linalg.norm(vectors, axis=1)
    empty = [not any(sign.isalnum() for sign in text) for text in TEXTS]
    assert all(
        length == 0 if nothing else abs(length - 1) < 1e-5 or length == 0
        for length, nothing in zip(lengths, empty, strict=True)
    )
    assert dimensions == 1 or not any(
        length == 0 for length, nothing in zip(lengths, empty, strict=True) if not nothing
    )


async def test_a_vector_depends_on_its_own_text_alone() -> None:
    embedder = HashingEmbedder()
    together = await embedder.embed(TEXTS)
    alone = np.concatenate([await HashingEmbedder().embed([text]) for text in TEXTS])
    assert np.array_equal(together, alone)


async def test_no_text_gives_no_row() -> None:
    assert (await HashingEmbedder(8).embed([])).shape == (0, 8)


async def test_texts_that_share_words_lie_closer_than_those_that_do_not() -> None:
    refund, like, other = (await HashingEmbedder().embed(TEXTS))[:3]
    assert refund @ like > refund @ other + 0.2


async def test_case_accents_and_signs_do_not_matter() -> None:
    one, other = await HashingEmbedder().embed(["Café, CLOSED!", "cafe closed"])
    assert one @ other > 0.999


def test_rows_are_scaled_to_length_one_and_zeros_stay() -> None:
    scaled = unit_rows(np.array([[3, 4], [0, 0], [-2, 0]], np.float32))
    assert np.allclose(scaled, np.array([[0.6, 0.8], [0, 0], [-1, 0]]))


def test_the_name_says_which_vectors_these_are() -> None:
    assert HashingEmbedder(16).name != HashingEmbedder(32).name
