"""Classifier scores: which models there are, and text in, scores or one typed error out.

`load_models` verifies and reads what a models folder holds, `open_session` loads one of them, and `Scorer`
puts queues, deadlines and circuit breakers in front. Nothing here knows of streams or policies. Names are loaded when
they are asked for: a proxy whose policies ask no model doesn't load what runs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkstream.faces import face

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
    "Asked": "checkstream.scoring.scorer",
    "Checked": "checkstream.scoring.scorer",
    "GatedSession": "checkstream.scoring.gated",
    "Model": "checkstream.scoring.catalog",
    "ModelKind": "checkstream.scoring.manifest",
    "Observer": "checkstream.scoring.scorer",
    "Reading": "checkstream.scoring.session",
    "Readings": "checkstream.scoring.session",
    "Scorer": "checkstream.scoring.scorer",
    "ScorerLimits": "checkstream.scoring.scorer",
    "SequenceSession": "checkstream.scoring.sequence",
    "Session": "checkstream.scoring.session",
    "TaggerSession": "checkstream.scoring.tagger",
    "Window": "checkstream.scoring.session",
    "load_models": "checkstream.scoring.catalog",
    "open_session": "checkstream.scoring.opening",
    "read_whole": "checkstream.scoring.session",
}

__getattr__ = face("checkstream.scoring", _PLACES)
