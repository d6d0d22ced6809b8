"""The form of a scenario file: what the scripted LLM answers, when, and how the bytes are cut.

A scenario is one YAML (or JSON) file; its name is the file's stem. Everything but the answer is optional:

    description: what it shows, for people
    match: {model: "gpt-*", contains: "weather"}   # all that is given must hold; see below
    continued_by: NAME                # the scenario that answers instead when the request goes on with an answer
    choices:                          # a request with `n: 3` runs through these in turn
      - content: "Hello, ${last_user}!"        # split by `split`; ${last_user} and ${model} are filled in
        reasoning_content: ["one", " piece", " a token"]     # a list is a list of tokens, kept as it is
        reasoning: ...                # the other name that servers use for the same
        refusal: ...
        tool_calls: [{name: send, arguments: ['{"to": "a', '@example.com"}'], id: call_1}]
        repeat: 1                     # the content's tokens are said this many times over
        finish_reason: stop           # default: tool_calls if there are any, else stop
    split: {by: words, size: 1, seed: 0}     # words | chars | random (1..size characters) | whole
    timing: {headers_ms: 0, first_byte_ms: 0, token_ms: 0}
    wire:
      line_end: lf                    # lf | crlf | cr
      bom: false
      json: compact                   # compact | spaced | ascii (non-ASCII as escapes) | pretty (many data: lines)
      space_after_colon: true
      comments: {every: 3, text: keep-alive}          # a comment block before every third event
      done: true                      # ends with `data: [DONE]`
      tail: full                      # full | no_blank_line | no_newline: how the last event ends
      cut: {by: event, size: 1, seed: 0, gap_ms: 0}   # event | fixed | random (1..size bytes) | whole
    insert: [{after_events: 2, data: '{"broken": '}]  # further events, malformed ones too; `event:` names the type
    fault: {kind: reset, after_events: 3}
    extra: {event: {x: 1}, choice: {}, delta: {}}     # unknown fields, added to every event (and to whole bodies)
    usage: true                       # false: the usage that the caller asked for is not sent
    error: {status: 429, message: ..., type: ..., code: ..., param: ..., headers: {retry-after: "1"}}

Which scenario answers: the one named by the header `x-scenario` (an unknown name is refused), else the one whose
name is the request's `model`, else the first (by name) whose `match` holds, else the one named `fallback`,
else an echo. A scenario without `match` is chosen by its name only. `contains` is looked for in the last user
message, letter case ignored. A request goes on with an answer when it has `continue_final_message: true`, as vLLM's
API names it; one whose scenario has no `continued_by` is answered from the start.

Faults: `reset` (RST), `close` (FIN inside the body), `end` (the body ends as HTTP says, without a last word),
`stall` (silence for `stall_ms`, or until the caller leaves), `endless` (an event that never ends). Each comes
`after_events` events or `after_bytes` bytes of the body; a whole body counts as one event. A *cut* runs over the
borders of events, except where the script waits: what is due before a delay is sent before it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]
Size = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Milliseconds = Annotated[float, msgspec.Meta(ge=0, le=3_600_000)]
Text = str | list[str]

SCENARIO_HEADER = "x-scenario"
"""Of a request: names the scenario that answers it."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a scenario file; a misspelt field is a fault."""


class ToolCall(_Part, frozen=True):
    """One tool call of an answer."""

    name: str
    arguments: Text = "{}"
    """The JSON of the arguments; a list gives the fragments as they are streamed."""
    id: str | None = None


class Choice(_Part, frozen=True):
    """One choice of an answer; a list of strings is a list of tokens."""

    content: Text | None = None
    refusal: Text | None = None
    reasoning_content: Text | None = None
    reasoning: Text | None = None
    tool_calls: list[ToolCall] = []
    finish_reason: str | None = None
    repeat: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1


class Match(_Part, frozen=True):
    """Which requests a scenario answers."""

    model: str | None = None
    """The request's model; `*` and `?` are wildcards."""
    contains: str | None = None


class Split(_Part, frozen=True):
    """How a text that stands in one string becomes tokens."""

    by: Literal["words", "chars", "random", "whole"] = "words"
    size: Size = 1
    """Words or characters a token; the most characters for `random`."""
    seed: int = 0


class Timing(_Part, frozen=True):
    """When things are sent, milliseconds."""

    headers_ms: Milliseconds = 0.0
    first_byte_ms: Milliseconds = 0.0
    token_ms: Milliseconds = 0.0


class Cut(_Part, frozen=True):
    """How the body's bytes become writes."""

    by: Literal["event", "fixed", "random", "whole"] = "event"
    size: Size = 1
    seed: int = 0
    gap_ms: Milliseconds = 0.0
    """Pause between two writes."""


class Comments(_Part, frozen=True):
    """SSE comment blocks between events."""

    every: Size = 1
    text: str = "keep-alive"


class Wire(_Part, frozen=True):
    """How events look as bytes."""

    line_end: Literal["lf", "crlf", "cr"] = "lf"
    bom: bool = False
    json: Literal["compact", "spaced", "ascii", "pretty"] = "compact"
    space_after_colon: bool = True
    comments: Comments | None = None
    done: bool = True
    tail: Literal["full", "no_blank_line", "no_newline"] = "full"
    cut: Cut = Cut()


class Insert(_Part, frozen=True):
    """An event that stands in the stream as it is written here."""

    after_events: Count
    data: str
    event: str = ""


class Breakage(_Part, frozen=True):
    """What goes wrong, and where in the body."""

    kind: Literal["reset", "close", "end", "stall", "endless"]
    after_events: Count | None = None
    after_bytes: Count | None = None
    stall_ms: Milliseconds | None = None

    def __post_init__(self) -> None:
        """Refuse a fault that stands nowhere or at two places."""
        if (self.after_events is None) == (self.after_bytes is None):
            raise ValueError("a fault needs one of `after_events` and `after_bytes`")
        if self.stall_ms is not None and self.kind != "stall":
            raise ValueError("`stall_ms` belongs to the fault `stall`")


class Extra(_Part, frozen=True):
    """Fields that the API does not know, as servers add them."""

    event: dict[str, Any] = {}
    choice: dict[str, Any] = {}
    delta: dict[str, Any] = {}


class Failure(_Part, frozen=True):
    """An error object in place of an answer; what is left out has the API's usual value for the status."""

    status: Annotated[int, msgspec.Meta(ge=400, le=599)]
    message: str | None = None
    type: str | None = None
    code: str | None = None
    param: str | None = None
    headers: dict[str, str] = {}


class Script(_Part, frozen=True):
    """One scenario, without its name: the form of a scenario file."""

    description: str = ""
    match: Match | None = None
    continued_by: str | None = None
    """Scenario that answers a request which asks to go on with the answer that it ends with."""
    choices: list[Choice] = []
    split: Split = Split()
    timing: Timing = Timing()
    wire: Wire = Wire()
    insert: list[Insert] = []
    fault: Breakage | None = None
    extra: Extra = Extra()
    usage: bool = True
    error: Failure | None = None

    def __post_init__(self) -> None:
        """Refuse a scenario that answers nothing, or both answers and fails."""
        if bool(self.choices) == (self.error is not None):
            raise ValueError("a scenario needs one of `choices` and `error`")
