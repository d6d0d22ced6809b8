"""What an ONNX file must not hold, found before anything runs it: data outside the file, and operators of strangers.

A file is walked as protobuf, field by field, no further than these questions need. Pure.

Source: onnx/onnx.proto (field numbers), of ONNX 1.19.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from checkstream.errors import ModelError

DOMAINS: Final = frozenset({b"", b"ai.onnx", b"com.microsoft"})
"""Whose operators may stand in a graph: the standard's, and those of the runtime itself."""
_MAX_DEPTH: Final = 64
_MAX_VARINT: Final = 10
_NUMBER: Final = 0xFFFF_FFFF
"""What a field's key and an enumeration have room for."""
_BYTES: Final = 2
"""The wire type of a field with a length."""

# Message -> field -> the message that it holds. What is not named here is not looked into.
_INSIDE: Mapping[str, Mapping[int, str]] = MappingProxyType(
    {
        "model": {7: "graph", 8: "opset", 20: "training", 25: "function"},
        "graph": {1: "node", 5: "tensor", 15: "sparse"},
        "node": {5: "attribute", 7: "domain"},
        "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
        "sparse": {1: "tensor", 2: "tensor"},
        "function": {7: "node", 9: "opset", 10: "domain", 11: "attribute"},
        "opset": {1: "domain"},
        "tensor": {13: "external"},
    }
)


def check(data: bytes) -> None:
    """Walk a file.

    Raises:
        ModelError: it is not ONNX, keeps data outside the file, or has operators of another domain.
    """
    try:
        seen = set(_walk(memoryview(data), "model", 0))
    except (IndexError, ValueError) as error:
        raise ModelError("the graph is not an ONNX file; export it anew") from error
    if "graph" not in seen:
        raise ModelError("the graph is not an ONNX file; export it anew")


def _walk(data: memoryview, message: str, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        raise ModelError("the graph is nested too deeply; export it anew")
    inside = _INSIDE[message]
    for number, value in _fields(data):
        part = inside.get(number)
        # data_location: EXTERNAL, of which the runtime sees 32 bits
        located = message == "tensor" and number == 14 and isinstance(value, int) and value & _NUMBER == 1
        if located or (part in {"external", "training"} and not isinstance(value, int)):
            raise ModelError("the graph keeps data outside its file; export it with all data inside")
        if part is None or isinstance(value, int):  # not of interest, or not of this field's type: no reader takes it
            continue
        yield part
        if part == "domain":
            if bytes(value) not in DOMAINS:
                name = bytes(value[:64]).decode("utf-8", "replace")
                raise ModelError(f"the graph has operators of `{name}`, which are not run here; export it without them")
        else:
            yield from _walk(value, part, depth + 1)


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield number and value of each field of a message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key > _NUMBER:  # the runtime drops what is above, and sees another field
            raise ValueError("a field has no such number")
        number, kind = key >> 3, key & 7
        if kind == _BYTES:
            size, at = _varint(data, at)
            if size > len(data) - at:
                raise ValueError("a field ends behind its message")
            yield number, data[at : at + size]
            at += size
        elif kind == 0:
            value, at = _varint(data, at)
            yield number, value
        elif kind in {1, 5}:
            at += 8 if kind == 1 else 4
            if at > len(data):
                raise ValueError("a field ends behind its message")
        else:
            raise ValueError(f"wire type {kind} is not in use")


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_MAX_VARINT):
        byte = data[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    raise ValueError("a number is too long")
