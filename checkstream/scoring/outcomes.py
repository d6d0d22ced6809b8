"""What came of a window: a reading that can be used, or the reason why there is none."""

from __future__ import annotations

from checkstream.errors import ScoringError
from checkstream.scoring.session import Reading, Readings

Outcome = Reading | ScoringError
"""What the model says of one window, or why it says nothing."""


def judged(output: object, batch: int, labels: int, name: str) -> list[Outcome]:
    """Check a session's output: float32[batch, label], every score finite and 0..1.

    A bad row fails its own window; a bad shape fails the whole batch.
    """
    import numpy as np  # noqa: PLC0415 - not for a process whose policies ask no model

    scores = output.scores if isinstance(output, Readings) else None
    if not isinstance(scores, np.ndarray) or scores.shape != (batch, labels) or scores.dtype.kind != "f":
        return [_garbage(name) for _ in range(batch)]
    found = output.entities if isinstance(output, Readings) and output.entities else ((),) * batch
    if len(found) != batch:
        return [_garbage(name) for _ in range(batch)]
    scores = scores.astype(np.float32, copy=True)  # a session may reuse its buffer
    inside = np.all((scores >= 0.0) & (scores <= 1.0), axis=1).tolist()  # False for NaN too
    return [
        Reading(row, entities) if fine and all(0.0 <= entity.score <= 1.0 for entity in entities) else _garbage(name)
        for row, fine, entities in zip(scores, inside, found, strict=True)
    ]


def _garbage(name: str) -> ScoringError:
    return ScoringError(f"classifier `{name}` gave no usable scores", reason="garbage")
