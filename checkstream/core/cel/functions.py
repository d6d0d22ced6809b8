"""The standard library: each function with its forms, what it may cost, and a number that code calls it by.

A program that is written down names functions by `key` (name and number of operands); numbers are this build's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec

from checkstream.core.cel import arithmetic, conversions
from checkstream.core.cel.arithmetic import refused
from checkstream.core.cel.ast import INDEX, MATCHES, NEGATE, NOT
from checkstream.core.cel.moments import ACCESSORS, accessor, accessor_in_zone
from checkstream.core.cel.types import Signature, signatures
from checkstream.core.cel.values import Value
from checkstream.core.match.regex import TextRegex

Style = Literal["global", "method", "either"]
Work = Literal["step", "first", "both", "search"]
"""What a call reads: little; all of its first operand; of both what the smaller one has; the second for the first."""


class Function(msgspec.Struct, frozen=True):
    """One function with one number of operands."""

    name: str
    run: Callable[..., Value]
    """Takes values, errors among them, and raises nothing."""
    forms: tuple[Signature, ...]
    style: Style
    work: Work

    @property
    def arity(self) -> int:
        """The number of operands, 1 or 2; a method's target is the first."""
        return len(self.forms[0].parameters)

    @property
    def key(self) -> str:
        """What a written program calls the function: `size/1`."""
        return f"{self.name}/{self.arity}"


def _contains(text: Any, part: Any) -> Value:
    if type(text) is str and type(part) is str:
        return part in text
    return refused("contains", text, part)


def _starts_with(text: Any, part: Any) -> Value:
    if type(text) is str and type(part) is str:
        return text.startswith(part)
    return refused("startsWith", text, part)


def _ends_with(text: Any, part: Any) -> Value:
    if type(text) is str and type(part) is str:
        return text.endswith(part)
    return refused("endsWith", text, part)


def _matches(text: Any, regex: Any) -> Value:
    if type(text) is str and type(regex) is TextRegex:
        return regex.found_in(text)
    return refused(MATCHES, text, regex)


_ORDER: Final = "; ".join(
    [f"{kind} {kind} -> bool" for kind in ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")]
    + [
        f"{one} {other} -> bool"
        for one in ("int", "uint", "double")
        for other in ("int", "uint", "double")
        if one != other
    ]
)
_SAME: Final = "A A -> bool"
_NUMBERS: Final = "int int -> int; uint uint -> uint; double double -> double"
_SUM: Final = (
    f"{_NUMBERS}; string string -> string; bytes bytes -> bytes; list(A) list(A) -> list(A); "
    "timestamp duration -> timestamp; duration timestamp -> timestamp; duration duration -> duration"
)
_DIFFERENCE: Final = (
    f"{_NUMBERS}; timestamp timestamp -> duration; timestamp duration -> timestamp; duration duration -> duration"
)


def _function(
    name: str, run: Callable[..., Value], forms: str, style: Style = "global", work: Work = "step"
) -> Function:
    return Function(name, run, signatures(forms), style, work)


FUNCTIONS: Final[tuple[Function, ...]] = (
    _function("_==_", arithmetic.is_equal, _SAME, work="both"),
    _function("_!=_", arithmetic.is_unequal, _SAME, work="both"),
    _function("_<_", arithmetic.less, _ORDER, work="both"),
    _function("_<=_", arithmetic.less_equal, _ORDER, work="both"),
    _function("_>_", arithmetic.greater, _ORDER, work="both"),
    _function("_>=_", arithmetic.greater_equal, _ORDER, work="both"),
    _function("@in", arithmetic.contained, "A list(A) -> bool; A map(A,B) -> bool", work="search"),
    _function(INDEX, arithmetic.indexed, "list(A) int -> A; map(A,B) A -> B", work="step"),
    _function(NOT, arithmetic.invert, "bool -> bool"),
    _function(NEGATE, arithmetic.negate, "int -> int; double -> double"),
    _function("_+_", arithmetic.add, _SUM, work="both"),
    _function("_-_", arithmetic.subtract, _DIFFERENCE),
    _function("_*_", arithmetic.multiply, _NUMBERS),
    _function("_/_", arithmetic.divide, _NUMBERS),
    _function("_%_", arithmetic.remainder, "int int -> int; uint uint -> uint"),
    _function("size", arithmetic.size, "string -> int; bytes -> int; list(A) -> int; map(A,B) -> int", "either"),
    _function("contains", _contains, "string string -> bool", "method", "first"),
    _function("startsWith", _starts_with, "string string -> bool", "method", "both"),
    _function("endsWith", _ends_with, "string string -> bool", "method", "both"),
    _function(MATCHES, _matches, "string string -> bool", "either", "first"),
    _function(
        "int",
        conversions.to_int,
        "int -> int; uint -> int; double -> int; string -> int; timestamp -> int",
    ),
    _function("uint", conversions.to_uint, "uint -> uint; int -> uint; double -> uint; string -> uint"),
    _function("double", conversions.to_double, "double -> double; int -> double; uint -> double; string -> double"),
    _function(
        "string",
        conversions.to_string,
        "string -> string; bool -> string; int -> string; uint -> string; double -> string; bytes -> string; "
        "timestamp -> string; duration -> string",
        work="first",
    ),
    _function("bytes", conversions.to_bytes, "bytes -> bytes; string -> bytes", work="first"),
    _function("bool", conversions.to_bool, "bool -> bool; string -> bool"),
    _function("timestamp", conversions.to_timestamp, "timestamp -> timestamp; string -> timestamp; int -> timestamp"),
    _function("duration", conversions.to_duration, "duration -> duration; string -> duration"),
    _function("dyn", conversions.to_dyn, "A -> dyn"),
    _function("type", conversions.type_of, "A -> type"),
    *(
        _function(
            name,
            accessor(name),
            "timestamp -> int" + ("; duration -> int" if name.endswith(("Hours", "Minutes", "econds")) else ""),
            "method",
        )
        for name in ACCESSORS
    ),
    *(_function(name, accessor_in_zone(name), "timestamp string -> int", "method") for name in ACCESSORS),
)
NUMBER_OF: Final = {function.key: number for number, function in enumerate(FUNCTIONS)}
NAMES: Final = frozenset(function.name for function in FUNCTIONS)
