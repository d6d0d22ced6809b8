"""What happens after an answer has gone out: a durable queue, and the workers that score what was said.

Names are loaded when they are asked for: a proxy that scores nothing afterwards doesn't load what does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkstream.faces import face

if TYPE_CHECKING:
    from checkstream.jobs.exchange import Exchange, Message, conversation_key
    from checkstream.jobs.feeder import Feeder, FeederSettings
    from checkstream.jobs.opening import open_queue
    from checkstream.jobs.reaction import Reaction
    from checkstream.jobs.room import Load, sampled
    from checkstream.jobs.scoring import Assessment, Scorer, Scoring
    from checkstream.jobs.terms import Marker, Queue
    from checkstream.jobs.watching import Watching
    from checkstream.jobs.webhook import WebhookCaller
    from checkstream.jobs.worker import Worker, WorkerSettings

__all__ = [
    "Assessment",
    "Exchange",
    "Feeder",
    "FeederSettings",
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
]

_PLACES = {
    "Assessment": "checkstream.jobs.scoring",
    "Exchange": "checkstream.jobs.exchange",
    "Feeder": "checkstream.jobs.feeder",
    "FeederSettings": "checkstream.jobs.feeder",
    "Load": "checkstream.jobs.room",
    "Marker": "checkstream.jobs.terms",
    "Message": "checkstream.jobs.exchange",
    "Queue": "checkstream.jobs.terms",
    "Reaction": "checkstream.jobs.reaction",
    "Scorer": "checkstream.jobs.scoring",
    "Scoring": "checkstream.jobs.scoring",
    "Watching": "checkstream.jobs.watching",
    "WebhookCaller": "checkstream.jobs.webhook",
    "Worker": "checkstream.jobs.worker",
    "WorkerSettings": "checkstream.jobs.worker",
    "conversation_key": "checkstream.jobs.exchange",
    "open_queue": "checkstream.jobs.opening",
    "sampled": "checkstream.jobs.room",
}

__getattr__ = face("checkstream.jobs", _PLACES)
