"""Events: what has happened to one exchange. `guard.receive(event, now)` takes them; nothing else does.

An event is a fact in the past tense. Events and commands are tagged structs, so that a run is a file
of JSON lines (a transcript) that can be replayed on any machine.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class Event(msgspec.Struct, frozen=True, tag=True):
    """Something that happened outside the guard."""


class RequestReceived(Event, frozen=True):
    """The caller's whole request body has arrived, within the limits."""

    body: bytes
    caller: str | None = None
    """Who calls, as configured; None when callers have no names."""
    context: str | None = None
    """The header `x-checkstream-context`, as it came."""
    confirmed: tuple[str, ...] = ()
    """Ids of the rules whose confirmation the caller has sent with this request."""


class UpstreamOpened(Event, frozen=True):
    """The upstream has sent its status line and headers."""

    status: int
    streaming: bool
    """The body is an event stream."""


class UpstreamBytes(Event, frozen=True):
    """Bytes of the upstream's body, cut as the network cut them."""

    data: bytes


class UpstreamClosed(Event, frozen=True):
    """The upstream's body has ended as HTTP says it should."""


class UpstreamFailed(Event, frozen=True):
    """The upstream could not be reached, fell silent or broke off."""

    kind: Literal["connect", "first_byte", "idle", "reset", "protocol"]
    detail: str = ""


class Scored(Event, frozen=True):
    """A classifier has answered a `Score` command."""

    ticket: int
    scores: dict[str, float]
    """`classifier.label` -> 0..1, for every label that was asked for."""


class ScoringFailed(Event, frozen=True):
    """A classifier gave no usable answer to a `Score` command."""

    ticket: int
    reason: Literal["deadline", "crash", "garbage", "overload"]


class TimerFired(Event, frozen=True):
    """A timer that the guard armed has run out."""

    timer: Literal["stall", "keepalive", "budget"]


class DownstreamClosed(Event, frozen=True):
    """The caller's connection has gone."""


class Draining(Event, frozen=True):
    """The process must end soon: the drain period is over and this exchange still runs."""


AnyEvent = (
    RequestReceived
    | UpstreamOpened
    | UpstreamBytes
    | UpstreamClosed
    | UpstreamFailed
    | Scored
    | ScoringFailed
    | TimerFired
    | DownstreamClosed
    | Draining
)
