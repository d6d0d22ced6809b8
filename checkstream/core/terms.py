"""The words of the project, each with one meaning. This file is the glossary.

Text offsets are code points from the start of their channel; spans are half-open. Wire offsets are
bytes and never leave `core.wire`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal

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
ANSWER_CHANNELS = ("content", "refusal", "reasoning", "tool_name", "tool_arguments", "extra")
"""`extra`: every string, number and member name of an answer that stands in none of the other channels."""
STAGE_CHANNELS: Mapping[Stage, tuple[str, ...]] = MappingProxyType(
    {Stage.INGRESS: INGRESS_CHANNELS, Stage.MIDSTREAM: ANSWER_CHANNELS, Stage.EGRESS: ANSWER_CHANNELS}
)
_KEPT_BACK: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        Stage.INGRESS: frozenset(
            {"reject", "require_confirmation", "redact", "pseudonymise", "rewrite_span", "remove_message"}
        ),
        Stage.MIDSTREAM: frozenset({"redact", "rewrite_span", "stop", "safe_mode"}),
    }
)
_SCANNED = frozenset(f"{stage}:{kind}" for stage, kinds in STAGE_CHANNELS.items() for kind in kinds)


def keeps_back(action: str, stage: str) -> bool:
    """Tell whether an action keeps text from going on as it came: `safe_mode` does where it cuts an answer."""
    return action in _KEPT_BACK.get(stage, ())


def unknown_of(scanned: Iterable[str]) -> list[str]:
    """Return what a record names as scanned besides the channels: fields that nobody knows."""
    return [name for name in scanned if name not in _SCANNED]


REASONING_NAMES = 4
"""Channels of reasoning with a lower index are one text under several names: clients take whichever comes."""
COMMON = -1
"""In place of a choice's index: the answer as a whole."""
CALL_TEXTS = 1 << 21
"""What a tool is given may be told in texts of their own before it is told as a whole, such as the commands of a shell.
Each is a channel, whose index is higher by as much, or a multiple of it, than the number of the call."""


class Channel(msgspec.Struct, frozen=True, order=True):
    """One stretch of text with its own holdback: which choice, what kind of text, which of that kind."""

    kind: str
    """One of `INGRESS_CHANNELS` or `ANSWER_CHANNELS`."""
    choice: int = 0
    """Index of the choice (answers), `COMMON` for what belongs to all; position of the message (prompts)."""
    index: int = 0
    """Index of the tool call within the choice; position of the text part within the message. The parts of a message
    are judged as one text, each on a line of its own: 0; put together without line ends: 1. Ids, names and numbers of
    the whole prompt: 2; the sentences that names spell: 3. Entries of lists in fields that nobody knows, put
    together: 4. What the user said last, read as one text: 5. Ends of messages and the beginnings of the next ones of
    their kind: 6."""

    @property
    def call(self) -> int:
        """Number of the tool call that a name, arguments, or one of the texts that tell these ahead are of."""
        return self.index % CALL_TEXTS

    @property
    def tells_ahead(self) -> bool:
        """It tells a part of what a tool is given, all of which is told behind it."""
        return self.index >= CALL_TEXTS


class Span(msgspec.Struct, frozen=True, order=True):
    """Half-open range of code points in a channel's original text."""

    start: int
    end: int

    def moved(self, by: int) -> Span:
        """Return the range so many code points further on."""
        return Span(self.start + by, self.end + by) if by else self


class Delta(msgspec.Struct, frozen=True):
    """Text that one unit adds to one channel."""

    channel: Channel
    text: str
    path: tuple[str | int, ...]
    """Where the text stands in the unit's JSON, e.g. `("choices", 0, "delta", "content")`."""
    verbatim: bool = False
    """The text is JSON as it stands there, not what a string there says."""
    free: bool = False
    """What a tool is given that takes any text; the arguments of all others are JSON."""
    part: tuple[str | int, ...] = ()
    """Which text of the answer it adds to, on surfaces whose later units say that again."""
    anew: bool = False
    """It says from its beginning what was told otherwise before: a call as it began, and then as it is."""


class Extra(msgspec.Struct, frozen=True):
    """What a unit says outside of the text channels: a string, a number as it is written, the name of a member."""

    choice: int
    """Whose it is; `COMMON`: of no choice."""
    text: str
    path: tuple[str | int, ...]
    joins: bool = False
    """Callers may join it with what other units say at the same place, as they join text."""
    place: tuple[str | int, ...] | None = None
    """Where callers put it, if not at `path`: an entry of a list stands at its `index`, wherever it comes in the list;
    entries that have none are joined."""
    part: int = 0
    """Which of several texts at one place; 0: the only one. Others are text that may say the same again."""
    again: Literal["read", "first", "never"] = "read"
    """What leaves of a later unit's at the same place. read: what it says, once it has been read. first: what was said
    there first, in its place. never: nothing."""
    words: tuple[str, ...] = ()
    """What it puts together, each of which is another of what the unit says; empty: nothing."""
    word: bool = False
    """A word of the protocol, which says nothing by itself; joined with what comes behind it, it may."""
    known: int = 0
    """So many parts of the path lead to a field that servers are known to send; 0: nobody knows the field."""


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """What is released as one piece: an SSE event, or a whole body. Holds the bytes as they came."""

    raw: bytes
    """The bytes as they came: a whole event with its blank line and any comments before it, or a body."""
    deltas: tuple[Delta, ...] = ()
    extras: tuple[Extra, ...] = ()
    """All else that it says; the guard makes deltas of what rules must judge."""
    shadows: tuple[tuple[str | int, ...], ...] = ()
    """Paths of members that spell text once more and are not known to spell the unit's own: log probabilities, ids."""
    halves: Mapping[tuple[str | int, ...], tuple[str, str]] = MappingProxyType({})
    """Path of a text that begins with the second half of a character, or ends with the first -> these halves, each
    empty where there is none. In the text U+FFFD stands for them."""
    choices: tuple[int, ...] = ()
    """The choices that this unit speaks of; empty: it speaks of the stream as a whole (usage, terminator)."""
    finished: tuple[int, ...] = ()
    """The choices that this unit gives a finish reason: their channels end here."""
    broken: Mapping[int, str] = MappingProxyType({})
    """Those of them that were broken off, and why (`length`, `content_filter`, `other`): the rest is missing."""
    terminator: bool = False
    """The surface's last word (`data: [DONE]`)."""
    usage: bool = False
    """Carries the upstream's token usage."""
    number: int | None = None
    """Which event of its stream it says that it is; None: it doesn't."""
    left_out: Mapping[str, int] = MappingProxyType({})
    """Members that tell what it is about, and that it leaves out -> the numbers that follow from its ids."""
    block: int | None = None
    """Number of the block that it is of, where an answer has blocks one after the other."""
    failure: str | None = None
    """An error object sent by the upstream in place of an answer; its message."""
    unscanned: tuple[str, ...] = ()
    """Names of what may carry text and is not scanned (`image_url`, `delta.audio`), for the record."""
    sealed: tuple[str, ...] = ()
    """Names of what servers have encrypted for themselves (`encrypted_content`), for the record."""
    binary: tuple[tuple[str | int, ...], ...] = ()
    """Where bytes stand in it that are spelled as text."""
    stray: Mapping[tuple[str | int, ...], int] = MappingProxyType({})
    """Where calls of tools stand in it that no client of a stream looks for there, with the choice that each is of;
    nobody has read them."""
    served: tuple[int, ...] = ()
    """Numbers of tool calls that the provider makes itself, for which nobody waits."""
    over: tuple[int, ...] = ()
    """Numbers of tool calls that are over, as far as the answer says so of each."""
    torn: tuple[int, ...] = ()
    """The same of those that were broken off."""
    again: Mapping[tuple[str | int, ...], tuple[str | int, ...]] = MappingProxyType({})
    """Where it says again what others have said, of which nothing was read -> the part that was said there (see
    `Delta`): it leaves with what has left of that."""
    kept_as: tuple[str, ...] = ()
    """Ids by which a later request goes on from the answer that this is of, where the provider keeps it: its own, and
    those of its items (see `Request.previous` and `Request.referred`)."""
    opaque: bool = False
    """Nothing here is known to the surface: the route's fail mode decides."""


class Document(msgspec.Struct, frozen=True):
    """One of the texts that the answer is to be true to."""

    text: str
    title: str | None = None
    url: str | None = None
    id: str | None = None


class Message(msgspec.Struct, frozen=True):
    """One message or field of a prompt, as one text."""

    role: str
    """One of `INGRESS_CHANNELS`."""
    text: str


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """What rules knew of a request besides its texts, for those who judge its answer again."""

    context: str = ""
    """What the caller said of it, a JSON object; empty: nothing."""
    known: str = ""
    """What was surely known of the caller, as in `RequestReceived`."""
    request: Mapping[str, Any] = {}
    """Field of `request` -> its value; what the request did not say is not there."""
    confirmed: tuple[str, ...] = ()
    """Ids of the rules whose confirmation came with it."""
    edited: bool = False
    """Not all of its texts were forwarded as they came: what the caller had said is not known any more."""


class Dialogue(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt and what its caller got as the answer, to be held against evidence."""

    model: str
    """As asked for."""
    messages: tuple[Message, ...]
    """As they were forwarded."""
    answers: Mapping[int, str]
    """Choice -> content that was sent of it: edits carried out, without what rules have put before and behind it."""
    documents: tuple[Document, ...] = ()
    """From the request's context, edits carried out."""
    conversation: str = ""
    """The caller's name for it; empty: none was given."""
    circumstances: Circumstances = Circumstances()
    ages: Mapping[int, tuple[tuple[int, float], ...]] = {}
    """Choice that a rule has stopped -> where in the model's text pieces of it began, and how long before the end each
    had come, seconds."""


class Recited(msgspec.Struct, frozen=True):
    """How much of a text is recited, up to a place in it."""

    words: int
    """Of the recital, from its first word on."""
    share: float
    """Words that belong to recitals, of all words of the text up to there; 0..1."""


class Finding(msgspec.Struct, frozen=True):
    """A hit of one detector at a span."""

    signal: int
    """Number of the detector in the program's table of signals."""
    span: Span
    view: str = "raw"
    """Name of the view of the text in which it was found."""
    capped: bool = False
    """The pattern reached its `max_chars` while it could still match, and is treated as matched."""
    hits: int = 1
    """How many it stands for: more than one where very many chain; then the span is from the first to the last."""
    recited: Recited | None = None
    """Of a recital."""

    @property
    def exact(self) -> bool:
        """Whether the span is just what was found; else nothing is spared or excepted because of it."""
        return self.hits == 1 and not self.capped


class StreamFacts(msgspec.Struct):
    """What is known of one text as a stream, up to the place where it is decided."""

    tokens: int = 0
    risk: float = 0.0
    """Decayed maximum of the scores, 0..1."""
    trend: float = 0.0
    """Change of the risk at the latest check."""
    language: str = "und"
    """Primary subtag of BCP 47; `und`: not determined."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in the messages of a request, for triggers that spare what the caller already has."""

    values: Mapping[str, frozenset[bytes]] = MappingProxyType({})
    """Ingress channel -> digests of what validators find there."""
    words: Mapping[str, str] = MappingProxyType({})
    """Ingress channel -> the words that stand there (see `match.names`)."""
    heard: Mapping[str, bytes] = MappingProxyType({})
    """Ingress channel -> digests of the words of earlier requests, where the provider keeps the history."""
    key: bytes = b""
    """Of all digests; empty: nobody keeps them."""


class Past(msgspec.Struct, kw_only=True):
    """What rules know of the conversation that a request is part of."""

    turns: int = 0
    """Texts of the user, with those of this request."""
    fired: Mapping[str, int] = MappingProxyType({})
    """Id of a rule -> how often it was enforced in earlier requests."""
    refused: int = 0
    """Earlier requests that were."""
    entities: tuple[str, ...] = ()
    """Kinds that were found in earlier requests and their answers."""
    risks: dict[int, float] = msgspec.field(default_factory=dict)
    """Signal of a classifier label -> the risk that has added up, 0..1; filled when all of the prompt has been read."""
    peaks: dict[int, float] = msgspec.field(default_factory=dict)
    """Signal of a classifier label -> the highest score of a text; filled then, too."""
    recents: dict[int, float] = msgspec.field(default_factory=dict)
    """Signal of a classifier label -> its score of what the user said last, read as one text; filled then, too."""
    shorts: dict[int, float] = msgspec.field(default_factory=dict)
    """The same of more texts, where they are short."""


class ExchangeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one exchange as a whole, the same for all of its channels."""

    context: Any = msgspec.field(default_factory=dict)
    """The caller's facts about the request, as a CEL map."""
    request: Mapping[str, Any] = MappingProxyType({})
    """Field of `request` -> its CEL value; what the request does not say is not there."""
    off: frozenset[int] = frozenset()
    """Rules that `enabled_when` leaves out of this exchange."""
    known: dict[int, Any] = msgspec.field(default_factory=dict)
    """Start of code -> its value, of code that reads only the context and the request; filled as it is run."""
    told: Told = Told()
    """What the caller already has, as far as triggers ask."""
    conversation: Past = msgspec.field(default_factory=Past)
    """What earlier requests came to, and this one with them."""
    shadowed: frozenset[int] = frozenset()
    """Rules that are only recorded here: `enforce_share` does not take in this caller and user."""


class Facts(msgspec.Struct):
    """What the policy VM reads: all that is known about one channel so far. Grows, never shrinks."""

    stage: Stage
    channel: str
    """Kind of the channel."""
    exchange: ExchangeFacts = ExchangeFacts()
    counts: dict[int, int] = msgspec.field(default_factory=dict)
    """Signal of a pattern, phrase or entity -> how often it has been found so far."""
    scores: dict[int, float] = msgspec.field(default_factory=dict)
    """Signal of a classifier label -> its score of the latest check, 0..1. An absent score is not zero."""
    peaks: dict[int, float] = msgspec.field(default_factory=dict)
    """Signal of a classifier label -> its highest score so far."""
    stream: StreamFacts = msgspec.field(default_factory=StreamFacts)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the policy decided about some spans, and under which rule."""

    action: str
    """The strictest action that the rule asked for here (`redact`, `stop`, `reject`, `log_event`, ...)."""
    rule_id: str
    regulation: str | None = None
    citation: str | None = None
    """Where the regulation can be read."""
    severity: str | None = None
    """`info`, `low`, `medium`, `high` or `critical`, as the rule's metadata says."""
    confidence: float = 1.0
    """The classifier's score for a classifier rule; 1.0 for a pattern."""
    spans: tuple[Span, ...] = ()
    policy: str
    """Name of the pack that the rule stands in."""
    version: str
    stage: Stage
    channel: Channel
    """Kind `request`: a rule without triggers, decided on the request as a whole."""
    mode: str = "enforce"
    """`enforce` or `shadow`; a shadow verdict is recorded and changes nothing."""
    triggers: tuple[str, ...] = ()
    """Names of the detectors that made the rule fire, e.g. `entity:EMAIL`."""
    model: str | msgspec.UnsetType = msgspec.UNSET
    """The model that has scored, `name@version`, or its name alone where nobody knows more; left out: none was asked
    for this, as for a pattern."""
    latency_ms: float | msgspec.UnsetType = msgspec.UNSET
    """From the event that completed the text (the last character of its last span) to the one that decided it,
    milliseconds; left out: they are one event, or it is of no text."""
    excepted_by: str | None = None
    """Id of the `allow` rule that made an exception of this one."""
    undecided: bool = False
    """A condition of the rule could not be decided, and the fail mode let it count as if it held."""
    recited: Recited | msgspec.UnsetType = msgspec.UNSET
    """Of a recital: how long it is, and how much of the text recites; left out for all else."""
