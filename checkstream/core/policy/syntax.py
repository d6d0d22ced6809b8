"""The grammar of a policy file: YAML nodes in, frozen structs out, every value with its place.

    file        = {pack: pack, policies: [rule, ...]}
    pack        = {name: word, version: text}
    rule        = {name: word, id: word, actions: [action, ...],
                   stage: stage | [stage, ...], channels: [channel, ...], mode: enforce | shadow | disabled,
                   classifiers: [classifier, ...], patterns: [pattern, ...], phrases: [text, ...],
                   entities: [word, ...], match: any | all, conditions: [text, ...],
                   priority: int, metadata: metadata, tags: [word, ...], fail_mode: open | closed}
    classifier  = {name: word} | {name: word, threshold: 0..1} | {name: word, fpr: 0..1}
    pattern     = {name: word, regex: text, max_chars: int}
    action      = {type: allow} | {type: reject, status: 400..499, message: text} | {type: redact, text: text}
                | {type: stop, message: text} | {type: inject_disclaimer, text: text, position: start | end}
                | {type: log_event, severity: severity}
    metadata    = {regulation: text, citation: text, severity: severity, description: text, owner: text}

What the names mean is not known here: `check` asks that. `policies/LANGUAGE.md` is the specification.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import msgspec

from checkstream.core.match.patterns import MAX_CAP_CHARS
from checkstream.core.policy import fields
from checkstream.core.policy.fields import Fields, did_you_mean
from checkstream.core.policy.nodes import (
    Broken,
    MappingNode,
    Node,
    Place,
    Placed,
    ScalarNode,
    SequenceNode,
    Source,
    open_source,
    read_nodes,
    shown,
)
from checkstream.core.policy.program import (
    Allow,
    AnyAction,
    InjectDisclaimer,
    LogEvent,
    Redact,
    Reject,
    Stop,
)
from checkstream.errors import Fault, PolicyError

STAGES = ("ingress", "midstream", "egress")
SEVERITIES = ("info", "low", "medium", "high", "critical")
MAX_RULES = 2_000
MAX_ITEMS = 2_000
MAX_TEXT_CHARS = 4_000
MAX_NAME_CHARS = 100
MAX_REGEX_CHARS = 4_000
LATER_ACTIONS = frozenset(
    {
        "allow_constrained",
        "require_confirmation",
        "constrain_tools",
        "pseudonymise",
        "rewrite_span",
        "safe_mode",
        "lower_temp",
        "adapt_tone",
        "require_disclaimer",
        "attribute_sources",
    }
)
"""Actions that the language names and this version does not carry out."""


class ClassifierTrigger(msgspec.Struct, frozen=True, kw_only=True):
    """A score of a classifier, and from where on it counts; with neither the classifier's own threshold does."""

    name: Placed[str]
    threshold: Placed[float] | None = None
    fpr: Placed[float] | None = None


class PatternTrigger(msgspec.Struct, frozen=True, kw_only=True):
    """A regular expression in RE2's syntax."""

    name: Placed[str]
    regex: Placed[str]
    max_chars: int | None = None


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """Where a rule comes from; carried into verdicts and audit entries."""

    regulation: str | None = None
    citation: str | None = None
    severity: str | None = None
    description: str | None = None
    owner: str | None = None


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One item of `policies`, as it was written."""

    at: Place
    name: Placed[str]
    id: Placed[str]
    stages: tuple[Placed[str], ...] = ()
    """Empty: every stage that the rule's actions and channels allow."""
    channels: tuple[Placed[str], ...] = ()
    """Empty: every channel of the rule's stages."""
    mode: Literal["enforce", "shadow", "disabled"] = "enforce"
    classifiers: tuple[ClassifierTrigger, ...] = ()
    patterns: tuple[PatternTrigger, ...] = ()
    phrases: tuple[Placed[str], ...] = ()
    entities: tuple[Placed[str], ...] = ()
    match: Placed[str] | None = None
    conditions: tuple[Placed[str], ...] = ()
    actions: tuple[Placed[AnyAction], ...]
    priority: int = 0
    metadata: Metadata = Metadata()
    tags: tuple[str, ...] = ()
    fail_mode: Literal["open", "closed"] | None = None
    incomplete: bool = False
    """Something of the rule could not be read, and has been reported: what is missing is no further fault."""


class Pack(msgspec.Struct, frozen=True, kw_only=True):
    """One policy file."""

    source: Source
    name: str
    version: str
    rules: tuple[Rule, ...]


def load_policies(sources: Sequence[tuple[str, str | bytes]]) -> tuple[Pack, ...]:
    """Read policy files.

    Args:
        sources: File names (as faults will show them) and contents.

    Raises:
        PolicyError: something is wrong in the form of a file; carries every fault of every file.
    """
    packs, faults = read_policies(sources)
    if faults:
        raise PolicyError(faults)
    return packs


def read_policies(sources: Sequence[tuple[str, str | bytes]]) -> tuple[tuple[Pack, ...], tuple[Fault, ...]]:
    """Return what could be read of policy files, and the faults of their form, so that more can be looked for."""
    packs: list[Pack] = []
    faults: list[Fault] = []
    for name, content in sources:
        source = open_source(name, content)
        root = read_nodes(source)
        pack = None if root is None else _pack(source, root)
        faults.extend(source.faults)
        source.faults.clear()  # what is found from here on is found by those who read the pack
        if pack is not None:
            packs.append(pack)
    return tuple(packs), tuple(faults)


def _pack(source: Source, root: Node) -> Pack:
    torn = bool(source.faults)
    top = Fields(source, root, "a policy file", required=("pack", "policies"))
    name, version = "", ""
    head_node = top.node("pack")
    if head_node is not None:
        head = Fields(source, head_node, "`pack`", required=("name", "version"))
        name = _word(head, "name")
        version = _word(head, "version")
    rules = top.items("policies", lambda node: _rule(source, node, torn=torn), max_items=MAX_RULES)
    return Pack(source=source, name=name, version=version, rules=rules)


def _word(head: Fields, key: str) -> str:
    placed = word(head.source, head.node(key), f"`{key}`")
    return placed.value if placed is not None else ""


def word(source: Source, node: Node | None, what: str) -> Placed[str] | None:
    """Return a name: printable ASCII without blanks and without what would need quoting in headers and logs."""
    if node is None:
        return None
    placed = fields.text(source, node, what, max_chars=MAX_NAME_CHARS)
    if placed is not None and not all(char.isascii() and (char.isalnum() or char in "_-.:/+") for char in placed.value):
        source.fault(placed.at, f"{what} can't be {shown(placed.value)}", "use ASCII letters, digits and `_-.:/+`")
        return None
    return placed


def _rule(source: Source, node: Node, *, torn: bool) -> Rule | None:
    """Read one rule; None when it is not a mapping. `torn`: parts of the file are `Broken` or left out."""
    before = len(source.faults)
    rule = Fields(
        source,
        node,
        "a rule",
        required=("name", "id", "actions"),
        optional=(
            *("stage", "channels", "mode", "classifiers", "patterns", "phrases", "entities", "match"),
            *("conditions", "priority", "metadata", "tags", "fail_mode"),
        ),
    )
    if not rule.readable:
        return None
    name = word(source, rule.node("name"), "`name`")
    id_ = word(source, rule.node("id"), "`id`")
    mode = rule.choice("mode", ("enforce", "shadow", "disabled"))
    priority = rule.integer("priority", -1_000_000, 1_000_000)
    fail_mode = rule.choice("fail_mode", ("open", "closed"))
    stages = _stages(rule)
    channels = rule.items("channels", lambda item: fields.text(source, item, "a channel"), max_items=MAX_ITEMS)
    classifiers = rule.items("classifiers", lambda item: _classifier(source, item), max_items=MAX_ITEMS)
    patterns = rule.items("patterns", lambda item: _pattern(source, item), max_items=MAX_ITEMS)
    phrases = rule.items("phrases", lambda item: fields.text(source, item, "a phrase"), max_items=MAX_ITEMS)
    entities = rule.items("entities", lambda item: fields.text(source, item, "an entity"), max_items=MAX_ITEMS)
    conditions = rule.items(
        "conditions", lambda item: fields.text(source, item, "a condition", max_chars=MAX_TEXT_CHARS), max_items=100
    )
    match = rule.choice("match", ("any", "all"))
    metadata = _metadata(source, rule.node("metadata"))
    tags = rule.items("tags", lambda item: word(source, item, "a tag"), max_items=100)
    actions = rule.items("actions", lambda item: _action(source, item), max_items=20)
    return Rule(
        at=rule.at,
        name=name or Placed("", rule.at),
        id=id_ or Placed("", rule.at),
        stages=stages,
        channels=channels,
        mode=cast("Literal['enforce', 'shadow', 'disabled']", mode.value) if mode is not None else "enforce",
        classifiers=classifiers,
        patterns=patterns,
        phrases=phrases,
        entities=entities,
        match=match,
        conditions=conditions,
        actions=actions,
        priority=priority.value if priority is not None else 0,
        metadata=metadata,
        tags=tuple(tag.value for tag in tags),
        fail_mode=cast("Literal['open', 'closed']", fail_mode.value) if fail_mode is not None else None,
        incomplete=torn or len(source.faults) > before,
    )


def _stages(rule: Fields) -> tuple[Placed[str], ...]:
    """Read `stage`: one stage or a list of them."""
    node = rule.node("stage")
    if isinstance(node, ScalarNode):
        one = fields.choice(rule.source, node, "`stage`", STAGES)
        return () if one is None else (one,)
    return rule.items("stage", lambda item: fields.choice(rule.source, item, "a stage", STAGES), max_items=len(STAGES))


def _classifier(source: Source, node: Node) -> ClassifierTrigger | None:
    before = len(source.faults)
    read = Fields(source, node, "a classifier", required=("name",), optional=("threshold", "fpr"))
    if not read.readable:
        return None
    name = read.text("name", max_chars=MAX_NAME_CHARS)
    threshold, fpr = read.number("threshold", 0, 1), read.number("fpr", 0, 1)
    if read.node("threshold") is not None and read.node("fpr") is not None:
        source.fault(read.at, "a classifier has both `threshold` and `fpr`", "give one of them")
        return None
    if name is None or len(source.faults) > before:
        return None
    return ClassifierTrigger(name=name, threshold=threshold, fpr=fpr)


def _pattern(source: Source, node: Node) -> PatternTrigger | None:
    read = Fields(source, node, "a pattern", required=("name", "regex"), optional=("max_chars",))
    name = word(source, read.node("name"), "`name`")
    regex = read.text("regex", max_chars=MAX_REGEX_CHARS)
    max_chars = read.integer("max_chars", 1, MAX_CAP_CHARS)
    if name is None or regex is None or (max_chars is None and read.node("max_chars") is not None):
        return None
    return PatternTrigger(name=name, regex=regex, max_chars=max_chars.value if max_chars is not None else None)


def _metadata(source: Source, node: Node | None) -> Metadata:
    if node is None:
        return Metadata()
    keys = ("regulation", "citation", "severity", "description", "owner")
    read = Fields(source, node, "`metadata`", optional=keys)
    severity = read.choice("severity", SEVERITIES)
    texts = {key: read.text(key, max_chars=1_000) for key in keys if key != "severity"}
    return Metadata(
        severity=severity.value if severity is not None else None,
        **{key: value.value if value is not None else None for key, value in texts.items()},
    )


_ACTION_KEYS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("allow", (), ()),
    ("reject", (), ("status", "message")),
    ("redact", (), ("text",)),
    ("stop", (), ("message",)),
    ("inject_disclaimer", ("text",), ("position",)),
    ("log_event", (), ("severity",)),
)
"""Per action: its name, the keys that it needs besides `type`, and those that it may have."""


def _action(source: Source, node: Node) -> Placed[AnyAction] | None:
    """Read one action: a mapping with `type`, or nothing but the type's name when it needs no more."""
    if isinstance(node, Broken):
        return None
    type_ = _action_type(source, node)
    if type_ is None:
        return None
    required, optional = next((need, may) for name, need, may in _ACTION_KEYS if name == type_)
    before = len(source.faults)
    read = Fields(source, node, f"the action `{type_}`", required=("type", *required), optional=optional)
    action: AnyAction
    if type_ == "allow":
        action = Allow()
    elif type_ == "reject":
        status, message = read.integer("status", 400, 499), _literal(read, "message")
        action = Reject(status=status.value if status else 400, message=message or Reject().message)
    elif type_ == "redact":
        action = Redact(text=_literal(read, "text", empty=True))
    elif type_ == "stop":
        action = Stop(message=_literal(read, "message", empty=True) or "")
    elif type_ == "inject_disclaimer":
        position = read.choice("position", ("start", "end"))
        text = _literal(read, "text") or ""
        action = InjectDisclaimer(text=text, position="start" if position and position.value == "start" else "end")
    else:
        severity = read.choice("severity", SEVERITIES)
        action = LogEvent(severity=severity.value if severity else "info")
    return Placed(action, node.at) if len(source.faults) == before else None


def _action_type(source: Source, node: Node) -> str | None:
    """Return the action's type when it is one that this version carries out."""
    names = tuple(name for name, _, _ in _ACTION_KEYS)
    if not isinstance(node, MappingNode):
        kind = "a list" if isinstance(node, SequenceNode) else "a word"
        source.fault(node.at, f"an action must be a mapping, not {kind}", "write `{type: redact}`")
        return None
    named = next((value for key, value in node.entries if key.value == "type"), None)
    if named is None:
        source.fault(node.at, "an action needs the key `type`", "add `type:`")
        return None
    placed = fields.text(source, named, "`type`")
    if placed is None or placed.value in names:
        return None if placed is None else placed.value
    if placed.value in LATER_ACTIONS:
        known = ", ".join(f"`{name}`" for name in names)
        source.fault(placed.at, f"the action `{placed.value}` is not available yet in this version", f"use {known}")
        return None
    otherwise = "known actions: " + ", ".join(f"`{name}`" for name in names)
    source.fault(placed.at, f"there is no action {shown(placed.value)}", did_you_mean(placed.value, names, otherwise))
    return None


def _literal(read: Fields, key: str, *, empty: bool = False) -> str | None:
    """Return a text that is written into answers as it stands: no control characters but newline and tab."""
    placed = read.text(key, max_chars=MAX_TEXT_CHARS, empty=empty)
    if placed is None:
        return None
    bad = next((char for char in placed.value if ord(char) < 0x20 and char not in "\n\t"), None)
    if bad is not None:
        reason = f"`{key}` has the control character `U+{ord(bad):04X}`"
        read.source.fault(placed.at, reason, "remove it")
        return None
    return placed.value
