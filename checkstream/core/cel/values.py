"""Values of expressions, as plain Python.

CEL         Python                              CEL         Python
bool        bool                                list        tuple
int         int of 64 bits                      map         dict; its keys as `map_key` makes them
uint        Uint                                null        None
double      float                               timestamp   Timestamp, nanoseconds from 1970 in UTC
string      str                                 duration    Duration, nanoseconds
bytes       bytes                               type        TypeValue

An error is a value too, `EvalError`: nothing is ever raised. A `TextRegex` stands only where `matches` takes one.
"""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec

from checkstream.core.cel import types
from checkstream.core.match.regex import TextRegex

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1
SECOND: Final = 10**9
"""Nanoseconds."""
TIMESTAMP_MIN: Final = -62135596800 * SECOND
"""The start of the year 1."""
TIMESTAMP_MAX: Final = 253402300800 * SECOND - 1
"""The end of the year 9999."""
MAX_COMPARED: Final = 2_000
"""Elements that one comparison of lists or maps looks at."""
MAX_NESTING: Final = 64
"""Levels of lists and maps that a value from outside may have."""


class Uint(int):
    """An unsigned integer of 64 bits: equal to the int of the same value, yet of another type."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"


class EvalError(msgspec.Struct, frozen=True):
    """What an expression comes to when it has no value."""

    reason: str


class Timestamp(msgspec.Struct, frozen=True, order=True):
    """A moment of the years 1 to 9999."""

    nanos: int


class Duration(msgspec.Struct, frozen=True, order=True):
    """A span of time of 64 bits of nanoseconds, some 292 years either way."""

    nanos: int


class TypeValue(msgspec.Struct, frozen=True):
    """A type as a value, by its name."""

    name: str


Value = (
    bool
    | int
    | Uint
    | float
    | str
    | bytes
    | None
    | Timestamp
    | Duration
    | TypeValue
    | EvalError
    | TextRegex
    | tuple[Any, ...]
    | dict[Any, Any]
)
Kind = type[Any]

_TYPES: Final[dict[Kind, types.Type]] = {
    bool: types.BOOL,
    int: types.INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
    Timestamp: types.TIMESTAMP,
    Duration: types.DURATION,
    TypeValue: types.TYPE,
    tuple: types.Type("list"),
    dict: types.Type("map"),
}
NUMBERS: Final = frozenset({int, Uint, float})
TYPE_NAMES: Final = frozenset(kind.name for kind in _TYPES.values())


def type_name(value: Value) -> str:
    """Return the name of the value's type as CEL calls it; `error` for what is no value."""
    kind = _TYPES.get(type(value))
    return kind.name if kind else "error"


def int_value(number: int) -> Value:
    """Return the number as an int, or the error that it is out of range."""
    return number if INT_MIN <= number <= INT_MAX else EvalError("a number passes the range of int")


def uint_value(number: int) -> Value:
    """Return the number as a uint, or the error that it is out of range."""
    return Uint(number) if 0 <= number <= UINT_MAX else EvalError("a number passes the range of uint")


def timestamp_value(nanos: int) -> Value:
    """Return the moment, or the error that it is not in the years 1 to 9999."""
    if TIMESTAMP_MIN <= nanos <= TIMESTAMP_MAX:
        return Timestamp(nanos)
    return EvalError("a timestamp passes the range of years 1 to 9999")


def duration_value(nanos: int) -> Value:
    """Return the span, or the error that it is out of range."""
    return Duration(nanos) if INT_MIN <= nanos <= INT_MAX else EvalError("a duration passes its range of 292 years")


def map_key(value: Value) -> Any:
    """Return what stands for `value` as a key of a dict, or None when nothing equal to it can be a key.

    Numbers that are equal are one key, whatever their type. A bool is wrapped, since Python's `True == 1`.
    """
    kind = type(value)
    if kind is str or kind is int or kind is Uint:
        return value
    if kind is bool:
        return (value,)
    if isinstance(value, float) and value.is_integer() and INT_MIN <= value <= UINT_MAX:
        return int(value)
    return None


def key_value(key: Any) -> Value:
    """Return the value that a key of a dict stands for."""
    return bool(key[0]) if type(key) is tuple else key


def equal(one: Value, other: Value) -> Value:
    """Return whether two values are equal; never by type alone: 1, 1u and 1.0 are. Or an error: too much to compare."""
    kind, kind_of_other = type(one), type(other)
    if kind is not tuple and kind is not dict:
        if kind is kind_of_other:
            return one == other
        if kind in NUMBERS and kind_of_other in NUMBERS:
            return _numbers_equal(one, other)
        return False
    return False if kind is not kind_of_other else _deep_equal(one, other)


def _numbers_equal(one: Any, other: Any) -> bool:
    """Compare as doubles when one of them is: int and uint lose what a double can't hold."""
    if type(one) is float or type(other) is float:
        return float(one) == float(other)
    return int(one) == int(other)


def _deep_equal(one: Value, other: Value) -> Value:
    """Compare lists and maps of any depth, without recursion and with an end."""
    waiting: list[tuple[Any, Any]] = [(one, other)]
    left = MAX_COMPARED
    while waiting:
        first, second = waiting.pop()
        kind = type(first)
        if kind is not type(second) or (kind is not tuple and kind is not dict):
            if equal(first, second) is not True:
                return False
            continue
        if len(first) != len(second):
            return False
        left -= len(first)
        if left < 0:
            return EvalError("too much to compare")
        if kind is tuple:
            waiting.extend(zip(first, second, strict=True))
        elif first.keys() != second.keys():
            return False
        else:
            waiting.extend((value, second[key]) for key, value in first.items())
    return True


def from_json(value: Any) -> Value:
    """Return decoded JSON as a value: whole numbers of 64 bits as int, others as double.

    Args:
        value: What a JSON decoder gives: dict with text keys, list, str, int, float, bool or None.

    Returns:
        The value; an error for what nests deeper than `MAX_NESTING`, for a number that no double holds, and for what
        no decoder gives.
    """
    try:
        return _converted(value, MAX_NESTING)
    except (ValueError, OverflowError) as error:
        return EvalError(str(error))


def _converted(value: Any, levels: int) -> Value:
    """Convert one level.

    Raises:
        ValueError: too deep, or not JSON.
        OverflowError: a number that no double holds.
    """
    kind = type(value)
    if kind is str or kind is bool or kind is float or value is None:
        return value  # type: ignore[no-any-return]
    if kind is int:
        return value if INT_MIN <= value <= INT_MAX else float(value)
    if not levels:
        raise ValueError(f"a value nests deeper than {MAX_NESTING} levels")
    if kind is list:
        return tuple([_converted(item, levels - 1) for item in value])
    if kind is dict:
        return {_text(key): _converted(item, levels - 1) for key, item in value.items()}
    raise ValueError(f"a `{kind.__name__}` is not JSON")


def _text(key: Any) -> str:
    """Return the key.

    Raises:
        ValueError: it is no text.
    """
    if type(key) is not str:
        raise ValueError("a key of a JSON object is text")
    return key


def show(value: Value) -> str:
    """Return the value as CEL writes it, for people; long ones are cut."""
    text = _shown(value, 3)
    return text if len(text) <= 80 else text[:77] + "..."


def _shown(value: Any, levels: int) -> str:
    if isinstance(value, TextRegex):
        return f"/{value.source}/"
    if isinstance(value, EvalError):
        return f"error({value.reason})"
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, Timestamp | Duration):
        return f"{type(value).__name__.lower()}({value.nanos}ns)"
    if isinstance(value, tuple):
        return f"[{', '.join(_shown(item, levels - 1) for item in value[:20])}]" if levels else "[...]"
    if isinstance(value, dict):
        pairs = [f"{_shown(key_value(key), 1)}: {_shown(item, levels - 1)}" for key, item in list(value.items())[:20]]
        return f"{{{', '.join(pairs)}}}" if levels else "{...}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) and not math.isfinite(value):
        return f'double("{value}")'
    return repr(value)
