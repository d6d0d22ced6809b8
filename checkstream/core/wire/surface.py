"""What the guard asks of an API surface: one implementation per surface, a file each.

A surface turns wire bytes into `Unit`s (bytes plus the text in them) and edits back into bytes. It
knows JSON and the API's shapes; it knows nothing of policies, time or sockets. Units that nobody edits
are forwarded as the bytes they came in. What the surfaces of one vendor have in common stands once, in a
base of theirs (`openai_surface`).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Protocol

import msgspec

from checkstream.core.terms import Delta, Document, Unit
from checkstream.core.wire.frame import Frame
from checkstream.core.wire.framing import Framing
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.text_files import Encoding


class Extension(msgspec.Struct, frozen=True, kw_only=True):
    """The request's own `checkstream` field: what the caller tells the policies, never the upstream."""

    context: dict[str, object] = msgspec.field(default_factory=dict)
    """Facts about the request for policy conditions, as JSON values."""
    documents: tuple[Document, ...] = ()
    """Every string of them is scanned too, as `document` channels."""
    conversation: str | None = None
    """The caller's name for the conversation that this request is part of."""
    verify: bool | None = None
    """Whether the reply is to say what the route's profiles make of the answer; None: as the route has it."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A caller's request, read and checked against the surface's table of fields (G31)."""

    unit: Unit
    """The body with the text of every ingress channel as deltas, each of which is complete."""
    members: Mapping[str, object]
    """The same as an object."""
    streaming: bool
    usage_wanted: bool
    """The caller asked for a usage chunk (`stream_options.include_usage`)."""
    model: str
    choices: int = 1
    """How many answers the caller asked for (`n`)."""
    unknown_fields: tuple[str, ...] = ()
    """Fields outside the surface's table (`foo`, `messages[].foo`): scanned whole, or refused, as the route says."""
    strange: frozenset[str] = frozenset()
    """Names of those that stand at the top of the body."""
    quiet: AbstractSet[int] = frozenset()
    """Places of the deltas that are ids, names and numbers: patterns read them, no classifier is asked."""
    files: Mapping[int, Encoding] = MappingProxyType({})
    """Place of a delta that is the text of a file -> how it stands in the body."""
    signed: AbstractSet[int] = frozenset()
    """Places of the deltas that the model has signed, in an earlier answer: the API takes them back as they are."""
    runs: tuple[tuple[int, ...], ...] = ()
    """Places of deltas that are entries of one list, in fields that nobody knows: a reader may put them together."""
    told: tuple[tuple[int, ...], ...] = ()
    """Places of deltas that are words of one value, in fields that nobody knows: together they may be a sentence."""
    goes_on: bool = False
    """An answer to it was cut off: what comes is the rest."""
    extension: Extension | None = None
    """The `checkstream` field, which `write_request` takes out of the body; None when there was none."""
    verification: bool | None = None
    """Whether the reply is to carry RAG verification (`enable_verification`, taken out of the body as well)."""
    tools: tuple[str, ...] = ()
    """Names of the tools and functions that the model is offered."""
    temperature: float | None = None
    user: str | None = None
    """The caller's name for the person behind the request (`user`)."""
    metadata: Mapping[str, str] = MappingProxyType({})
    """The caller's own notes, never trusted as context."""
    previous: str | None = None
    """Id of the answer that this request goes on from, which the provider keeps (see `Unit.kept_as`)."""
    referred: str | None = None
    """Id of what it refers to last of earlier answers, which the provider keeps: it stands in the place of that."""
    conversation: str | None = None
    """Id of the conversation that it is part of, which the provider keeps."""
    sent: tuple[bytes, frozenset[bytes]] = (b"", frozenset())
    """Of an answer that is asked for again: key, and digests of what was sent with its request, which it repeats."""
    forwarded: Mapping[int, str] = MappingProxyType({})
    """Place of a text -> what was forwarded in its place."""
    instructed: tuple[str, ...] = ()
    """Instructions that policies have put behind its own."""
    structured: bool = False
    """The answer is to have a fixed form (JSON, a grammar): text added to it would break it."""


class Shaping(msgspec.Struct, frozen=True, kw_only=True):
    """What policies change of a request besides its texts."""

    max_temperature: float | None = None
    """A higher temperature, or none, becomes this."""
    tools: tuple[str, ...] | None = None
    """Names, or beginnings of names followed by `*`: all other tools are taken out. None: all stay."""
    bad_words: tuple[str, ...] = ()
    """Texts that the upstream must not write, besides those that the caller names."""
    logit_bias: tuple[tuple[int, int], ...] = ()
    """Token and bias, in place of the caller's for the same token."""
    json_schema: str | None = None
    """JSON Schema of the answer, as JSON, in place of the form that the caller asks for."""
    grammar: str | None = None
    """Grammar of the answer, in the same way; with a schema, the schema counts."""
    instructions: tuple[str, ...] = ()
    """System messages, behind the request's own."""
    removed: tuple[tuple[tuple[str | int, ...], str], ...] = ()
    """What is taken out of the request: a tool result, a document, a file in a message, by its path; and the note that
    stands in its place, where something must."""
    continue_from: str | None = None
    """What the answer begins with: the model is to go on from there."""


class Edit(msgspec.Struct, frozen=True):
    """What becomes of one choice in one unit that the guard changed."""

    texts: Mapping[int, str]
    """Index in `unit.deltas` -> the text to put in place of that delta's text."""
    drop_choices: frozenset[int] = frozenset()
    """Choices that were stopped earlier: nothing of them may remain in the unit."""
    drop_calls: frozenset[int] = frozenset()
    """Indices in `unit.deltas` of texts of tool calls that are taken out of the unit whole."""
    finish: Mapping[int, str | None] = MappingProxyType({})
    """Choice -> what the unit says of its end in place of its own reason; None: nothing, another unit says it."""


class Sending(Protocol):
    """The events of one stream as they leave. It may keep in mind what has left, where later events depend on that.

    It is asked in the order in which the caller gets what it returns.
    """

    alters: bool
    """Events that nobody has edited may leave otherwise than they came, such as under other numbers."""

    gave_up: bool
    """A signed text had more than may wait, and has not left."""

    withheld: int
    """Signed texts that were handed over, and have not left."""

    tells_rest: bool
    """What leaves of the rest of an answer that was cut off is told here; else it is the text alone."""

    @property
    def holding(self) -> int:
        """Which signed text waits until it is known whether rules edit it, or goes, counted from 1; 0: none."""

    @property
    def memory(self) -> Sequence[object]:
        """Lists, sets and dictionaries in which it keeps something in mind, and nobody else."""

    def go_on(self) -> None:
        """Take what comes from here on as the rest of the same answer, which was cut off."""

    def as_it_came(self, unit: Unit) -> bytes:
        """Return an event that nobody has edited."""

    def write_event(self, unit: Unit, edit: Edit) -> bytes:
        """Return the event with the edit applied, or `b""` when nothing of it remains.

        `logprobs`, `top_logprobs` and token bytes of altered text are removed (G15). All that is not
        edited stays as it came.

        Raises:
            WireError: the event's JSON has two members of one name where it is edited.
        """

    def writing_event(self, unit: Unit, edit: Edit | None) -> Generator[None, None, bytes]:
        """Return, in steps, a long event as it leaves: edited, or, without an edit, as nobody has edited it.

        Raises:
            WireError: as `write_event`.
        """

    def text_event(self, like: Unit, choice: int, text: str) -> bytes:
        """Return an event that adds `text` to a choice's content, with the ids and model of `like`."""

    def finish_event(self, like: Unit, choice: int) -> bytes:
        """Return an event that ends a choice as stopped by policy (`finish_reason: content_filter`)."""

    def usage_event(self, like: Unit, prompt_tokens: int, completion_tokens: int) -> bytes:
        """Return a usage event with an estimate, marked `checkstream_estimated: true` (G16)."""

    def result_event(self, like: Unit, members: Mapping[str, msgspec.Raw]) -> bytes:
        """Return an event that adds no text and carries `members` (name -> JSON) beside the ids and model of `like`."""

    def terminator(self) -> bytes:
        """Return the surface's last word (`data: [DONE]` and a blank line)."""

    def error_event(self, kind: str, message: str, rule_id: str | None = None) -> bytes:
        """Return the surface's error event for a stream that can't go on."""


class Receiving(Protocol):
    """The answer to one request as it comes. It may keep in mind what has come, where later events repeat it.

    It is asked in the order in which the upstream has sent what it reads.
    """

    @property
    def memory(self) -> Sequence[object]:
        """Lists, sets and dictionaries in which it keeps something in mind, and nobody else."""

    def read_event(self, frame: Frame) -> Unit:
        """Read one event of the answer.

        Raises:
            WireError: the event is not what the surface allows; the route's fail mode decides.
        """

    def reading_event(self, frame: Frame) -> Generator[None, None, Unit]:
        """Read a long event, in steps.

        Raises:
            WireError: as `read_event`.
        """

    def reading_whole(self, body: bytes) -> Generator[None, None, Unit]:
        """Read a whole (not streamed) answer, in steps: every choice's text as deltas, all choices finished.

        Raises:
            WireError: not JSON of the surface's form, or of more values than are read.
        """


class Spoken(Protocol):
    """What the shell knows of an API, whatever is said there."""

    name: str
    """`openai.chat`, `anthropic.messages`, `mcp`."""
    events: frozenset[str]
    """Types of events that its clients know (`event:`); others are not told to them."""
    framing: Framing
    """How the events of its streams stand between the bytes."""
    parts_of_answers: frozenset[str]
    """Parameters of the query by which a caller could get an answer in pieces, each of which says nothing by itself."""
    methods: frozenset[str]
    """Of HTTP, that it takes."""
    id_headers: tuple[str, ...]
    """In which headers of an answer its clients look for the id of the request."""

    def error_event(self, kind: str, message: str, rule_id: str | None = None) -> bytes:
        """Return the surface's error event for a stream that can't go on."""

    def error_body(self, kind: str, message: str, rule_id: str | None = None, param: str | None = None) -> bytes:
        """Return the surface's error object; `rule_id` stands inside `error` and beside it, `param` is the place."""


class Requests(Protocol):
    """How requests of one kind carry text, and how they are edited."""

    name: str
    """Of the API."""

    def reading_request(self, body: bytes) -> Generator[None, None, Request]:
        """Read a body, in steps.

        Raises:
            RequestInvalid: not JSON of the surface's form, duplicate or case-variant keys, wrong types, or more values
                than are read.
        """

    def writing_request(
        self, request: Request, texts: Mapping[int, str], shaping: Shaping | None = None
    ) -> Generator[None, None, bytes]:
        """Return, in steps, the body with texts replaced, and shaped as policies want.

        Raises:
            WireError: the request was not read by this surface, or can't be shaped so.
        """

    def undone(self, request: Request, shaping: Shaping) -> tuple[Path, ...]:
        """Return what goes out of a request when it is shaped so, since it could undo that."""


class Surface(Spoken, Requests, Protocol):
    """One API that answers with text: how its requests, events and whole bodies carry it, and how they are edited."""

    calls_at_once: bool
    """Each call of a tool comes whole, in one event: what comes later under its number is another."""
    has_last_word: bool
    """Each of its streams ends with an event that says so: one that ends without has broken off. False: one without is
    over if each of its choices has ended."""
    trims_beginning: bool
    """The beginning of an answer from which its models go on may not end with white space."""
    signed: frozenset[str]
    """Kinds of texts that its models sign, and take back only as they wrote them: where a rule edits one, or what
    stands beside it in its block, the block goes as a whole, and no value comes back in it."""

    def read_request(self, body: bytes) -> Request:
        """Read a caller's body at once; see `reading_request`.

        Raises:
            RequestInvalid: as `reading_request`.
        """

    def write_request(self, request: Request, texts: Mapping[int, str], shaping: Shaping | None = None) -> bytes:
        """Return the body with the text of `request.unit.deltas[i]` replaced by `texts[i]`, shaped as policies want.

        All else stays byte for byte, but for the `checkstream` field, which is taken out.

        Raises:
            WireError: the request was not read by this surface, or can't be shaped so (an answer of several choices or
                of a fixed form can't be continued).
        """

    def receiving(self, request: Request | None) -> Receiving:
        """Return what reads the answer to a request; None: nobody knows what was asked."""

    def read_event(self, frame: Frame) -> Unit:
        """Read one event of an answer of which nothing else is known.

        Raises:
            WireError: the event is not what the surface allows; the route's fail mode decides.
        """

    def sending(self, most_held: int = 0) -> Sending:
        """Return what writes the events of one stream as they leave.

        Args:
            most_held: Bytes of a signed text that may wait until it is known whether rules edit it; it doesn't leave
                if it has more. 0: no rule edits any.
        """

    def putting(self, unit: Unit, values: Mapping[Path, str | None]) -> Generator[None, None, Unit]:
        """Return, in steps, an event or a whole answer with these texts, or null, at places such as `unit.shadows`.

        Where there is no such place, nothing is put.

        Raises:
            WireError: the JSON has two members of one name on the way to one.
        """

    def add_usage(self, unit: Unit, prompt_tokens: int, completion_tokens: int) -> Unit:
        """Return an event that tells usage with more tokens in it, marked as an estimate: those of the first part.

        Raises:
            WireError: the event's JSON has two members of one name there.
        """

    def rename_event(self, unit: Unit, like: Unit) -> Unit:
        """Return the event under the id of `like`, as a part of the same answer; where one has no id, as it came.

        Raises:
            WireError: the event's JSON has two ids.
        """

    def reading_whole(self, body: bytes) -> Generator[None, None, Unit]:
        """Read a whole (not streamed) answer, in steps: every choice's text as deltas, all choices finished.

        Raises:
            WireError: not JSON of the surface's form, or of more values than are read.
        """

    def read_whole(self, body: bytes) -> Unit:
        """Read a whole answer at once; see `reading_whole`.

        Raises:
            WireError: as `reading_whole`.
        """

    def writing_whole(self, unit: Unit, edit: Edit, finish: Mapping[int, str]) -> Generator[None, None, bytes]:
        """Return, in steps, the body with the edit applied; `finish[choice]` replaces that choice's finish reason.

        A choice in `edit.drop_choices` stays, emptied of what is not in `edit.texts` (its tool calls,
        logprobs and other text are removed), since a whole answer has a fixed number of choices.

        Raises:
            WireError: the body's JSON has two members of one name where it is edited.
        """

    def write_whole(self, unit: Unit, edit: Edit, finish: Mapping[int, str]) -> bytes:
        """Return the body as `writing_whole` does, at once.

        Raises:
            WireError: as `writing_whole`.
        """

    def joining_whole(self, first: Unit, texts: Mapping[int, str], second: Unit) -> Generator[None, None, bytes]:
        """Return, in steps, the body of an answer that was begun in one whole answer and continued in another.

        It is the second's, with what was released of the content of the first (`texts[i]` in place of the text of
        `first.deltas[i]`) before its own, without the log probabilities of that choice, and with the usage of both.
        Other channels of the first are left out. Both have one choice.

        Raises:
            WireError: the second has no content to put it before, or its JSON has two members of one name there.
        """

    def writing_results(self, body: bytes, members: Mapping[str, msgspec.Raw]) -> Generator[None, None, bytes]:
        """Return, in steps, a whole answer with these members (name -> JSON), in place of those of the upstream.

        Raises:
            WireError: the body is no JSON object, or has two members of one name.
        """


__all__ = [
    "Delta", "Document", "Edit", "Extension", "Frame", "Receiving", "Request", "Requests", "Sending", "Shaping",
    "Spoken", "Surface", "Unit",
]  # fmt: skip
