"""A part of a policy file as a JSON value: what a rule hands on to the upstream as it stands."""

from __future__ import annotations

from typing import Any

import msgspec

from checkstream.core.policy import fields
from checkstream.core.policy.nodes import Broken, MappingNode, Node, ScalarNode, Source, shown

MAX_JSON_CHARS = 32_768


def read_json(source: Source, node: Node, what: str) -> str | None:
    """Return a mapping as JSON without white space, its keys in the order of the file.

    The order is kept because it says in which order a model fills in the fields.
    """
    if not isinstance(node, MappingNode):
        if not isinstance(node, Broken):
            source.fault(node.at, f"{what} must be a mapping, not {fields.describe(node)}", "write `{type: object}`")
        return None
    before = len(source.faults)
    written = msgspec.json.encode(_value(source, node, what)).decode()
    if len(written) > MAX_JSON_CHARS:
        source.fault(node.at, f"{what} is longer than {MAX_JSON_CHARS} characters", "shorten it")
    return written if len(source.faults) == before else None


def _value(source: Source, node: Node, what: str) -> Any:
    """Return a node as plain data; what YAML would read in a surprising way is a fault."""
    if isinstance(node, MappingNode):
        return {key.value: _value(source, value, what) for key, value in node.entries}
    if isinstance(node, ScalarNode):
        return _scalar(source, node, what)
    return [] if isinstance(node, Broken) else [_value(source, item, what) for item in node.items]


def _scalar(source: Source, node: ScalarNode, what: str) -> str | bool | float | None:
    kind = fields.scalar_type(node)
    within = f"a value in {what}"
    if kind == "null":
        if node.value != "null":
            source.fault(node.at, f"{within} is missing", "write it, or `null`")
        return None
    if kind == "bool":
        if node.value not in {"true", "false"}:
            source.fault(node.at, f"{within} can't be {shown(node.value)}", "write `true` or `false`, or quote it")
        return node.value == "true"
    if kind == "int":
        whole = fields.integer(source, node, within, -(10**17), 10**17)
        return None if whole is None else whole.value
    if kind == "float":
        number = fields.number(source, node, within, -1e15, 1e15)
        return None if number is None else number.value
    if kind != "str":
        source.fault(node.at, f"{within} can't be {shown(node.value)} without quotes", "put it in quotes")
    return node.value
