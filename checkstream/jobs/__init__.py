"""What happens after an answer has gone out: a durable queue, and the workers that score what was said.

Names are loaded when they are asked for: a proxy that scores nothing afterwards doesn't load what does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from checkstream.jobs.exchange import Exchange, Message, conversation_key
    from checkstream.jobs.feeder import Feeder, FeederSettings
    from checkstream.jobs.opening import open_queue
    from checkstream.jobs.reaction import Reaction
    from checkstream.jobs.room import Load, sampled
    from checkstream.jobs.scoring import Assessment, Scorer, Scoring
    from checkstream.jobs.terms import Marker, Queue
    from checkstream.jobs.watching import Watching
    from checkstream.jobs.webhook import Hook, WebhookCaller, signing_key
    from checkstream.jobs.worker import Worker, WorkerSettings

__all__ = [
    "Assessment",
    "Exchange",
    "Feeder",
    "FeederSettings",
    "Hook",
    "Load",
    "Marker",
    "Message",
    "Queue",
    "Reaction",
    "Scorer",
    "Scoring",
    "Watching",
    "WebhookCaller",
    "Worker",
    "WorkerSettings",
    "conversation_key",
    "open_queue",
    "sampled",
    "signing_key",
]

_PLACES = {
    "Assessment": "scoring",
    "Exchange": "exchange",
    "Feeder": "feeder",
    "FeederSettings": "feeder",
    "Hook": "webhook",
    "Load": "room",
    "Marker": "terms",
    "Message": "exchange",
    "Queue": "terms",
    "Reaction": "reaction",
    "Scorer": "scoring",
    "Scoring": "scoring",
    "Watching": "watching",
    "WebhookCaller": "webhook",
    "Worker": "worker",
    "WorkerSettings": "worker",
    "conversation_key": "exchange",
    "open_queue": "opening",
    "sampled": "room",
    "signing_key": "webhook",
}


def __getattr__(name: str) -> object:
    """Load a name of the package's face."""
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module `checkstream.jobs` has no attribute `{name}`")
    value: object = getattr(importlib.import_module(f"checkstream.jobs.{place}"), name)
    return value
