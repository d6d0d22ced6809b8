"""Trains a teacher, keeps it, and asks it and others together."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load, save

from models.training.encoder import Encoder
from models.training.fit import Example, FitSettings, Progress, fit, predict, shown, text_loss
from models.training.graph import Float
from models.training.teacher import claims, injection, safety
from models.training.teacher.bases import BASES, Base
from models.training.teacher.rows import Row, Task, split
from models.training.teacher.windows import Cutter

TASKS: Mapping[str, Task] = {task.name: task for task in (safety.TASK, injection.TASK, claims.TASK)}

_WEIGHTS, _TOKENIZER, _DESCRIBED = "model.safetensors", "tokenizer.json", "teacher.json"
_SCORED = 20_000
"""Rows that are asked about at once."""


class Described(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a teacher is, and how it was made."""

    task: str
    base: str
    labels: tuple[str, ...]
    seed: int
    without: tuple[str, ...]
    length: int
    epochs: float
    rate: float
    rows: int
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a teacher is trained."""

    seed: int = 1
    without: tuple[str, ...] = ()
    """Sources that are left out, for honest figures."""
    length: int = 256
    """Pieces of a window."""
    epochs: float = 1.5
    rate: float = 4e-5
    batch_tokens: int = 8192
    save_every_s: float = 60.0


def device(name: str | None = None) -> torch.device:
    """Return a device; the best there is where none is named.

    Raises:
        ValueError: there is no such device here.
    """
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    if name is None:
        return accelerator or torch.device("cpu")
    try:
        asked = torch.device(name)
    except RuntimeError:
        raise ValueError(f"`{name}` is no device; take `cpu`, `cuda`, `mps`") from None
    if asked.type != "cpu" and (accelerator is None or asked.type != accelerator.type):
        raise ValueError(f"there is no device `{name}` here; there is `{accelerator or 'cpu'}`")
    return asked


def train(
    task: Task, base: Base, folder: Path, out: Path, plan: Plan, *, on: torch.device, seconds: float = math.inf
) -> Progress:
    """Train a teacher; one that was cut off, or whose time was over, is gone on with.

    Args:
        task: what it is for.
        base: what it starts from.
        folder: of the pool.
        out: keeps the checkpoint, the log and, once it is done, the teacher. One folder for one teacher.
        plan: how it is trained.
        on: the device.
        seconds: of training, after which it ends with a checkpoint.

    Raises:
        FileNotFoundError: a package of the base, or a file of the pool, is missing.
        ValueError: files or rows are broken, a source is unknown, `out` is of another training, or there are no epochs.
    """
    if not plan.epochs > 0:
        raise ValueError(f"a training of {plan.epochs} epochs learns nothing")
    files = base.files()
    rows = split(task, folder, plan.seed, plan.without).learnt
    cutter = Cutter(files.tokenizer.decode(), base.frame, plan.length)
    read = cutter.read(rows)

    def epoch(number: int) -> list[Example]:
        random = Random(f"{plan.seed} {number}")
        return [Example(cutter.drawn(own, random), row.target, row.weight) for row, own in zip(rows, read, strict=True)]

    torch.manual_seed(plan.seed)
    model = base.started(files, len(task.labels)).to(on)
    out.mkdir(parents=True, exist_ok=True)

    def log(entry: Mapping[str, float]) -> None:
        shown(entry)
        with (out / "log.jsonl").open("a") as lines:
            lines.write(json.dumps(entry) + "\n")

    settings = FitSettings(
        seed=plan.seed,
        epochs=plan.epochs,
        rate=plan.rate,
        batch_tokens=plan.batch_tokens,
        save_every_s=plan.save_every_s,
    )
    progress = fit(model, epoch, text_loss, settings, checkpoint=out / "fit.pt", seconds=seconds, log=log)
    if progress.step == progress.total:
        described = Described(
            task=task.name, base=base.name, labels=tuple(task.labels), seed=plan.seed, without=plan.without,
            length=plan.length, epochs=plan.epochs, rate=plan.rate, rows=len(rows), steps=progress.total,
        )  # fmt: skip
        _keep(out, model, files.tokenizer, described)
    return progress


def _keep(out: Path, model: Encoder, tokenizer: bytes, described: Described) -> None:
    """Write a teacher; what describes it comes last, so that one that is there is whole."""
    halves = {name: value.astype(np.float16) for name, value in model.weights().items()}
    described_as = msgspec.json.format(msgspec.json.encode(described), indent=1)
    for name, data in ((_WEIGHTS, save(halves)), (_TOKENIZER, tokenizer), (_DESCRIBED, described_as)):
        beside = out / f"{name}.part"
        beside.write_bytes(data)
        beside.replace(out / name)


@dataclass(frozen=True, slots=True)
class Teacher:
    """A trained one."""

    described: Described
    model: Encoder
    cutter: Cutter

    @classmethod
    def load(cls, folder: Path, on: torch.device) -> Teacher:
        """Read a teacher that `train` has written.

        Raises:
            FileNotFoundError: there is none, or its training isn't done.
            ValueError: its files don't fit each other or this recipe.
        """
        path = folder / _DESCRIBED
        if not path.exists():
            raise FileNotFoundError(f"`{folder}` holds no teacher, or one whose training isn't done")
        try:
            described = msgspec.json.decode(path.read_bytes(), type=Described)
        except msgspec.DecodeError as broken:
            raise ValueError(f"`{path}` is broken: {broken}") from broken
        task, base = TASKS.get(described.task), BASES.get(described.base)
        if task is None or base is None or described.labels != tuple(task.labels):
            raise ValueError(f"`{path}` is of a task, base or labels that this recipe doesn't have")
        model = base.build(base.shape, len(task.labels))
        try:
            weights = load((folder / _WEIGHTS).read_bytes())
            model.load_state_dict({name: torch.from_numpy(value.copy()).float() for name, value in weights.items()})
        except (RuntimeError, SafetensorError) as broken:
            raise ValueError(f"`{folder / _WEIGHTS}` doesn't fit `{path}`: {broken}") from broken
        cutter = Cutter((folder / _TOKENIZER).read_text(encoding="utf-8"), base.frame, described.length)
        return cls(described, model.to(on).eval(), cutter)

    def logits(self, rows: Sequence[Row], batch_tokens: int = 16_384) -> Float:
        """Return the highest logit of any window of each row, float32[row, label]."""
        nothing = np.zeros(len(self.described.labels), np.float32)
        cut = [self.cutter.windows(read) for read in self.cutter.read(rows)]
        examples = [Example(window, nothing) for windows in cut for window in windows]
        found = np.stack(predict(self.model, examples, batch_tokens))
        starts = np.cumsum([0, *(len(windows) for windows in cut[:-1])])
        return np.asarray(np.maximum.reduceat(found, starts, axis=0), np.float32)


def together(folders: Sequence[Path], on: torch.device) -> tuple[Task, list[Teacher]]:
    """Load teachers of one task that are asked together.

    Raises:
        FileNotFoundError: a folder holds none.
        ValueError: they are of different tasks, or broken.
    """
    teachers = [Teacher.load(folder, on) for folder in folders]
    tasks = sorted({teacher.described.task for teacher in teachers})
    if len(tasks) != 1:
        raise ValueError(f"these are teachers of different tasks: {', '.join(tasks)}")
    return TASKS[tasks[0]], teachers


def mean_logits(teachers: Sequence[Teacher], rows: Sequence[Row]) -> Float:
    """Return the mean of what teachers say, float32[row, label]: of seeds, bases or both."""
    labels = len(teachers[0].described.labels)
    parts = [
        np.mean([teacher.logits(rows[first : first + _SCORED]) for teacher in teachers], axis=0)
        for first in range(0, len(rows), _SCORED)
    ]
    return np.concatenate([np.zeros((0, labels), np.float32), *parts]).astype(np.float32)
