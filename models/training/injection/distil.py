"""The encoder's turns of 2.0: it goes on with the weights that ship, by a teacher's scores and innocent texts of kinds.

Of innocent texts there are far more than there is time for, and most say nothing new. So each turn first asks the model
as it is about windows of every kind, and learns from those that it suspects, and from some that it doesn't.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import numpy as np
import onnxruntime as ort
import torch

from checkstream.scoring.gated import FOREIGN
from checkstream.scoring.tokenizer import Tokenizer
from models.training.corpus import normalised, shingles
from models.training.encoder import Encoder
from models.training.export import run, sigmoid
from models.training.fit import Example, FitSettings, Progress, fit, text_loss
from models.training.graph import Float, Weights
from models.training.injection import kinds
from models.training.injection.kinds import Innocent
from models.training.injection.material import Material
from models.training.injection.teach import Lesson, Mix
from models.training.injection.train import FROZEN_LAYERS, opened, shape_of
from models.training.teacher.scores import Taught, read_texts

UNREAD = frozenset({"verazuo", "tox_jigsaw_subset"})
"""Sources whose licence nobody has read: these turns leave them out."""
_TAUGHT = ("attack:", "poisoned", "clean", "innocent:", "real:", "real-innocent:")
"""Beginnings of the sources of scored pieces that are learnt from. Innocent texts by kind come from the pool itself,
where each has its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a turn learns from."""

    name: str
    asked: Mapping[str, int]
    """Kind of innocent texts -> of how many the model as it is, is asked about a window."""
    suspected: int
    """Windows that it suspects most, at most; those under `least` don't count."""
    calm: int
    """Other windows of these."""
    taught: Mapping[str, int]
    """Beginning of the source of scored pieces -> so many of them."""
    mix: Mix
    rate: float
    seed: int
    least: float = 0.02


_ASKED = {
    "role-play": 9000,
    "games": 4000,
    "role-play, composed": 1500,
    "system prompts": 5000,
    "assistants": 5000,
    "documents": 11_000,
    "documents on attacks": 800,
    "code and data": 4000,
    "requests": 5000,
    "prompts": 8000,
    "languages": 5000,
    "harmful questions": 1500,
}
TURNS = (
    Turn(
        name="second-1",
        asked=_ASKED,
        suspected=6500,
        calm=3000,
        taught={"attack:": 6000, "poisoned": 2500, "clean": 1500, "innocent:": 2500, "real:": 2000, "real-inn": 800},
        mix=Mix(attacks=1500, poisoned=800, innocents=1300, clean=400, pool_innocents=600, source_cap=200),
        rate=1e-4,
        seed=41,
    ),
    # The turn before had come to suspect short questions about attacks, and forms that say what to ignore.
    Turn(
        name="second-2",
        asked={kind: count // 15 for kind, count in _ASKED.items()},
        suspected=600,
        calm=1200,
        taught={"attack:": 1200, "poisoned": 500, "clean": 300, "innocent:": 1000, "real:": 500},
        mix=Mix(attacks=1200, poisoned=300, innocents=2400, clean=200, pool_innocents=500, source_cap=80),
        rate=5e-5,
        seed=42,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distillation:
    """What the turns draw from."""

    lesson: Lesson
    taught: Sequence[Taught]
    innocents: Sequence[Innocent]
    """Of the part `train`, of sources that are learnt from."""
    foreign: Sequence[bool]
    """Of each piece of the vocabulary: the encoder isn't asked about windows that are mostly of these."""
    turns: Sequence[Turn] = field(default=TURNS)

    @classmethod
    def of(cls, material: Material, scores: Path, turns: Sequence[Turn] = TURNS) -> Distillation:
        """Read scored pieces and innocent texts, but what thresholds are chosen by and figures are of."""
        held = [text.text for text in (*material.attacks, *material.innocents) if text.part != "train"]
        lesson = material.lesson(None, Mix(), 1)
        return cls(
            lesson=replace(
                lesson,
                attacks=[text for text in lesson.attacks if text.source not in UNREAD],
                innocents=[text for text in lesson.innocents if text.source not in UNREAD],
            ),
            taught=list(_taught(scores, held)),
            innocents=[text for text in kinds.innocents(material.folder) if text.part == "train" and not text.left_out],
            foreign=Tokenizer(material.tokenizer.encode()).foreign().tolist(),
            turns=turns,
        )

    def windows(self, turn: Turn, random: Random) -> list[list[int]]:
        """Return a window of each innocent text that the model is asked about."""
        cutter = self.lesson.cutter
        chosen = kinds.drawn(self.innocents, turn.asked, random)
        found = [random.choice(cutter.windows(ids)) for ids in cutter.pieces([text.text for text in chosen])]
        return [ids for ids in found if len(ids) > 4 and sum(self.foreign[piece] for piece in ids) < FOREIGN * len(ids)]

    def examples(self, turn: Turn, model: Encoder, work: Path) -> list[Example]:
        """Return the windows of a turn; what the model suspects is asked once and kept in a file of its name."""
        random = Random(turn.seed)
        windows = self.windows(turn, random)
        said = _asked(opened(model), windows, work / f"{turn.name}.npy")
        ranked = [int(number) for number in np.argsort(-said, kind="stable")]
        hard = [number for number in ranked[: turn.suspected] if said[number] >= turn.least]
        rest = random.sample(ranked[len(hard) :], min(turn.calm, len(ranked) - len(hard)))
        found = [Example(windows[number], np.zeros(1, np.float32)) for number in (*hard, *rest)]
        found += self._scored(turn, random)
        return found + replace(self.lesson, mix=turn.mix, seed=turn.seed).epoch(0)

    def _scored(self, turn: Turn, random: Random) -> Iterator[Example]:
        for beginning, count in turn.taught.items():
            own = [one for one in self.taught if one.source.startswith(beginning)]
            chosen = random.sample(own, min(count, len(own)))
            cut = self.lesson.cutter.pieces([one.text for one in chosen])
            for one, ids in zip(chosen, cut, strict=True):
                yield Example(self.lesson.cutter.windows(ids)[0], one.target)


def _taught(path: Path, held: Sequence[str]) -> Iterator[Taught]:
    """Yield scored pieces but those that texts of other parts hold, and of sources that nobody has read."""
    known = {run for text in held for run in shingles(text)}
    for one in read_texts(path, 1):
        if not one.source.startswith(_TAUGHT) or one.source.partition(":")[2] in UNREAD:
            continue
        runs = shingles(one.text) if one.source.startswith("real") else frozenset[int]()
        if normalised(one.text) and sum(run in known for run in runs) < 0.3 * max(1, len(runs)):
            yield one


def _asked(graph: ort.InferenceSession, windows: Sequence[Sequence[int]], kept: Path) -> Float:
    """Return the encoder's score of each window, float32[window]."""
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.save(kept, sigmoid(np.array([row[0] for row in run(graph, windows)], np.float32)))
    found: Float = np.load(kept)
    return found


def distilled(
    held: Distillation, weights: Weights, work: Path, *, seconds: float = math.inf
) -> tuple[Encoder, Progress]:
    """Train the encoder on through the turns; takes up where it stopped.

    Args:
        held: draws the windows.
        weights: of the encoder that goes on; its graph's own (`weights_of`) will do.
        work: keeps checkpoints, and what the model suspects before each turn.
        seconds: of a turn, after which it ends.

    Returns:
        The encoder, and the learning curve of all turns.
    """
    model = Encoder(shape_of(len(weights["tokens.weight"])), 1)
    model.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    model.freeze(FROZEN_LAYERS)
    curve: list[tuple[int, float]] = []
    for turn in held.turns:
        examples = held.examples(turn, model, work)
        settings = FitSettings(seed=turn.seed, epochs=1.0, rate=turn.rate, batch_tokens=2048)
        done = curve[-1][0] if curve else 0
        told = fit(model, examples, text_loss, settings, checkpoint=work / f"{turn.name}.pt", seconds=seconds).curve
        curve += [(done + step, loss) for step, loss in told]
    return model, Progress(curve)
