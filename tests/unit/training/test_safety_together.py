"""Any harm, put together from the nine scores."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.config import bundled
from models.training.safety.labels import ANY, HARMS, Text, harmful, known, safe
from tests.train_packages import TRAIN

torch = pytest.importorskip("torch", reason=TRAIN)
pytest.importorskip("onnx", reason=TRAIN)

FILES = bundled("models") / "safety"
NINE = "124db3e7545145184a8fe989f6bbd76415b9b4678c1084e250aa0c6fa49ceb6a"
"""SHA-256 of the graph of 2.1.0, of which policies know the nine scores."""
GATE = "7152ac727f15000d19cd2414b0f5a8df4aa3a2950c5091ca11f41b9a9448385e"
"""And of its gate."""

logits = st.lists(st.floats(-30, 30), min_size=len(HARMS), max_size=len(HARMS))


@given(logits, logits, st.lists(st.floats(-3, 3), min_size=9, max_size=9), st.floats(0.01, 5), st.floats(-5, 5))
def test_a_label_that_rises_never_lowers_any_harm(
    one: list[float], other: list[float], shifts: list[float], slope: float, offset: float
) -> None:
    from models.training.safety.together import Joined

    joined = Joined(tuple(shifts), slope, offset)
    low, high = np.minimum(one, other), np.maximum(one, other)
    found = joined.logit(np.array([low, high], np.float32))
    assert found[0] <= found[1] + 1e-4


def test_what_ships_is_the_model_of_nine_scores_with_one_more() -> None:
    from models.training.safety.together import extended, nine

    shipped = (FILES / "model.onnx").read_bytes()
    before = nine(shipped).SerializeToString()
    assert hashlib.sha256(before).hexdigest() == NINE
    assert hashlib.sha256((FILES / "gate.onnx").read_bytes()).hexdigest() == GATE
    joined = _joined(shipped)
    assert extended(before, joined) == shipped
    assert extended(shipped, joined) == shipped, "it is put in the place of the one before"


def _joined(graph: bytes):  # type: ignore[no-untyped-def]  # torch and onnx may be missing when this file is read
    import onnx
    from onnx import numpy_helper

    from models.training.safety.together import Joined

    values = {v.name: numpy_helper.to_array(v) for v in onnx.load_model_from_string(graph).graph.initializer}
    return Joined(tuple(values["any.shifts"].tolist()), float(values["any.slope"]), float(values["any.offset"]))


def test_the_nine_scores_are_the_same_to_the_last_bit() -> None:
    from models.training.export import run, session
    from models.training.safety.together import nine

    shipped = (FILES / "model.onnx").read_bytes()
    random = np.random.default_rng(1)
    windows = [random.integers(5, 9000, size).tolist() for size in (1, 2, 7, 19, 32, 32)]
    with_any = np.stack(run(session(shipped), windows))
    without = np.stack(run(session(nine(shipped)), windows))
    np.testing.assert_array_equal(with_any[:, : len(HARMS)], without)
    np.testing.assert_allclose(with_any[:, len(HARMS)], _joined(shipped).logit(without), atol=2e-3)


def test_a_fit_tells_harm_that_one_label_alone_says() -> None:
    from models.training.safety.together import fitted

    random = np.random.default_rng(2)
    texts, truths = [], []
    for number in range(120):
        own = random.normal(-6, 0.5, (3, len(HARMS))).astype(np.float32)
        if number % 2:
            own[random.integers(3), random.integers(len(HARMS))] = random.normal(1, 0.5)
        texts.append(own)
        truths.append(bool(number % 2))
    joined = fitted(texts, np.array(truths), rounds=2, steps=60)
    said = np.array([joined.logit(own).max() for own in texts])
    assert said[np.array(truths)].min() > said[~np.array(truths)].max()
    assert joined.slope > 0


def test_it_is_fitted_to_what_is_known_and_never_to_what_measures_answers() -> None:
    from models.training.corpus import part_of
    from models.training.safety.together import fitting_texts

    dev = [Text(f"calm {n}", safe(), "medquad") for n in range(9)]
    dev += [Text(f"bad {n}", harmful("violence"), "gptfuzz") for n in range(3)]
    dev += [Text("unsure", known(toxicity=0.4, any=0.4), "civil"), Text("who knows", known(hate=0.0), "davidson")]
    dev += [Text("buy now", safe(), "generated promotion")]
    others = [Text(f"post {n}", safe(), "hatexplain") for n in range(60)]
    others += [Text(f"reply {n}", safe(), "diasafety") for n in range(60)]
    found = fitting_texts(dev, others, 1, most=4)
    sources = [text.source for text in found]
    assert {*sources} == {"medquad", "gptfuzz", "hatexplain"}
    assert max(sources.count(each) for each in sources) <= 4
    assert all(part_of(text.text) == "dev" for text in found if text.source == "hatexplain")
    assert all(text.target[ANY] >= 0.5 or text.target[ANY] <= 0.3 for text in found)


def test_the_entry_has_its_thresholds_behind_the_others() -> None:
    entries = json.loads((bundled("models") / "manifest.json").read_text())["models"]
    entry = next(entry for entry in entries if entry["name"] == "safety")
    assert entry["labels"] == [*HARMS, "any"]
    assert [row["fpr"] for row in entry["rates"] if row["label"] == "any"] == [0.05, 0.01, 0.001]


def test_held_out_promotions_are_read_by_nothing_that_learns() -> None:
    folder = Path(__file__).resolve().parents[3] / "models" / "training"
    for module in folder.rglob("*.py"):
        if module.name != "sold.py":
            assert '"held_out"' not in module.read_text(), f"{module.name} reads what only measures"
