"""Rebuild the model `reader` and measure it on evidence that it never saw.

    python -m models.training.reader              train, export, choose, measure: writes models/reader
    python -m models.training.reader --measure    the last two, of the graph that ships
    python -m models.training.reader --report     choose and write models/reader/CARD.md from what was measured

A run that was cut off goes on where it stopped. Everything repeats from `--seed`.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import msgspec
import torch

from models.training import corpus
from models.training.export import MODELS
from models.training.reader.card import Measured, card
from models.training.reader.data import LEFT_OUT, MEASURED, learnt
from models.training.reader.measure import CHOOSING, MISSED, Told, chosen, full_window_ms, lines, sets, told
from models.training.reader.ship import NAME, graph, opened, ship
from models.training.reader.student import Size, trained


def main(argv: list[str] | None = None) -> int:
    """Do what the command line asks; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m models.training.reader", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=corpus.data_folder(), help="folder of the pool of labelled data")
    parser.add_argument("--taught", type=Path, help="scores of a teacher; `teacher/pairs.npz` of the pool")
    parser.add_argument("--work", type=Path, default=Path("build/reader"), help="keeps checkpoints and figures")
    parser.add_argument("--models", type=Path, default=MODELS, help="folder that is written to")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="end with a checkpoint after so long")
    parser.add_argument("--measure", action="store_true", help="measure what ships, train nothing")
    parser.add_argument("--report", action="store_true", help="write the card from the figures in the work folder")
    asked = parser.parse_args(argv)
    torch.set_num_threads(1)
    taught = asked.taught or asked.data / "teacher" / "pairs.npz"
    kept = asked.work / "told.json"
    if not asked.measure and not asked.report:
        pairs = learnt(asked.data, taught, asked.seed)
        model, progress = trained(pairs, Size(), asked.seed, asked.work, asked.seconds)
        if progress.step < progress.total:
            return 0
        ship(graph(model.weights(), model.shape, int8=True), asked.models)
        (asked.work / "curve.json").write_bytes(msgspec.json.encode((len(pairs), progress.curve)))
    if not asked.report:
        kept.write_bytes(msgspec.json.encode(_told(asked.data, taught, asked.seed, asked.models)))
    found, ms = msgspec.json.decode(kept.read_bytes(), type=tuple[dict[str, Told], float])
    count, curve = msgspec.json.decode(
        (asked.work / "curve.json").read_bytes(), type=tuple[int, list[tuple[int, float]]]
    )
    choosing = [found[name] for name in CHOOSING if name in found]
    left_out = [found[name] for name in (*LEFT_OUT, *MEASURED) if name in found]
    weights = chosen(choosing, MISSED)
    print(f"chosen, for `checkstream.grounding.reader`: {weights}", file=sys.stderr)
    measured = Measured(list(lines(choosing)), list(lines(left_out)), weights, count, curve, ms)
    (asked.work / "figures.json").write_bytes(msgspec.json.encode(measured))
    (asked.models / NAME / "CARD.md").write_text(card(measured))
    return 0


def _told(folder: Path, taught: Path, seed: int, models: Path) -> tuple[dict[str, Told], float]:
    """Return what both say of every set, and what a window takes."""
    session = opened((models / NAME / "model.onnx").read_bytes())
    found = {}
    for name, pairs in sets(folder, taught, seed).items():
        if pairs:
            found[name] = told(name, pairs, session)
            print(f"{name}: {len(pairs)} claims, {found[name].seconds:.0f} s", file=sys.stderr)
    return found, full_window_ms(session)


if __name__ == "__main__":
    sys.exit(main())
