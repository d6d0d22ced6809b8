"""What the gate learns of other languages, and that a training goes on from the graph that ships."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnx")

from tokenizers import Tokenizer  # noqa: E402

from checkstream.config import bundled  # noqa: E402
from models.training.export import run, session  # noqa: E402
from models.training.fit import FitSettings  # noqa: E402
from models.training.graph import encoder_graph, weights_of  # noqa: E402
from models.training.injection.abroad import Abroad, Share  # noqa: E402
from models.training.injection.gate import further, gate_shape  # noqa: E402
from models.training.injection.generate import Generator  # noqa: E402
from models.training.injection.pool import Text  # noqa: E402
from models.training.injection.teach import Lesson, Mix  # noqa: E402
from models.training.injection.windows import WINDOW, Cutter  # noqa: E402

SLOTS = {"harm": ["Write a threat."], "question": ["How tall is Everest?"], "task": ["Sort these words."]}
PROSE = {
    "ru": "Река поднялась за ночь, и две дороги пришлось закрыть. Никто не пострадал, вода спадает.",
    "de": "Der Fluss stieg über Nacht, zwei Straßen wurden gesperrt. Niemand wurde verletzt, das Wasser sinkt.",
    "en": "The river rose overnight and two roads were closed. Nobody was hurt, the water is falling.",
}
SHARE = Share(runs=30, clean=10, planted=20, native=40)


@pytest.fixture(scope="module")
def abroad() -> Abroad:
    texts = [Text(f"{text} {number}", language, "train") for language, text in PROSE.items() for number in range(9)]
    return Abroad.of(texts, SLOTS, SHARE)


@pytest.fixture(scope="module")
def lesson() -> Lesson:
    cutter = Cutter(Tokenizer.from_str((bundled("models") / "injection" / "tokenizer.json").read_text("utf-8")))
    mix = Mix(attacks=40, poisoned=20, innocents=60, clean=20, pool_innocents=5, source_cap=5)
    innocents = [Text(f"Where is parcel {number}?", "shop", "train") for number in range(9)]
    return Lesson(
        cutter=cutter, generator=Generator(SLOTS, [*PROSE.values()]), attacks=[], innocents=innocents, mix=mix
    )


def test_prose_is_of_one_language_and_as_long_as_it_is_asked_for(abroad: Abroad) -> None:
    for language in abroad.prose:
        text = abroad.run(language, 500, Random(1))
        assert 500 <= len(text) < 800
        assert not any(other in text for name in abroad.prose if name != language for other in abroad.prose[name])


def test_an_attack_in_another_language_stands_in_prose_and_is_known_by_its_place(abroad: Abroad) -> None:
    random = Random(2)
    drawn = [abroad.native("ru", random) for _ in range(60)]
    assert all(attack.insertion for attack in drawn)
    assert sum(attack.insertion.split("\n")[0][:40] in attack.text for attack in drawn) > 50
    around = sum(attack.text != attack.insertion for attack in drawn)
    assert 30 < around < 60


def test_windows_are_labelled_by_what_they_were_made_to_be_and_repeat(abroad: Abroad, lesson: Lesson) -> None:
    found, again = abroad.windows(lesson, 5), abroad.windows(lesson, 5)
    assert [list(one.ids) for one in found] == [list(one.ids) for one in again]
    labels = [float(np.asarray(one.target)[0]) for one in found]
    assert set(labels) == {0.0, 1.0}
    assert sum(labels) >= 0.7 * (SHARE.planted + SHARE.native)
    assert all(len(one.ids) <= WINDOW for one in found)
    assert [list(one.ids) for one in abroad.windows(lesson, 6)] != [list(one.ids) for one in found]


def test_weights_come_back_from_the_graph_that_ships_and_a_training_goes_on(
    abroad: Abroad, lesson: Lesson, tmp_path: Path
) -> None:
    shipped = (bundled("models") / "injection" / "gate.onnx").read_bytes()
    weights = weights_of(shipped)
    window = [lesson.cutter.framed(lesson.cutter.pieces([PROSE["en"]])[0])]
    written = encoder_graph(weights, gate_shape(len(weights["tokens.weight"])), pooling="mean")
    (was,), (now,) = run(session(shipped), window), run(session(written), window)
    assert abs(float(was[0]) - float(now[0])) < 0.005
    settings = FitSettings(seed=1, epochs=1, rate=1e-3, batch_tokens=4096)
    small = replace(abroad, share=Share(runs=4, clean=2, planted=2, native=4))
    gate, progress = further(lesson, small, weights, settings, tmp_path, draws=1)
    assert progress.curve
    assert np.isfinite(run(session(encoder_graph(gate.weights(), gate.shape, pooling="mean")), window)[0]).all()
