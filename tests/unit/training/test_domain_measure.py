"""Macro-F1 against counting by hand; and a domain model that is trained, shipped and read in seconds."""

import gzip
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import orjson
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

from tests.train_packages import TRAIN

pytest.importorskip("torch", reason=TRAIN)
pytest.importorskip("onnx", reason=TRAIN)
pytest.importorskip("safetensors", reason=TRAIN)

from models.training.corpus import part_of
from models.training.domain import data
from models.training.domain.data import CLASSES, Text, generated, weights
from models.training.domain.measure import classes_of, f1_by_class, figures, judged
from models.training.domain.ship import LABELS, Held, held, put_head, ship, tempered
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


def test_what_a_threshold_does_is_counted_on_its_own_label() -> None:
    found = [{"label": "legal", "fpr": 0.01, "threshold": 0.5}, {"label": "medical", "fpr": 0.05, "threshold": 0.2}]
    scores = np.array([[0.3, 0.6, 0.0], [0.1, 0.5, 0.0], [0.9, 0.4, 0.0], [0.1, 0.9, 0.9]], np.float32)
    benign = np.array([[0.1, 0.5, 0.9], [0.2, 0.1, 0.9], [0.2, 0.2, 0.9], [0.0, 0.2, 0.9]], np.float32)
    assert held(found, scores, np.array([1, 2, 2, 0]), benign) == [Held(4, 0.25, 2, 0.5), Held(4, 0.5, 1, 1.0)]


def test_texts_of_no_domain_are_of_their_part_and_no_source_outweighs_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "FOLDS", (("domain_big", "domain_small"),))
    monkeypatch.setattr(data, "DOCUMENTS", ())
    monkeypatch.setattr(data, "_DOMAIN_FILES", ("domain_big", "domain_small"))
    for name, count in (("domain_big", 900), ("domain_small", 90)):
        rows = [{"text": f"{name} {n}", "label": "legal" if n % 3 == 0 else "other"} for n in range(count)]
        (tmp_path / f"{name}.jsonl.gz").write_bytes(gzip.compress(b"\n".join(map(orjson.dumps, rows))))
    learnt = {text.text for text in data.pool(tmp_path, 300, 1) if part_of(text.text) == "train"}
    found = data.innocent(tmp_path, "dev", 40, 1)
    assert {(text.label, part_of(text.text)) for text in found} == {("none", "dev")}
    assert not {text.text for text in found} & learnt
    counts = Counter(text.source for text in found)
    assert counts["domain_big"] == 40
    assert 0 < counts["domain_small"] < 20


def test_tempering_cools_sure_but_wrong_logits() -> None:
    random = np.random.default_rng(2)
    truths = random.integers(0, 4, 500)
    sure = np.eye(4, dtype=np.float32)[np.where(random.random(500) < 0.6, truths, random.integers(0, 4, 500))]
    assert tempered(8 * sure, truths) < 0.5
    assert tempered(0.5 * sure, truths) > 1.5


@pytest.mark.nightly
def test_a_small_model_is_distilled_shipped_and_read_by_the_proxys_session(tmp_path: Path) -> None:
    try:
        base_tokenizer()
    except FileNotFoundError:
        pytest.skip(TRAIN)
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
    found = ship(student, {"dev": none, "test": none}, made, tmp_path)
    right = {row.name: row.macro for row in found.test}
    assert min(right.values()) > 0.5  # on its own training texts: four classes, so chance is far below
    assert found.benign == len(none)
    assert [rate["fpr"] for rate in found.rates] == [0.05] * len(LABELS)
    assert all(held.fires <= 0.05 for held in found.held)  # the same texts set the thresholds
    assert found.drift_mean < 0.1
    assert (tmp_path / "manifest.json").exists()
    assert (tmp_path / "domain" / "model.onnx").stat().st_size == found.bytes
