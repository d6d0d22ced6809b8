"""What a chain can tell: one struct for each kind of entry. The format that they are written in is `chain`'s."""

from __future__ import annotations

from typing import Literal

import msgspec

from checkstream.core.commands import StreamRecord


class StreamEntry(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="stream"):
    """One guarded exchange has ended."""

    stream: str
    """Id of the exchange, as the caller got it in `x-checkstream-stream`."""
    route: str
    caller: str | None
    """Name of the caller as configured; None when callers have no names."""
    record: StreamRecord


class PassEntry(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="pass"):
    """A request went through a route that is marked as unguarded."""

    stream: str
    route: str
    caller: str | None
    method: str
    path: str
    status: int


class RescoredEntry(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="rescored"):
    """A released answer was judged afresh by a worker. Its exchange has a record of its own, in another chain."""

    stream: str
    """Id of the exchange; of another choice than the first with `/` and its number behind."""
    route: str
    caller: str | None
    result: Literal["clean", "violation", "unjudged"]
    rules: tuple[str, ...]
    """Ids of those that fired in what has left."""
    cutoff_ms: float | None
    """Of an answer that was stopped: how long before that the first of the violations had come; None: none had, or it
    was not stopped."""
    policies: tuple[str, ...]
    """`name@version` of those that judged."""


class StartEntry(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="start"):
    """A process has started and writes to this chain from here on."""

    version: str
    """Version of checkstream."""
    pid: int
    config: str
    """SHA-256 of the configuration in force, hex."""
    programs: tuple[str, ...]
    """Hash of each compiled program in force."""
    policies: tuple[str, ...]
    """`name@version` of each pack in force."""


class ReloadEntry(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="reload"):
    """Policies were loaded anew; the old ones stay in force when they were not accepted."""

    accepted: bool
    programs: tuple[str, ...]
    policies: tuple[str, ...]
    reason: str = ""
    """Why they were not accepted."""


class RotateEntry(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="rotate"):
    """The segment is full: the chain goes on in `next`."""

    next: str


class RepairEntry(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="repair"):
    """A torn tail was taken off a segment."""

    segment: str
    dropped_bytes: int
    sha256: str
    """Of the dropped bytes, hex."""


class StopEntry(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="stop"):
    """The process ends in good order."""

    reason: str


class ActEntry(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="act"):
    """Somebody has done something at a control server, or the server itself has. It stands here before it counts."""

    who: str
    """Name as configured; `control` is the server itself."""
    role: str
    """Theirs at that time; empty: the server's own."""
    act: str
    fleet: str
    subject: str
    """What it was done to: a digest of a bundle, a value of a list."""
    reason: str
    """As they gave it."""
    detail: dict[str, str]


AnyEntry = (
    StreamEntry
    | PassEntry
    | RescoredEntry
    | StartEntry
    | ReloadEntry
    | RotateEntry
    | RepairEntry
    | StopEntry
    | ActEntry
)
KINDS = frozenset({"start", "stream", "pass", "rescored", "reload", "rotate", "repair", "stop", "act"})
