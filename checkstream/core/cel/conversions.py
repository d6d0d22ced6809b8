"""Conversions between types."""

from __future__ import annotations

import math
from typing import Any, Final

from checkstream.core.cel.arithmetic import refused
from checkstream.core.cel.moments import read_duration, read_timestamp, write_duration, write_timestamp
from checkstream.core.cel.values import (
    INT_MAX,
    SECOND,
    UINT_MAX,
    Duration,
    EvalError,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    int_value,
    timestamp_value,
    type_name,
    uint_value,
)

_TRUE: Final = frozenset({"1", "t", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "false", "FALSE", "False"})
_DOUBLE_CHARS: Final = frozenset("0123456789.+-eE")
_NAMED_DOUBLES: Final = {"NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}
_MAX_NUMBER_CHARS: Final = 400
"""The longest text of a number that is read."""


def to_int(value: Any) -> Value:
    """Return an int: a double loses its fraction, a timestamp comes to seconds since 1970."""
    kind = type(value)
    if kind is int:
        return value  # type: ignore[no-any-return]
    if kind is Uint:
        return int_value(int(value))
    if kind is float:
        # The ends are left out: as doubles they stand for numbers beyond the range too.
        return int(value) if -(2.0**63) < value < 2.0**63 else EvalError("a number passes the range of int")
    if kind is str:
        number = _whole(value, signs=("+", "-"))
        return EvalError("not a whole number") if number is None else int_value(number)
    if kind is Timestamp:
        return value.nanos // SECOND  # type: ignore[no-any-return]
    return refused("int", value)


def to_uint(value: Any) -> Value:
    """Return a uint: a double loses its fraction."""
    kind = type(value)
    if kind is Uint:
        return value  # type: ignore[no-any-return]
    if kind is int:
        return uint_value(value)
    if kind is float:
        return Uint(value) if 0.0 <= value < 2.0**64 else EvalError("a number passes the range of uint")
    if kind is str:
        number = _whole(value, signs=())
        return EvalError("not a whole number without sign") if number is None else uint_value(number)
    return refused("uint", value)


def _whole(text: str, *, signs: tuple[str, ...]) -> int | None:
    """Return the number, or None; one beyond any range comes as one beyond that of uint."""
    digits = text[1:] if text.startswith(signs) and signs else text
    if not digits.isascii() or not digits.isdigit():
        return None
    digits = digits.lstrip("0") or "0"
    number = int(digits) if len(digits) <= len(str(UINT_MAX)) else UINT_MAX + INT_MAX
    return -number if text.startswith("-") else number


def to_double(value: Any) -> Value:
    """Return a double, the nearest there is."""
    kind = type(value)
    if kind is float:
        return value  # type: ignore[no-any-return]
    if kind is int or kind is Uint:
        return float(value)
    if kind is str:
        if value in _NAMED_DOUBLES:
            return _NAMED_DOUBLES[value]
        if len(value) <= _MAX_NUMBER_CHARS and _DOUBLE_CHARS.issuperset(value):
            try:
                return float(value)
            except ValueError:
                pass
        return EvalError("not a number")
    return refused("double", value)


def to_string(value: Any) -> Value:
    """Return the value as text; what CEL writes in several ways comes in one that reads back."""
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is Uint:
        return str(int(value))
    if kind is float:
        return _written(value)
    if kind is bytes:
        try:
            return value.decode()  # type: ignore[no-any-return]
        except UnicodeDecodeError:
            return EvalError("bytes that are not UTF-8")
    if kind is Timestamp:
        return write_timestamp(value)
    if kind is Duration:
        return write_duration(value)
    return refused("string", value)


def _written(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value).removesuffix(".0")


def to_bytes(value: Any) -> Value:
    """Return text as its UTF-8."""
    if type(value) is bytes:
        return value
    if type(value) is str:
        try:
            return value.encode()
        except UnicodeEncodeError:
            return EvalError("a lone surrogate has no UTF-8")
    return refused("bytes", value)


def to_bool(value: Any) -> Value:
    """Return the truth that a text names."""
    if type(value) is bool:
        return value
    if type(value) is str:
        return True if value in _TRUE else False if value in _FALSE else EvalError("neither `true` nor `false`")
    return refused("bool", value)


def to_timestamp(value: Any) -> Value:
    """Return a moment: of RFC 3339 text, or of seconds since 1970."""
    kind = type(value)
    if kind is Timestamp:
        return value  # type: ignore[no-any-return]
    if kind is str:
        return read_timestamp(value)
    if kind is int:
        return timestamp_value(value * SECOND)
    return refused("timestamp", value)


def to_duration(value: Any) -> Value:
    """Return a span: of text such as `1h30m`."""
    if type(value) is Duration:
        return value
    return read_duration(value) if type(value) is str else refused("duration", value)


def to_dyn(value: Value) -> Value:
    """Return the value; only the check sees another type."""
    return value


def type_of(value: Value) -> Value:
    """Return the value's type."""
    return value if type(value) is EvalError else TypeValue(type_name(value))
