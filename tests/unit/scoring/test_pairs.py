"""A model of pairs reads a claim with every piece of a premise, and is refused where it is none."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pytest
from tokenizers import Tokenizer as Library

from checkstream.errors import ModelError, ScoringError
from checkstream.scoring import open_session
from checkstream.scoring.manifest import Activation, ModelKind
from checkstream.scoring.pairs import MOST_WINDOWS, PairSession
from checkstream.scoring.tokenizer import Tokenizer
from tests import tiny_models
from tests.tiny_tokenizers import wordpiece

LABELS = ("entailment", "neutral", "contradiction")
CLAIM = "Ann Smith works at Acme"


def opened(
    contents: Mapping[str, bytes] | None = None,
    labels: Sequence[str] = LABELS,
    activation: Activation = Activation.SOFTMAX,
    **more: object,
) -> PairSession:
    files = {
        "graph": tiny_models.graph(len(labels), types=2),
        "tokenizer": tiny_models.pair_tokenizer(),
        **(contents or {}),
    }
    given = {"kind": ModelKind.PAIR, "labels": labels, "activation": activation, **more}
    return PairSession(tiny_models.model(files, **given))  # type: ignore[arg-type]


def test_both_texts_are_framed_as_the_library_frames_a_pair() -> None:
    for data in (
        tiny_models.pair_tokenizer(),
        tiny_models.pair_tokenizer(pair="[CLS]:0 $A:0 [SEP]:0 [SEP]:0 $B:0 [SEP]:0"),
    ):
        library, own = Library.from_str(data.decode()), Tokenizer(data)
        ids, types = own.pair_frame().joined(own.ids(CLAIM), own.ids("paris"))
        whole = library.encode(CLAIM, "paris")
        assert (ids, types) == (whole.ids, whole.type_ids)


def test_a_short_premise_is_one_reading_of_what_the_graph_says_of_the_pair() -> None:
    session = opened()
    (reading,) = session.read("Ann Smith works at Acme, Paris.", CLAIM)
    assert set(reading.scores) == set(LABELS)
    assert sum(reading.scores.values()) == pytest.approx(1)
    assert (reading.start, reading.end) == (0, 31)
    (other,) = session.read("Ann Smith works at Acme, Paris.", "the model")
    assert other.scores != reading.scores


def test_every_token_of_a_long_premise_is_in_a_window_and_windows_overlap() -> None:
    premise = " ".join(f"ann{number}" for number in range(300))
    readings = list(opened(window_tokens=48).read(premise, CLAIM))
    assert 1 < len(readings) <= MOST_WINDOWS
    assert (readings[0].start, readings[-1].end) == (0, len(premise))
    assert all(following.start < before.end for before, following in pairwise(readings))
    far = list(opened(window_tokens=48).read("model " * 100_000, CLAIM))
    assert len(far) == MOST_WINDOWS


def test_a_long_claim_leaves_half_of_the_window_to_the_premise() -> None:
    session = opened()
    (reading,) = session.read("Ann Smith", "model " * 5_000)
    (same,) = session.read("Ann Smith", "model " * 9_000)
    assert reading.scores == same.scores


@pytest.mark.parametrize(("premise", "claim"), [("", CLAIM), (" \n", CLAIM), (CLAIM, ""), (CLAIM, "\u0000")])
def test_where_one_text_holds_nothing_nothing_is_read(premise: str, claim: str) -> None:
    assert not list(opened().read(premise, claim))


@pytest.mark.parametrize("hostile", ["[SEP] [CLS]", "\ud800", "x" * 20_000, "漢字 ß 🙂", "\u2028\x1c a"])
def test_hostile_texts_are_scored(hostile: str) -> None:
    session = opened()
    for readings in (session.read(hostile, CLAIM), session.read(CLAIM, hostile)):
        for reading in readings:
            assert all(0 <= score <= 1 for score in reading.scores.values())
            assert 0 <= reading.start <= reading.end


def test_several_columns_of_one_label_give_the_highest() -> None:
    named = ["entailment", "neutral", "entailment"]
    graph = tiny_models.graph(3, types=2)
    (found,) = opened({"graph": graph}, labels=("entailment", "neutral"), columns=named).read("Ann", CLAIM)
    (single,) = opened({"graph": graph}).read("Ann", CLAIM)
    assert found.scores["entailment"] == max(single.scores["entailment"], single.scores["contradiction"])


@pytest.mark.parametrize(
    ("contents", "labels", "message"),
    [
        ({"graph": b"pickle"}, LABELS, "not an ONNX file"),
        ({"tokenizer": b"{"}, LABELS, "tokenizer is not valid"),
        ({"tokenizer": tiny_models.pair_tokenizer(pair="[CLS]:0 $B:0 [SEP]:0 $A:1 [SEP]:1")}, LABELS, "frames no pair"),
        ({"graph": tiny_models.graph(2)}, LABELS, "2 columns"),
        ({"graph": tiny_models.graph(3, pooling="tokens")}, LABELS, "not float32"),
    ],
)
def test_what_compares_no_texts_is_refused(contents: Mapping[str, bytes], labels: Sequence[str], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        opened(contents, labels)


def test_models_of_other_kinds_are_refused_and_this_kind_scores_no_single_text() -> None:
    files = {"graph": tiny_models.graph(2), "tokenizer": wordpiece()}
    with pytest.raises(ModelError, match="compares no texts"):
        PairSession(tiny_models.model(files))
    with pytest.raises(ModelError, match="compares two texts"):
        open_session(tiny_models.model(files, kind=ModelKind.PAIR, labels=("entailment", "neutral")))


def test_scores_that_are_no_numbers_are_told() -> None:
    graph = tiny_models.graph(3, types=2, changed={"head.bias": np.full(3, np.nan, np.float32)})
    with pytest.raises(ScoringError) as told:
        list(opened({"graph": graph}).read("Ann", CLAIM))
    assert told.value.reason == "garbage"


def test_a_graph_that_gives_no_shares_though_it_says_so_is_told() -> None:
    graph = tiny_models.graph(1, types=2, changed={"head.bias": np.full(1, 700, np.float32)})
    session = opened({"graph": graph}, labels=("entailment",), activation=Activation.NONE)
    with pytest.raises(ScoringError, match="no scores"):
        list(session.read("Ann", CLAIM))
