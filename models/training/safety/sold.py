"""Measures whether `promotional` can be told from what the shipped encoder says: heads on its frozen states.

A head reads a window's states, of the last layer or of all three, as their mean and their highest values, and learns
from the sentences of `banks` and from the calm of the pool. What people will hold it to is `held_out`: written by hand,
in another style, before a head was trained, and read here alone. Nothing that ships comes from this: the card says why.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import orjson
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper
from torch import Tensor, nn
from torch.nn import functional

from checkstream.evaluation.board.measured import wilson
from checkstream.evaluation.figures import auc, bootstrap, threshold_at_fpr
from models.training.corpus import part_of
from models.training.export import MODELS, session
from models.training.graph import Float
from models.training.safety import promotions
from models.training.safety.assemble import corpus
from models.training.safety.checks import checked
from models.training.safety.distil import plain_tokenizer
from models.training.safety.labels import LABELS, PROMOTIONAL, Text, safe
from models.training.safety.promotions import CALM_SOURCE, SOURCE
from models.training.safety.recipe import benign
from models.training.safety.windows import WINDOW, hard_targets, sampled
from models.training.teacher.safety import UNSURE

_HELD_OUT = Path(__file__).with_name("held_out")

CALM: Mapping[str, int] = {
    "documents_varied": 2000,
    "documents_reference": 1500,
    "domain_spikee_investment": 200,
    "domain_mmlu": 1500,
    "domain_clinc150": 800,
    "domain_banking77": 800,
    "prompts_oasst": 800,
    "benign_support_chats": 800,
    "roleplay_real": 500,
    "ground_frank_valid": 300,
}
"""Sets of the pool that sell nothing, and how many texts of each a head learns from beside the corpus."""

_CHARS = 3000


@dataclass(frozen=True, slots=True)
class Effort:
    """How much a head learns from."""

    promotions: int = 16_000
    lookalikes: int = 15_000
    quoted: int = 4000
    corpus: int = 18_000
    calm: float = 1.0
    """Of the numbers of `CALM`."""
    benign: int = 1500
    """Calm texts of the part `dev`, from which the threshold comes."""


HEADS: Mapping[str, tuple[str, int, float]] = {"logistic": ("last", 0, 1e-4), "layers": ("all", 64, 1e-2)}
"""Name -> which states it reads, its hidden neurons (0: none) and its weight decay."""


def held_out(name: str) -> list[tuple[str, str]]:
    """Return the sentences of a file that only measures, each with its kind."""
    found, kind = [], ""
    for line in (_HELD_OUT / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            kind = line.removeprefix("# ")
        elif line.strip():
            found.append((line, kind))
    return found


def states(graph: bytes) -> Callable[[Sequence[Sequence[int]]], NDArray[np.float16]]:
    """Return what reads windows: the mean and the highest state of each layer, float16[window, 2 * layers * hidden]."""
    model = onnx.load_model_from_string(graph)
    norms = [node.output[0] for node in model.graph.node if node.op_type == "LayerNormalization"][2::2]
    for name in norms:
        model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "token", None]))
    opened = session(model)

    def read(windows: Sequence[Sequence[int]]) -> NDArray[np.float16]:
        rows = []
        for window in windows:
            ids = np.array([window], np.int64)
            layers = opened.run(norms, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
            parts = [part for layer in layers for part in (layer[0].mean(axis=0), layer[0].max(axis=0))]
            rows.append(np.concatenate(parts).astype(np.float16))
        return np.stack(rows)

    return read


class Head(nn.Module):
    """A logit of a window's states."""

    def __init__(self, of: str, width: int, hidden: int) -> None:
        """Build it.

        Args:
            of: `last`: it reads the mean of the last layer; `all`: all that `states` gives.
            width: columns of `states`.
            hidden: neurons; 0: it is linear.
        """
        super().__init__()
        layer = width // 6
        self.columns = slice(4 * layer, 5 * layer) if of == "last" else slice(0, width)
        size = layer if of == "last" else width
        self.level = nn.BatchNorm1d(size, affine=False)
        drop = nn.Dropout(0.4 if hidden else 0.1)
        middle = [nn.Linear(size, hidden), nn.ReLU(), nn.Dropout(0.4)] if hidden else []
        self.rest = nn.Sequential(drop, *middle, nn.Linear(hidden or size, 1))

    def forward(self, rows: Tensor) -> Tensor:
        """Return float32[window] of float32[window, column]."""
        return torch.as_tensor(self.rest(self.level(rows[:, self.columns]))[:, 0])

    def logits(self, rows: NDArray[np.float16]) -> Float:
        """Return float32[window], without a gradient."""
        self.eval()
        with torch.no_grad():
            parts = [
                self(torch.from_numpy(rows[at : at + 1024].astype(np.float32))) for at in range(0, len(rows), 1024)
            ]
        return np.asarray(torch.cat(parts).numpy(), np.float32)


def taught(
    rows: NDArray[np.float16], truths: Float, kind: str, *, seed: int, epochs: int = 4, rate: float = 2e-3
) -> Head:
    """Train a head.

    Args:
        rows: as `states` gives them.
        truths: float32[window], 0..1.
        kind: of `HEADS`.
        seed: of every choice.
        epochs: over the windows.
        rate: of learning, at its highest.
    """
    of, hidden, decay = HEADS[kind]
    torch.manual_seed(seed)
    head = Head(of, rows.shape[1], hidden)
    steps = -(-len(rows) // 512)
    optimizer = torch.optim.AdamW(head.parameters(), lr=rate, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=epochs * steps + 1)
    random = np.random.default_rng(seed)
    head.train()
    for _ in range(epochs):
        order = random.permutation(len(rows))
        for at in range(0, len(order), 512):
            some = np.sort(order[at : at + 512])
            if len(some) < 2:
                continue
            loss = functional.binary_cross_entropy_with_logits(
                head(torch.from_numpy(rows[some].astype(np.float32))), torch.from_numpy(truths[some])
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return head


def texts(folder: Path, train: Sequence[Text], seed: int, effort: Effort) -> list[Text]:
    """Return the texts that heads learn from, of the part `train` alone."""
    random = Random(seed)
    makers = (
        (effort.promotions, promotions.promotion),
        (effort.lookalikes, promotions.lookalike),
        (effort.quoted, promotions.quoted),
    )
    made = [make(random) for number, make in makers for _ in range(number)]
    found = [text for text in made if part_of(text.group) == "train"]
    own = [text for text in train if text.source not in {SOURCE, CALM_SOURCE}]
    random.shuffle(own)
    counts: dict[str, int] = {}
    for text in own[: effort.corpus * 4]:
        counts[text.source] = counts.get(text.source, 0) + 1
        if counts[text.source] <= effort.corpus // 12:
            found.append(text)
    return found + list(_calm(folder, random, effort.calm))


def _calm(folder: Path, random: Random, share: float) -> Iterator[Text]:
    for name, most in CALM.items():
        own = []
        with gzip.open(folder / f"{name}.jsonl.gz", "rb") as lines:
            for row in map(orjson.loads, lines):
                text = str(row.get("text") or row.get("premise") or "")
                if row.get("language", "en") in {"en", None} and len(text) > 20 and part_of(text) == "train":
                    own.append(text[:_CHARS])
        random.shuffle(own)
        yield from (Text(text, safe(), name) for text in own[: int(most * share)])


def measured(folder: Path, seed: int, effort: Effort | None = None, models: Path = MODELS) -> dict[str, Any]:
    """Train each head and hold it to the sentences that were written by hand.

    Args:
        folder: of the pool.
        seed: of every choice.
        effort: how much to learn from.
        models: the folder of the manifest.
    """
    effort = effort or Effort()
    files = models / "safety"
    tokenizer = plain_tokenizer((files / "tokenizer.json").read_text())
    read = states((files / "model.onnx").read_bytes())
    parts = corpus(folder, seed, UNSURE)
    learnt = texts(folder, parts["train"], seed, effort)
    windows = list(sampled(learnt, tokenizer, WINDOW, Random(seed), most=2))
    truths = hard_targets(windows, learnt)[:, LABELS.index(PROMOTIONAL)]
    known = ~np.isnan(truths)
    rows = read([window.ids for window, sure in zip(windows, known, strict=True) if sure])
    sells, balanced = ([text for text, _ in held_out(name)] for name in ("promotions", "balanced"))
    calm = [text.text for text in benign(parts["dev"])][: effort.benign]
    asked = {"sells": sells, "balanced": balanced, "calm": calm}
    said = {name: checked(own, tokenizer, lambda ids: read(ids).astype(np.float32)) for name, own in asked.items()}
    found: dict[str, Any] = {"windows": len(rows), "benign": len(calm)}
    for kind in HEADS:
        head = taught(rows, truths[known].astype(np.float32), kind, seed=seed)
        highest = {
            name: np.array([head.logits(one.scores.astype(np.float16)).max() for one in own])
            for name, own in said.items()
        }
        found[kind] = _figures(highest)
    return found


def _figures(highest: Mapping[str, Float]) -> dict[str, Any]:
    def share(name: str, at: float) -> list[float]:
        scores = highest[name]
        found = wilson(int((scores >= at).sum()), len(scores))
        return [round(value, 4) for value in (found.value, found.low, found.high)]

    apart = bootstrap(auc, highest["sells"], highest["balanced"], rounds=200)
    limits = {"1 % of calm texts": ("calm", 0.01), "5 % of look-alikes": ("balanced", 0.05)}
    found: dict[str, Any] = {"auc": [round(value, 4) for value in (apart.value, apart.low, apart.high)]}
    for called, (of, rate) in limits.items():
        at = threshold_at_fpr(highest[of], rate)
        found[called] = {name: share(name, at) for name in highest}
    return found
