"""YAML nodes to frozen structs, with every fault of the file reported at once and in its place.

The nodes come from `core.policy.nodes` (bounded size and depth; no aliases, anchors, tags, duplicate keys or second
documents); this module gives plain scalars their types and walks them beside the structs' type hints. What YAML 1.1
and 1.2 read differently (`yes`, `off`, `012`) is refused. A struct's own cross-field rules stand in its
`__post_init__` as `ValueError`s. Knows nothing of what the settings mean.

Source: YAML 1.2.2, 10.3 (core schema).
"""

from __future__ import annotations

import difflib
import math
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec

from checkstream.config.files import read_file
from checkstream.core.policy import nodes
from checkstream.errors import ConfigError, Fault

_T = TypeVar("_T")
_Struct = TypeVar("_Struct", bound=msgspec.Struct)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_YAML_1_1_BOOLEANS = frozenset({"yes", "no", "on", "off", "y", "n"})
_WORDS = (
    ("`int | null`", "a whole number"),
    ("`int`", "a whole number"),
    ("`float | null`", "a number"),
    ("`float`", "a number"),
    ("`str | null`", "text"),
    ("`str`", "text"),
    ("`bool`", "true or false"),
    ("`null`", "nothing"),
    ("`array`", "a list"),
    ("`object`", "a mapping"),
)


class Node(msgspec.Struct, frozen=True):
    """A value of the file and where it stands."""

    value: bool | int | float | str | tuple[Node, ...] | Mapping[str, Node] | None
    place: nodes.Place
    key: nodes.Place | None = None
    """Where the key of this value stands, if it has one."""
    broken: bool = False
    """Already reported; whoever reads it keeps silent."""

    def at(self, *path: str | int) -> Node:
        """Return the node at `path` below this one, or the nearest one above it that exists."""
        node = self
        for step in path:
            below: Mapping[str | int, Node] = {}
            if isinstance(node.value, Mapping):
                below = cast("Mapping[str | int, Node]", node.value)
            elif isinstance(node.value, tuple):
                below = dict(enumerate(node.value))
            if step not in below:
                break
            node = below[step]
        return node


def read_tree(source: nodes.Source) -> Node | None:
    """Return the file as a tree of typed values; None when it can't be read (then a fault says why)."""
    if not source.text.strip():
        return Node({}, nodes.START)
    root = nodes.read_nodes(source)
    return None if root is None else _typed(root, source)


def _typed(node: nodes.Node, source: nodes.Source, key: nodes.Place | None = None) -> Node:
    if isinstance(node, nodes.MappingNode):
        return Node({name.value: _typed(below, source, name.at) for name, below in node.entries}, node.at, key)
    if isinstance(node, nodes.SequenceNode):
        return Node(tuple(_typed(item, source) for item in node.items), node.at, key)
    if isinstance(node, nodes.Broken):
        return Node(None, node.at, key, broken=True)
    return _scalar(node, source, key)


def _scalar(scalar: nodes.ScalarNode, source: nodes.Source, key: nodes.Place | None) -> Node:
    text = scalar.value
    if not scalar.plain:
        return Node(text, scalar.at, key)
    if text in _NULLS:
        return Node(None, scalar.at, key)
    if text in _BOOLEANS:
        return Node(_BOOLEANS[text], scalar.at, key)
    if text.lower() in _YAML_1_1_BOOLEANS:
        source.fault(scalar.at, f"`{text}` means a boolean to some YAML readers", "write true or false, or quote it")
        return Node(None, scalar.at, key, broken=True)
    digits = text[1:] if text[0] in "+-" else text
    if not digits or len(text) > 30 or not set(digits) <= set("0123456789.eE+-"):
        return Node(text, scalar.at, key)
    if digits.isdecimal():
        if len(digits) > 1 and digits[0] == "0":
            source.fault(scalar.at, f"`{text}` starts with a zero", "quote it, or drop the zero")
            return Node(None, scalar.at, key, broken=True)
        return Node(int(text), scalar.at, key)
    try:
        number = float(text)
    except ValueError:
        return Node(text, scalar.at, key)
    return Node(number if math.isfinite(number) else text, scalar.at, key)


class _Refused(Exception):
    """A value has faults that are already reported."""


def build(node: Node, type_: type[_T], source: nodes.Source, *, later: Mapping[str, str] | None = None) -> _T | None:
    """Return `node` as `type_` (a msgspec Struct), or None when faults were found in it; all of them are reported.

    Args:
        node: What the file says.
        type_: The struct to build; unknown keys are faults, and `Meta` bounds hold.
        source: The file, where faults go.
        later: Keys of the documented format that this version can't carry out: dotted path without list
            positions -> what to do. A null value of such a key is accepted. And values that there were once:
            `key=value` -> what to write in their place.
    """
    before = len(source.faults)
    try:
        value = _Builder(source, later or {}).build(node, type_, ())
    except _Refused:
        return None
    return cast("_T", value) if len(source.faults) == before else None


class _Builder:
    """Walks nodes and type hints side by side."""

    def __init__(self, source: nodes.Source, later: Mapping[str, str]) -> None:
        self._source = source
        self._later = later

    def build(self, node: Node, hint: object, path: tuple[str | int, ...]) -> object:
        if node.broken:
            raise _Refused
        origin = get_origin(hint)
        if origin is Union or origin is types.UnionType:
            return self._union(node, get_args(hint), path)
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            return self._struct(node, hint, path)
        if origin is Annotated and _is_collection(get_args(hint)[0]):
            built = self.build(node, get_args(hint)[0], path)
            return self._leaf(node, hint, path) if not node.value else built
        if origin in (list, tuple, Sequence):
            return self._sequence(node, hint, path)
        if origin in (dict, Mapping):
            return self._dict(node, get_args(hint)[1], path)
        return self._leaf(node, hint, path)

    def _union(self, node: Node, hints: tuple[object, ...], path: tuple[str | int, ...]) -> object:
        if node.value is None and type(None) in hints:
            return None
        if isinstance(node.value, Mapping):
            structs = [h for h in hints if isinstance(h, type) and issubclass(h, msgspec.Struct)]
            if len(structs) > 1:
                return self._tagged(node, structs, path)
            fitting = [*structs, *(h for h in hints if get_origin(h) in (dict, Mapping))]
        elif isinstance(node.value, tuple):
            fitting = [h for h in hints if get_origin(h) in (list, tuple, Sequence)]
        else:
            fitting = [h for h in hints if not _is_collection(h) and h is not type(None)]
            if len(fitting) > 1:
                return self._leaf(node, Union[tuple(fitting)], path)  # noqa: UP007 - built at run time
        if fitting:
            return self.build(node, fitting[0], path)
        if isinstance(node.value, Mapping) and any(".".join(_words(path, key)) in self._later for key in node.value):
            for key, below in node.value.items():
                self._unknown(below, key, path, ())
            raise _Refused
        wanted = " or ".join(dict.fromkeys(_shape(hint) for hint in hints if hint is not type(None)))
        return self._refuse(node, path, f"expected {wanted}")

    def _tagged(self, node: Node, structs: list[type[msgspec.Struct]], path: tuple[str | int, ...]) -> object:
        field = structs[0].__struct_config__.tag_field or "type"
        by_tag = {str(struct.__struct_config__.tag): struct for struct in structs}
        tag = cast("Mapping[str, Node]", node.value).get(field)
        if tag is None:
            return self._refuse(node, path, f"`{field}` is missing", "known: " + ", ".join(by_tag))
        if not isinstance(tag.value, str) or tag.value not in by_tag:
            return self._refuse(tag, (*path, field), f"`{_show(tag)}` is not known here", _advice(_show(tag), by_tag))
        return self._struct(node, by_tag[tag.value], path)

    def _struct(self, node: Node, struct: type[msgspec.Struct], path: tuple[str | int, ...]) -> object:
        if not isinstance(node.value, Mapping):
            return self._refuse(node, path, "expected a mapping")
        fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
        tag_field = struct.__struct_config__.tag_field
        whole = True
        arguments: dict[str, object] = {}
        for key, below in node.value.items():
            if key == tag_field:
                continue
            if key not in fields:
                whole = self._unknown(below, key, path, tuple(fields)) and whole
                continue
            try:
                arguments[fields[key].name] = self.build(below, fields[key].type, (*path, key))
            except _Refused:
                whole = False
        for key, field in fields.items():
            if field.required and key not in node.value:
                self._source.fault(node.place, f"{_dotted((*path, key))}: missing", "add it")
                whole = False
        if not whole:
            raise _Refused
        try:
            return struct(**arguments)
        except (ValueError, TypeError) as error:
            return self._refuse(node, path, str(error))

    def _unknown(self, node: Node, key: str, path: tuple[str | int, ...], known: tuple[str, ...]) -> bool:
        advice = self._later.get(".".join(_words(path, key)))
        if advice is None:
            self._source.fault(node.key or node.place, f"{_dotted((*path, key))}: not known here", _advice(key, known))
            return False
        if node.value is None:
            return True
        self._source.fault(node.key or node.place, f"{_dotted((*path, key))}: not available in this version", advice)
        return False

    def _sequence(self, node: Node, hint: object, path: tuple[str | int, ...]) -> object:
        if not isinstance(node.value, tuple):
            return self._refuse(node, path, "expected a list")
        item_hint = get_args(hint)[0]
        items = []
        whole = True
        for position, below in enumerate(node.value):
            try:
                items.append(self.build(below, item_hint, (*path, position)))
            except _Refused:
                whole = False
        if not whole:
            raise _Refused
        return items if get_origin(hint) is list else tuple(items)

    def _dict(self, node: Node, hint: object, path: tuple[str | int, ...]) -> object:
        if not isinstance(node.value, Mapping):
            return self._refuse(node, path, "expected a mapping")
        entries: dict[str, object] = {}
        whole = True
        for key, below in node.value.items():
            try:
                entries[key] = self.build(below, hint, (*path, key))
            except _Refused:
                whole = False
        if not whole:
            raise _Refused
        return entries

    def _leaf(self, node: Node, hint: object, path: tuple[str | int, ...]) -> object:
        value = plain(node)
        try:
            return msgspec.convert(value, cast("type[object]", hint))
        except msgspec.ValidationError as error:
            message = str(error).split(" - at `", 1)[0]
            choices = _choices(hint)
            if choices and not isinstance(value, (list, dict)):
                gone = self._later.get(f"{'.'.join(_words(path, '')).strip('.')}={_show(node)}")
                reason = f"`{_show(node)}` is not known here" if gone is None else f"`{_show(node)}` is gone"
                return self._refuse(node, path, reason, gone or _advice(_show(node), choices))
            for name, word in _WORDS:
                message = message.replace(name, word)
            if isinstance(value, (list, dict)):
                return self._refuse(node, path, message[:1].lower() + message[1:])
            return self._refuse(node, path, message.split(", got ")[0].lower() + f", got `{_show(node)}`")

    def _refuse(self, node: Node, path: tuple[str | int, ...], reason: str, advice: str = "") -> object:
        self._source.fault(node.place, f"{_dotted(path)}: {reason}" if path else reason, advice)
        raise _Refused


def plain(node: Node) -> object:
    """Return the node's value as plain lists, dicts and scalars."""
    if isinstance(node.value, Mapping):
        return {key: plain(below) for key, below in node.value.items()}
    if isinstance(node.value, tuple):
        return [plain(below) for below in node.value]
    return node.value


def _is_collection(hint: object) -> bool:
    if get_origin(hint) is Annotated:
        return _is_collection(get_args(hint)[0])
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return True
    return get_origin(hint) in (list, tuple, Sequence, dict, Mapping)


def _choices(hint: object) -> tuple[str, ...]:
    if get_origin(hint) is Literal:
        return tuple(str(choice) for choice in get_args(hint))
    return ()


def _shape(hint: object) -> str:
    if get_origin(hint) in (list, tuple, Sequence):
        return "a list"
    if _is_collection(hint):
        return "a mapping"
    choices = _choices(hint)
    return (
        " or ".join(choices) if choices else {int: "a whole number", float: "a number"}.get(cast("type", hint), "text")
    )


def _show(node: Node) -> str:
    text = "null" if node.value is None else str(node.value)
    return text if len(text) <= 60 else text[:57] + "..."


def _words(path: tuple[str | int, ...], key: str) -> list[str]:
    """Return the path without list positions."""
    return [step for step in (*path, key) if isinstance(step, str)]


def _dotted(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def _advice(given: str, known: Sequence[str] | Mapping[str, object]) -> str:
    close = difflib.get_close_matches(given, list(known), n=1)
    return f"did you mean `{close[0]}`?" if close else "known: " + ", ".join(known)


def read_settings(file: Path, struct: type[_Struct]) -> _Struct:
    """Return what a file of settings says.

    Raises:
        ConfigError: it can't be read, or holds faults; carries all of them.
    """
    try:
        content = read_file(file)
    except OSError as error:
        reason = f"can't be read: {(error.strerror or 'it can not be opened').lower()}"
        raise ConfigError((Fault(file=str(file), reason=reason, advice="check the path"),)) from error
    source = nodes.open_source(str(file), content)
    tree = None if source.faults else read_tree(source)
    found = None if tree is None else build(tree, struct, source)
    if found is None or source.faults:
        raise ConfigError(tuple(sorted(source.faults, key=lambda fault: (fault.line, fault.column))))
    return found
