"""Types of expressions, and how they agree.

`dyn` agrees with every type; `FREE` is what an empty list or map holds until something says more.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Final

import msgspec


class Type(msgspec.Struct, frozen=True):
    """A type: its name, and what it holds (`list` one type; `map` that of the keys and that of the values)."""

    name: str
    parameters: tuple[Type, ...] = ()

    def __str__(self) -> str:
        if not self.parameters:
            return "dyn" if self.name == "free" else self.name
        return f"{self.name}({', '.join(str(parameter) for parameter in self.parameters)})"


INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
BOOL: Final = Type("bool")
NULL: Final = Type("null_type")
TIMESTAMP: Final = Type("google.protobuf.Timestamp")
DURATION: Final = Type("google.protobuf.Duration")
TYPE: Final = Type("type")
DYN: Final = Type("dyn")
FREE: Final = Type("free")

KEY_TYPES: Final = frozenset({INT, UINT, BOOL, STRING, DYN, FREE})
_SHORT: Final = {"timestamp": TIMESTAMP, "duration": DURATION, "null": NULL}


def list_of(element: Type) -> Type:
    """Return the type of lists of `element`."""
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps from `key` to `value`."""
    return Type("map", (key, value))


def agree(one: Type, other: Type) -> Type | None:
    """Return what a value is that both types describe, or None when no value can be."""
    if DYN in {one, other}:
        return DYN
    if one in {FREE, other}:
        return other
    if other == FREE:
        return one
    if one.name != other.name or len(one.parameters) != len(other.parameters):
        return None
    parts = [agree(left, right) for left, right in zip(one.parameters, other.parameters, strict=True)]
    return None if None in parts else Type(one.name, tuple(part for part in parts if part is not None))


def join(types: Iterable[Type]) -> Type:
    """Return the type of the elements of a list: theirs where all agree, else `dyn`."""
    return functools.reduce(lambda one, other: agree(one, other) or DYN, types, FREE)


def settled(kind: Type) -> Type:
    """Return the type with `dyn` for what nothing has said."""
    return DYN if kind == FREE else Type(kind.name, tuple(settled(parameter) for parameter in kind.parameters))


class Signature(msgspec.Struct, frozen=True):
    """One form of a function. A parameter of one capital letter stands for any type, everywhere the same."""

    parameters: tuple[Type, ...]
    result: Type

    def applied(self, arguments: tuple[Type, ...]) -> Type | None:
        """Return the type of the result for `arguments`, or None when this form doesn't take them."""
        if len(arguments) != len(self.parameters):
            return None
        bound: dict[str, Type] = {}
        for parameter, argument in zip(self.parameters, arguments, strict=True):
            if not _bind(parameter, argument, bound):
                return None
        return _substituted(self.result, bound)


def _bind(parameter: Type, argument: Type, bound: dict[str, Type]) -> bool:
    if _is_variable(parameter):
        agreed = agree(bound.get(parameter.name, FREE), argument)
        if agreed is None:
            return False
        bound[parameter.name] = agreed
        return True
    if argument in {DYN, FREE}:
        for part in parameter.parameters:
            _bind(part, DYN, bound)
        return True
    if parameter.name != argument.name:
        return False
    return all(_bind(part, given, bound) for part, given in zip(parameter.parameters, argument.parameters, strict=True))


def _substituted(kind: Type, bound: dict[str, Type]) -> Type:
    if _is_variable(kind):
        return bound.get(kind.name, DYN)
    return Type(kind.name, tuple(_substituted(parameter, bound) for parameter in kind.parameters))


def _is_variable(kind: Type) -> bool:
    return len(kind.name) == 1


def signatures(text: str) -> tuple[Signature, ...]:
    """Read forms written as `int int -> int; A list(A) -> bool`."""
    found = []
    for form in text.split(";"):
        parameters, _, result = form.partition("->")
        found.append(Signature(tuple(_read(word) for word in parameters.split()), _read(result.strip())))
    return tuple(found)


def _read(word: str) -> Type:
    head, _, rest = word.partition("(")
    if not rest:
        return _SHORT.get(word, Type(word))
    return Type(head, tuple(_read(part) for part in rest.removesuffix(")").split(",")))
