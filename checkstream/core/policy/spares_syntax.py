"""The grammar of what an entity trigger lets pass.

    entity  = word | {name: word, spares}
    spares  = [unless: in_request, [in: [channel, ...]]], [allow: allow]
    allow   = {values: [text, ...], domains: [domain, ...], file: path}

Beside a list of entities they are meant for all of them. A file of `allow` stands beside the policy; whoever reads the
policy reads it, too, and gives it under `list_name`. Its content is compiled in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from checkstream.core.match.entities.canonical import ascii_domain
from checkstream.core.policy import fields
from checkstream.core.policy.fields import Fields
from checkstream.core.policy.nodes import (
    MAX_FILE_BYTES,
    Given,
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
from checkstream.core.policy.spares import MAX_DOMAINS, MAX_VALUE_CHARS, MAX_VALUES, Said, Spares, keys_of
from checkstream.core.terms import INGRESS_CHANNELS

SPARE_KEYS = ("unless", "in", "allow")
DOMAIN_ENTITIES = ("EMAIL", "URL")
"""Entities that have a domain."""
MAX_ENTITIES = 2_000
_MARK = "allow:"


class WrittenSpares(msgspec.Struct, frozen=True, kw_only=True):
    """What a trigger lets pass, as written."""

    at: Place
    request: tuple[Said, ...] = ()
    values: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()


class EntityTrigger(msgspec.Struct, frozen=True, kw_only=True):
    """The name of an entity or a group, and what of it counts for nothing."""

    name: Placed[str]
    spares: WrittenSpares | None = None


def list_name(policy: str, path: str) -> str:
    """Return the name under which the content of a file that a policy names is given beside it."""
    return f"{_MARK}{policy}:{path}"


def is_list(name: str) -> bool:
    """Tell whether what is given under a name is such a file, and no policy."""
    return name.startswith(_MARK)


def wanted_files(name: str, content: str | bytes) -> tuple[str, ...]:
    """Return the paths of the files that a policy's `allow` and `fingerprints` name, each once.

    Of a policy that can't be read none.
    """
    root = read_nodes(open_source(name, content))
    found: dict[str, None] = {}
    pending: list[Node] = [] if root is None else [root]
    while pending:
        node = pending.pop()
        if isinstance(node, SequenceNode):
            pending += node.items
        elif isinstance(node, MappingNode):
            for key, value in node.entries:
                if key.value == "file" and isinstance(value, ScalarNode) and is_beside(value.value):
                    found[value.value] = None
                pending.append(value)
    return tuple(found)


def is_beside(path: str) -> bool:
    """Tell whether a path leads to a file beside or below the policy."""
    parts = path.replace("\\", "/").split("/")
    return bool(path) and not path.startswith(("/", "\\", "~")) and ":" not in path and ".." not in parts


def read_entities(read: Fields) -> tuple[EntityTrigger, ...]:
    """Read `entities`, with what stands beside it for all of them."""
    source = read.source
    beside = read_spares(read)
    if beside is not None and "entities" not in read.given:
        source.fault(beside.at, "`unless` and `allow` belong to `entities`, and there are none", "add `entities`")
    return read.items("entities", lambda item: _entity(source, item, beside), max_items=MAX_ENTITIES)


def _entity(source: Source, node: Node, beside: WrittenSpares | None) -> EntityTrigger | None:
    if not isinstance(node, MappingNode):
        name = fields.text(source, node, "an entity")
        return None if name is None else EntityTrigger(name=name, spares=beside)
    before = len(source.faults)
    read = Fields(source, node, "an entity", required=("name",), optional=SPARE_KEYS)
    name = read.text("name")
    own = read_spares(read)
    if name is None or len(source.faults) > before:
        return None
    return EntityTrigger(name=name, spares=own or beside)


def read_spares(read: Fields) -> WrittenSpares | None:
    """Read `unless`, `in` and `allow`; None when neither is there."""
    source = read.source
    unless = read.choice("unless", ("in_request",))
    channels = read.items(
        "in", lambda item: fields.choice(source, item, "a channel of `in`", INGRESS_CHANNELS), max_items=5
    )
    within = read.node("in")
    if within is not None and unless is None:
        source.fault(within.at, "`in` says where in the request, and `unless: in_request` is missing", "add it")
    node = read.node("allow")
    values: list[str] = []
    domains: list[str] = []
    if node is not None:
        allow = Fields(source, node, "`allow`", optional=("values", "domains", "file"))
        if allow.readable and not allow.given:
            source.fault(node.at, "`allow` names nothing", "give it `values`, `domains` or a `file`")
        values += (v.value for v in allow.items("values", lambda item: _value(source, item), max_items=MAX_VALUES))
        domains += (d for d in allow.items("domains", lambda item: _domain(source, item), max_items=MAX_DOMAINS))
        path = allow.text("file")
        if path is not None:
            _read_file(source, path, values, domains)
    if unless is None and node is None:
        return None
    named = {placed.value for placed in channels} or {"user"}
    request = tuple(sorted(cast("set[Said]", named))) if unless is not None else ()
    place = unless.at if unless is not None else node.at if node is not None else read.at
    return WrittenSpares(at=place, request=request, values=tuple(values), domains=tuple(domains))


def _value(source: Source, node: Node) -> Placed[str] | None:
    return fields.literal(source, node, "an allowed value", max_chars=MAX_VALUE_CHARS)


def _domain(source: Source, node: Node) -> str | None:
    placed = fields.text(source, node, "a domain", max_chars=255)
    if placed is None:
        return None
    made = _sound_domain(placed.value)
    if made is None:
        advice = "write `example.com`, or `*.example.com` for those below it"
        source.fault(placed.at, f"{shown(placed.value)} is no domain", advice)
    return made


def _sound_domain(text: str) -> str | None:
    below = "*." if text.startswith("*.") else ""
    name = ascii_domain(text.removeprefix("*."))
    labels = name.split(".")
    plain = len(name) <= 253 and all(label and all(c.isalnum() or c == "-" for c in label) for label in labels)
    return f"{below}{name}" if plain and name.isascii() else None


def _read_file(source: Source, path: Placed[str], values: list[str], domains: list[str]) -> None:
    """Read a list: one value a line; a line that begins with `@` is a domain, and one with `#` a note."""
    file = f"the file {shown(path.value)}"
    if not is_beside(path.value):
        source.fault(path.at, f"{file} is not beside the policy", "give a relative path without `..`")
        return
    content = source.lists.get(path.value)
    if content is None:
        source.fault(path.at, f"{file} is not there, or can't be read", "its path starts at the policy's folder")
        return
    try:
        lines = bytes(content[: MAX_FILE_BYTES + 1]).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        source.fault(path.at, f"{file} is not UTF-8", "save it as UTF-8")
        return
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        made = _sound_domain(text[1:].strip()) if text.startswith("@") else text
        if made is None or len(made) > MAX_VALUE_CHARS:
            advice = "one value a line, or `@` and a domain"
            source.fault(path.at, f"line {number} of {file} can't be used", advice)
        else:
            (domains if text.startswith("@") else values).append(made)
    if len(values) > MAX_VALUES or len(domains) > MAX_DOMAINS:
        source.fault(path.at, f"`allow` has more than {MAX_VALUES} values or {MAX_DOMAINS} domains", "use fewer")


def spares_for(entity: str, written: WrittenSpares | None, *, by_model: bool = False) -> Spares | None:
    """Return what a trigger for one entity, found by its validator or by a model, lets pass; None: nothing."""
    if written is None:
        return None
    values = {key for value in written.values for key in keys_of(entity, value, by_model=by_model).known if key}
    domains = written.domains if entity in DOMAIN_ENTITIES else ()
    found = Spares(request=written.request, values=tuple(sorted(values)), domains=tuple(sorted(set(domains))))
    return None if found == Spares() else found


def lists_of(sources: Sequence[Given], name: str) -> Mapping[str, bytes | memoryview]:
    """Return the files that are given for a policy: path -> content."""
    start = list_name(name, "")
    return {
        other[len(start) :]: content.encode() if isinstance(content, str) else content
        for other, content in sources
        if other.startswith(start)
    }
