"""Events: what has happened to one exchange. `guard.receive(event, now)` takes them; nothing else does.

An event is a fact in the past tense. Events and commands are tagged structs, so that a run is a file
of JSON lines (a transcript) that can be replayed on any machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from checkstream.core.conversation import Conversation


class Event(msgspec.Struct, frozen=True, tag=True):
    """Something that happened outside the guard."""


class Said(msgspec.Struct, frozen=True):
    """Something that a request says outside its body, and that is to go to the upstream."""

    place: Literal["path", "query", "header"]
    name: str
    """Of the header, of the parameter, or of the part of the path: the route's pattern calls it so."""
    text: str
    """As the upstream reads it, percent-encoding undone."""
    is_name: bool = False
    """The text is the name itself, of a header or parameter that nobody knows."""


class Envelope(msgspec.Struct, frozen=True, omit_defaults=True):
    """What stands around a request's body: what goes to the upstream has been read as its body is (G31)."""

    said: tuple[Said, ...] = ()
    """What rules are to read."""
    strange: tuple[str, ...] = ()
    """Names of the parameters of the query that nobody knows; they go nowhere."""
    behind: tuple[str, ...] = ()
    """Names of the headers that stay behind, since not all servers would read them alike, or nobody reads so much."""


class RequestReceived(Event, frozen=True):
    """The caller's whole request body has arrived, within the limits."""

    body: bytes
    caller: str | None = None
    """Who calls, as configured; None when callers have no names."""
    context: str | None = None
    """The header `x-checkstream-context`, as it came."""
    confirmed: tuple[str, ...] = ()
    """Ids of the rules whose confirmation the caller has sent with this request."""
    earlier_risk: float | None = None
    """Risk of an earlier answer of the same conversation, where it was high: 0 to 100."""
    envelope: Envelope = Envelope()
    conversation: str | None = None
    """The header `x-checkstream-conversation`, as it came."""
    method: str = "POST"
    """Of HTTP."""
    known: str = ""
    """What is surely known of the caller, a JSON object; empty: nothing. It joins what they say themselves."""


class Recalled(Event, frozen=True):
    """A `Recall` command has been answered."""

    conversation: Conversation | None
    """None: nothing is known."""
    failed: bool = False
    """Nobody could say."""


class NamesKnown(Event, frozen=True):
    """What stands for which value in a conversation, as it is kept now."""

    state: bytes | None = None
    """None: nothing is."""
    version: int = 0


class NamesKept(Event, frozen=True):
    """A `KeepNames` command has been carried out."""


class NamesFailed(Event, frozen=True):
    """What stands for which value could not be read, or not be kept."""


class ToolsKnown(Event, frozen=True):
    """How the tools of a server were described, as it is kept now."""

    state: bytes | None = None
    """None: nothing is."""
    version: int = 0


class ToolsKept(Event, frozen=True):
    """A `KeepTools` command has been carried out."""


class ToolsFailed(Event, frozen=True):
    """How tools were described could not be read, or not be kept."""


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


_FAILURES: Mapping[str, str] = MappingProxyType({
    "connect": "it could not be reached; is it running, and is its address right?",
    "first_byte": "it did not begin to answer in time",
    "idle": "it fell silent within its answer",
    "reset": "it closed the connection before its answer was complete",
    "protocol": "it sent what is not HTTP",
})  # fmt: skip
"""How an upstream failed -> what callers are told of it, behind "the upstream failed"."""


class UpstreamFailed(Event, frozen=True):
    """The upstream could not be reached, fell silent or broke off."""

    kind: Literal["connect", "first_byte", "idle", "reset", "protocol", "room"]
    """room: it could not be read on, since the caller's answers hold all that they may."""
    detail: str = ""

    @property
    def told(self) -> tuple[str, str]:
        """What kind of error this is to the caller, and in which words."""
        if self.kind == "room":
            return "overloaded", self.detail
        return "upstream_error", f"the upstream failed ({self.kind}): {_FAILURES[self.kind]}"


class EntityFound(msgspec.Struct, frozen=True):
    """A classifier says that a stretch of the text that it was asked about names something."""

    entity: str
    """What kind of thing: `PERSON`, ..."""
    start: int
    """Offset in `Score.text`, code points."""
    end: int
    score: float
    """How sure the classifier is, 0..1."""

    def __post_init__(self) -> None:
        """Refuse what is no stretch of a text."""
        if not 0 <= self.start < self.end:
            raise ValueError(f"an entity from {self.start} to {self.end} is no stretch of a text")


class Scored(Event, frozen=True, omit_defaults=True):
    """Classifiers have answered a `Score` command."""

    ticket: int
    scores: dict[str, float]
    """`classifier.label` -> 0..1, for every label that was asked for."""
    entities: tuple[EntityFound, ...] = ()
    """In order of their place; those of one classifier don't overlap."""


class ScoringFailed(Event, frozen=True):
    """A classifier gave no usable answer to a `Score` command."""

    ticket: int
    reason: Literal["deadline", "crash", "garbage", "rested", "overload"]
    """overload: there is too much to do, and the detector is none the worse. Each of the others: it is broken."""


class Assessed(Event, frozen=True):
    """An `Assess` command has been answered; what failed says nothing."""

    members: dict[str, msgspec.Raw] = {}
    """Name -> JSON, as the reply carries it."""
    risks: dict[str, float] = {}
    """Profile -> 0 (sound) to 100; of several choices the highest."""
    failed: tuple[str, ...] = ()
    """Profiles that could not say anything in time."""


class TimerFired(Event, frozen=True):
    """A timer that the guard armed has run out."""

    timer: Literal["stall", "keepalive", "budget", "hold"]


class Resumed(Event, frozen=True):
    """The guard has its turn again, as it asked for with `Yield`."""


class DownstreamClosed(Event, frozen=True):
    """The caller's connection has gone."""


class Draining(Event, frozen=True):
    """The process must end soon: the drain period is over and this exchange still runs."""


AnyEvent = (
    RequestReceived
    | Recalled
    | NamesKnown
    | NamesKept
    | NamesFailed
    | ToolsKnown
    | ToolsKept
    | ToolsFailed
    | UpstreamOpened
    | UpstreamBytes
    | UpstreamClosed
    | UpstreamFailed
    | Scored
    | ScoringFailed
    | Assessed
    | TimerFired
    | Resumed
    | DownstreamClosed
    | Draining
)
