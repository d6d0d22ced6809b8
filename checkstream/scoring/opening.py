"""Loads one session of a model, by its kind."""

from __future__ import annotations

from typing import assert_never

from checkstream.errors import ModelError
from checkstream.scoring.catalog import Model
from checkstream.scoring.gated import GatedSession
from checkstream.scoring.lexicon import LexiconSession
from checkstream.scoring.manifest import ModelKind
from checkstream.scoring.remote import RemoteSession
from checkstream.scoring.sequence import SequenceSession
from checkstream.scoring.session import Session
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
