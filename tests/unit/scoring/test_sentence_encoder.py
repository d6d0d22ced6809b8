"""The embedding model gives one vector a text, off the loop, and says what is wrong with a model that can't."""

import asyncio
import threading
from collections.abc import Mapping

import numpy as np
import pytest

from checkstream.core.terms import Span
from checkstream.errors import ModelError, ScoringError
from checkstream.scoring import open_session
from checkstream.scoring.embedding import Embedder
from checkstream.scoring.sentence_encoder import MOST_WINDOWS, SentenceEncoder
from tests import tiny_models
from tests.tiny_tokenizers import unigram, wordpiece

TEXTS = (
    "the model will answer your question now",
    "Ann Smith works at Acme, Paris.",
    "a",
    "\ud800 lone",
    "\u0000\u200b\u2028",
    "漢字 ß 🙂",
    "x" * 5_000,
    "the model " * 300,
    "[SEP] [CLS] [PAD]",
)
WINDOW, FRAME = 32, 2


def opened(graph: bytes | None = None, tokenizer: bytes | None = None, **more: int) -> SentenceEncoder:
    contents = {"graph": graph or tiny_models.encoder(), "tokenizer": tokenizer or wordpiece()}
    return SentenceEncoder(tiny_models.embedding(contents, **more))


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return opened()


async def test_every_vector_has_length_one_and_an_empty_text_is_all_zeros(encoder: SentenceEncoder) -> None:
    known: Embedder = encoder
    vectors = await known.embed([*TEXTS, "", " \n"])
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS) + 2, 16)
    assert np.isfinite(vectors).all()
    lengths = np.linalg.norm(vectors, axis=1)
    assert lengths[[0, 1, 2, 5, 6, 7]] == pytest.approx(1, abs=1e-5)
    assert not vectors[-2:].any()
    assert (await encoder.embed([])).shape == (0, 16)


async def test_a_vector_depends_on_its_text_alone(encoder: SentenceEncoder) -> None:
    together = await encoder.embed(TEXTS)
    alone = np.concatenate([await encoder.embed([text]) for text in TEXTS[::-1]])[::-1]
    assert np.array_equal(together, alone)
    assert np.array_equal(await opened().embed(TEXTS), together)


async def test_a_text_of_one_window_is_the_mean_of_its_tokens_with_their_frame() -> None:
    graph = tiny_models.encoder()
    encoder = opened(graph)
    ids = [2, *encoder._tokenizer.ids(TEXTS[0]), 3]
    states = encoder._graph.run(ids)
    mean = states.mean(axis=0)
    (vector,) = await encoder.embed([TEXTS[0]])
    assert vector == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)


async def test_a_long_text_is_read_to_the_end_of_its_last_window_and_no_further(encoder: SentenceEncoder) -> None:
    read = MOST_WINDOWS * (WINDOW - FRAME)
    whole, changed, beyond = await encoder.embed(
        ["model " * read, "model " * (read - 1) + "paris ", "model " * read + "paris " * 50]
    )
    assert not np.array_equal(whole, changed)
    assert np.array_equal(whole, beyond)


async def test_another_model_has_another_name() -> None:
    assert opened().name == opened().name
    assert opened().name.startswith("tiny-1.0.0-")
    assert opened(tiny_models.encoder(seed=1)).name != opened().name


async def test_many_calls_at_once_give_what_one_gives(encoder: SentenceEncoder) -> None:
    expected = await encoder.embed(TEXTS)
    for found in await asyncio.gather(*(encoder.embed(TEXTS) for _ in range(8))):
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("tokenizer", [wordpiece(), wordpiece(symbols=True)])
def test_tokens_stand_in_their_order_and_inside_the_text(text: str, tokenizer: bytes) -> None:
    spans = opened(tokenizer=tokenizer).tokens(text)
    ends = [0, *(span.end for span in spans)]
    assert all(before <= span.start < span.end for before, span in zip(ends, spans, strict=False))
    assert ends[-1] <= len(text)


def test_a_word_has_as_many_tokens_as_the_model_reads() -> None:
    encoder = opened()
    assert encoder.tokens("the models") == [Span(0, 3), Span(4, 7), Span(7, 10)]
    assert len(encoder.tokens("the model will answer. " * 400)) == len(
        encoder._tokenizer.ids("the model will answer. " * 400)
    )


@pytest.mark.parametrize(
    ("contents", "dimensions", "message"),
    [
        ({"graph": b"no graph"}, 16, "not an ONNX file"),
        ({"tokenizer": b"{}"}, 16, "tokenizer is not valid"),
        ({}, 8, "16 columns"),
        ({"graph": tiny_models.graph(16)}, 16, "not float32"),
        ({"tokenizer": unigram()}, 16, None),
    ],
)
def test_a_model_that_can_not_give_vectors_is_refused(
    contents: Mapping[str, bytes], dimensions: int, message: str | None
) -> None:
    model = tiny_models.embedding(
        {"graph": tiny_models.encoder(), "tokenizer": wordpiece(), **contents}, dimensions=dimensions
    )
    if message is None:
        assert SentenceEncoder(model).dimensions == 16
        return
    with pytest.raises(ModelError, match=message):
        SentenceEncoder(model)


def test_a_model_that_scores_gives_no_vectors_and_one_that_gives_vectors_scores_nothing() -> None:
    scoring = tiny_models.model({"graph": tiny_models.graph(2), "tokenizer": wordpiece()})
    with pytest.raises(ModelError, match="gives no vectors"):
        SentenceEncoder(scoring)
    with pytest.raises(ModelError, match="gives vectors, no scores"):
        open_session(tiny_models.embedding({"graph": tiny_models.encoder(), "tokenizer": wordpiece()}))


async def test_a_graph_that_gives_no_numbers_is_told() -> None:
    scale = np.full(16, np.nan, np.float32)
    encoder = opened(tiny_models.encoder(changed={"layers.0.norm2.weight": scale}))
    with pytest.raises(ScoringError, match="no number") as told:
        await encoder.embed(["the model"])
    assert told.value.reason == "garbage"


async def test_a_call_that_takes_too_long_is_told_and_the_loop_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_models.embedding({"graph": tiny_models.encoder(), "tokenizer": wordpiece()})
    encoder = SentenceEncoder(model, text_s=0.01)
    gate = threading.Event()
    run = encoder._graph.run

    def slow(ids: list[int]) -> object:
        gate.wait(20)
        return run(ids)

    monkeypatch.setattr(encoder._graph, "run", slow)
    with pytest.raises(ScoringError, match=r"more than 0\.01 s") as told:
        await encoder.embed(["the model"])
    assert told.value.reason == "deadline"
    gate.set()
