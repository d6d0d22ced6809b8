"""Operators on values: sums, products, order, membership.

Each takes values of any types. What it has no form for comes to `refused`: the first error among the operands, else
that there is no such overload.
"""

from __future__ import annotations

import math
from typing import Any, Final

from checkstream.core.cel.values import (
    NUMBERS,
    Duration,
    EvalError,
    Timestamp,
    Uint,
    Value,
    duration_value,
    equal,
    int_value,
    map_key,
    timestamp_value,
    type_name,
    uint_value,
)

MAX_SIZE: Final = 65_536
"""Characters, bytes or elements of what `+` makes."""
_ORDERED: Final = frozenset({int, float, str, bool, Uint, bytes, Timestamp, Duration})
_DIVIDED_BY_ZERO: Final = EvalError("divide by zero")


def refused(function: str, *operands: Value) -> EvalError:
    """Return the error of a function that has no form for these operands."""
    for operand in operands:
        if type(operand) is EvalError:
            return operand
    return EvalError(f"no such overload: {function} of {', '.join(map(type_name, operands))}")


def add(one: Any, other: Any) -> Value:
    """Return the sum, the joined texts or lists, or the moved timestamp."""
    kind = type(one)
    if kind is type(other):
        if kind is int:
            return int_value(one + other)
        if kind is float:
            return one + other  # type: ignore[no-any-return]
        if kind is Uint:
            return uint_value(int(one) + int(other))
        if kind is str or kind is bytes or kind is tuple:
            return one + other if len(one) + len(other) <= MAX_SIZE else EvalError("what `+` makes is too long")
        if kind is Duration:
            return duration_value(one.nanos + other.nanos)
    elif {kind, type(other)} == {Timestamp, Duration}:
        return timestamp_value(one.nanos + other.nanos)
    return refused("_+_", one, other)


def subtract(one: Any, other: Any) -> Value:
    """Return the difference."""
    kind = type(one)
    if kind is type(other):
        if kind is int:
            return int_value(one - other)
        if kind is float:
            return one - other  # type: ignore[no-any-return]
        if kind is Uint:
            return uint_value(int(one) - int(other))
        if kind is Duration or kind is Timestamp:
            return duration_value(one.nanos - other.nanos)
    elif kind is Timestamp and type(other) is Duration:
        return timestamp_value(one.nanos - other.nanos)
    return refused("_-_", one, other)


def multiply(one: Any, other: Any) -> Value:
    """Return the product."""
    kind = type(one)
    if kind is type(other):
        if kind is int:
            return int_value(one * other)
        if kind is float:
            return one * other  # type: ignore[no-any-return]
        if kind is Uint:
            return uint_value(int(one) * int(other))
    return refused("_*_", one, other)


def divide(one: Any, other: Any) -> Value:
    """Return the quotient: of whole numbers cut towards zero, of doubles as IEEE 754 has it."""
    kind = type(one)
    if kind is type(other):
        if kind is float:
            return _divided(one, other)
        if kind is int:
            return int_value(_quotient(one, other)) if other else _DIVIDED_BY_ZERO
        if kind is Uint:
            return uint_value(int(one) // int(other)) if other else _DIVIDED_BY_ZERO
    return refused("_/_", one, other)


def remainder(one: Any, other: Any) -> Value:
    """Return what division leaves, with the sign of the dividend."""
    kind = type(one)
    if kind is type(other):
        if kind is int:
            return int_value(one - other * _quotient(one, other)) if other else EvalError("modulus by zero")
        if kind is Uint:
            return uint_value(int(one) % int(other)) if other else EvalError("modulus by zero")
    return refused("_%_", one, other)


def _quotient(one: int, other: int) -> int:
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient


def _divided(one: float, other: float) -> float:
    if other:
        return one / other
    if not one or math.isnan(one):
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1.0, other)


def negate(value: Any) -> Value:
    """Return the number with the other sign."""
    if type(value) is int:
        return int_value(-value)
    if type(value) is float:
        return -value
    return refused("-_", value)


def invert(value: Any) -> Value:
    """Return the other truth."""
    if value is True:
        return False
    return True if value is False else refused("!_", value)


def is_equal(one: Any, other: Any) -> Value:
    """Return whether the values are equal."""
    kind = type(one)
    if kind is type(other) and kind in _ORDERED:
        return one == other  # type: ignore[no-any-return]
    if kind is EvalError or type(other) is EvalError:
        return refused("_==_", one, other)
    return equal(one, other)


def is_unequal(one: Any, other: Any) -> Value:
    """Return whether the values are not equal."""
    result = is_equal(one, other)
    return not result if type(result) is bool else result


def _numbers(function: str, one: Any, other: Any) -> tuple[float, float] | EvalError:
    """Return numbers of two types so that Python orders them as CEL does; a double makes the other one double too."""
    kinds = {type(one), type(other)}
    if kinds <= NUMBERS:
        return (float(one), float(other)) if float in kinds else (int(one), int(other))
    return refused(function, one, other)


def less(one: Any, other: Any) -> Value:
    """Return whether `one` comes before `other`."""
    if type(one) is type(other) and type(one) in _ORDERED:
        return one < other  # type: ignore[no-any-return]
    pair = _numbers("_<_", one, other)
    return pair[0] < pair[1] if type(pair) is tuple else pair


def less_equal(one: Any, other: Any) -> Value:
    """Return whether `one` comes before `other` or equals it."""
    if type(one) is type(other) and type(one) in _ORDERED:
        return one <= other  # type: ignore[no-any-return]
    pair = _numbers("_<=_", one, other)
    return pair[0] <= pair[1] if type(pair) is tuple else pair


def greater(one: Any, other: Any) -> Value:
    """Return whether `one` comes after `other`."""
    if type(one) is type(other) and type(one) in _ORDERED:
        return one > other  # type: ignore[no-any-return]
    pair = _numbers("_>_", one, other)
    return pair[0] > pair[1] if type(pair) is tuple else pair


def greater_equal(one: Any, other: Any) -> Value:
    """Return whether `one` comes after `other` or equals it."""
    if type(one) is type(other) and type(one) in _ORDERED:
        return one >= other  # type: ignore[no-any-return]
    pair = _numbers("_>=_", one, other)
    return pair[0] >= pair[1] if type(pair) is tuple else pair


def contained(item: Any, holder: Any) -> Value:
    """Return whether a list has an element, or a map a key, that equals `item`."""
    kind = type(item)
    if kind is not EvalError:
        if type(holder) is tuple:
            return item in holder if kind is str else _among(item, holder)
        if type(holder) is dict:
            key = map_key(item)
            return key is not None and key in holder
    return refused("@in", item, holder)


def _among(item: Value, holder: tuple[Any, ...]) -> Value:
    uncertain: Value = False
    for element in holder:
        found = equal(item, element)
        if found is True:
            return True
        if found is not False:
            uncertain = found
    return uncertain


def indexed(holder: Any, index: Any) -> Value:
    """Return the element at a whole number, or the value of a key."""
    kind = type(index)
    if type(holder) is dict:
        if kind is EvalError:
            return index  # type: ignore[no-any-return]
        key = map_key(index)
        return holder[key] if key is not None and key in holder else EvalError("no such key")
    if type(holder) is tuple and kind in NUMBERS:
        if kind is float and not index.is_integer():
            return EvalError("an index is a whole number")
        place = int(index)
        return holder[place] if 0 <= place < len(holder) else EvalError("index out of range")
    return refused("_[_]", holder, index)


def selected(holder: Any, field: str) -> Value:
    """Return the value of a map's key `field`."""
    if type(holder) is dict:
        return holder[field] if field in holder else EvalError(f"no such key: `{field[:80]}`")
    return refused("selection of a field", holder)


def has_field(holder: Any, field: str) -> Value:
    """Return whether a map has the key `field`."""
    return field in holder if type(holder) is dict else refused("`has`", holder)


def size(value: Any) -> Value:
    """Return the number of characters, bytes, elements or keys."""
    kind = type(value)
    return len(value) if kind is str or kind is tuple or kind is dict or kind is bytes else refused("size", value)


def listed(elements: list[Any]) -> Value:
    """Return the list of the elements, or the first error among them."""
    for element in elements:
        if type(element) is EvalError:
            return element
    return tuple(elements)


def mapped(pairs: list[Any]) -> Value:
    """Return the map of keys and values that take turns, or the first error; no key may stand twice."""
    found: dict[Any, Any] = {}
    for place in range(0, len(pairs), 2):
        key, value = pairs[place], pairs[place + 1]
        if type(key) is EvalError or type(value) is EvalError:
            return refused("a map", key, value)
        made = map_key(key)
        if made is None or type(key) is float:
            return EvalError(f"a {type_name(key)} is no key of a map")
        if made in found:
            return EvalError("a key stands twice in a map")
        found[made] = value
    return found
