"""Hands what was said to the queue, and brings back what was found out about conversations."""

from __future__ import annotations

from collections.abc import Iterator

from checkstream.app.routing import is_scored
from checkstream.config import Config, JobsSettings
from checkstream.core.terms import Dialogue, Document
from checkstream.grounding.terms import Passage
from checkstream.jobs import (
    Exchange,
    Feeder,
    FeederSettings,
    Load,
    Message,
    Watching,
    conversation_key,
    open_queue,
    sampled,
)
from checkstream.jobs.rescored import RESCORE
from checkstream.proxy.accept import Route

_MARKERS_S = 1.0
"""A marker is known to all proxies so soon after a worker has set it."""


class QueueFeed:
    """The background of the request path: a queue for workers of other processes."""

    def __init__(self, watching: Watching) -> None:
        """Open nothing yet; `watching` hears what becomes of exchanges."""
        self._watching = watching
        self._feeder: Feeder | None = None

    def open(self, config: Config) -> None:
        """Open the queue if a route needs it and it is not open. Blocks.

        Raises:
            ConfigError: its password can't be read.
            JobError: it can't be used.
        """
        if self._feeder is None and any(map(is_scored, config.routes)):
            self._feeder = Feeder(open_queue(config.jobs), _settings(config.jobs), self._watching)

    def close(self) -> None:
        """Write what waits, and close the queue. Blocks."""
        if self._feeder is not None:
            self._feeder.close()

    def observe(self) -> None:
        """Tell the metrics how much waits in memory."""
        if self._feeder is not None:
            self._watching.buffered(self._feeder.buffered)

    def takes(self, route: Route, stream: str) -> bool:
        """Tell whether an exchange is of the route's sample."""
        return bool(_profiles(route, stream))

    def put(self, dialogue: Dialogue, *, stream: str, route: Route, caller: str | None) -> None:
        """Put one exchange for each choice of the answer into the buffer. Never waits."""
        profiles = _profiles(route, stream)
        if self._feeder is None or not profiles:
            return
        for exchange in exchanges(dialogue, stream, route, caller):
            self._feeder.put(exchange, profiles)

    def earlier_risk(self, caller: str | None, conversation: str) -> float | None:
        """Return the risk that a conversation is marked with, once."""
        marker = (
            None if self._feeder is None else self._feeder.take_marker(conversation_key(caller or "", conversation))
        )
        return None if marker is None else marker.risk


def _profiles(route: Route, stream: str) -> tuple[str, ...]:
    """Return what scores an exchange: it may be of one sample, of the other, or of both."""
    held, judged = route.grounding, route.rescore
    found: tuple[str, ...] = ()
    if held is not None and sampled(stream, held.sample, "score"):
        found = held.profiles
    if judged is not None and sampled(stream, judged.sample, RESCORE):
        found = (*found, RESCORE)
    return found


def exchanges(dialogue: Dialogue, stream: str, route: Route, caller: str | None) -> Iterator[Exchange]:
    """Yield an exchange for each choice of the answer."""
    for choice, answer in dialogue.answers.items():
        yield Exchange(
            stream=stream if not choice else f"{stream}/{choice}",
            route=route.name,
            caller=caller,
            surface="" if route.surface is None else route.surface.name,
            model=dialogue.model,
            policies=() if route.plan is None else route.plan.program.packs,
            messages=tuple(Message(message.role, message.text) for message in dialogue.messages),
            answer=answer,
            documents=passages(dialogue.documents),
            conversation=conversation_key(caller or "", dialogue.conversation) if dialogue.conversation else "",
            circumstances=dialogue.circumstances,
            ages=dialogue.ages.get(choice, ()),
        )


def passages(documents: tuple[Document, ...]) -> tuple[Passage, ...]:
    """Return what a request brought along as evidence; what has no id is numbered, from 0 as citations are."""
    return tuple(
        Passage(
            id=document.id or f"S{number}",
            text=document.text,
            source=document.url or document.title or "",
            metadata={} if document.title is None else {"title": document.title},
        )
        for number, document in enumerate(documents)
    )


def _settings(jobs: JobsSettings) -> FeederSettings:
    return FeederSettings(
        buffer=Load(jobs.buffer, jobs.buffer_chars), full=jobs.full, job_bytes=jobs.job_bytes, markers_s=_MARKERS_S
    )
