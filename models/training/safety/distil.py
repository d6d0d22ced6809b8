"""Trains the teacher on whole texts and the student on windows that the teacher has scored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from models.training.encoder import Encoder, base_tokenizer, minilm_l6
from models.training.export import sigmoid
from models.training.fit import Example, FitSettings, Progress, fit, predict
from models.training.graph import Float, Shape
from models.training.safety.labels import ANY, HARMS, LABELS, Text
from models.training.safety.windows import Window, hard_targets, soft_targets, teacher_texts

TEACHER = Shape(vocab=30_522, layers=6, hidden=384, heads=12, feed=1536, positions=512)

TEACHER_PIECES = 96
"""Word pieces of a text that the teacher learns from at most."""

TEACHER_LIMITS = {
    "jigsaw": 3200,
    "edos": 2400,
    "civil": 2400,
    "toxic_spans": 2400,
    "davidson": 1800,
    "btc": 700,
    "wnut17": 500,
    "stormfront": 1500,
    "hatemoji": 1800,
    "hh": 400,
    "hh rejected": 0,
    "davidson rest": 0,
    "medquad": 500,
    "mmlu": 500,
    "benign_prompts": 500,
    "pii_anon": 300,
    "begin": 200,
    "conjnli": 150,
    "gptfuzz": 4000,
    "generated refusal": 2000,
    "generated retelling": 2400,
    "generated guide": 2000,
}
"""How many texts of a source the teacher learns from at most."""

_OTHERS = 1300
"""The same for a source that isn't named."""


def harm_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the cross entropy of each text, float32[batch]: of the labels that are known, and of any harm at all.

    Any harm is the noisy or of the nine harms, so a text of which only that is known still teaches.
    """
    labels = targets[:, : len(LABELS)]
    known = ~torch.isnan(labels)
    loss = functional.binary_cross_entropy_with_logits(logits, torch.nan_to_num(labels), reduction="none")
    loss = (loss * known).sum(1) / len(LABELS)
    surprise = functional.softplus(logits[:, : len(HARMS)]).sum(1).clamp(1e-6, 30)  # -log of the chance of no harm
    share = targets[:, ANY]
    any_loss = torch.nan_to_num(share) * -torch.log1p(-torch.exp(-surprise)) + (1 - torch.nan_to_num(share)) * surprise
    return loss + 0.3 * any_loss * ~torch.isnan(share)


def plain_tokenizer(described: str) -> Tokenizer:
    """Return a tokenizer that neither cuts nor pads."""
    tokenizer = Tokenizer.from_str(described)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def chosen(texts: Sequence[Text], share: float = 1.0) -> list[Text]:
    """Return the texts that the teacher learns from, none of a source above its limit."""
    counts: dict[str, int] = {}
    kept = []
    for text in texts:
        counts[text.source] = counts.get(text.source, 0) + 1
        if counts[text.source] <= share * TEACHER_LIMITS.get(text.source, _OTHERS):
            kept.append(text)
    return kept


def train_teacher(
    texts: Sequence[Text], seed: int, *, share: float = 1.0, epochs: float = 1.0, checkpoint: Path | None = None
) -> tuple[Encoder, Progress]:
    """Tune MiniLM-L6 on whole texts.

    Args:
        texts: to learn from; limits by source apply.
        seed: of every choice.
        share: of the limits.
        epochs: over the chosen texts.
        checkpoint: where to keep the state, to go on after a cut-off.
    """
    tokenizer = plain_tokenizer(base_tokenizer().read_text())
    own = chosen(texts, share)

    def examples(epoch: int) -> list[Example]:
        cut = teacher_texts(own, tokenizer, TEACHER_PIECES, Random(seed + epoch))
        return [Example(tokenizer.encode(text.text).ids, text.target, text.weight) for text in cut]

    torch.manual_seed(seed)
    model = Encoder(TEACHER, len(LABELS))
    model.start_from(minilm_l6())
    nn.init.constant_(model.head.bias, -3.0)
    model.freeze(2)
    settings = FitSettings(seed=seed, epochs=epochs, rate=1.5e-4, batch_tokens=1536)
    return model, fit(model, examples, harm_loss, settings, checkpoint=checkpoint)


def scored(model: nn.Module, ids: Sequence[Sequence[int]]) -> Float:
    """Return float32[row, label], the chance of each harm."""
    nothing = np.zeros(ANY + 1, np.float32)
    return sigmoid(np.stack(predict(model, [Example(row, nothing) for row in ids])))


def teach(
    windows: Sequence[Window], texts: Sequence[Text], teacher: Encoder | None, kept: Path | None = None
) -> list[Example]:
    """Return windows with what the teacher, if there is one, and the annotators say of them.

    Args:
        windows: of `texts`.
        texts: the texts, by origin.
        teacher: scores the windows; None: the texts' own labels are all that is known.
        kept: file of the teacher's scores, which take minutes; made when it isn't there.
    """
    if teacher is None:
        targets = hard_targets(windows, texts)
    else:
        if kept is not None and kept.exists():
            scores = np.load(kept, allow_pickle=False)
        else:
            tokenizer = plain_tokenizer(base_tokenizer().read_text())
            asked = [at for at, window in enumerate(windows) if texts[window.origin].target.any()]
            encodings = tokenizer.encode_batch([windows[at].text for at in asked])
            # Of a text that does no harm every part is known to do none: only the others are worth its time.
            scores = np.zeros((len(windows), len(LABELS)), np.float32)
            scores[asked] = scored(teacher, [encoding.ids for encoding in encodings])
            if kept is not None:
                np.save(kept, scores)
        targets = soft_targets(windows, texts, scores)
    return [
        Example(window.ids, target, texts[window.origin].weight)
        for window, target in zip(windows, targets, strict=True)
    ]


def train_student(
    student: Any, examples: Sequence[Example], seed: int, *, epochs: float, rate: float, checkpoint: Path | None = None
) -> Progress:
    """Train a student on windows that were taught; it goes on from the weights that it has."""
    torch.manual_seed(seed)
    settings = FitSettings(seed=seed, epochs=epochs, rate=rate, batch_tokens=2048)
    return fit(student, examples, harm_loss, settings, checkpoint=checkpoint)
