"""The grammar of actions: YAML nodes in, the structs of `action` out.

An action is a mapping with `type`. Its texts are templates; they are read here, so that what is wrong with one is
shown at its character, and kept as they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from checkstream.core.policy import action as actions
from checkstream.core.policy import fields, templates
from checkstream.core.policy.action import (
    MAX_BIASES,
    MAX_EXPIRES_S,
    MAX_ITEM_CHARS,
    MAX_SOURCES,
    MAX_TEMPERATURE,
    MAX_TEXT_CHARS,
    MAX_TOKEN,
    MAX_TOOLS,
    MAX_WORDS,
    REFUSAL_STATUS,
    SEVERITIES,
    STOP_STATUS,
    AnyAction,
)
from checkstream.core.policy.carets import point
from checkstream.core.policy.fields import Fields, did_you_mean
from checkstream.core.policy.json_values import MAX_JSON_CHARS, read_json
from checkstream.core.policy.nodes import Broken, MappingNode, Node, Placed, ScalarNode, SequenceNode, Source, shown
from checkstream.core.terms import INGRESS_CHANNELS
from checkstream.errors import TemplateError

SCOPES = ("span", "word", "sentence")
STYLES = ("label", "text", "mask", "hash")
NUMBERS = ("label", "json_null")
MAX_NUMBER = 999_999
"""That stands in place of numbers: no longer one is needed, and none that could be what it hides."""
PSEUDONYMS = ("label", "surrogate")
"""Styles of `pseudonymise`."""

A = TypeVar("A")


def read_action(source: Source, node: Node) -> Placed[AnyAction] | None:
    """Read one action, or report what is wrong with it."""
    if isinstance(node, Broken):
        return None
    type_ = _type(source, node)
    if type_ is None:
        return None
    required, optional, make = _FORMS[type_]
    before = len(source.faults)
    read = Fields(source, node, f"the action `{type_}`", required=("type", *required), optional=optional)
    values = make(read)
    if len(source.faults) > before:
        return None
    struct = getattr(actions, "".join(part.title() for part in type_.split("_")))
    given = {key: value for key, value in values.items() if value is not None}
    return Placed(struct(**given), node.at)


def _type(source: Source, node: Node) -> str | None:
    """Return the action's type when it is one that this version carries out."""
    if not isinstance(node, MappingNode):
        kind = "a list" if isinstance(node, SequenceNode) else "a word"
        source.fault(node.at, f"an action must be a mapping, not {kind}", "write `{type: redact}`")
        return None
    named = next((value for key, value in node.entries if key.value == "type"), None)
    if named is None:
        source.fault(node.at, "an action needs the key `type`", "add `type:`")
        return None
    placed = fields.text(source, named, "`type`")
    if placed is None or placed.value in _FORMS:
        return None if placed is None else placed.value
    known = ", ".join(f"`{name}`" for name in _FORMS)
    advice = did_you_mean(placed.value, _FORMS, f"known actions: {known}")
    source.fault(placed.at, f"there is no action {shown(placed.value)}", advice)
    return None


Values = dict[str, Any]
"""Fields of an action's struct; None: not given."""


def _nothing(_: Fields) -> Values:
    return {}


def _reject(read: Fields) -> Values:
    return {"status": _plain(read.integer("status", *REFUSAL_STATUS)), "message": _template(read, "message")}


def _require_confirmation(read: Fields) -> Values:
    expires = _plain(read.integer("expires_s", 1, MAX_EXPIRES_S))
    return {"message": _template(read, "message"), "expires_s": expires}


def _constrain_tools(read: Fields) -> Values:
    return {"allow": _tools(read, "allow"), "message": _template(read, "message", empty=True)}


def _redact(read: Fields) -> Values:
    style, text = _plain(read.choice("style", STYLES)), _template(read, "text", empty=True)
    at = read.node("style") or read.node("text")
    if at is not None and style == "text" and "text" not in read.given:
        read.source.fault(at.at, "`style: text` needs the key `text`", "add `text:`")
    elif at is not None and style not in {None, "text"} and "text" in read.given:
        read.source.fault(at.at, f"`style: {style}` writes no `text`", "remove one of the two keys")
    if text is not None:
        style = "text"
    return {"text": text, "style": style, "scope": _plain(read.choice("scope", SCOPES)), "numbers": _numbers(read)}


def _numbers(read: Fields) -> str | int | None:
    """Return what becomes of numbers: a word, or a number."""
    node = read.node("numbers")
    if isinstance(node, ScalarNode) and fields.scalar_type(node) == "int":
        return _plain(read.integer("numbers", -MAX_NUMBER, MAX_NUMBER))
    return _plain(read.choice("numbers", NUMBERS))


def _pseudonymise(read: Fields) -> Values:
    def channel(node: Node) -> str | None:
        return _plain(fields.choice(read.source, node, "a channel of `restore`", INGRESS_CHANNELS))

    channels = read.items("restore", channel, max_items=len(INGRESS_CHANNELS), empty=True)
    return {
        "style": _plain(read.choice("style", PSEUDONYMS)),
        "restore": tuple(sorted(set(channels))) if "restore" in read.given else None,
    }


def _rewrite_span(read: Fields) -> Values:
    seen: dict[str, str] = {}

    def pair(key: ScalarNode, value: Node) -> tuple[str, str] | None:
        source = read.source
        old = fields.literal(source, key, "a word of `words`", max_chars=MAX_ITEM_CHARS)
        new = fields.literal(source, value, "what is written in place of a word", max_chars=500, empty=True)
        if old is None or new is None:
            return None
        folded = " ".join(old.value.casefold().split())
        if folded in seen:
            reason = f"{shown(old.value)} and {shown(seen[folded])} are the same word"
            source.fault(old.at, reason, "letter case doesn't count; keep one")
        seen[folded] = old.value
        return old.value, new.value

    node = read.node("words")
    words = () if node is None else fields.mapping(read.source, node, "`words`", pair, max_items=MAX_WORDS)
    return {
        "editor": _plain(read.choice("editor", ("lexicon",))),
        "words": words,
        "scope": _plain(read.choice("scope", SCOPES)),
    }


def _remove_message(read: Fields) -> Values:
    return {"text": _template(read, "text")}


def _stop(read: Fields) -> Values:
    return {"message": _template(read, "message", empty=True), "status": _plain(read.integer("status", *STOP_STATUS))}


def _inject_disclaimer(read: Fields) -> Values:
    position = _plain(read.choice("position", ("start", "end", "after_sentence")))
    return {"text": _template(read, "text"), "position": position}


def _require_disclaimer(read: Fields) -> Values:
    return {"text": _template(read, "text")}


def _attribute_sources(read: Fields) -> Values:
    text = _template(read, "text", names=(*templates.NAMES, templates.SOURCES))
    if text is not None and (templates.SOURCES,) not in _paths(text):
        node = read.node("text") or read
        read.source.fault(node.at, "`text` doesn't say where the sources go", "put `{sources}` into it")
    return {"text": text, "max_sources": _plain(read.integer("max_sources", 1, MAX_SOURCES))}


def _safe_mode(read: Fields) -> Values:
    node = read.node("logit_bias")
    words = read.items(
        "bad_words",
        lambda item: fields.literal(read.source, item, "one of `bad_words`", max_chars=MAX_ITEM_CHARS),
        max_items=MAX_WORDS,
    )
    return {
        "temperature": _plain(read.number("temperature", 0, MAX_TEMPERATURE)),
        "bad_words": tuple(word.value for word in words) or None,
        "logit_bias": None if node is None else _biases(read.source, node),
        "tools": _tools(read, "tools"),
        "instruction": _template(read, "instruction"),
        "message": _template(read, "message", empty=True),
    }


def _biases(source: Source, node: Node) -> tuple[tuple[int, int], ...]:
    seen: set[int] = set()

    def pair(key: ScalarNode, value: Node) -> tuple[int, int] | None:
        token = fields.integer(source, ScalarNode(key.value, plain=True, at=key.at), "a token", 0, MAX_TOKEN)
        bias = fields.integer(source, value, "a bias", -100, 100)
        if token is None or bias is None:
            return None
        if token.value in seen:
            source.fault(token.at, f"token `{token.value}` stands twice", "keep one")
        seen.add(token.value)
        return token.value, bias.value

    return fields.mapping(source, node, "`logit_bias`", pair, max_items=MAX_BIASES)


def _lower_temp(read: Fields) -> Values:
    return {"temperature": _plain(read.number("temperature", 0, MAX_TEMPERATURE))}


def _allow_constrained(read: Fields) -> Values:
    forms = [key for key in ("json_schema", "grammar") if key in read.given]
    if len(forms) != 1:
        has = "has both `json_schema` and `grammar`" if forms else "needs the key `json_schema` or `grammar`"
        read.source.fault(read.at, f"{read.what} {has}", "give one of them")
    schema, grammar = read.node("json_schema"), read.node("grammar")
    return {
        "json_schema": None if schema is None else read_json(read.source, schema, "`json_schema`"),
        "grammar": _plain(
            None if grammar is None else fields.literal(read.source, grammar, "`grammar`", max_chars=MAX_JSON_CHARS)
        ),
    }


def _adapt_tone(read: Fields) -> Values:
    return {"instruction": _template(read, "instruction")}


def _log_event(read: Fields) -> Values:
    return {"severity": _plain(read.choice("severity", SEVERITIES))}


_FORMS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], Callable[[Fields], Values]]] = MappingProxyType(
    {
        "allow": ((), (), _nothing),
        "reject": ((), ("status", "message"), _reject),
        "require_confirmation": ((), ("message", "expires_s"), _require_confirmation),
        "constrain_tools": (("allow",), ("message",), _constrain_tools),
        "redact": ((), ("style", "text", "scope", "numbers"), _redact),
        "pseudonymise": ((), ("style", "restore"), _pseudonymise),
        "rewrite_span": (("words",), ("editor", "scope"), _rewrite_span),
        "remove_message": ((), ("text",), _remove_message),
        "stop": ((), ("message", "status"), _stop),
        "inject_disclaimer": (("text",), ("position",), _inject_disclaimer),
        "require_disclaimer": (("text",), (), _require_disclaimer),
        "attribute_sources": ((), ("text", "max_sources"), _attribute_sources),
        "safe_mode": (
            (),
            ("temperature", "bad_words", "logit_bias", "tools", "instruction", "message"),
            _safe_mode,
        ),
        "lower_temp": ((), ("temperature",), _lower_temp),
        "allow_constrained": ((), ("json_schema", "grammar"), _allow_constrained),
        "adapt_tone": (("instruction",), (), _adapt_tone),
        "log_event": ((), ("severity",), _log_event),
    }
)
"""Per action: the keys that it needs besides `type`, those that it may have, and its reader."""


def _plain(placed: Placed[A] | None) -> A | None:
    return None if placed is None else placed.value


def _template(read: Fields, key: str, *, names: Collection[str] = templates.NAMES, empty: bool = False) -> str | None:
    """Return a text with variables as it was written."""
    node = read.node(key)
    placed = (
        None if node is None else fields.literal(read.source, node, f"`{key}`", max_chars=MAX_TEXT_CHARS, empty=empty)
    )
    if placed is None:
        return None
    try:
        templates.parse(placed.value, names)
    except TemplateError as error:
        read.source.fault(point(read.source, placed, error.position), error.reason, error.advice)
        return None
    return placed.value


def _paths(text: str) -> set[tuple[str, ...]]:
    parts = templates.parse(text, (*templates.NAMES, templates.SOURCES))
    return {part.path for part in parts if isinstance(part, templates.Variable)}


def _tools(read: Fields, key: str) -> tuple[str, ...] | None:
    """Return names of tools and beginnings of names; the list may be empty."""
    if key not in read.given:
        return None

    def tool(node: Node) -> str | None:
        placed = fields.text(read.source, node, "a tool", max_chars=fields.MAX_WORD_CHARS)
        if placed is None:
            return None
        name = placed.value.removesuffix("*")
        if not name:
            read.source.fault(placed.at, "`*` is every tool", f"remove `{key}`, or name the tools")
            return None
        if not all(char.isascii() and (char.isalnum() or char in "_-.:/") for char in name):
            advice = "use ASCII letters, digits and `_-.:/`, with `*` at the end for a beginning of names"
            read.source.fault(placed.at, f"a tool can't be {shown(placed.value)}", advice)
            return None
        return placed.value

    return read.items(key, tool, max_items=MAX_TOOLS, empty=True)
