"""The public cases of CEL as they lie in the shared folder, and what the language leaves out of them."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkstream.core.cel import types
from checkstream.core.cel.check import check
from checkstream.core.cel.code import Assembler
from checkstream.core.cel.machine import run
from checkstream.core.cel.syntax import parse
from checkstream.core.cel.values import Duration, EvalError, Timestamp, TypeValue, Uint, Value, map_key
from checkstream.core.cel.verify import verify

FOLDER = Path(os.environ.get("CHECKSTREAM_CONFORMANCE") or Path(__file__).parents[2] / "shared" / "conformance") / "cel"
WHOLE = (
    *("basic", "logic", "integer_math", "fp_math", "lists", "macros", "string", "comparisons", "conversions", "parse"),
    *("plumbing", "timestamps"),
)
"""Sections of which every case passes that is not left out for one of `left_out`'s reasons."""
OTHERS = ("macros2", "type_deduction", "namespace", "fields", "dynamic")
"""Sections beyond those, held to the same."""

MESSAGE = "a protobuf message, wrapper or enumeration"
ZONE = "a time zone with a name"
FUNCTION = "a function of an extension, or one that the case declares"

_MESSAGES = re.compile(r"TestAllTypes|google\.protobuf\.(?!Timestamp\b|Duration\b)\w|\bNullValue\b|\bGlobalEnum\b")
_ZONE = re.compile(r"\.get\w+\('[A-Z][A-Za-z]+/\w+'\)")
_FUNCTIONS = re.compile(r"\boptional\.|\btuple\(|\bfn\(")


class Case(msgspec.Struct, frozen=True):
    """One case of a section."""

    section: str
    name: str
    written: dict[str, Any]

    @property
    def expr(self) -> str:
        return str(self.written["expr"])


def cases(section: str) -> list[Case]:
    """Return the cases of a section, or skip the test where they are not."""
    path = FOLDER / f"{section}.jsonl"
    if not path.is_file():
        pytest.skip(f"the public cases are not here: no `{path.name}` in the folder of CHECKSTREAM_CONFORMANCE")
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        written = json.loads(line)
        found.append(Case(section, f"{written['section']}/{written['name']}:{number}", written))
    return found


def left_out(case: Case) -> str | None:
    """Return why the language leaves a case out, or None when it must pass."""
    text = json.dumps(case.written)
    if _MESSAGES.search(text):
        return MESSAGE
    if _ZONE.search(case.expr):
        return ZONE
    if _FUNCTIONS.search(case.expr):
        return FUNCTION
    return None


def variables(case: Case) -> dict[str, types.Type]:
    """Return the declared types."""
    declared = _listed(case.written.get("type_env"))
    return {entry["name"]: _type(entry["ident"]["type"]) for entry in declared if "ident" in entry}


def bindings(case: Case) -> dict[str, Value]:
    """Return the values of variables."""
    return {entry["key"]: value(entry["value"]["value"]) for entry in _listed(case.written.get("bindings"))}


def _listed(written: Any) -> list[Any]:
    """Return what is one thing where there is one, and a list where there are more."""
    return written if isinstance(written, list) else [] if written is None else [written]


def _type(written: dict[str, Any]) -> types.Type:
    """Return a type as the cases write it."""
    ((kind, detail),) = written.items()
    if kind == "primitive":
        return types.Type({"INT64": "int", "UINT64": "uint"}.get(detail, detail.lower()))
    if kind == "list_type":
        return types.list_of(_type(detail["elem_type"]))
    if kind == "map_type":
        return types.map_of(_type(detail["key_type"]), _type(detail["value_type"]))
    if kind == "message_type":
        return types.Type(detail)
    return {"null": types.NULL, "dyn": types.DYN, "type": types.TYPE}[kind]


deduced = _type


def value(written: dict[str, Any]) -> Value:
    """Return a value as the cases write it."""
    ((kind, detail),) = written.items()
    if kind == "uint64_value":
        return Uint(detail)
    if kind == "double_value":
        return float(detail)
    if kind == "bytes_value":
        return plain_bytes(detail)
    if kind == "null_value":
        return None
    if kind == "type_value":
        return TypeValue(detail)
    if kind == "list_value":
        return tuple(value(item) for item in _listed(detail.get("values")))
    if kind == "map_value":
        return {map_key(value(pair["key"])): value(pair["value"]) for pair in _listed(detail.get("entries"))}
    if kind == "object_value":
        ((name, parts),) = detail.items()
        nanos = parts.get("seconds", 0) * 10**9 + parts.get("nanos", 0)
        return Duration(nanos) if name.endswith("Duration]") else Timestamp(nanos)
    assert kind in {"bool_value", "int64_value", "string_value"}, kind
    return detail  # type: ignore[no-any-return]


def plain_text(written: str) -> str:
    """Return a text without the escapes that its conversion to JSON has left in it."""
    if re.search("[\x80-\xff]{4}", written):  # UTF-8 read byte by byte
        written = re.sub("[\xc2-\xf4][\x80-\xbf]+", lambda found: found[0].encode("latin-1").decode(), written)
    return re.sub(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})", lambda found: chr(int(found[1] or found[2], 16)), written)


def plain_bytes(written: str) -> bytes:
    """Return bytes without the escapes that the conversion has left in them."""
    parts = re.split(r"\\x([0-9a-f]{2})", written)
    return b"".join(bytes.fromhex(part) if place % 2 else part.encode() for place, part in enumerate(parts))


def same(one: Value, other: Value) -> bool:
    """Return whether two values are the same in type and value, also NaN and -0.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        kinds = [{(type(key), key) for key in found} for found in (one, other)]
        return kinds[0] == kinds[1] and all(same(found, other[key]) for key, found in one.items())
    if isinstance(one, float) and isinstance(other, float):
        if math.isnan(one):
            return math.isnan(other)
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return one == other


def come_to(text: str, bound: Mapping[str, Value] | None = None) -> Value:
    """Return what an expression comes to, whose variables are all `dyn`; its faults are not looked at."""
    values = bound or {}
    assembler = Assembler()
    start = assembler.add(check(parse(text), dict.fromkeys(values, types.DYN)).expr)
    code = assembler.build()
    verify(code, [start])
    names = code.variables
    return run(code.instructions, code.constants, start, lambda number: values.get(names[number], EvalError("absent")))


def expected(case: Case) -> list[Value]:
    """Return the value that the case expects, in the readings that its conversion to JSON has left open."""
    written = case.written.get("value") or case.written.get("typed_result", {}).get("result") or {"bool_value": True}
    found = [value(written)]
    if "string_value" in written:
        found.append(plain_text(written["string_value"]))
    if "bytes_value" in written:
        raw = written["bytes_value"]
        found += (raw.encode(), plain_bytes(raw.replace("\\?", "?")))
    return found
