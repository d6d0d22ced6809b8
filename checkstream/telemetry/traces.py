"""One exchange as a span of a trace: whose trace it is of, and what is told of it. Pure, and without OpenTelemetry.

A caller says in `traceparent` (W3C Trace Context) of which trace its request is; the exchange is a span of it, and what
goes on to the upstream names that span. INVARIANT: no text of callers and models is part of a span. Ids are hex; all
else is of the configuration, or a number.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence

import msgspec

TRACEPARENT = "traceparent"
_HEX = frozenset(string.hexdigits.lower())
_LENGTHS = (2, 32, 16, 2)
"""Of version, trace, span and flags."""
_MOST_VERDICTS = 32
"""Of an exchange that are told one by one."""
Value = str | bool | int | float | tuple[str, ...]


class Context(msgspec.Struct, frozen=True):
    """Where a span stands."""

    trace: str
    """32 figures, hex."""
    span: str
    """16 figures, hex."""
    parent: str = ""
    """The caller's span; empty: the trace begins here."""
    sampled: bool = True
    """It is told; so is what others do for it."""

    @property
    def header(self) -> str:
        """What the upstream is told in `traceparent`."""
        return f"00-{self.trace}-{self.span}-0{int(self.sampled)}"


def read(header: str) -> Context | None:
    """Return the caller's span, as `traceparent` says it; None: that is none, so a trace begins here."""
    parts = header.split("-")
    if len(parts) < 4 or (parts[0] == "00" and len(parts) > 4):
        return None
    version, trace, span, flags = parts[:4]
    if tuple(map(len, parts[:4])) != _LENGTHS or not _HEX.issuperset("".join(parts[:4])):
        return None
    if version == "ff" or not trace.strip("0") or not span.strip("0"):
        return None
    return Context(trace, span, sampled=bool(int(flags, 16) & 1))


def begun(headers: Sequence[str], share: float, draw: Callable[[int], bytes]) -> Context:
    """Return the span of an exchange.

    Args:
        headers: Every `traceparent` of its request; of several none counts.
        share: Of the traces that begin here, how many are told; of the others, their callers have said so.
        draw: Returns so many random bytes.
    """
    known = read(headers[0]) if len(headers) == 1 else None
    span = _id(draw, 8)
    if known is not None:
        return Context(known.trace, span, known.span, known.sampled)
    trace = _id(draw, 16)
    return Context(trace, span, sampled=int(trace[-16:], 16) < share * 2**64)


def _id(draw: Callable[[int], bytes], count: int) -> str:
    """Return random bytes as hex; all zeros are no id."""
    while not any(drawn := draw(count)):
        pass
    return drawn.hex()


class Event(msgspec.Struct, frozen=True):
    """Something that happened in a span."""

    at_ns: int
    name: str
    attributes: Mapping[str, Value]


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of an exchange."""

    context: Context
    name: str
    begun_ns: int
    """Of the wall clock, as all times here."""
    ended_ns: int
    attributes: Mapping[str, Value]
    events: tuple[Event, ...] = ()
    failed: bool = False


class Trace:
    """A span that has begun. Belongs to one thread."""

    def __init__(self, context: Context, clock: Callable[[], int], told: Callable[[Span], None]) -> None:
        """Begin now.

        Args:
            context: Where it stands.
            clock: The wall clock, nanoseconds.
            told: Takes the span when it has ended; never waits.
        """
        self.context = context
        self._clock = clock
        self._told = told
        self._begun = clock()
        self._events: list[Event] = []

    def happened(self, name: str, attributes: Mapping[str, Value]) -> None:
        """Note an event; of very many, the first."""
        if self.context.sampled and len(self._events) < _MOST_VERDICTS:
            self._events.append(Event(self._clock(), name, attributes))

    def ended(self, name: str, attributes: Mapping[str, Value], *, failed: bool) -> None:
        """Tell of it, if it is one of those that are told."""
        if self.context.sampled:
            self._told(
                Span(
                    context=self.context,
                    name=name,
                    begun_ns=self._begun,
                    ended_ns=self._clock(),
                    attributes=attributes,
                    events=tuple(self._events),
                    failed=failed,
                )
            )


class Tracer:
    """Begins spans."""

    def __init__(
        self,
        share: float,
        told: Callable[[Span], None],
        *,
        draw: Callable[[int], bytes],
        clock: Callable[[], int],
    ) -> None:
        """Tell `share` of the traces that begin here to `told`; `draw` and `clock` as for `begun` and `Trace`."""
        self._share = share
        self._told = told
        self._draw = draw
        self._clock = clock

    def begin(self, headers: Sequence[str]) -> Trace:
        """Begin the span of an exchange whose request has these `traceparent` headers."""
        return Trace(begun(headers, self._share, self._draw), self._clock, self._told)
