"""The words of the project, each with one meaning. This file is the glossary.

Text offsets are code points from the start of their channel; spans are half-open. Wire offsets are
bytes and never leave `core.wire`.
"""

from __future__ import annotations

import enum

import msgspec


class Stage(enum.StrEnum):
    """A section of the policy: where in an exchange a rule applies."""

    INGRESS = "ingress"
    """The prompt, before the model sees it."""
    MIDSTREAM = "midstream"
    """The answer, before the caller sees it; streamed or whole."""
    EGRESS = "egress"
    """The end of the answer: only adds text or records."""


INGRESS_CHANNELS = ("system", "user", "assistant", "tool_result", "document")
ANSWER_CHANNELS = ("content", "refusal", "reasoning", "tool_name", "tool_arguments")


class Channel(msgspec.Struct, frozen=True, order=True):
    """One stretch of text with its own holdback: which choice, what kind of text, which of that kind."""

    kind: str
    """One of `INGRESS_CHANNELS` or `ANSWER_CHANNELS`."""
    choice: int = 0
    """Index of the choice (answers); position of the message (prompts)."""
    index: int = 0
    """Index of the tool call within the choice; position of the text part within the message. The parts of a message
    are judged as one text, each on a line of its own: 0; put together without line ends: 1."""


class Span(msgspec.Struct, frozen=True, order=True):
    """Half-open range of code points in a channel's original text."""

    start: int
    end: int


class Delta(msgspec.Struct, frozen=True):
    """Text that one unit adds to one channel."""

    channel: Channel
    text: str
    path: tuple[str | int, ...]
    """Where the text stands in the unit's JSON, e.g. `("choices", 0, "delta", "content")`."""


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """What is released as one piece: an SSE event, or a whole body. Holds the bytes as they came."""

    raw: bytes
    """The bytes as they came: a whole event with its blank line and any comments before it, or a body."""
    deltas: tuple[Delta, ...] = ()
    choices: tuple[int, ...] = ()
    """The choices that this unit speaks of; empty: it speaks of the stream as a whole (usage, terminator)."""
    finished: tuple[int, ...] = ()
    """The choices that this unit gives a finish reason: their channels end here."""
    terminator: bool = False
    """The surface's last word (`data: [DONE]`)."""
    usage: bool = False
    """Carries the upstream's token usage."""
    failure: str | None = None
    """An error object sent by the upstream in place of an answer; its message."""
    unscanned: tuple[str, ...] = ()
    """Names of what may carry text and is not scanned (`image_url`, `delta.audio`), for the record."""
    opaque: bool = False
    """Nothing here is known to the surface: the route's fail mode decides."""


class Finding(msgspec.Struct, frozen=True):
    """A hit of one detector at a span."""

    signal: int
    """Number of the detector in the program's table of signals."""
    span: Span
    view: str = "raw"
    """Name of the view of the text in which it was found."""
    capped: bool = False
    """The pattern reached its `max_chars` while it could still match, and is treated as matched."""


class Facts(msgspec.Struct):
    """What the policy VM reads: all that is known about one channel so far. Grows, never shrinks."""

    stage: Stage
    channel: str
    """Kind of the channel."""
    seen: set[int] = msgspec.field(default_factory=set)
    """Signals of the patterns, phrases and entities found so far."""
    scores: dict[int, float] = msgspec.field(default_factory=dict)
    """Signal of a classifier label -> its score of the latest check, 0..1. An absent score is not zero."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the policy decided about some spans, and under which rule."""

    action: str
    """The strictest action that the rule asked for here (`redact`, `stop`, `reject`, `log_event`, ...)."""
    rule_id: str
    regulation: str | None = None
    confidence: float = 1.0
    """The classifier's score for a classifier rule; 1.0 for a pattern."""
    spans: tuple[Span, ...] = ()
    policy: str
    """Name of the pack that the rule stands in."""
    version: str
    stage: Stage
    channel: Channel
    mode: str = "enforce"
    """`enforce` or `shadow`; a shadow verdict is recorded and changes nothing."""
    triggers: tuple[str, ...] = ()
    """Names of the detectors that made the rule fire, e.g. `entity:EMAIL`."""
    excepted_by: str | None = None
    """Id of the `allow` rule that made an exception of this one."""
