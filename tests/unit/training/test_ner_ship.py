"""An entity model is trained, shipped and read by the proxy's session in seconds."""

from pathlib import Path
from random import Random
from typing import Literal

import pytest

from tests.train_packages import TRAIN

pytest.importorskip("torch", reason=TRAIN)
pytest.importorskip("onnx", reason=TRAIN)
pytest.importorskip("safetensors", reason=TRAIN)
pytest.importorskip("faker", reason=TRAIN)

from checkstream.scoring import load_models, open_session, read_whole
from models.training.encoder import base_tokenizer
from models.training.ner.encode import ENTITIES
from models.training.ner.generate import documents, joined
from models.training.ner.marked import Marked, Span
from models.training.ner.measure import Finder, measured
from models.training.ner.recipe import Size, find, train
from models.training.ner.ship import agreement, loaded, ship
from models.training.teacher.bases import BASES


@pytest.mark.nightly
@pytest.mark.parametrize("base", ["minilm", "e5"])
def test_a_small_model_learns_its_texts_and_the_session_reads_what_training_reads(
    base: Literal["minilm", "e5"], tmp_path: Path
) -> None:
    try:
        base_tokenizer() if base == "minilm" else BASES["e5"].files()
    except FileNotFoundError:
        pytest.skip(TRAIN)
    texts = [
        joined(
            [Marked(name, (Span(0, len(name), "PERSON"),)), Marked(place, (Span(0, len(place), "LOCATION"),))], " in "
        )
        for name in ("Ann Lee", "Bob Ray", "Maria Silva", "Omar Khan")
        for place in ("Rome", "New York", "Oslo", "Lima")
    ] * 12
    texts += list(documents(30, Random(1)))
    texts += [Marked("\u738b\u5c0f\u660e\u3055\u3093", (Span(0, 3, "PERSON"),))] * 12
    size = Size(base=base, vocabulary=3000, signs=300, layers=1, epochs=6, rate=1e-3)
    trained = train(texts, size, 1, tmp_path / "ner.pt")
    ship(trained, tmp_path)
    session = open_session(load_models(tmp_path, ("ner",))[0])
    shown = [text.text for text in texts[:16]]
    for text, ours in zip(shown, find(trained, shown), strict=True):
        theirs = [Span(found.start, found.end, found.entity) for found in read_whole(session, text).entities]
        assert theirs == list(ours), text
    found = measured("own texts", texts[:16], Finder(loaded(trained)))
    assert found.names > 0.8
    assert set(found.each) == {"PERSON", "LOCATION"}
    assert agreement(trained, shown).flips < 0.1
    assert len(ENTITIES) == 7


def test_a_pattern_that_is_certain_wins_over_the_model() -> None:
    try:
        base_tokenizer()
    except FileNotFoundError:
        pytest.skip(TRAIN)
    mail = "anna.berg@example.com"
    texts = [Marked(f"Write to {mail} now", (Span(9, 9 + len(mail), "PERSON"),))] * 40
    trained = train(texts, Size(vocabulary=3000, layers=1, epochs=8, rate=1e-3), 1)
    assert {span.entity for span in find(trained, [texts[0].text])[0]} == {"PERSON"}
    assert Finder(loaded(trained)).find(texts[0].text) == [Span(9, 9 + len(mail), "EMAIL")]
