"""Taggers: tags become entities at words, each told once, wherever windows part a text."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.events import EntityFound
from checkstream.errors import ModelError
from checkstream.scoring import TaggerSession, Window, read_whole
from checkstream.scoring.manifest import Activation, EntityKind, ModelKind, TokenTypes
from checkstream.scoring.session import Word, distinct, windows_of
from checkstream.scoring.tagger import Tags
from tests.tiny_models import VOCABULARY, graph, model
from tests.tiny_tokenizers import wordpiece

COLUMNS = ("O", "B-PERSON", "I-PERSON", "B-PLACE", "I-PLACE", "B-OTHER")
KINDS = (EntityKind("PERSON", 0.5), EntityKind("PLACE", 0.9))


def tagger(data: bytes, **more: object) -> TaggerSession:
    return TaggerSession(
        model(
            {"graph": data, "tokenizer": wordpiece()},
            kind=ModelKind.TOKENS,
            labels=(),
            columns=COLUMNS,
            entities=KINDS,
            activation=Activation.SOFTMAX,
            **more,  # type: ignore[arg-type]
        )
    )


def by_case() -> TaggerSession:
    """A tagger that sees nothing but case: capitalised words are people, words in capitals are places."""
    types = np.zeros((4, 16), np.float32)
    for case in range(4):
        types[case, case] = 8
    head = np.zeros((6, 16), np.float32)
    head[0, 0] = head[2, 1] = head[4, 2] = head[0, 3] = 40
    silent = {f"layers.0.{part}.weight": np.zeros((16, 16), np.float32) for part in ("mix",)}
    silent |= {"layers.0.narrow.weight": np.zeros((16, 32), np.float32)}
    table = {
        "tokens.weight": np.zeros((VOCABULARY, 16), np.float32),
        "positions.weight": np.zeros((64, 16), np.float32),
    }
    data = graph(6, pooling="tokens", types=4, changed={**table, **silent, "types.weight": types, "head.weight": head})
    return tagger(data, token_types=TokenTypes.CASE)


SESSION = by_case()


def found(text: str) -> list[tuple[str, str]]:
    return [(entity.entity, text[entity.start : entity.end]) for entity in read_whole(SESSION, text).entities]


def test_words_side_by_side_are_one_entity_at_their_place_in_the_text() -> None:
    assert found("the unknowns Ann  Smith ask, at ACME now") == [("PERSON", "Ann  Smith"), ("PLACE", "ACME")]
    assert found("nothing here") == []
    assert found("") == []


def test_a_model_that_tags_gives_no_scores() -> None:
    assert read_whole(SESSION, "Ann").scores.shape == (0,)


@given(words=st.lists(st.sampled_from(["the", "model", "Ann", "Smith", "ACME", "unknowns", ",", "19"]), max_size=120))
def test_windows_of_a_long_text_tell_each_entity_once_and_whole(words: list[str]) -> None:
    text = " ".join(words)
    told = read_whole(SESSION, text).entities
    whole: list[tuple[str, int, int]] = []
    at = 0
    before = ""
    for word in words:
        kind = {"Ann": "PERSON", "Smith": "PERSON", "ACME": "PLACE"}.get(word, "")
        if kind and kind == before:
            whole[-1] = (kind, whole[-1][1], at + len(word))
        elif kind:
            whole.append((kind, at, at + len(word)))
        before = kind
        at += len(word) + 1
    assert [(entity.entity, entity.start, entity.end) for entity in told] == whole
    assert all(0 <= first.end <= second.start for first, second in pairwise(told))


@pytest.mark.parametrize("before", range(40))
@pytest.mark.parametrize("words", [1, 5, 9, 80])
def test_g04_an_entity_at_the_end_of_a_window_is_told_to_its_own_end(before: int, words: int) -> None:
    name = " ".join(["Smith"] * words)
    assert found("the " * before + name + " asks" * 40) == [("PERSON", name)]


def test_a_check_of_what_is_fresh_places_entities_in_the_whole_window() -> None:
    text = "the model " * 40 + "asks Ann Smith"
    entities = [entity for window in windows_of(SESSION, text, 5) for entity in SESSION.run([window]).entities[0]]
    assert [text[entity.start : entity.end] for entity in entities] == ["Ann Smith"]


# Tags


def spelt(*tags: tuple[float, ...]) -> list[tuple[str, int, int]]:
    entry = model(
        {"graph": b"", "tokenizer": b""},
        kind=ModelKind.TOKENS,
        labels=(),
        columns=COLUMNS,
        entities=KINDS,
        activation=Activation.NONE,
    ).entry
    words = [Word(at, 3 * at, 3 * at + 2) for at in range(len(tags))]
    window = Window("", 9, words=words, begin=0, stop=99)
    entities = Tags(entry).spell(np.array(tags, np.float32), window)
    return [(entity.entity, entity.start, entity.end) for entity in entities]


def test_begin_and_inside_together_make_the_score_of_an_entity() -> None:
    assert spelt((0.3, 0.4, 0.3, 0, 0, 0)) == [("PERSON", 0, 2)]
    assert spelt((0.35, 0.45, 0, 0.2, 0, 0)) == []  # the likeliest, and too low


def test_each_kind_has_its_own_threshold_for_the_mean_over_words() -> None:
    assert spelt((0.2, 0, 0, 0.8, 0, 0)) == []
    assert spelt((0.05, 0, 0, 0.9, 0.05, 0)) == [("PLACE", 0, 2)]
    assert spelt((0, 0, 0, 1, 0, 0), (0.1, 0, 0, 0, 0.9, 0)) == [("PLACE", 0, 5)]
    assert spelt((0, 0, 0, 1, 0, 0), (0.3, 0, 0, 0, 0.7, 0)) == []


def test_an_entity_ends_where_another_begins() -> None:
    inside, begin, place = (0, 0, 1, 0, 0, 0), (0, 1, 0, 0, 0, 0), (0, 0, 0, 0, 1, 0)
    assert spelt(begin, inside, begin, place) == [("PERSON", 0, 5), ("PERSON", 6, 8), ("PLACE", 9, 11)]
    assert spelt(place, inside, inside) == [("PLACE", 0, 2), ("PERSON", 3, 8)]
    assert spelt(inside, inside) == [("PERSON", 0, 5)]
    assert spelt(inside, (1, 0, 0, 0, 0, 0), inside) == [("PERSON", 0, 2), ("PERSON", 6, 8)]


def test_a_tag_that_nobody_asked_for_is_nothing() -> None:
    assert spelt((0, 0, 0, 0, 0, 1)) == []


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.5, 1.5])
def test_g23_tags_that_are_no_probabilities_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="probability"):
        spelt((bad, 0, 0, 0, 0, 0))


# Entities of several windows


def entity(name: str, start: int, end: int, score: float = 0.5) -> EntityFound:
    return EntityFound(name, start, end, score)


def test_what_overlaps_is_told_once() -> None:
    assert distinct([entity("A", 0, 5), entity("A", 3, 9, 0.9)]) == (entity("A", 0, 9, 0.9),)
    assert distinct([entity("A", 0, 5), entity("B", 3, 9, 0.9)]) == (entity("B", 3, 9, 0.9),)
    assert distinct([entity("A", 0, 5, 0.9), entity("B", 3, 9)]) == (entity("A", 0, 5, 0.9),)
    assert distinct([entity("B", 5, 9), entity("A", 0, 5)]) == (entity("A", 0, 5), entity("B", 5, 9))


# What is refused


@pytest.mark.parametrize(
    ("data", "more", "reason"),
    [
        (graph(6), {}, r"float32\[batch, token, label\]"),
        (graph(5, pooling="tokens"), {}, "gives 5 columns, the manifest names 6"),
        (graph(6, pooling="tokens"), {"token_types": TokenTypes.CASE}, "takes no token types"),
        (graph(6, pooling="tokens", positions=20), {}, "tokens"),
    ],
)
def test_a_tagger_that_does_not_fit_is_refused_at_load(data: bytes, more: dict[str, object], reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        tagger(data, **more)
