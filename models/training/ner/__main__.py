"""Rebuild the model `ner`, or measure its recipe on sources left out of training.

    python -m models.training.ner                  train, export, measure: writes models/ner
    python -m models.training.ner --abroad         train the model of ten languages and measure it; nothing ships
    python -m models.training.ner --fold social    train without a fold's sources and measure on them
    python -m models.training.ner --report         write models/ner/CARD.md from what was measured

A run that was cut off goes on where it stopped. Everything repeats from `--seed`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec
import torch

from models.training import corpus
from models.training.export import MODELS
from models.training.ner import languages, structured
from models.training.ner.card import Fold, Shipped, card
from models.training.ner.material import ABROAD as LEARNT_ABROAD
from models.training.ner.material import FOLD, FOLDS, SHIPPED, learnt
from models.training.ner.measure import SETS, Finder, alarms, measured, texts_of
from models.training.ner.recipe import ABROAD, Size, train
from models.training.ner.ship import NAME, agreement, loaded, ship

MOST = 1000
"""Texts of a set that are measured."""
GENERATED = 200
"""Generated texts a locale."""
NAMELESS = "domain_banking77"
"""Customers' questions; none names anybody."""


def main() -> int:
    """Do what the command line asks; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m models.training.ner", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=corpus.data_folder(), help="folder of the pool of labelled data")
    parser.add_argument("--work", type=Path, default=Path("build/ner"), help="keeps checkpoints and figures")
    parser.add_argument("--fold", choices=[*FOLDS], action="append", default=[], help="measure without these sources")
    parser.add_argument("--abroad", action="store_true", help="train the model of ten languages, and measure it")
    parser.add_argument("--report", action="store_true", help="write the card from the figures in the work folder")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for fold in asked.fold:
        _measure_fold(asked.data, asked.work, fold, asked.seed)
    if asked.abroad:
        _measure_abroad(asked.data, asked.work, asked.seed)
    if not asked.fold and not asked.report and not asked.abroad:
        _build(asked.data, asked.work, asked.seed)
    folds = [
        msgspec.json.decode(path.read_bytes(), type=Fold)
        for fold in FOLDS
        if (path := asked.work / f"{fold}.json").exists()
    ]
    if (kept := asked.work / "shipped.json").exists():
        (MODELS / NAME / "CARD.md").write_text(card(folds, msgspec.json.decode(kept.read_bytes(), type=Shipped)))
    return 0


def _measure_fold(folder: Path, work: Path, fold: str, seed: int) -> None:
    texts = learnt(folder, work, FOLD, seed, FOLDS[fold])
    trained = train(texts, Size(), seed, work / f"{fold}.pt")
    finder = Finder(loaded(trained))
    found = [measured(name, texts_of(folder, name, MOST, seed), finder) for name in SETS if name.startswith(fold)]
    (work / f"{fold}.json").write_bytes(msgspec.json.encode(Fold(fold, found, trained.progress.curve)))


def _measure_abroad(folder: Path, work: Path, seed: int) -> None:
    trained = train(learnt(folder, work, LEARNT_ABROAD, seed), ABROAD, seed, work / "abroad.pt")
    finder = Finder(loaded(trained))
    found = [measured(name, texts_of(folder, name, MOST // 2, seed, "test"), finder) for name in SETS]
    by_language = languages.measured(folder, work, finder, seed)
    (work / "abroad.json").write_bytes(msgspec.json.encode((found, by_language, trained.progress.curve)))
    for figures in found:
        low, high = figures.names_interval
        print(f"{figures.name}: {figures.names:.3f} ({low:.3f} to {high:.3f}), overlap {figures.names_overlap:.3f}")
    print("\n".join(languages.shown(by_language)))


def _build(folder: Path, work: Path, seed: int) -> None:
    trained = train(learnt(folder, work, SHIPPED, seed), Size(), seed, work / "shipped.pt")
    size = ship(trained)
    finder = Finder(loaded(trained))
    test = {name: texts_of(folder, name, MOST // 2, seed, "test") for name in SETS}
    same = agreement(trained, [text.text for texts in test.values() for text in texts[:60]])
    nameless = [str(row["text"]) for row in corpus.rows(folder, NAMELESS)][:MOST]
    found = Shipped(
        [measured(name, texts, finder) for name, texts in test.items()],
        languages.measured(folder, work, finder, seed),
        structured.labelled(folder, 4 * MOST, seed),
        structured.generated(GENERATED, seed + 100),
        alarms(nameless, finder),
        size,
        same.windows,
        same.drift_mean,
        same.drift_p99,
        same.flips,
        trained.progress.curve,
    )
    (work / "shipped.json").write_bytes(msgspec.json.encode(found))


if __name__ == "__main__":
    sys.exit(main())
