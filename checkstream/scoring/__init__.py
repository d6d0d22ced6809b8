"""Classifier scores: which models there are, and text in, scores or one typed error out.

`load_models` verifies and reads what a models folder holds, `open_session` loads one of them, and `Scorer`
puts queues, deadlines and circuit breakers in front. Nothing here knows of streams or policies.
"""

from __future__ import annotations

from typing import assert_never

from checkstream.scoring.catalog import Model, ModelKind, load_models
from checkstream.scoring.lexicon import LexiconSession
from checkstream.scoring.scorer import Observer, Scorer, ScorerLimits
from checkstream.scoring.session import Session, Window


def open_session(model: Model) -> Session:
    """Load one session of a model, by its kind.

    Raises:
        ModelError: its files don't hold what its kind needs.
    """
    match model.entry.kind:
        case ModelKind.LEXICON:
            return LexiconSession.open(model)
        case _:
            assert_never(model.entry.kind)


__all__ = [
    "Model",
    "ModelKind",
    "Observer",
    "Scorer",
    "ScorerLimits",
    "Session",
    "Window",
    "load_models",
    "open_session",
]
