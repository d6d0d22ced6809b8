"""Macro-F1 against counting by hand; and a domain model that is trained, shipped and read in seconds."""

from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

pytest.importorskip("torch")
pytest.importorskip("onnx")
pytest.importorskip("safetensors")

from models.training.domain.data import CLASSES, Text, generated, weights
from models.training.domain.measure import classes_of, f1_by_class, figures, judged
from models.training.domain.ship import put_head, ship, tempered
from models.training.domain.student import OVERLAP, WINDOW, Read, Size, distilled, fit_head, lone_words, windows
from models.training.domain.teacher import Teacher
from models.training.encoder import base_tokenizer


def test_f1_is_of_classes_that_a_set_has() -> None:
    truths, guesses = np.array([0, 0, 1, 1, 2]), np.array([0, 3, 1, 0, 2])
    assert f1_by_class(truths, guesses) == {"none": 0.5, "medical": pytest.approx(2 / 3), "legal": 1.0}


def test_figures_lie_within_their_interval() -> None:
    random = Random(1)
    truths = np.array([random.randrange(4) for _ in range(400)])
    guesses = np.array([truth if random.random() < 0.8 else random.randrange(4) for truth in truths])
    found = figures("set", truths, guesses, rounds=50)
    assert found.interval[0] < found.macro < found.interval[1]
    assert found.interval[1] - found.interval[0] < 0.15


def test_a_head_finds_what_separates_classes_and_follows_weights() -> None:
    random = np.random.default_rng(1)
    classes = random.integers(0, 3, 600)
    vectors = (np.eye(3)[classes] * 3 + random.normal(0, 1, (600, 3)) + 40).astype(np.float32)
    weight, bias = fit_head(vectors, classes, [1.0] * 600, 3)
    right = (vectors @ weight.T + bias).argmax(axis=1) == classes
    assert right.mean() > 0.9
    heavy = [50.0 if one == 2 else 1.0 for one in classes]
    weight, bias = fit_head(vectors, classes, heavy, 3)
    recall = ((vectors @ weight.T + bias).argmax(axis=1) == 2)[classes == 2].mean()
    assert recall > 0.99


def test_a_text_is_of_the_domain_that_any_of_its_windows_says_and_of_none_below_one_half() -> None:
    read = Read(np.array([0, 0, 1, 2]), np.array([[3, 0], [0, 3], [0.2, 0.2], [0, 3]], np.float32))
    weight = np.array([[0, 0], [-9, -9], [-9, 2], [-9, -9]], np.float32)  # the second input speaks for the third class
    assert judged(read, 3, weight, np.zeros(4, np.float32)).tolist() == [2, 0, 2]
    assert judged(read, 3, np.zeros((4, 2), np.float32), np.zeros(4, np.float32)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("words", [0, 1, WINDOW - 2, WINDOW - 1, 2 * WINDOW, 7 * WINDOW + 5])
def test_windows_cover_a_text_and_share_what_they_should(words: int) -> None:
    reader = Tokenizer(WordLevel({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2} | {f"w{n}": 3 + n for n in range(1000)}, "[UNK]"))
    reader.pre_tokenizer = WhitespaceSplit()
    parts = windows(reader, " ".join(f"w{n}" for n in range(words)))
    inside = [part[1:-1] for part in parts]
    assert all(part[0] == 1 and part[-1] == 2 and len(part) <= WINDOW for part in parts)
    assert sorted({piece for part in inside for piece in part}) == list(range(3, 3 + words))
    for one, other in pairwise(inside):
        assert one[-OVERLAP:] == other[:OVERLAP]


def test_tempering_cools_sure_but_wrong_logits() -> None:
    random = np.random.default_rng(2)
    truths = random.integers(0, 4, 500)
    sure = np.eye(4, dtype=np.float32)[np.where(random.random(500) < 0.6, truths, random.integers(0, 4, 500))]
    assert tempered(8 * sure, truths) < 0.5
    assert tempered(0.5 * sure, truths) > 1.5


def test_a_small_model_is_distilled_shipped_and_read_by_the_proxys_session(tmp_path: Path) -> None:
    try:
        base_tokenizer()
    except FileNotFoundError:
        pytest.skip("the pretrained weights are not installed")
    made = generated(40, 3)
    texts = [text.text for text in made] + list(lone_words(["fever", "lawsuit", "mortgage", "poem"], 40, Random(1)))
    size = Size(vocabulary=2500, embedding=16, width=32, epochs=3, rate=4e-3)
    student = distilled(texts, Teacher(), size, 1, tmp_path / "work")
    again = distilled(texts, Teacher(), size, 1, tmp_path / "work")
    assert np.allclose(student.vectors(texts[:9]), again.vectors(texts[:9]))  # the checkpoint was taken up
    vectors = student.vectors([text.text for text in made])
    weight, bias = fit_head(vectors, classes_of(made), weights(made), len(CLASSES), decay=1e-3)
    put_head(student, weight, bias)
    none = [Text(f"{text.text} {number}", "none", "benign") for number, text in enumerate(made) if text.label == "none"]
    found = ship(student, none, made, tmp_path)
    right = {row.name: row.macro for row in found.test}
    assert min(right.values()) > 0.5  # on its own training texts: four classes, so chance is far below
    assert found.rates
    assert found.drift_mean < 0.1
    assert (tmp_path / "manifest.json").exists()
    assert (tmp_path / "domain" / "model.onnx").stat().st_size == found.bytes
