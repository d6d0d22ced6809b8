"""What follows from a high risk: a webhook's job, a marker for the conversation. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from checkstream.errors import JobInvalid
from checkstream.jobs.exchange import Exchange
from checkstream.jobs.terms import Job, Marker, Result

OnHigh = Literal["metric", "log", "webhook", "marker"]


class Reaction(msgspec.Struct, frozen=True, kw_only=True):
    """What a route does about high risks."""

    high: float = 70.0
    """From here on a risk is high, 0..100."""
    on_high: tuple[OnHigh, ...] = ("metric", "log")
    marker_s: float = 3600.0
    """How long a conversation's next request is told."""


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """What a webhook's receiver gets: which exchange, and how risky. No text of it."""

    type: Literal["grounding.high_risk"] = "grounding.high_risk"
    stream: str
    route: str
    scorer: str
    version: str
    risk: float
    at_ms: int
    """When it was scored, milliseconds since 1970."""


class _WebhookBody(msgspec.Struct, frozen=True):
    route: str
    notice: Notice


def is_high(reaction: Reaction, result: Result) -> bool:
    """Tell whether something follows from a result."""
    return result.risk >= reaction.high


def react(reaction: Reaction, exchange: Exchange, result: Result) -> tuple[tuple[Job, ...], Marker | None]:
    """Return the jobs and the marker that follow from a result."""
    if not is_high(reaction, result):
        return (), None
    jobs: tuple[Job, ...] = ()
    marker = None
    if "webhook" in reaction.on_high:
        notice = Notice(
            stream=result.stream,
            route=exchange.route,
            scorer=result.scorer,
            version=result.version,
            risk=result.risk,
            at_ms=result.at_ms,
        )
        body = msgspec.json.encode(_WebhookBody(exchange.route, notice))
        id_ = f"webhook:{result.stream}:{result.scorer}:{result.version}"
        jobs = (Job(id=id_, kind="webhook", stream=result.stream, body=body, put_ms=result.at_ms),)
    if "marker" in reaction.on_high and exchange.conversation:
        marker = Marker(
            conversation=exchange.conversation,
            stream=result.stream,
            scorer=result.scorer,
            risk=result.risk,
            expires_ms=result.at_ms + int(reaction.marker_s * 1000),
        )
    return jobs, marker


def read_webhook_job(job: Job) -> tuple[str, Notice]:
    """Return the route whose webhook is called, and what it is told. The address is the configuration's alone.

    Raises:
        JobInvalid: its body is not one of this version.
    """
    try:
        body = msgspec.json.decode(job.body, type=_WebhookBody)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise JobInvalid(f"the job `{job.id}` can't be read: {error}; it is of another version or damaged") from error
    return body.route, body.notice
