"""What rules can ask for when they fire: one frozen struct per action, as policies name it.

Texts are templates (`policy.templates`). What follows from actions is decided in `core.actions` and carried out by
the guard; here stands only what is asked for.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

SEVERITIES = ("info", "low", "medium", "high", "critical")
MAX_TEXT_CHARS = 4_000
MAX_ITEM_CHARS = 200
MAX_TOOLS = 500
MAX_WORDS = 1_000
MAX_BIASES = 1_000
MAX_TOKEN = 10_000_000
"""No vocabulary is as large."""
MAX_EXPIRES_S = 86_400
MAX_SOURCES = 50
MAX_TEMPERATURE = 2
REFUSAL_STATUS = (400, 499)
STOP_STATUS = (400, 599)

# Bounds of what a policy may say; msgspec holds stored programs to them.
Text = Annotated[str, Meta(max_length=MAX_TEXT_CHARS, pattern=r"\A[^\x00-\x08\x0b-\x1f]*\Z")]
Item = Annotated[str, Meta(min_length=1, max_length=MAX_ITEM_CHARS, pattern=r"\A[^\x00-\x08\x0b-\x1f]*\Z")]
Severity = Annotated[str, Meta(pattern=rf"\A({'|'.join(SEVERITIES)})\Z")]
Temperature = Annotated[float, Meta(ge=0.0, le=MAX_TEMPERATURE)]
Tool = Annotated[str, Meta(max_length=100, pattern=r"\A[A-Za-z0-9_.:/-]+\*?\Z")]
"""The name of a tool, or the beginning of names followed by `*`."""
Tools = Annotated[tuple[Tool, ...], Meta(max_length=MAX_TOOLS)]
Bias = tuple[Annotated[int, Meta(ge=0, le=MAX_TOKEN)], Annotated[int, Meta(ge=-100, le=100)]]


class Action(msgspec.Struct, frozen=True, tag_field="type"):
    """Something that a rule asks for when it fires.

    Texts are templates: `{model}` and its like are put in when they are written (`policy.templates`).
    """

    name: ClassVar[str]
    """The action as policies, verdicts and audit entries call it."""


class Allow(Action, frozen=True, tag="allow"):
    """An exception: rules of lower priority that match the same span do nothing there."""

    name: ClassVar[str] = "allow"


class Reject(Action, frozen=True, tag="reject"):
    """Refuse the request; the model never sees it."""

    name: ClassVar[str] = "reject"
    status: Annotated[int, Meta(ge=REFUSAL_STATUS[0], le=REFUSAL_STATUS[1])] = 400
    message: Text = "the request was blocked by policy"


class RequireConfirmation(Action, frozen=True, tag="require_confirmation"):
    """Refuse the request until it is sent again with the one-time token that the refusal carries."""

    name: ClassVar[str] = "require_confirmation"
    message: Text = "the request needs a confirmation; send it again with the token of this answer"
    expires_s: Annotated[int, Meta(ge=1, le=MAX_EXPIRES_S)] = 300
    """How long the token is good for."""


class ConstrainTools(Action, frozen=True, tag="constrain_tools"):
    """Offer the model only these tools, and end a choice that calls another."""

    name: ClassVar[str] = "constrain_tools"
    allow: Tools
    """Names of tools, or beginnings of names followed by `*`; empty: no tool."""
    message: Text = ""
    """Stands in place of a call that is not allowed."""


class Redact(Action, frozen=True, tag="redact"):
    """Put something in place of the span."""

    name: ClassVar[str] = "redact"
    text: Text | None = None
    """For `style: text`."""
    style: Literal["label", "text", "mask", "hash"] = "label"
    """label: the detector's own placeholder (`Signal.placeholder`). mask: `*` for each character that is not white
    space. hash: the label with the first digits of the keyed digest, so that equal texts can be told to be equal."""
    scope: Literal["span", "word", "sentence"] = "span"
    numbers: Literal["label", "json_null"] | int = "label"
    """What becomes of a number in JSON, as in the arguments of a tool call: a string with what is written, null, or
    this number."""


Whose = Literal["assistant", "document", "system", "tool_result", "user"]


class Pseudonymise(Action, frozen=True, tag="pseudonymise"):
    """Put a placeholder in place of the span towards the model, and the value back where the answer has it."""

    name: ClassVar[str] = "pseudonymise"
    style: Literal["label", "surrogate"] = "label"
    """label: `<PERSON_1>`, the same for equal values. surrogate: another value of the kind, which nobody has; a label
    where the kind has none."""
    restore: Annotated[tuple[Whose, ...], Meta(max_length=5)] = ("assistant", "system", "user")
    """Ingress channels whose values come back, sorted: the caller has them, or has been shown them."""


class RewriteSpan(Action, frozen=True, tag="rewrite_span"):
    """Let an editor write the span anew; what it leaves objectionable is redacted."""

    name: ClassVar[str] = "rewrite_span"
    editor: Literal["lexicon"] = "lexicon"
    words: Annotated[tuple[tuple[Item, Text], ...], Meta(max_length=MAX_WORDS)] = ()
    """For the lexicon editor: what is written in place of which words, whatever their letter case."""
    scope: Literal["span", "word", "sentence"] = "sentence"


class RemoveMessage(Action, frozen=True, tag="remove_message"):
    """Take the tool result or the document out of the request in which the span stands; all else is forwarded.

    A tool result keeps its place and its id, since the call before it wants an answer: a note stands in its content. So
    does a file in a message. A document is left out.
    """

    name: ClassVar[str] = "remove_message"
    text: Text = "[removed by policy {rule_id}]"
    """The note."""


class Stop(Action, frozen=True, tag="stop"):
    """End the choice before the span, with a message in its place."""

    name: ClassVar[str] = "stop"
    message: Text = ""
    status: Annotated[int, Meta(ge=STOP_STATUS[0], le=STOP_STATUS[1])] | None = None
    """Of an answer that is not streamed: the whole of it becomes an error with this status (400 to 599)."""


class InjectDisclaimer(Action, frozen=True, tag="inject_disclaimer"):
    """Add a text to the answer, once."""

    name: ClassVar[str] = "inject_disclaimer"
    text: Text
    position: Literal["start", "end", "after_sentence"] = "end"
    """after_sentence: behind the sentence in which the rule fired first."""


class RequireDisclaimer(Action, frozen=True, tag="require_disclaimer"):
    """See to it that the answer has this text: it is added at the end of an answer that doesn't have it."""

    name: ClassVar[str] = "require_disclaimer"
    text: Text


class AttributeSources(Action, frozen=True, tag="attribute_sources"):
    """Name the request's documents at the end of the answer."""

    name: ClassVar[str] = "attribute_sources"
    text: Text = "Sources: {sources}"
    max_sources: Annotated[int, Meta(ge=1, le=MAX_SOURCES)] = 10


class SafeMode(Action, frozen=True, tag="safe_mode"):
    """Go on under stricter parameters.

    At ingress the request is edited; midstream the upstream is cut off and asked to continue the released text.
    """

    name: ClassVar[str] = "safe_mode"
    temperature: Temperature = 0.3
    """The most that the request may have."""
    bad_words: Annotated[tuple[Item, ...], Meta(max_length=MAX_WORDS)] = ()
    """Texts that the upstream must not write (`bad_words` of vLLM)."""
    logit_bias: Annotated[tuple[Bias, ...], Meta(max_length=MAX_BIASES)] = ()
    """Token of the upstream's vocabulary and its bias, -100 to 100."""
    tools: Tools | None = None
    """As `ConstrainTools.allow`; None: as the request has them."""
    instruction: Text | None = None
    """A system instruction to add."""
    message: Text = ""
    """Where the answer can't be continued (any more): it is stopped with this message."""


class LowerTemp(Action, frozen=True, tag="lower_temp"):
    """Lower the request's temperature to this, if it is higher or not given."""

    name: ClassVar[str] = "lower_temp"
    temperature: Temperature = 0.3


class AllowConstrained(Action, frozen=True, tag="allow_constrained"):
    """Let the request through with an answer of a fixed form. Exactly one of the forms is given."""

    name: ClassVar[str] = "allow_constrained"
    json_schema: str | None = None
    """A JSON Schema, as canonical JSON."""
    grammar: str | None = None
    """A grammar in the upstream's notation (GBNF, EBNF)."""


class AdaptTone(Action, frozen=True, tag="adapt_tone"):
    """Add a system instruction to the request."""

    name: ClassVar[str] = "adapt_tone"
    instruction: Text


class LogEvent(Action, frozen=True, tag="log_event"):
    """Record that the rule fired, and nothing else."""

    name: ClassVar[str] = "log_event"
    severity: Severity = "info"


AnyAction = (
    Allow
    | Reject
    | RequireConfirmation
    | ConstrainTools
    | Redact
    | Pseudonymise
    | RewriteSpan
    | RemoveMessage
    | Stop
    | InjectDisclaimer
    | RequireDisclaimer
    | AttributeSources
    | SafeMode
    | LowerTemp
    | AllowConstrained
    | AdaptTone
    | LogEvent
)


def holds_text(action: AnyAction) -> bool:
    """Tell whether text must wait for a rule with this action: what it condemns or edits must not have left."""
    match action:
        case (
            Allow()
            | Reject()
            | RequireConfirmation()
            | Redact()
            | Pseudonymise()
            | RewriteSpan()
            | RemoveMessage()
            | Stop()
            | SafeMode()
        ):
            return True
        case InjectDisclaimer():
            return action.position == "after_sentence"
        case _:
            return False
