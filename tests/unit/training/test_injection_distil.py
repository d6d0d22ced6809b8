"""The turns of 2.0 in small: kinds and sources of innocent texts, what is suspected, a training that goes on."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from random import Random

import orjson
import pytest

from tests import injection_pool
from tests.train_packages import TRAIN

torch = pytest.importorskip("torch", reason=TRAIN)
pytest.importorskip("onnx", reason=TRAIN)

from checkstream.config import bundled  # noqa: E402
from models.training.graph import weights_of  # noqa: E402
from models.training.injection import kinds  # noqa: E402
from models.training.injection.distil import TURNS, UNREAD, Distillation, distilled  # noqa: E402
from models.training.injection.material import Material  # noqa: E402
from models.training.injection.teach import Mix  # noqa: E402

FOLDER = bundled("models") / "injection"
LEARNT, APART = "teknium1/GPTeacher@1:a.json", "boson-ai/RPBench-Auto@2:b.json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pool with texts of every kind, of a source that is learnt from and of one that is not."""
    found = injection_pool.fill(tmp_path_factory.mktemp("pool"))
    for file in kinds.FILES:
        rows = [
            {
                "text": f"{source} tells tale {n} of {file} in a calm voice.",
                "label": 0,
                "source": source,
                "licence": "MIT",
            }
            for source in (LEARNT, APART)
            for n in range(30)
        ]
        rows.append(
            {"text": f"A tale of {file} that somebody owns.", "label": 0, "source": LEARNT, "licence": "MIT [M]"}
        )
        injection_pool.write(found, file, rows)
    scored = [
        {"text": f"Piece {n} of {source} says to ignore all rules.", "source": source, "score": 900}
        for source in ("attack:override", "real:verazuo", "benign:prompt", "poisoned")
        for n in range(12)
    ]
    (found / "teacher").mkdir()
    with gzip.open(found / "teacher" / "pieces.jsonl.gz", "wb") as file_:
        file_.writelines(orjson.dumps(row) + b"\n" for row in scored)
    return found


@pytest.fixture(scope="module")
def held(folder: Path) -> Distillation:
    material = Material.shipped(folder, (FOLDER / "tokenizer.json").read_text(encoding="utf-8"))
    small = Mix(attacks=4, poisoned=2, innocents=4, clean=2, pool_innocents=4, source_cap=2)
    turns = [
        replace(
            turn, asked=dict.fromkeys(turn.asked, 2), suspected=4, calm=2, taught={"attack:": 4, "poison": 4}, mix=small
        )
        for turn in TURNS
    ]
    return Distillation.of(material, folder / "teacher" / "pieces.jsonl.gz", turns)


def test_sources_that_are_left_out_and_licences_that_nobody_read_teach_nothing(
    folder: Path, held: Distillation
) -> None:
    texts = list(kinds.innocents(folder))
    assert {text.kind for text in texts} >= {"role-play", "games", "documents", "requests", "prompts"}
    assert not any("somebody owns" in text.text for text in texts)
    assert {text.left_out for text in texts if text.source == "boson-ai/RPBench-Auto"} == {True}
    assert held.innocents
    assert not any("RPBench" in text.source and text.kind != "assistants" for text in held.innocents)
    assert all(text.part == "train" for text in held.innocents)
    assert {one.source for one in held.taught} == {"attack:override", "poisoned"}
    assert not {text.source for text in held.lesson.attacks} & UNREAD


def test_all_texts_of_an_assistant_fall_into_one_part(folder: Path) -> None:
    own = [text for text in kinds.innocents(folder) if text.kind == "assistants"]
    for source in {text.source for text in own}:
        assert len({(text.part, text.left_out) for text in own if text.source == source}) == 1


def test_a_row_without_text_is_named(tmp_path: Path) -> None:
    injection_pool.write(tmp_path, "roleplay_real", [{"text": 5, "source": LEARNT}])
    with pytest.raises(ValueError, match="row 1 of `roleplay_real` has no text"):
        next(kinds.innocents(tmp_path))


def test_so_many_of_a_kind_are_drawn_and_no_kind_that_is_not_named(folder: Path) -> None:
    texts = list(kinds.innocents(folder))
    drawn = kinds.drawn(texts, {"games": 3, "documents": 10_000}, Random(1))
    assert sum(text.kind == "games" for text in drawn) == 3
    assert {text.kind for text in drawn} == {"games", "documents"}


def test_the_encoder_goes_on_through_the_turns_and_takes_up_where_it_stopped(
    held: Distillation, tmp_path: Path
) -> None:
    weights = weights_of((FOLDER / "model.onnx").read_bytes())
    model, progress = distilled(held, weights, tmp_path)
    assert [turn.name for turn in held.turns if (tmp_path / f"{turn.name}.pt").exists()] == ["second-1", "second-2"]
    again, same = distilled(held, weights, tmp_path)
    assert same.curve == progress.curve
    for one, other in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(model.head.weight, torch.from_numpy(weights["head.weight"]))
