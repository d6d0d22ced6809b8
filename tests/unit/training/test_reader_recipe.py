"""The recipe of `reader` trains, goes on where it was cut off, ships, measures and writes its card: in seconds."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tests.teacher_pool import sentence, write
from tests.train_packages import TRAIN

pytest.importorskip("torch", reason=TRAIN)

from checkstream.scoring.catalog import read_manifest
from models.training.reader import __main__ as recipe
from models.training.reader.data import LEFT_OUT, MEASURED, Pair, learnt, shown
from models.training.reader.measure import Told, Weights, chosen, false_alarms, scores
from models.training.reader.student import WINDOW, Frame, Size
from models.training.teacher.scores import write_pairs

TINY = Size(layers=1, epochs=1, batch_tokens=1024)
OPEN = ("ground_begin", "nli_scitail", "nli_hans", "ground_bump")


def fill(folder: Path) -> Path:
    """Write a pool: four sets to learn from, those that are left out and those that only measure."""
    (folder / "restricted").mkdir(parents=True)
    for name in (*OPEN, *LEFT_OUT, *MEASURED):
        random, rows = Random(name), []
        for _ in range(12):
            premise = sentence(random, 14)
            rows.append({"premise": premise, "claim": " ".join(premise.split()[2:6]), "label": "entailment"})
            rows.append({"premise": premise, "claim": sentence(random, 4), "label": "neutral"})
        write(folder / "restricted" if name in MEASURED else folder, name, rows)
    (folder / "teacher").mkdir()
    write_pairs(
        folder / "teacher" / "pairs.npz", {"ground_begin": np.tile([[900, 20], [80, 400]], (12, 1)).astype("i2")}
    )
    return folder


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("pool"))


def test_it_is_trained_in_parts_shipped_measured_and_described(
    pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipe, "Size", lambda: TINY)
    found = []
    for name, steps in (("whole", [[]]), ("parts", [["--seconds", "0"], ["--seconds", "0"], []])):
        for more in steps:
            asked = ["--data", str(pool), "--work", str(tmp_path / name), "--models", str(tmp_path / f"{name}-models")]
            assert recipe.main([*asked, *more]) == 0
            assert (tmp_path / f"{name}-models" / "manifest.json").exists() is (more == [])
        found.append((tmp_path / f"{name}-models" / "reader" / "model.onnx").read_bytes())
    assert found[0] == found[1]
    models = tmp_path / "whole-models"
    (entry,) = read_manifest(models).models
    assert (entry.name, entry.labels, entry.limits.window_tokens) == ("reader", ("entailment", "contradiction"), WINDOW)
    figures = json.loads((tmp_path / "whole" / "figures.json").read_bytes())
    assert [line["name"] for line in figures["left_out"]] == [*LEFT_OUT, *MEASURED]
    card = (models / "reader" / "CARD.md").read_text()
    assert "`ground_healthver`" in card
    shutil.copytree(models, tmp_path / "again")
    (tmp_path / "again" / "reader" / "CARD.md").unlink()
    assert recipe.main(["--report", "--work", str(tmp_path / "whole"), "--models", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "reader" / "CARD.md").read_text() == card


def test_nothing_is_learnt_from_what_is_left_out_or_is_like_it(pool: Path, tmp_path: Path) -> None:
    taught = pool / "teacher" / "pairs.npz"
    pairs = learnt(pool, taught, 1)
    assert {pair.source for pair in pairs} == set(OPEN)
    assert all(pair.part == "train" for pair in pairs)
    own = [pair for pair in pairs if pair.source == "ground_begin" and pair.weight == 1 and pair.gold == 1]
    assert {round(float(pair.target[0]), 3) for pair in own} == {0.95}  # half of what people and the teacher say
    assert learnt(pool, taught, 1)[3].premise == pairs[3].premise
    stolen = next(pair for pair in pairs if pair.source == "nli_scitail" and len(pair.premise) < 110)
    again = fill(tmp_path / "pool")
    row = {"premise": stolen.premise, "claim": "something else", "label": "entailment"}
    write(again / "restricted", MEASURED[0], [row])
    assert stolen.premise not in {pair.premise for pair in learnt(again, again / "teacher" / "pairs.npz", 1)}


def test_scores_that_do_not_fit_their_pairs_are_refused(pool: Path, tmp_path: Path) -> None:
    write_pairs(tmp_path / "bad.npz", {"ground_begin": np.zeros((3, 2), "i2")})
    with pytest.raises(ValueError, match="3 scores for the 24 pairs of `ground_begin`"):
        learnt(pool, tmp_path / "bad.npz", 1)


def test_a_window_has_evidence_first_and_the_claim_whole() -> None:
    pair = Pair(
        "The mill burnt. " * 60 + "Ann rebuilt it.", "Ann rebuilt it.", np.zeros(2, np.float32), 1.0, "x", "dev"
    )
    (example,) = Frame().examples([pair])
    assert len(example.ids) <= WINDOW
    assert shown(pair).endswith("Ann rebuilt it.")
    types = list(example.types or ())
    assert types == sorted(types)
    assert example.ids[0] == 101
    assert [at for at, piece in enumerate(example.ids) if piece == 102] == [types.index(1) - 1, len(types) - 1]
    (long,) = Frame().examples([replace(pair, claim="word " * 500)])
    assert len(long.ids) <= WINDOW
    assert sum(long.types or ()) == (WINDOW - 3) // 2 + 1


def test_weights_are_those_that_tell_best_and_miss_as_few_as_was_asked() -> None:
    random = np.random.default_rng(1)
    gold = random.random(400) < 0.5
    share = np.clip(np.where(gold, 0.65, 0.35) + random.normal(0, 0.2, 400), 0.02, 0.98)
    noise = random.random(400)
    no = (False,) * 400
    useful = Told("a", tuple(map(bool, gold)), tuple(noise), no, tuple(share), tuple(1 - share))
    found = chosen([useful], 0.1)
    assert found.denied <= 0 < found.surface  # an equal say, whatever helps here
    own = scores(useful, found)
    assert false_alarms(useful, own) == pytest.approx(0.1, abs=0.02)
    vetoed = Told("a", useful.gold, useful.surface, (True,) * 400, useful.supported, useful.denied)
    assert (scores(vetoed, Weights(1, 0, 0, 5)) < 0.5).all()
