"""Make a teacher, and let it score what students learn from.

    python -m models.training.teacher train safety build/safety-1            one teacher; goes on where it was cut off
    python -m models.training.teacher measure build/safety-1                 how good it is on what it didn't learn
    python -m models.training.teacher score build/safety-1 build/safety-2 --to scores.jsonl.gz    the mean of both

Everything repeats from `--seed`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import orjson
import torch

from models.training.corpus import data_folder
from models.training.graph import Float
from models.training.injection.measure import figures
from models.training.teacher import claims
from models.training.teacher.bases import BASES
from models.training.teacher.recipe import TASKS, Plan, Teacher, device, mean_logits, together, train
from models.training.teacher.rows import Row, Task, pieces, split
from models.training.teacher.scores import not_scored, thousandths, write_pairs, write_texts


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line asks; returns the exit code."""
    asked = _parser().parse_args(argv)
    torch.set_num_threads(asked.threads)
    try:
        on = device(asked.device)
        if asked.command == "train":
            return _train(asked, on)
        task, teachers = together(asked.teacher, on)
        if asked.command == "measure":
            print(json.dumps(measured(task, teachers, asked.data), indent=1))
        else:
            scored(task, teachers, asked.data, asked.to, asked.texts)
    except (ValueError, FileNotFoundError) as refused:
        print(f"teacher: {refused}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    every = argparse.ArgumentParser(add_help=False)
    every.add_argument("--data", type=Path, default=data_folder(), help="the pool; else $CHECKSTREAM_DATA")
    every.add_argument("--device", help="cpu, cuda, ...; else the best there is")
    every.add_argument("--threads", type=int, default=1)
    parser = argparse.ArgumentParser(prog="python -m models.training.teacher", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("train", parents=[every], help="train a teacher, or go on with its training")
    one.add_argument("task", choices=sorted(TASKS))
    one.add_argument("out", type=Path, help="folder of this teacher alone")
    one.add_argument("--base", choices=sorted(BASES), default="mpnet")
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--without", action="append", default=[], help="a source to leave out; may be repeated")
    one.add_argument("--epochs", type=float, default=Plan().epochs)
    one.add_argument("--seconds", type=float, default=math.inf, help="of training; the next run goes on")
    for name, what in (("measure", "print figures on what wasn't learnt"), ("score", "write scores for students")):
        other = commands.add_parser(name, parents=[every], help=what)
        other.add_argument("teacher", type=Path, nargs="+", help="folders of teachers; the mean of several counts")
        if name == "score":
            other.add_argument("--to", type=Path, required=True, help=".jsonl.gz, or .npz of the pair files")
            other.add_argument("--texts", type=Path, help="JSON lines with `text` (and `claim`); else the pool's")
    return parser


def _train(asked: argparse.Namespace, on: torch.device) -> int:
    plan = Plan(seed=asked.seed, without=tuple(sorted(set(asked.without))), epochs=asked.epochs)
    task, base = TASKS[asked.task], BASES[asked.base]
    progress = train(task, base, asked.data, asked.out, plan, on=on, seconds=asked.seconds)
    print(json.dumps({"done": progress.step == progress.total, "step": progress.step, "of": progress.total}))
    return 0


def measured(task: Task, teachers: Sequence[Teacher], folder: Path) -> dict[str, dict[str, object]]:
    """Return AUC and recall of every label, with intervals, on what none of the teachers has learnt.

    Of sources that were left out, and of the part `test` of the others. Where sources that are left out have no
    negatives, those of the others stand in.
    """
    without = set.intersection(*(set(teacher.described.without) for teacher in teachers))
    seed = teachers[0].described.seed
    rows = split(task, folder, seed, without).measured
    logits = mean_logits(teachers, rows)
    targets = np.stack([row.target for row in rows]) if rows else np.zeros((0, len(task.labels)), np.float32)
    apart = np.array([row.source in without for row in rows], bool)
    found: dict[str, dict[str, object]] = {}
    for column, label in enumerate(task.labels):
        good, bad = targets[:, column] >= 0.5, targets[:, column] <= 0.1
        own: dict[str, object] = {}
        for name, chosen in (("left out", apart), ("test", ~apart)):
            against = bad & chosen if (bad & chosen).any() else bad
            own |= _figures(name, logits[good & chosen, column], logits[against, column])
        found[label] = own
    return found


def _figures(name: str, positives: Float, negatives: Float) -> dict[str, object]:
    if not len(positives) or not len(negatives):
        return {}
    shown = {figure: [round(value, 4) for value in (found.value, found.low, found.high)]
             for figure, found in figures(positives, negatives).items()}  # fmt: skip
    return {name: {"positives": len(positives), "negatives": len(negatives), **shown}}


def scored(task: Task, teachers: Sequence[Teacher], folder: Path, to: Path, texts: Path | None = None) -> None:
    """Write what teachers say: of a file's lines, of the pool's pair files, or of pieces of the pool's texts.

    Raises:
        ValueError: a line of the file is broken, or `to` isn't of the kind that is written.
    """
    pairs = task.name == claims.TASK.name and texts is None
    ending = ".npz" if pairs else ".jsonl.gz"
    if not to.name.endswith(ending):
        raise ValueError(f"scores are written to a file that ends in `{ending}`; `{to.name}` doesn't")
    if pairs:
        write_pairs(to, {name: _pair_scores(teachers, folder, name) for name in claims.files(folder)})
        return
    seed = teachers[0].described.seed
    rows = _lines(task, texts) if texts else list(
        pieces(split(task, folder, seed).learnt, task.words, Random(seed))
    )  # fmt: skip
    write_texts(to, rows, thousandths(mean_logits(teachers, rows)))


def _pair_scores(teachers: Sequence[Teacher], folder: Path, name: str) -> np.ndarray:
    found = list(claims.pairs(folder, name))
    scores = not_scored(len(found))
    asked = [at for at, row in enumerate(found) if row is not None]
    scores[asked] = thousandths(mean_logits(teachers, [row for row in found if row is not None]))
    return scores


def _lines(task: Task, path: Path) -> list[Row]:
    nothing = np.full(len(task.labels), np.nan, np.float32)
    rows = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            row = orjson.loads(line)
            text, claim = row["text"], row.get("claim")
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as broken:
            raise ValueError(f"line {number} of `{path}` is no text: {broken!r}") from broken
        if not isinstance(text, str) or (task.name == claims.TASK.name) != isinstance(claim, str):
            raise ValueError(f"line {number} of `{path}` has not the `text` and `claim` that `{task.name}` reads")
        source = str(row.get("source", path.stem))
        rows.append(Row(text=text, claim=claim, target=nothing, source=source, part="test"))
    return rows


if __name__ == "__main__":
    sys.exit(main())
