"""What rules can ask for when they fire: one frozen struct per action, as policies name it.

Texts are templates (`policy.templates`). What follows from actions is decided in `core.actions` and carried out by
the guard; here stands only what is asked for.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec


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
    status: int = 400
    message: str = "the request was blocked by policy"


class RequireConfirmation(Action, frozen=True, tag="require_confirmation"):
    """Refuse the request until it is sent again with the one-time token that the refusal carries."""

    name: ClassVar[str] = "require_confirmation"
    message: str = "the request needs a confirmation; send it again with the token of this answer"
    expires_s: int = 300
    """How long the token is good for."""


class ConstrainTools(Action, frozen=True, tag="constrain_tools"):
    """Offer the model only these tools, and end a choice that calls another."""

    name: ClassVar[str] = "constrain_tools"
    allow: tuple[str, ...]
    """Names of tools, or beginnings of names followed by `*`; empty: no tool."""
    message: str = ""
    """Stands in place of a call that is not allowed."""


class Redact(Action, frozen=True, tag="redact"):
    """Put something in place of the span."""

    name: ClassVar[str] = "redact"
    text: str | None = None
    """For `style: text`."""
    style: Literal["label", "text", "mask", "hash"] = "label"
    """label: the detector's own placeholder (`Signal.placeholder`). mask: `*` for each character that is not white
    space. hash: the label with the first digits of the keyed digest, so that equal texts can be told to be equal."""
    scope: Literal["span", "word", "sentence"] = "span"


class RewriteSpan(Action, frozen=True, tag="rewrite_span"):
    """Let an editor write the span anew; what it leaves objectionable is redacted."""

    name: ClassVar[str] = "rewrite_span"
    editor: Literal["lexicon"] = "lexicon"
    words: tuple[tuple[str, str], ...] = ()
    """For the lexicon editor: what is written in place of which words, whatever their letter case."""
    scope: Literal["span", "word", "sentence"] = "sentence"


class Stop(Action, frozen=True, tag="stop"):
    """End the choice before the span, with a message in its place."""

    name: ClassVar[str] = "stop"
    message: str = ""
    status: int | None = None
    """Of an answer that is not streamed: the whole of it becomes an error with this status (400 to 599)."""


class InjectDisclaimer(Action, frozen=True, tag="inject_disclaimer"):
    """Add a text to the answer, once."""

    name: ClassVar[str] = "inject_disclaimer"
    text: str
    position: Literal["start", "end", "after_sentence"] = "end"
    """after_sentence: behind the sentence in which the rule fired first."""


class RequireDisclaimer(Action, frozen=True, tag="require_disclaimer"):
    """See to it that the answer has this text: it is added at the end of an answer that doesn't have it."""

    name: ClassVar[str] = "require_disclaimer"
    text: str


class AttributeSources(Action, frozen=True, tag="attribute_sources"):
    """Name the request's documents at the end of the answer."""

    name: ClassVar[str] = "attribute_sources"
    text: str = "Sources: {sources}"
    max_sources: int = 10


class SafeMode(Action, frozen=True, tag="safe_mode"):
    """Go on under stricter parameters.

    At ingress the request is edited; midstream the upstream is cut off and asked to continue the released text.
    """

    name: ClassVar[str] = "safe_mode"
    temperature: float = 0.3
    """The most that the request may have."""
    bad_words: tuple[str, ...] = ()
    """Texts that the upstream must not write (`bad_words` of vLLM)."""
    logit_bias: tuple[tuple[int, int], ...] = ()
    """Token of the upstream's vocabulary and its bias, -100 to 100."""
    tools: tuple[str, ...] | None = None
    """As `ConstrainTools.allow`; None: as the request has them."""
    instruction: str | None = None
    """A system instruction to add."""
    message: str = ""
    """Where the answer can't be continued (any more): it is stopped with this message."""


class LowerTemp(Action, frozen=True, tag="lower_temp"):
    """Lower the request's temperature to this, if it is higher or not given."""

    name: ClassVar[str] = "lower_temp"
    temperature: float = 0.3


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
    instruction: str


class LogEvent(Action, frozen=True, tag="log_event"):
    """Record that the rule fired, and nothing else."""

    name: ClassVar[str] = "log_event"
    severity: str = "info"


AnyAction = (
    Allow
    | Reject
    | RequireConfirmation
    | ConstrainTools
    | Redact
    | RewriteSpan
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
        case Allow() | Reject() | RequireConfirmation() | Redact() | RewriteSpan() | Stop() | SafeMode():
            return True
        case InjectDisclaimer():
            return action.position == "after_sentence"
        case _:
            return False
