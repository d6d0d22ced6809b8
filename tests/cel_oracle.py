"""A slow, obvious reading of CEL: it walks the tree, raises on errors, and shares no function with the product.

Only the tree and the kinds of values are the product's. Times go through `datetime`, whole numbers through fractions,
regular expressions through the standard library.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from checkstream.core.cel.ast import Call, Comprehension, Expr, Fold, Ident, ListExpr, Literal, MapExpr, Select
from checkstream.core.cel.values import Duration, EvalError, Timestamp, TypeValue, Uint, Value
from checkstream.core.match.regex import TextRegex

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
TYPES: dict[type[Any], str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    tuple: "list",
    dict: "map",
    TypeValue: "type",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
}


class Failed(Exception):
    """The expression has no value."""


def evaluate(expr: Expr, variables: Mapping[str, Value]) -> Any:
    """Return what a checked tree comes to."""
    try:
        return walk(expr, variables, {})
    except Failed as error:
        return EvalError(str(error))


def require(condition: object) -> None:
    if not condition:
        raise Failed("no value")


def kind(value: Any) -> str:
    return TYPES[type(value)]


def walk(expr: Expr, variables: Mapping[str, Value], scope: Mapping[str, Any]) -> Any:
    def of(part: Expr) -> Any:
        return walk(part, variables, scope)

    if isinstance(expr, Literal):
        require(not isinstance(expr.value, EvalError))
        return expr.value
    if isinstance(expr, Ident):
        if expr.name in scope:
            return scope[expr.name]
        found = variables.get(expr.name.removeprefix("."), EvalError("unbound"))
        require(not isinstance(found, EvalError))
        return found
    if isinstance(expr, Select):
        holder = of(expr.operand)
        require(kind(holder) == "map")
        if expr.test:
            return any(type(key) is str and key == expr.field for key in holder)
        return index(holder, expr.field)
    if isinstance(expr, ListExpr):
        return tuple(of(element) for element in expr.elements)
    if isinstance(expr, MapExpr):
        return made_map([(of(key), of(value)) for key, value in expr.pairs])
    if isinstance(expr, Comprehension):
        return loop(expr, variables, scope)
    assert isinstance(expr, Call)
    return called(expr, of)


def made_map(pairs: list[tuple[Any, Any]]) -> Any:
    require(all(kind(key) in {"bool", "int", "uint", "string"} for key, _ in pairs))
    require(not any(alike(one[0], two[0]) for at, one in enumerate(pairs) for two in pairs[:at]))
    return {(key,) if type(key) is bool else key: value for key, value in pairs}


def called(expr: Call, of: Callable[[Expr], Any]) -> Any:
    if expr.function in {"_&&_", "_||_"}:
        return either(expr.function == "_||_", [lambda part=part: of(part) for part in expr.operands])  # type: ignore[misc]
    if expr.function == "_?_:_":
        condition = of(expr.arguments[0])
        require(type(condition) is bool)
        return of(expr.arguments[1 if condition else 2])
    require(expr.function in FUNCTIONS)
    operands = [of(operand) for operand in expr.operands]
    try:
        return FUNCTIONS[expr.function](*operands)
    except (TypeError, KeyError) as error:
        raise Failed(str(error)) from error


def either(deciding: bool, tries: Iterable[Callable[[], Any]]) -> bool:
    """`||` where true decides, `&&` where false does: whatever the others come to."""
    failed = False
    for attempt in tries:
        try:
            found = attempt()
        except Failed:
            failed = True
            continue
        if found is deciding:
            return found is True
        failed = failed or type(found) is not bool
    require(not failed)
    return not deciding


def loop(expr: Comprehension, variables: Mapping[str, Value], scope: Mapping[str, Any]) -> Any:
    source = walk(expr.range, variables, scope)
    require(kind(source) in {"list", "map"})
    if kind(source) == "list":
        pairs = list(enumerate(source))
        single = [element for _, element in pairs]
    else:
        pairs = [(key[0] if type(key) is tuple else key, value) for key, value in source.items()]
        single = [key for key, _ in pairs]
    names = expr.variables
    frames = [
        {**scope, names[0]: only} if len(names) == 1 else {**scope, names[0]: pair[0], names[1]: pair[1]}
        for only, pair in zip(single, pairs, strict=True)
    ]

    def asked(frame: Mapping[str, Any]) -> Any:
        return walk(expr.step, variables, frame)

    if expr.fold in {Fold.ALL, Fold.EXISTS}:
        return either(expr.fold is Fold.EXISTS, [lambda frame=frame: asked(frame) for frame in frames])  # type: ignore[misc]
    answers = [asked(frame) for frame in frames]
    require(all(type(answer) is bool for answer in answers))
    if expr.fold is Fold.ONE:
        return answers.count(True) == 1
    assert expr.result is not None
    kept = [
        (pair[0], walk(expr.result, variables, frame))
        for pair, frame, answer in zip(pairs, frames, answers, strict=True)
        if answer
    ]
    if expr.fold is Fold.LIST:
        return tuple(value for _, value in kept)
    return {(key,) if type(key) is bool else key: value for key, value in kept}


def alike(one: Any, two: Any) -> bool:
    """Equality."""
    kinds = {kind(one), kind(two)}
    if kinds <= {"int", "uint", "double"}:
        if "double" in kinds:
            return float(one) == float(two)
        return int(one) == int(two)
    if len(kinds) > 1:
        return False
    if kinds == {"list"}:
        return len(one) == len(two) and all(alike(left, right) for left, right in zip(one, two, strict=True))
    if kinds == {"map"}:
        return len(one) == len(two) and all(key in two and alike(value, two[key]) for key, value in one.items())
    return bool(one == two)


def ordered(one: Any, two: Any) -> tuple[Any, Any]:
    kinds = {kind(one), kind(two)}
    if kinds <= {"int", "uint", "double"}:
        return (float(one), float(two)) if "double" in kinds else (int(one), int(two))
    require(len(kinds) == 1)
    require(not kinds & {"list", "map", "null_type", "type"})
    return (one.nanos, two.nanos) if isinstance(one, Timestamp | Duration) else (one, two)


def ranged(value: int, like: str) -> Any:
    low, high = (0, 2**64) if like == "uint" else (-(2**63), 2**63)
    require(low <= value < high)
    return Uint(value) if like == "uint" else value


def moment(nanos: int) -> Timestamp:
    low = (dt.datetime(1, 1, 1, tzinfo=dt.UTC) - EPOCH) // dt.timedelta(seconds=1)
    high = (dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC) - EPOCH) // dt.timedelta(seconds=1)
    require(low * 10**9 <= nanos < (high + 1) * 10**9)
    return Timestamp(nanos)


def numbers(name: str, one: Any, two: Any) -> Any:
    """Sum, difference, product, quotient and remainder."""
    kinds = (kind(one), kind(two))
    if kinds == ("double", "double") and name != "%":
        if name == "/" and two == 0:
            zero = one == 0 or math.isnan(one)
            return math.nan if zero else math.copysign(math.inf, math.copysign(1, one) * math.copysign(1, two))
        return {"+": float.__add__, "-": float.__sub__, "*": float.__mul__, "/": float.__truediv__}[name](one, two)
    if kinds in {("int", "int"), ("uint", "uint")}:
        left, right = Fraction(int(one)), Fraction(int(two))
        if name in "/%":
            require(right)
        whole = math.trunc(left / right) if right else 0
        results: dict[str, Any] = {
            "+": left + right,
            "-": left - right,
            "*": left * right,
            "/": whole,
            "%": left - right * whole,
        }
        return ranged(int(results[name]), kinds[0])
    if name == "+" and kinds in {(same, same) for same in ("string", "bytes", "list")}:
        return one + two
    short = tuple(word.rpartition(".")[2] for word in kinds)
    require(name in "+-" and set(short) <= {"Timestamp", "Duration"})
    if name == "+":
        require(short != ("Timestamp", "Timestamp"))
        total = one.nanos + two.nanos
    else:
        require(short != ("Duration", "Timestamp"))
        total = one.nanos - two.nanos
    if short.count("Timestamp") == 1:
        return moment(total)
    return Duration(ranged(total, "int"))


def index(holder: Any, key: Any) -> Any:
    if kind(holder) == "list":
        require(kind(key) in {"int", "uint", "double"} and math.isfinite(key))
        require(key == math.floor(key) and 0 <= key < len(holder))
        return holder[int(key)]
    require(kind(holder) == "map")
    for found, value in holder.items():
        if alike(found[0] if type(found) is tuple else found, key):
            return value
    raise Failed("no such key")


def within(item: Any, holder: Any) -> bool:
    require(kind(holder) in {"list", "map"})
    keys = [key[0] if type(key) is tuple and kind(holder) == "map" else key for key in holder]
    return any(alike(item, key) for key in keys)


def negated(value: Any) -> Any:
    require(kind(value) in {"int", "double"})
    return -value if kind(value) == "double" else ranged(-value, "int")


def inverted(value: Any) -> bool:
    require(type(value) is bool)
    return not value


def measured(value: Any) -> int:
    require(kind(value) in {"string", "bytes", "list", "map"})
    return len(value)


def texts(method: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    def asked(text: Any, part: Any) -> bool:
        require(kind(text) == kind(part) == "string")
        return method(text, part)

    return asked


def searched(text: Any, regex: Any) -> bool:
    require(type(text) is str and isinstance(regex, TextRegex))
    return re.search(regex.source, text) is not None


def as_int(value: Any) -> Any:
    if kind(value) == "string":
        require(re.fullmatch("[+-]?[0-9]+", value))
        return ranged(int(value[:1000]), "int")
    if isinstance(value, Timestamp):
        return math.floor(Fraction(value.nanos, 10**9))
    require(kind(value) in {"int", "uint", "double"})
    require(kind(value) != "double" or -(2.0**63) < value < 2.0**63)
    return ranged(int(value), "int")


def as_uint(value: Any) -> Any:
    if kind(value) == "string":
        require(re.fullmatch("[0-9]+", value))
        return ranged(int(value[:1000]), "uint")
    require(kind(value) in {"int", "uint", "double"})
    require(kind(value) != "double" or 0 <= value < 2.0**64)
    return ranged(int(value), "uint")


def as_double(value: Any) -> Any:
    if kind(value) == "string":
        if value in {"NaN", "Infinity", "+Infinity", "-Infinity"}:
            return float(value)
        require(re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", value))
        return float(value)
    require(kind(value) in {"int", "uint", "double"})
    return float(value)


def as_string(value: Any) -> Any:
    require(kind(value) not in {"list", "map", "null_type", "type"})
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise Failed("no text") from error
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        named = {math.inf: "Infinity", -math.inf: "-Infinity"}
        return "NaN" if math.isnan(value) else named.get(value) or re.sub(r"\.0$", "", repr(value))
    if isinstance(value, Duration | Timestamp):
        seconds, nanos = divmod(abs(value.nanos) if isinstance(value, Duration) else value.nanos, 10**9)
        part = re.sub("0+$", "", f".{nanos:09}") if nanos else ""
        if isinstance(value, Duration):
            return f"{'-' * (value.nanos < 0)}{seconds}{part}s"
        return (EPOCH + dt.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0") + f"{part}Z"
    return str(int(value)) if isinstance(value, int) else value


def as_bytes(value: Any) -> Any:
    require(kind(value) in {"bytes", "string"})
    try:
        return value if isinstance(value, bytes) else value.encode()
    except UnicodeEncodeError as error:
        raise Failed("a lone surrogate") from error


def as_bool(value: Any) -> Any:
    if kind(value) == "string":
        require(value in {"1", "t", "true", "TRUE", "True", "0", "f", "false", "FALSE", "False"})
        return value[0] in "1tT"
    require(kind(value) == "bool")
    return value


def offset(zone: str) -> dt.timedelta:
    if zone in {"UTC", "Z"}:
        return dt.timedelta()
    found = re.fullmatch("([+-]?)([01][0-9]|2[0-3]):([0-5][0-9])", zone, re.ASCII)
    require(found)
    assert found is not None
    ahead = dt.timedelta(hours=int(found[2]), minutes=int(found[3]))
    return -ahead if found[1] == "-" else ahead


def as_timestamp(value: Any) -> Any:
    if isinstance(value, Timestamp):
        return value
    if kind(value) == "int":
        return moment(value * 10**9)
    require(kind(value) == "string" and len(value) <= 64)
    found = re.fullmatch(
        r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?(Z|[+-][0-9]{2}:[0-9]{2})", value
    )
    require(found)
    assert found is not None
    try:
        local = dt.datetime.strptime(found[1], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=dt.UTC)
    except ValueError as error:
        raise Failed("no such moment") from error
    seconds = (local - EPOCH - offset(found[3])) // dt.timedelta(seconds=1)
    return moment(seconds * 10**9 + int((found[2] or "0")[:9].ljust(9, "0")))


def as_duration(value: Any) -> Any:
    if isinstance(value, Duration):
        return value
    require(kind(value) == "string" and len(value) <= 64)
    part = r"([0-9]*)\.?([0-9]*)(ns|us|µs|μs|ms|s|m|h)"
    require(re.fullmatch(rf"[+-]?(0|(({part})+))", value))
    units = {
        "ns": 1,
        "us": 10**3,
        "µs": 10**3,
        "μs": 10**3,
        "ms": 10**6,
        "s": 10**9,
        "m": 60 * 10**9,
        "h": 3600 * 10**9,
    }
    total = 0
    for whole, fraction, unit in re.findall(part, value):
        require(whole or fraction)
        total += int(whole or 0) * units[unit] + int(fraction or 0) * units[unit] // 10 ** len(fraction)
    return Duration(ranged(-total if value[0] == "-" else total, "int"))


PARTS: dict[str, Callable[[dt.datetime], int]] = {
    "getFullYear": lambda local: local.year,
    "getMonth": lambda local: local.month - 1,
    "getDayOfYear": lambda local: int(local.strftime("%j")) - 1,
    "getDayOfMonth": lambda local: local.day - 1,
    "getDate": lambda local: local.day,
    "getDayOfWeek": lambda local: int(local.strftime("%w")),
    "getHours": lambda local: local.hour,
    "getMinutes": lambda local: local.minute,
    "getSeconds": lambda local: local.second,
    "getMilliseconds": lambda local: local.microsecond // 1000,
}


def part_of(name: str) -> Callable[..., Any]:
    def asked(value: Any, zone: Any = "UTC", *more: Any) -> Any:
        require(not more and type(zone) is str)
        if isinstance(value, Duration) and zone == "UTC":
            spans = {"getHours": 3600, "getMinutes": 60, "getSeconds": 1}
            require(name in {*spans, "getMilliseconds"})
            if name == "getMilliseconds":
                part = abs(value.nanos) % 10**9 // 10**6
                return part if value.nanos > 0 else -part
            return math.trunc(Fraction(value.nanos, spans[name] * 10**9))
        require(isinstance(value, Timestamp))
        try:
            return PARTS[name](EPOCH + dt.timedelta(microseconds=value.nanos // 1000) + offset(zone))
        except OverflowError as error:
            raise Failed("no such local time") from error

    return asked


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "_==_": alike,
    "_!=_": lambda one, two: not alike(one, two),
    "_<_": lambda one, two: operator.lt(*ordered(one, two)),
    "_<=_": lambda one, two: operator.le(*ordered(one, two)),
    "_>_": lambda one, two: operator.gt(*ordered(one, two)),
    "_>=_": lambda one, two: operator.ge(*ordered(one, two)),
    **{f"_{sign}_": lambda one, two, sign=sign: numbers(sign, one, two) for sign in "+-*/%"},
    "@in": within,
    "_[_]": index,
    "!_": inverted,
    "-_": negated,
    "size": measured,
    "contains": texts(str.__contains__),
    "startsWith": texts(str.startswith),
    "endsWith": texts(str.endswith),
    "matches": searched,
    "int": as_int,
    "uint": as_uint,
    "double": as_double,
    "string": as_string,
    "bytes": as_bytes,
    "bool": as_bool,
    "timestamp": as_timestamp,
    "duration": as_duration,
    "dyn": lambda value: value,
    "type": lambda value: TypeValue(kind(value)),
    **{name: part_of(name) for name in PARTS},
}
