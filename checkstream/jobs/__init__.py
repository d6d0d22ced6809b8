"""What happens after an answer has gone out: a durable queue, and the workers that score what was said."""

from __future__ import annotations

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
