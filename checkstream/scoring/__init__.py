"""Classifier scores: which models there are, and text in, scores or one typed error out.

`load_models` verifies and reads what a models folder holds, `open_session` loads one of them, and `Scorer`
puts queues, deadlines and circuit breakers in front. Nothing here knows of streams or policies. Names are loaded when
they are asked for: a proxy whose policies ask no model doesn't load what runs them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from checkstream.scoring.catalog import Model, load_models
    from checkstream.scoring.gated import GatedSession
    from checkstream.scoring.manifest import ModelKind
    from checkstream.scoring.opening import open_session
    from checkstream.scoring.scorer import Asked, Checked, Observer, Scorer, ScorerLimits
    from checkstream.scoring.sequence import SequenceSession
    from checkstream.scoring.session import Reading, Readings, Session, Window, read_whole
    from checkstream.scoring.tagger import TaggerSession

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

_PLACES = {
    "Asked": "scorer",
    "Checked": "scorer",
    "GatedSession": "gated",
    "Model": "catalog",
    "ModelKind": "manifest",
    "Observer": "scorer",
    "Reading": "session",
    "Readings": "session",
    "Scorer": "scorer",
    "ScorerLimits": "scorer",
    "SequenceSession": "sequence",
    "Session": "session",
    "TaggerSession": "tagger",
    "Window": "session",
    "load_models": "catalog",
    "open_session": "opening",
    "read_whole": "session",
}


def __getattr__(name: str) -> object:
    """Load a name of the package's face."""
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module `checkstream.scoring` has no attribute `{name}`")
    value: object = getattr(importlib.import_module(f"checkstream.scoring.{place}"), name)
    return value
