"""Rebuild the model `injection`, or measure its recipe on sources left out of training.

    python -m models.training.injection                    train, calibrate, export: writes models/injection
    python -m models.training.injection --fold personas    train without a fold's sources, measure on them
    python -m models.training.injection --gate             train the gate that ships further, on other languages
    python -m models.training.injection --second           train what ships further, as version 2.0 was: writes it
    python -m models.training.injection --joint            set anew how gate and encoder score together
    python -m models.training.injection --report           write models/injection/CARD.md from what was measured

A run that was cut off goes on where it stopped. Everything repeats from `--seed`.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import torch

from models.training.corpus import data_folder
from models.training.export import MODELS
from models.training.fit import FitSettings
from models.training.injection import joint
from models.training.injection.card import card
from models.training.injection.folds import Exam, FoldFigures, GatedFigures, alone, gated
from models.training.injection.gate import GATE_MIX, distilled
from models.training.injection.material import Material
from models.training.injection.measure import unlearnt
from models.training.injection.pool import FOLDS
from models.training.injection.regate import regate
from models.training.injection.second import by_kind, score_together, second
from models.training.injection.ship import NAME, ShippedFigures, ship
from models.training.injection.train import FOLD_PLAN, SHIPPED_PLAN, opened, trained


def main() -> int:
    """Do what the command line asks; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m models.training.injection", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of the pool of labelled data")
    parser.add_argument("--work", type=Path, default=Path("build/injection"), help="keeps checkpoints and figures")
    parser.add_argument("--fold", choices=[*FOLDS], action="append", default=[], help="measure without these sources")
    parser.add_argument("--gate", action="store_true", help="train the gate that ships further; writes it")
    parser.add_argument("--second", action="store_true", help="train encoder and gate that ship further; writes both")
    parser.add_argument("--base", type=Path, default=MODELS / NAME, help="folder of those that go on by `--second`")
    parser.add_argument(
        "--joint", action="store_true", help="set anew how gate and encoder score together; no training"
    )
    parser.add_argument("--report", action="store_true", help="write the card from the figures in the work folder")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.report:
        return _report(asked.work)
    if asked.second:
        second(asked.data, asked.work, asked.base)
        return 0
    if asked.gate:
        for name, both in zip(("before", "after"), regate(asked.data, asked.work), strict=True):
            _keep(asked.work / f"gate-{name}.json", both)
    if asked.gate or asked.joint:
        return _score_together(asked.data)
    material = Material.read(asked.data, asked.work)
    for fold in asked.fold:
        model, progress = trained(material, fold, replace(FOLD_PLAN, seed=asked.seed), asked.work)
        exam = Exam.of(material, fold)
        _keep(asked.work / f"{fold}.json", alone(exam, material, model, progress.curve))
        _keep(asked.work / f"{fold}-gated.json", gated(exam, material, model, asked.seed, asked.work))
    if not asked.fold:
        plan = replace(SHIPPED_PLAN, seed=asked.seed)
        model, progress = trained(material, None, plan, asked.work)
        weights = model.weights()
        settings = FitSettings(seed=asked.seed, epochs=2.0, rate=2e-3, batch_tokens=4096)
        lesson = material.lesson(None, GATE_MIX, plan.seed)
        gate, gate_progress = distilled(lesson, opened(model), weights["tokens.weight"], settings, asked.work)
        found = ship(material, model, gate, [progress.curve, gate_progress.curve])
        _keep(asked.work / "shipped.json", found)
        _score_together(asked.data)
        return _report(asked.work)
    return 0


def _score_together(folder: Path) -> int:
    """Set thresholds and curves on texts of the part `dev`, write them, and say what fires of other texts."""
    material = Material.shipped(folder, (MODELS / NAME / "tokenizer.json").read_text(encoding="utf-8"))
    model = score_together(material)
    test = by_kind(material, "test", 22)
    innocents: dict[str, list[str]] = {}
    for text, kind in zip(test.innocents, test.groups, strict=True):
        innocents.setdefault(kind, []).append(text)
    for name, shares in joint.fires(model, {"attacks": test.attacks, **innocents, **unlearnt(folder)}).items():
        print(name, *(f"{share:.3f}" for share in shares))
    return 0


def _keep(path: Path, figures: msgspec.Struct) -> None:
    data = msgspec.json.format(msgspec.json.encode(figures))
    path.write_bytes(data)
    print(data.decode())


def _report(work: Path) -> int:
    shipped = msgspec.json.decode((work / "shipped.json").read_bytes(), type=ShippedFigures)
    folds = [
        (
            msgspec.json.decode(path.read_bytes(), type=FoldFigures),
            msgspec.json.decode((work / f"{fold}-gated.json").read_bytes(), type=GatedFigures),
        )
        for fold in FOLDS
        if (path := work / f"{fold}.json").exists()
    ]
    text = card(shipped, folds)
    (MODELS / NAME / "CARD.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
