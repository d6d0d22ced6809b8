"""Timestamps and durations: reading, writing, and their parts in UTC or at a fixed offset.

Source: RFC 3339, section 5.6; durations as cel-spec writes them (`1h30m`, `-2.5s`). Zones with names need a data base
that changes, so that the same policy would decide differently on two machines; they are refused.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, Final

from checkstream.core.cel.arithmetic import refused
from checkstream.core.cel.values import (
    SECOND,
    Duration,
    EvalError,
    Timestamp,
    Value,
    duration_value,
    timestamp_value,
)

MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
_MILLI: Final = 10**6
_DAY: Final = 24 * HOUR
_EPOCH: Final = dt.date(1970, 1, 1).toordinal()
_UNITS: Final = {"h": HOUR, "m": MINUTE, "s": SECOND, "ms": _MILLI, "us": 1000, "µs": 1000, "μs": 1000, "ns": 1}
_MAX_CHARS: Final = 64
"""The longest text of a timestamp or duration that is read."""
_NOT_A_TIMESTAMP: Final = EvalError("not a timestamp; write it as `2026-01-31T12:00:00Z`")
_NOT_A_DURATION: Final = EvalError("not a duration; write it as `90s` or `1h30m`")


def read_timestamp(text: str) -> Value:
    """Read RFC 3339, as `2009-02-13T23:31:30.5+01:00`."""
    day, clock = text[:10], text[11:19]
    if len(text) > _MAX_CHARS or text[10:11] != "T" or not (_shaped(day, "0000-00-00") and _shaped(clock, "00:00:00")):
        return _NOT_A_TIMESTAMP
    rest, fraction = text[19:], 0
    if rest.startswith("."):
        digits = rest[1:]
        rest = digits.lstrip("0123456789")
        digits = digits[: len(digits) - len(rest)]
        if not digits:
            return _NOT_A_TIMESTAMP
        fraction = int(digits[:9].ljust(9, "0"))
    zone = 0 if rest == "Z" else _offset(rest) if rest[:1] in {"+", "-"} else None
    hour, minute, second = int(clock[:2]), int(clock[3:5]), int(clock[6:])
    if zone is None or hour > 23 or minute > 59 or second > 59:
        return _NOT_A_TIMESTAMP
    try:
        days = dt.date(int(day[:4]), int(day[5:7]), int(day[8:])).toordinal() - _EPOCH
    except ValueError:
        return EvalError("no such day in the years 1 to 9999")
    return timestamp_value(days * _DAY + hour * HOUR + minute * MINUTE + second * SECOND + fraction - zone)


def _shaped(text: str, shape: str) -> bool:
    return len(text) == len(shape) and all(
        ("0" <= char <= "9") if model == "0" else char == model for char, model in zip(text, shape, strict=True)
    )


def _offset(text: str) -> int | None:
    """Return the nanoseconds that `+01:00`, `-02:30` or `02:00` stands for, or None."""
    clock = text[1:] if text[:1] in {"+", "-"} else text
    if not _shaped(clock, "00:00") or int(clock[:2]) > 23 or int(clock[3:]) > 59:
        return None
    nanos = int(clock[:2]) * HOUR + int(clock[3:]) * MINUTE
    return -nanos if text[0] == "-" else nanos


def zone_offset(zone: str) -> int | None:
    """Return the nanoseconds by which a zone is ahead of UTC, or None when it has a name or is no zone."""
    return 0 if zone in {"UTC", "Z"} else _offset(zone)


def read_duration(text: str) -> Value:
    """Read numbers with units, as `1h30m`, `-2.5s` or `0`."""
    if len(text) > _MAX_CHARS:
        return _NOT_A_DURATION
    negative = text[:1] == "-"
    rest = text[1:] if text[:1] in {"+", "-"} else text
    if rest == "0":
        return Duration(0)
    total, digits_seen = 0, False
    while rest:
        whole, rest = _digits(rest)
        fraction = ""
        if rest.startswith("."):
            fraction, rest = _digits(rest[1:])
        unit = next((unit for unit in ("ms", "ns", "us", "µs", "μs", "h", "m", "s") if rest.startswith(unit)), None)
        if unit is None or not (whole or fraction):
            return _NOT_A_DURATION
        digits_seen = True
        rest = rest[len(unit) :]
        scale = _UNITS[unit]
        total += int(whole or "0") * scale + int(fraction or "0") * scale // 10 ** len(fraction)
    return duration_value(-total if negative else total) if digits_seen else _NOT_A_DURATION


def _digits(text: str) -> tuple[str, str]:
    rest = text.lstrip("0123456789")
    return text[: len(text) - len(rest)], rest


def write_timestamp(value: Timestamp) -> str:
    """Write RFC 3339 in UTC, with as many digits of the second as it has."""
    days, nanos = divmod(value.nanos, _DAY)
    date = dt.date.fromordinal(days + _EPOCH)
    clock = f"{nanos // HOUR:02}:{nanos // MINUTE % 60:02}:{nanos // SECOND % 60:02}"
    return f"{date.year:04}-{date.month:02}-{date.day:02}T{clock}{_fraction(nanos % SECOND)}Z"


def write_duration(value: Duration) -> str:
    """Write seconds, as `-2.5s`."""
    seconds, nanos = divmod(abs(value.nanos), SECOND)
    return f"{'-' if value.nanos < 0 else ''}{seconds}{_fraction(nanos)}s"


def _fraction(nanos: int) -> str:
    return f".{nanos:09}".rstrip("0") if nanos else ""


Part = Callable[[dt.date, int], int]
"""Takes the day and the nanoseconds into it."""

_PARTS: Final[dict[str, Part]] = {
    "getFullYear": lambda day, _: day.year,
    "getMonth": lambda day, _: day.month - 1,
    "getDayOfYear": lambda day, _: day.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda day, _: day.day - 1,
    "getDate": lambda day, _: day.day,
    "getDayOfWeek": lambda day, _: day.isoweekday() % 7,
    "getHours": lambda _, nanos: nanos // HOUR,
    "getMinutes": lambda _, nanos: nanos // MINUTE % 60,
    "getSeconds": lambda _, nanos: nanos // SECOND % 60,
    "getMilliseconds": lambda _, nanos: nanos // _MILLI % 1000,
}
_SPANS: Final = {"getHours": HOUR, "getMinutes": MINUTE, "getSeconds": SECOND}
ACCESSORS: Final = tuple(_PARTS)


def accessor(name: str) -> Callable[[Any], Value]:
    """Return the function of that name: of a timestamp in UTC, or of a duration."""
    part, span = _PARTS[name], _SPANS.get(name)

    def of(value: Any) -> Value:
        if type(value) is Timestamp:
            return _part_at(part, value, 0)
        if type(value) is Duration and (span is not None or name == "getMilliseconds"):
            nanos = abs(value.nanos)
            whole = nanos // span if span else nanos // _MILLI % 1000
            return -whole if value.nanos < 0 else whole
        return refused(name, value)

    return of


def accessor_in_zone(name: str) -> Callable[[Any, Any], Value]:
    """Return the function of that name: of a timestamp in a zone."""
    part = _PARTS[name]

    def of(value: Any, zone: Any) -> Value:
        if type(value) is not Timestamp or type(zone) is not str:
            return refused(name, value, zone)
        offset = zone_offset(zone)
        if offset is None:
            return EvalError("no such zone: `UTC` and offsets such as `+01:00` are known, zones with names are not")
        return _part_at(part, value, offset)

    return of


def _part_at(part: Part, value: Timestamp, offset: int) -> Value:
    days, nanos = divmod(value.nanos + offset, _DAY)
    try:
        return part(dt.date.fromordinal(days + _EPOCH), nanos)
    except ValueError:
        return EvalError("a local time passes the range of years 1 to 9999")
