"""What each setting is for, taken from where it is declared: the string below it. Nothing is described twice.

An editor shows these descriptions from the JSON Schema, people read them on the reference page (`reference.py`).
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import textwrap
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import inspect as types

from checkstream.config.settings import Config


@functools.cache
def descriptions(struct: type[msgspec.Struct]) -> Mapping[str, str]:
    """Return what is said of each setting of a group, by its name in the file; those without a string are left out."""
    said: dict[str, str] = {}
    for parent in reversed(struct.__mro__):
        if issubclass(parent, msgspec.Struct) and parent is not msgspec.Struct:
            said |= _strings_below(parent)
    return {field.encode_name: said[field.name] for field in msgspec.structs.fields(struct) if field.name in said}


def _strings_below(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return the string that follows each attribute, which Python itself throws away."""
    declared = ast.parse(textwrap.dedent(inspect.getsource(struct))).body[0]
    statements = declared.body if isinstance(declared, ast.ClassDef) else []
    found: dict[str, str] = {}
    for above, below in itertools.pairwise(statements):
        if not isinstance(above, ast.AnnAssign) or not isinstance(above.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            found[above.target.id] = " ".join(below.value.value.split())
    return found


def groups(root: type[msgspec.Struct]) -> tuple[types.StructType, ...]:
    """Return the groups of settings below `root`, itself among them, each once and in the order of the file."""
    found: dict[type, types.StructType] = {}

    def walk(kind: object) -> None:
        for struct in structs_in(kind):
            if struct.cls not in found:
                found[struct.cls] = struct
                for field in struct.fields:
                    walk(field.type)

    walk(types.type_info(root))
    return tuple(found.values())


def structs_in(kind: object) -> Iterator[types.StructType]:
    """Yield the groups of settings that a setting's value may hold, without theirs."""
    match kind:
        case types.StructType():
            yield kind
        case types.UnionType():
            for each in kind.types:
                yield from structs_in(each)
        case types.ListType() | types.VarTupleType():
            yield from structs_in(kind.item_type)
        case types.DictType():
            yield from structs_in(kind.value_type)
        case types.Metadata():
            yield from structs_in(kind.type)
        case _:
            return


def json_schema() -> dict[str, object]:
    """Return the JSON Schema of the configuration file, each setting with its description."""
    schema = msgspec.json.schema(Config)
    by_name = {group.cls.__name__: group.cls for group in groups(Config)}
    for name, definition in schema["$defs"].items():
        for setting, text in descriptions(by_name[name]).items():
            definition["properties"][setting]["description"] = text
    return schema
