"""Scores texts as the proxy does while they stream: one window at each check, which ends where the text ended then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer

from models.training.safety.labels import Float
from models.training.safety.windows import OVERLAP, WINDOW, ends

WORDS_A_CHECK = 8
"""How many words come between two checks."""

Score = Callable[[Sequence[Sequence[int]]], Float]
"""Windows of ids -> float32[window, label], logits or scores."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The checks of one text, in order; the last is at its end."""

    pieces: tuple[int, ...]
    """Word pieces read when each check was made."""
    scores: Float
    """float32[check, label]."""

    @property
    def highest(self) -> Float:
        """Return the highest score of any check, float32[label]: what decides about the whole text."""
        return np.asarray(self.scores.max(axis=0), np.float32)


def checked(texts: Sequence[str], tokenizer: Tokenizer, score: Score, every: int = WORDS_A_CHECK) -> list[Checked]:
    """Score texts check by check.

    Args:
        texts: whole texts; an empty one gets one check of an unknown piece.
        tokenizer: the model's, without special tokens.
        score: the model.
        every: words between two checks.
    """
    windows: list[list[int]] = []
    made: list[tuple[int, ...]] = []
    unknown = tokenizer.token_to_id("[UNK]") or 0
    for encoding in tokenizer.encode_batch(list(texts), add_special_tokens=False):
        stops = ends(encoding)
        at = tuple(dict.fromkeys([*stops[every - 1 :: every], *stops[-1:]]))
        windows += [encoding.ids[max(0, stop - WINDOW) : stop] for stop in at] or [[unknown]]
        made.append(at or (1,))
    scores = score(windows)
    result, first = [], 0
    for at in made:
        result.append(Checked(at, scores[first : first + len(at)]))
        first += len(at)
    return result


def whole(texts: Sequence[str], tokenizer: Tokenizer, score: Score) -> Float:
    """Return the highest score of overlapping windows, float32[text, label]: a text scored at once."""
    windows: list[list[int]] = []
    counts: list[int] = []
    unknown = tokenizer.token_to_id("[UNK]") or 0
    for encoding in tokenizer.encode_batch(list(texts), add_special_tokens=False):
        ids = encoding.ids or [unknown]
        starts = [*range(0, max(0, len(ids) - WINDOW), WINDOW - OVERLAP), max(0, len(ids) - WINDOW)]
        windows += [ids[start : start + WINDOW] for start in starts]
        counts.append(len(starts))
    scores = score(windows)
    return np.maximum.reduceat(scores, np.cumsum([0, *counts[:-1]]), axis=0)
