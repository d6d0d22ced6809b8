"""The grammar of a policy file: YAML nodes in, frozen structs out, every value with its place.

    file        = {pack: pack, policies: [rule, ...]}
    pack        = {name: word, version: text}
    rule        = {name: word, id: word, extends: word, actions: [action, ...],
                   stage: stage | [stage, ...], channels: [channel, ...], mode: enforce | shadow | disabled,
                   triggers, conditions: [text, ...], enabled_when: text, enforce_share: 0..1,
                   priority: int, metadata: metadata, tags: [word, ...], fail_mode: open | closed}
    metadata    = {regulation: text, citation: text, severity: severity, description: text, owner: text}

`triggers` has the grammar of triggers, `action_syntax` that of actions. What the names mean is not known here: `check`
asks that. `policies/LANGUAGE.md` is the specification.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import msgspec

from checkstream.core.policy import fields
from checkstream.core.policy.action import SEVERITIES, AnyAction
from checkstream.core.policy.action_syntax import read_action
from checkstream.core.policy.fields import Fields, word
from checkstream.core.policy.nodes import (
    Given,
    MappingNode,
    Node,
    Place,
    Placed,
    ScalarNode,
    Source,
    open_source,
    read_nodes,
)
from checkstream.core.policy.spares_syntax import SPARE_KEYS, is_list, lists_of
from checkstream.core.policy.triggers import (
    FLAT_KEYS,
    MAX_CONDITION_CHARS,
    MAX_ITEMS,
    WrittenGroup,
    read_triggers,
)
from checkstream.errors import Fault, PolicyError

STAGES = ("ingress", "midstream", "egress")
RULE_KEYS = (
    *("name", "id", "extends", "stage", "channels", "mode", "triggers", *FLAT_KEYS, *SPARE_KEYS, "match", "conditions"),
    *("enabled_when", "enforce_share", "actions", "priority", "metadata", "tags", "fail_mode"),
)
TRIGGER_KEYS = frozenset({"triggers", *FLAT_KEYS, *SPARE_KEYS, "match"})
"""Keys that say together what a rule looks for."""
MAX_RULES = 2_000
MAX_CONDITIONS = 100
MAX_ACTIONS = 20
MAX_TAGS = 100


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
    extends: Placed[str] | None = None
    """The rule from which comes what this one doesn't say."""
    stages: tuple[Placed[str], ...] = ()
    """Empty: every stage that the rule's actions and channels allow."""
    channels: tuple[Placed[str], ...] = ()
    """Empty: every channel of the rule's stages on which its actions run."""
    mode: Literal["enforce", "shadow", "disabled"] = "enforce"
    triggers: WrittenGroup | None = None
    conditions: tuple[Placed[str], ...] = ()
    enabled_when: Placed[str] | None = None
    enforce_share: float = 1.0
    enforce_share_at: Place | None = None
    """None: the rule doesn't say."""
    actions: tuple[Placed[AnyAction], ...]
    priority: int = 0
    metadata: Metadata = Metadata()
    tags: tuple[str, ...] = ()
    fail_mode: Literal["open", "closed"] | None = None
    given: frozenset[str] = frozenset()
    """The keys that the rule has."""
    incomplete: bool = False
    """Something of the rule could not be read, and has been reported: what is missing is no further fault."""


class Pack(msgspec.Struct, frozen=True, kw_only=True):
    """One policy file."""

    source: Source
    name: str
    version: str
    rules: tuple[Rule, ...]


def load_policies(sources: Sequence[Given]) -> tuple[Pack, ...]:
    """Read policy files.

    Args:
        sources: File names (as faults will show them) and contents; among them the files that `allow` names
            (`spares_syntax.list_name`).

    Raises:
        PolicyError: something is wrong in the form of a file; carries every fault of every file.
    """
    packs, faults = read_policies(sources)
    if faults:
        raise PolicyError(faults)
    return packs


def read_policies(sources: Sequence[Given]) -> tuple[tuple[Pack, ...], tuple[Fault, ...]]:
    """Return what could be read of policy files, and the faults of their form, so that more can be looked for."""
    packs: list[Pack] = []
    faults: list[Fault] = []
    for name, content in sources:
        if is_list(name):
            continue
        source = open_source(name, bytes(content) if isinstance(content, memoryview) else content)
        source.lists = lists_of(sources, name)
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


def _rule(source: Source, node: Node, *, torn: bool) -> Rule | None:
    """Read one rule; None when it is not a mapping. `torn`: parts of the file are `Broken` or left out."""
    before = len(source.faults)
    extending = isinstance(node, MappingNode) and any(key.value == "extends" for key, _ in node.entries)
    required = ("id",) if extending else ("name", "id", "actions")
    rule = Fields(
        source, node, "a rule", required=required, optional=tuple(key for key in RULE_KEYS if key not in required)
    )
    if not rule.readable:
        return None
    name = word(source, rule.node("name"), "`name`")
    id_ = word(source, rule.node("id"), "`id`")
    extends = word(source, rule.node("extends"), "`extends`")
    mode = rule.choice("mode", ("enforce", "shadow", "disabled"))
    priority = rule.integer("priority", -1_000_000, 1_000_000)
    fail_mode = rule.choice("fail_mode", ("open", "closed"))
    share = rule.number("enforce_share", 0, 1)
    tags = rule.items("tags", lambda item: word(source, item, "a tag"), max_items=MAX_TAGS)
    return Rule(
        at=rule.at,
        name=name or Placed("", rule.at),
        id=id_ or Placed("", rule.at),
        extends=extends,
        stages=_stages(rule),
        channels=rule.items("channels", lambda item: fields.text(source, item, "a channel"), max_items=MAX_ITEMS),
        mode=cast("Literal['enforce', 'shadow', 'disabled']", mode.value) if mode is not None else "enforce",
        triggers=read_triggers(rule),
        conditions=_conditions(rule),
        enabled_when=rule.text("enabled_when", max_chars=MAX_CONDITION_CHARS),
        enforce_share=share.value if share is not None else 1.0,
        enforce_share_at=share.at if share is not None else None,
        actions=rule.items("actions", lambda item: read_action(source, item), max_items=MAX_ACTIONS),
        priority=priority.value if priority is not None else 0,
        metadata=_metadata(source, rule.node("metadata")),
        tags=tuple(tag.value for tag in tags),
        fail_mode=cast("Literal['open', 'closed']", fail_mode.value) if fail_mode is not None else None,
        given=rule.given,
        incomplete=torn or len(source.faults) > before,
    )


def _stages(rule: Fields) -> tuple[Placed[str], ...]:
    """Read `stage`: one stage or a list of them."""
    node = rule.node("stage")
    if isinstance(node, ScalarNode):
        one = fields.choice(rule.source, node, "`stage`", STAGES)
        return () if one is None else (one,)
    return rule.items("stage", lambda item: fields.choice(rule.source, item, "a stage", STAGES), max_items=len(STAGES))


def _conditions(rule: Fields) -> tuple[Placed[str], ...]:
    return rule.items(
        "conditions",
        lambda item: fields.text(rule.source, item, "a condition", max_chars=MAX_CONDITION_CHARS),
        max_items=MAX_CONDITIONS,
    )


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
