"""Classifier scores: which models there are, and text in, scores or one typed error out.

`load_models` verifies and reads what a models folder holds, `open_session` loads one of them, and `Scorer`
puts queues, deadlines and circuit breakers in front. Nothing here knows of streams or policies.
"""

from __future__ import annotations

from typing import assert_never

from checkstream.errors import ModelError
from checkstream.scoring.catalog import Model, load_models
from checkstream.scoring.gated import GatedSession
from checkstream.scoring.lexicon import LexiconSession
from checkstream.scoring.manifest import ModelKind
from checkstream.scoring.remote import RemoteSession
from checkstream.scoring.scorer import Asked, Checked, Observer, Scorer, ScorerLimits
from checkstream.scoring.sequence import SequenceSession
from checkstream.scoring.session import Reading, Readings, Session, Window, read_whole
from checkstream.scoring.tagger import TaggerSession


def open_session(model: Model) -> Session:
    """Load one session of a model, by its kind.

    Raises:
        ModelError: its files don't hold what its kind needs.
    """
    match model.entry.kind:
        case ModelKind.LEXICON:
            return LexiconSession.open(model)
        case ModelKind.SEQUENCE:
            return GatedSession(model) if "gate" in model.contents else SequenceSession(model)
        case ModelKind.TOKENS:
            return TaggerSession(model)
        case ModelKind.REMOTE:
            return RemoteSession.open(model)
        case ModelKind.EMBEDDING:
            raise ModelError(f"model `{model.name}` gives vectors, no scores; name a model that scores")
        case ModelKind.PAIR:
            raise ModelError(f"model `{model.name}` compares two texts; name a model that reads one, or a verifier")
        case _:
            assert_never(model.entry.kind)


__all__ = [
    "Asked",
    "Checked",
    "GatedSession",
    "Model",
    "ModelKind",
    "Observer",
    "Reading",
    "Readings",
    "Scorer",
    "ScorerLimits",
    "SequenceSession",
    "Session",
    "TaggerSession",
    "Window",
    "load_models",
    "open_session",
    "read_whole",
]
