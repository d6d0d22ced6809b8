"""Rebuilds and measures `safety`: `python -m models.training.safety COMMAND`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from models.training.corpus import data_folder
from models.training.export import MODELS, write_files
from models.training.safety import sold, together
from models.training.safety.assemble import FOLDS
from models.training.safety.card import card
from models.training.safety.compare import compared
from models.training.safety.measure import measured_fold, measured_model
from models.training.safety.ship import NAME, build

SEED = 7


def main() -> None:
    """Run one command; each goes on where it was cut off, and prints its figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m models.training.safety", description=__doc__)
    parser.add_argument("command", choices=("train", "folds", "figures", "compare", "together", "promotional", "card"))
    parser.add_argument("--data", type=Path, default=data_folder(), help="the pool; else $CHECKSTREAM_DATA")
    parser.add_argument("--work", type=Path, default=Path("var/training/safety"), help="checkpoints and figures")
    parser.add_argument("--fold", choices=sorted(FOLDS), action="append", help="only this fold; may be repeated")
    parser.add_argument("--start", type=Path, help="of `train`: folder of a student's files to go on from")
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    asked.work.mkdir(parents=True, exist_ok=True)
    match asked.command:
        case "train":
            found = build(asked.data, SEED, asked.work, start=asked.start)
        case "folds":
            found = {}
            for name in asked.fold or sorted(FOLDS):
                found[name] = measured_fold(asked.data, name, SEED, asked.work)
                write_files(asked.work, {f"fold_{name}.json": json.dumps(found[name], indent=1)})
        case "figures":
            export = json.loads((asked.work / "export.json").read_text())
            limits = {f"{row['fpr']:.1%}": row["threshold"] for row in export["rates"] if row["label"] == "any"}
            found = measured_model(asked.data, SEED, limits, export["rates"])
            write_files(asked.work, {"figures.json": json.dumps(found, indent=1)})
        case "compare":
            found = compared(asked.data, (asked.fold or ["comments"])[0], SEED, asked.work)
            write_files(asked.work, {"compare.json": json.dumps(found, indent=1)})
        case "together":
            found = together.build(asked.data, SEED, asked.work)
        case "promotional":
            found = sold.measured(asked.data, SEED)
            write_files(asked.work, {"promotional.json": json.dumps(found, indent=1)})
        case _:
            parts = {path.stem: json.loads(path.read_text()) for path in sorted(asked.work.glob("*.json"))}
            write_files(MODELS / NAME, {"CARD.md": card(parts)})
            found = {"written": f"{NAME}/CARD.md"}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
