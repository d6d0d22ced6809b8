"""Classifier scores: which models there are, and text in, scores or one typed error out.

`load_models` verifies and reads what a models folder holds, `open_session` loads one of them, and `Scorer`
puts queues, deadlines and circuit breakers in front. Nothing here knows of streams or policies.
"""

from __future__ import annotations

from checkstream.errors import ModelError
from checkstream.scoring.catalog import Model, load_models
from checkstream.scoring.lexicon import LexiconSession
from checkstream.scoring.manifest import ModelKind
from checkstream.scoring.remote import RemoteSession
from checkstream.scoring.scorer import Checked, Observer, Scorer, ScorerLimits
from checkstream.scoring.session import Reading, Readings, Session, Window, read_whole


def open_session(model: Model) -> Session:
    """Load one session of a model, by its kind.

    Raises:
        ModelError: its files don't hold what its kind needs.
    """
    match model.entry.kind:
        case ModelKind.LEXICON:
            return LexiconSession.open(model)
        case ModelKind.REMOTE:
            return RemoteSession.open(model)
        case kind:
            raise ModelError(f"model `{model.name}` is of the kind `{kind}`, which can't be run here; remove it")


__all__ = [
    "Checked",
    "Model",
    "ModelKind",
    "Observer",
    "Reading",
    "Readings",
    "Scorer",
    "ScorerLimits",
    "Session",
    "Window",
    "load_models",
    "open_session",
    "read_whole",
]
