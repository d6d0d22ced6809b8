"""What a rule asks for, as it was written: detectors, and the groups that they stand in.

    triggers    = entities: [entity, ...] | patterns: [pattern, ...] | phrases: [text, ...]
                | fingerprints: [texts, ...]
                | classifiers: [classifier, ...], with match: any | all
                | triggers: group
    group       = {any: [group, ...]} | {all: [group, ...]} | {not: group}
                | {entities: [...]} | {patterns: [...]} | {phrases: [...]} | {fingerprints: [...]}
                | {classifiers: [...]}
    classifier  = {name: word, [threshold: 0..1 | fpr: 0..1], when: [case, ...]}
    case        = {condition: text, threshold: 0..1 | fpr: 0..1}
    pattern     = {name: word, regex: text, max_chars: int}

Of an entity `spares_syntax` reads what it lets pass, and `fingerprints_syntax` all of texts. What the names mean is not
known here: `detectors` asks that.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from checkstream.core.match.patterns import MAX_CAP_CHARS
from checkstream.core.policy import fields
from checkstream.core.policy.fields import Fields, word
from checkstream.core.policy.fingerprints_syntax import MAX_FINGERPRINTS, FingerprintsTrigger, read_fingerprints
from checkstream.core.policy.nodes import Broken, MappingNode, Node, Place, Placed, Source
from checkstream.core.policy.spares_syntax import SPARE_KEYS, EntityTrigger, read_entities

FLAT_KEYS = ("entities", "patterns", "phrases", "fingerprints", "classifiers")
GROUP_KEYS = ("any", "all", "not", *FLAT_KEYS)
MAX_ITEMS = 2_000
MAX_PHRASES = 10_000
MAX_GROUP_DEPTH = 8
MAX_CASES = 20
MAX_NAME_CHARS = 100
MAX_REGEX_CHARS = 4_000
MAX_CONDITION_CHARS = 4_000


class ThresholdCase(msgspec.Struct, frozen=True, kw_only=True):
    """A threshold that counts where a condition holds."""

    condition: Placed[str]
    threshold: Placed[float] | None = None
    fpr: Placed[float] | None = None


class ClassifierTrigger(msgspec.Struct, frozen=True, kw_only=True):
    """A score of a classifier, and from where on it counts; with neither the classifier's own threshold does."""

    name: Placed[str]
    threshold: Placed[float] | None = None
    fpr: Placed[float] | None = None
    cases: tuple[ThresholdCase, ...] = ()


class PatternTrigger(msgspec.Struct, frozen=True, kw_only=True):
    """A regular expression in RE2's syntax."""

    name: Placed[str]
    regex: Placed[str]
    max_chars: int | None = None


class Detectors(msgspec.Struct, frozen=True, kw_only=True):
    """Things to look for."""

    entities: tuple[EntityTrigger, ...] = ()
    patterns: tuple[PatternTrigger, ...] = ()
    phrases: tuple[Placed[str], ...] = ()
    fingerprints: tuple[FingerprintsTrigger, ...] = ()
    classifiers: tuple[ClassifierTrigger, ...] = ()


class WrittenGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A node of the tree of triggers: its detectors and the groups below it, and how they combine."""

    at: Place
    kind: Literal["any", "all", "not"]
    detectors: Detectors = Detectors()
    items: tuple[WrittenGroup, ...] = ()

    @property
    def count(self) -> int:
        """How many detectors are named here and below."""
        own = self.detectors
        named = sum(map(len, (own.entities, own.patterns, own.phrases, own.fingerprints, own.classifiers)))
        return named + sum(item.count for item in self.items)


def read_triggers(rule: Fields) -> WrittenGroup | None:
    """Read a rule's triggers, flat or as a tree; None when it has none."""
    source = rule.source
    match = rule.choice("match", ("any", "all"))
    flat = _detectors(rule)
    node = rule.node("triggers")
    if node is not None:
        beside = [key for key in (*FLAT_KEYS, "match", *SPARE_KEYS) if key in rule.given]
        if beside:
            reason = f"a rule has both `triggers` and `{beside[0]}`"
            within = "say `any` or `all`" if beside[0] == "match" else f"write the `{beside[0]}` as a group"
            source.fault(node.at, reason, f"{within} within `triggers`")
        return read_group(source, node)
    if not rule.given.intersection(FLAT_KEYS):
        if match is not None:
            source.fault(match.at, "`match` has nothing to combine", "add triggers or remove the key")
        return None
    at = match.at if match is not None else rule.at
    return WrittenGroup(at=at, kind="all" if match is not None and match.value == "all" else "any", detectors=flat)


def read_group(source: Source, node: Node, depth: int = 1) -> WrittenGroup | None:
    """Read one group and those within it."""
    if depth > MAX_GROUP_DEPTH:
        source.fault(node.at, f"groups are nested deeper than {MAX_GROUP_DEPTH} levels", "make two rules of it")
        return None
    if isinstance(node, Broken):
        return None
    group = Fields(source, node, "a group", optional=(*GROUP_KEYS, *SPARE_KEYS))
    if not group.readable:
        return None
    keys = [key for key in GROUP_KEYS if key in group.given]
    spares = [key for key in SPARE_KEYS if key in group.given]
    if spares and keys != ["entities"]:
        source.fault(group.at, f"`{spares[0]}` belongs to `entities`", "put it beside them")
        return None
    if len(keys) != 1:
        known = ", ".join(f"`{key}`" for key in GROUP_KEYS)
        if keys:
            reason = f"a group has both `{keys[0]}` and `{keys[1]}`"
            source.fault(group.at, reason, "give each a group of its own, below `any` or `all`")
        elif isinstance(node, MappingNode) and not node.entries:
            source.fault(group.at, "a group is empty", f"give it one of {known}")
        return None
    key = keys[0]
    if key in FLAT_KEYS:
        return WrittenGroup(at=group.at, kind="any", detectors=_detectors(group))
    if key == "not":
        inner = group.node("not")
        found = None if inner is None else read_group(source, inner, depth + 1)
        return None if found is None else WrittenGroup(at=group.at, kind="not", items=(found,))
    items = group.items(key, lambda item: read_group(source, item, depth + 1), max_items=MAX_ITEMS)
    return WrittenGroup(at=group.at, kind="all" if key == "all" else "any", items=items)


def _detectors(read: Fields) -> Detectors:
    source = read.source
    return Detectors(
        entities=read_entities(read),
        patterns=read.items("patterns", lambda item: _pattern(source, item), max_items=MAX_ITEMS),
        phrases=read.items("phrases", lambda item: fields.text(source, item, "a phrase"), max_items=MAX_PHRASES),
        fingerprints=read.items(
            "fingerprints", lambda item: read_fingerprints(source, item), max_items=MAX_FINGERPRINTS
        ),
        classifiers=read.items("classifiers", lambda item: _classifier(source, item), max_items=MAX_ITEMS),
    )


def _classifier(source: Source, node: Node) -> ClassifierTrigger | None:
    before = len(source.faults)
    read = Fields(source, node, "a classifier", required=("name",), optional=("threshold", "fpr", "when"))
    if not read.readable:
        return None
    name = read.text("name", max_chars=MAX_NAME_CHARS)
    threshold, fpr = _threshold(read)
    cases = read.items("when", lambda item: _case(source, item), max_items=MAX_CASES)
    if name is None or len(source.faults) > before:
        return None
    return ClassifierTrigger(name=name, threshold=threshold, fpr=fpr, cases=cases)


def _case(source: Source, node: Node) -> ThresholdCase | None:
    before = len(source.faults)
    read = Fields(source, node, "a case of `when`", required=("condition",), optional=("threshold", "fpr"))
    if not read.readable:
        return None
    condition = read.text("condition", max_chars=MAX_CONDITION_CHARS)
    threshold, fpr = _threshold(read)
    if not read.given & {"threshold", "fpr"}:
        source.fault(read.at, "a case of `when` needs the key `threshold` or `fpr`", "add `threshold:`")
    if condition is None or len(source.faults) > before:
        return None
    return ThresholdCase(condition=condition, threshold=threshold, fpr=fpr)


def _threshold(read: Fields) -> tuple[Placed[float] | None, Placed[float] | None]:
    """Read `threshold` and `fpr`; report when both are there."""
    if {"threshold", "fpr"} <= read.given:
        read.source.fault(read.at, f"{read.what} has both `threshold` and `fpr`", "give one of them")
    return read.number("threshold", 0, 1), read.number("fpr", 0, 1)


def _pattern(source: Source, node: Node) -> PatternTrigger | None:
    read = Fields(source, node, "a pattern", required=("name", "regex"), optional=("max_chars",))
    name = word(source, read.node("name"), "`name`")
    regex = read.text("regex", max_chars=MAX_REGEX_CHARS)
    max_chars = read.integer("max_chars", 1, MAX_CAP_CHARS)
    if name is None or regex is None or (max_chars is None and read.node("max_chars") is not None):
        return None
    return PatternTrigger(name=name, regex=regex, max_chars=max_chars.value if max_chars is not None else None)
