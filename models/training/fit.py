"""The training loop of every recipe: seeded, resumable after a cut-off, on any device, with its progress shown.

Batches hold texts of like length and as many as fit a budget of padded tokens, so that no work goes into padding.
"""

from __future__ import annotations

import hashlib
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from pickle import UnpicklingError
from random import Random
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from models.training.encoder import autocast


@dataclass(frozen=True, slots=True)
class Example:
    """One window to learn from."""

    ids: Sequence[int]
    target: NDArray[np.float32] | Sequence[int]
    """Of a text: float32[label], 0..1, NaN where unknown. Of tokens: a class each, -100 where it doesn't count."""
    weight: float = 1.0
    types: Sequence[int] | None = None


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """How long and how fast to learn."""

    seed: int
    epochs: float = 2.0
    rate: float = 1e-4
    """Of AdamW at its highest; warms up over 6 % of the steps, then falls to nothing in a line."""
    batch_tokens: int = 2048
    """Padded tokens of a batch."""
    decay: float = 0.01
    save_every_s: float = 60.0


@dataclass
class Progress:
    """Where a training stands; the learning curve that the recipe reports."""

    curve: list[tuple[int, float]] = field(default_factory=list)
    """Step, mean loss since the last entry."""
    pending: list[float] = field(default_factory=list)
    """Losses of the steps since the last entry."""
    step: int = 0
    """Steps that are done."""
    total: int = 0
    """Steps that there are; fewer are done when the time was over."""


Loss = Callable[[Tensor, Tensor], Tensor]


def text_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the cross entropy of each text, float32[batch], over the labels that are known."""
    known = ~torch.isnan(targets)
    loss = functional.binary_cross_entropy_with_logits(logits, torch.nan_to_num(targets), reduction="none")
    return (loss * known).sum(1) / known.sum(1).clamp(min=1)


def class_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the cross entropy of each text over classes that exclude each other; `targets` are shares."""
    return -(functional.log_softmax(logits, dim=-1) * targets).sum(-1)


def token_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross entropy over the tokens of each text that count, float32[batch]."""
    loss = functional.cross_entropy(logits.transpose(1, 2), targets, ignore_index=-100, reduction="none")
    return loss.sum(1) / (targets != -100).sum(1).clamp(min=1)


def collate(
    examples: Sequence[Example], device: torch.device | None = None
) -> tuple[Tensor, Tensor, Tensor | None, Tensor, Tensor]:
    """Pad examples into one batch: ids, mask, types, targets, weights; on the processor where no device is told."""
    longest = max(len(example.ids) for example in examples)
    ids = np.zeros((len(examples), longest), np.int64)
    mask = np.zeros_like(ids)
    typed = examples[0].types is not None
    types = np.zeros_like(ids)
    whole = isinstance(examples[0].target, np.ndarray)
    classes = np.full_like(ids, -100)
    for row, example in enumerate(examples):
        size = len(example.ids)
        ids[row, :size] = example.ids
        mask[row, :size] = 1
        if example.types is not None:
            types[row, :size] = example.types
        if not whole:
            classes[row, :size] = example.target
    targets = torch.from_numpy(np.stack([np.asarray(e.target) for e in examples]) if whole else classes)
    weights = torch.tensor([example.weight for example in examples])
    kinds = torch.from_numpy(types).to(device) if typed else None
    return (
        *(torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)),
        *(kinds, targets.to(device), weights.to(device)),
    )


def batches(lengths: Sequence[int], budget: int, random: Random) -> list[list[int]]:
    """Return the numbers of the examples of one epoch in batches of like length, in random order."""
    order = list(range(len(lengths)))
    random.shuffle(order)
    result: list[list[int]] = []
    for start in range(0, len(order), 4096):
        batch: list[int] = []
        for number in sorted(order[start : start + 4096], key=lengths.__getitem__):
            if batch and (len(batch) + 1) * lengths[number] > budget:
                result.append(batch)
                batch = []
            batch.append(number)
        if batch:
            result.append(batch)
    random.shuffle(result)
    return result


def shown(entry: Mapping[str, float]) -> None:
    """Print an entry of the log where it is out of the way of figures."""
    done, left = f"step {entry['step']}/{entry['total']}", f"left {entry['left_s']:.0f} s"
    print(f"{done} loss {entry['loss']:.4f} {left}", file=sys.stderr, flush=True)


def fit(
    model: nn.Module,
    examples: Sequence[Example] | Callable[[int], Sequence[Example]],
    loss: Loss,
    settings: FitSettings,
    *,
    checkpoint: Path | None = None,
    every: Callable[[int], None] | None = None,
    seconds: float = math.inf,
    log: Callable[[Mapping[str, float]], None] = shown,
) -> Progress:
    """Train `model` in place, on the device that it is on.

    Args:
        model: takes ids, mask and, where examples have them, types; returns logits.
        examples: what to learn from; or a function of the epoch, for augmentation anew each time.
        loss: float32[batch] of logits and targets.
        settings: how long and how fast.
        checkpoint: where to keep the state; a file there is taken up again, and stays when the training is done.
        every: called after each epoch with its number (to measure on dev texts).
        seconds: after which no step is begun, but one; the next call goes on where this one ended.
        log: takes the entries of the learning curve: `step`, `total`, `loss`, `left_s`.

    Returns:
        The learning curve.

    Raises:
        ValueError: the checkpoint is broken, or of a training with another model, other settings or other examples.
    """
    torch.manual_seed(settings.seed)
    epochs = int(np.ceil(settings.epochs))
    first = examples(0) if callable(examples) else examples
    per_epoch = len(batches([len(example.ids) for example in first], settings.batch_tokens, Random(settings.seed)))
    total = max(1, int(per_epoch * settings.epochs))
    learnt = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimiser, schedule = _optimiser(learnt, settings, total)
    progress = Progress(total=total)
    state = _State(model, optimiser, schedule, progress, _marks(model, settings, first))
    done = state.resume(checkpoint) if checkpoint is not None else 0
    step, late, losses, since, saved = 0, False, progress.pending, time.monotonic(), time.monotonic()
    for epoch in range(epochs):
        chosen = examples(epoch) if callable(examples) else examples
        lengths = [len(example.ids) for example in chosen]
        model.train()
        for batch in batches(lengths, settings.batch_tokens, Random(settings.seed + epoch)):
            late = done < step < total and time.monotonic() - since >= seconds
            if late or step >= total:
                break
            step += 1
            if step <= done:
                continue
            losses.append(_step(model, loss, [chosen[number] for number in batch], optimiser, learnt))
            schedule.step()
            if len(losses) == 50 or step == total:
                mean, left = float(np.mean(losses)), (time.monotonic() - since) / (step - done) * (total - step)
                progress.curve.append((step, mean))
                log({"step": step, "total": total, "loss": mean, "left_s": left})
                losses.clear()
            if checkpoint is not None and time.monotonic() - saved > settings.save_every_s:
                state.save(checkpoint, step)
                saved = time.monotonic()
        if late:
            break
        if every is not None and step > done:
            model.eval()
            every(epoch)
    if checkpoint is not None and step > done:
        state.save(checkpoint, step)
    progress.step = step
    model.eval()
    return progress


def _optimiser(
    learnt: Sequence[nn.Parameter], settings: FitSettings, total: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LambdaLR]:
    optimiser = torch.optim.AdamW(learnt, lr=settings.rate, weight_decay=settings.decay, fused=True)
    warm = max(1, int(0.06 * total))
    return optimiser, torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / warm, max(0.0, (total - step) / max(1, total - warm)))
    )


def _step(
    model: nn.Module,
    loss: Loss,
    examples: Sequence[Example],
    optimiser: torch.optim.Optimizer,
    learnt: Sequence[nn.Parameter],
) -> float:
    device = learnt[0].device
    ids, mask, types, targets, weights = collate(examples, device)
    with autocast(device.type):
        logits = model(ids, mask) if types is None else model(ids, mask, types)
    each = loss(logits.float(), targets)
    mean = (each * weights).sum() / weights.sum().clamp(min=1e-6)
    mean.backward()
    nn.utils.clip_grad_norm_(learnt, 1.0)
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    return float(mean.detach())


def predict(model: nn.Module, examples: Sequence[Example], batch_tokens: int = 8192) -> list[NDArray[np.float32]]:
    """Return the logits of each example, in order: float32[label] or float32[token, label]."""
    model.eval()
    device = next(model.parameters()).device
    result: list[NDArray[np.float32] | None] = [None] * len(examples)
    order = batches([len(example.ids) for example in examples], batch_tokens, Random(0))
    with torch.no_grad(), autocast(device.type):
        for batch in order:
            ids, mask, types, _, _ = collate([examples[number] for number in batch], device)
            logits = model(ids, mask) if types is None else model(ids, mask, types)
            for number, row in zip(batch, logits.float().cpu().numpy(), strict=True):
                result[number] = row[: len(examples[number].ids)] if row.ndim == 2 else row
    return [row for row in result if row is not None]


def _marks(model: nn.Module, settings: FitSettings, examples: Sequence[Example]) -> dict[str, str]:
    """Return what tells one training from another: its model, settings and examples, hashed."""
    shapes = [(name, tuple(value.shape), value.requires_grad) for name, value in model.named_parameters()]
    data = hashlib.sha256()
    for example in examples:
        types = None if example.types is None else [*example.types]
        target = np.asarray(example.target)
        data.update(f"{[*example.ids]}{types}{target.dtype}{target.shape}{example.weight}".encode())
        data.update(target.tobytes())
    # How often it is kept changes nothing about what is learnt.
    told = {"model": repr(shapes), "settings": repr(replace(settings, save_every_s=0.0))}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in told.items()} | {
        "examples": data.hexdigest()
    }


@dataclass(frozen=True, slots=True)
class _State:
    """What a checkpoint holds."""

    model: nn.Module
    optimiser: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LambdaLR
    progress: Progress
    marks: Mapping[str, str]

    def save(self, path: Path, step: int) -> None:
        """Write the state; a cut-off in between leaves the one before."""
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".part")
        state = {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "curve": self.progress.curve,
            "pending": self.progress.pending,
            "random": torch.get_rng_state(),
            "drawn": self._draws().get_rng_state() if self._draws() is not None else None,
            "marks": dict(self.marks),
            "step": step,
        }
        torch.save(state, beside)
        beside.replace(path)

    def resume(self, path: Path) -> int:
        """Take up a checkpoint if there is one; return the steps that it has done.

        Raises:
            ValueError: it is of another training, or broken.
        """
        if not path.exists():
            return 0
        try:
            state = torch.load(path, weights_only=True, map_location="cpu")
        except (RuntimeError, UnpicklingError, EOFError, OSError) as broken:
            raise ValueError(f"checkpoint `{path}` is broken: {broken}") from broken
        marks = state.get("marks", {})
        other = ", ".join(name for name, mark in self.marks.items() if marks.get(name) != mark)
        if other:
            raise ValueError(
                f"checkpoint `{path}` is of a training with other {other}; remove it, or keep this elsewhere"
            )
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.schedule.load_state_dict(state["schedule"])
        self.progress.curve.extend(tuple(point) for point in state["curve"])
        self.progress.pending.extend(state["pending"])
        torch.set_rng_state(state["random"])
        draws = self._draws()
        if draws is not None and state.get("drawn") is not None:
            draws.set_rng_state(state["drawn"])
        return int(state["step"])

    def _draws(self) -> Any:
        """Return what draws a device's own random numbers; None of processors, whose are torch's."""
        device = next(self.model.parameters()).device
        return None if device.type == "cpu" else torch.get_device_module(device)
