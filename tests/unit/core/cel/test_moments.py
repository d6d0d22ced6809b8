"""Timestamps and durations."""

from __future__ import annotations

import pytest

from checkstream.core.cel.moments import (
    accessor,
    accessor_in_zone,
    read_duration,
    read_timestamp,
    write_duration,
    write_timestamp,
    zone_offset,
)
from checkstream.core.cel.values import SECOND, Duration, EvalError, Timestamp, Value


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T01:00:00.5+01:00", SECOND // 2),
        ("1969-12-31T21:30:00-02:30", 0),
        ("2009-02-13T23:31:30Z", 1234567890 * SECOND),
        ("2024-02-29T00:00:00.123456789123Z", 1709164800 * SECOND + 123456789),
        ("0001-01-01T00:00:00Z", -62135596800 * SECOND),
        ("9999-12-31T23:59:59.999999999Z", 253402300800 * SECOND - 1),
    ],
)
def test_a_timestamp_is_read(text: str, nanos: int) -> None:
    assert read_timestamp(text) == Timestamp(nanos)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2009-02-13",
        "2009-02-13 23:31:30Z",
        "2009-02-13t23:31:30Z",
        "2009-02-13T23:31:30",
        "2009-02-13T23:31:30z",
        "2009-02-13T24:00:00Z",
        "2009-02-13T23:60:00Z",
        "2009-02-13T23:59:60Z",
        "2009-02-30T00:00:00Z",
        "2009-13-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "2009-02-13T23:31:30.Z",
        "2009-02-13T23:31:30+1:00",
        "2009-02-13T23:31:30+24:00",
        "2009-02-13T23:31:3\u0660Z",
        "2009-02-13T23:31:30." + "1" * 100 + "Z",
    ],
)
def test_what_is_no_timestamp_is_an_error(text: str) -> None:
    assert isinstance(read_timestamp(text), EvalError)


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("0", 0),
        ("90s", 90 * SECOND),
        ("1h30m", 5400 * SECOND),
        ("-1.5h", -5400 * SECOND),
        ("+2ms", 2_000_000),
        ("1us1ns", 1001),
        (".5s", SECOND // 2),
        ("1.s", SECOND),
        ("0.0000000009s", 0),
    ],
)
def test_a_duration_is_read(text: str, nanos: int) -> None:
    assert read_duration(text) == Duration(nanos)


@pytest.mark.parametrize(
    "text", ["", "-", "1", "s", ".s", "1d", "1 s", "1h-1m", "--1s", "9999999999999999s", "1s" * 40]
)
def test_what_is_no_duration_is_an_error(text: str) -> None:
    assert isinstance(read_duration(text), EvalError)


@pytest.mark.parametrize("nanos", [0, 1, -1, SECOND, -1500 * 10**6, 2**62, -(2**62)])
def test_what_is_written_reads_back(nanos: int) -> None:
    assert read_timestamp(write_timestamp(Timestamp(nanos))) == Timestamp(nanos)
    assert read_duration(write_duration(Duration(nanos))) == Duration(nanos)


def test_fractions_are_written_as_short_as_can_be() -> None:
    assert write_timestamp(Timestamp(500_000_000)) == "1970-01-01T00:00:00.5Z"
    assert write_duration(Duration(-1_500_000_000)) == "-1.5s"
    assert write_duration(Duration(0)) == "0s"


def test_zones_are_utc_or_an_offset() -> None:
    found = [zone_offset(zone) for zone in ("UTC", "+01:00", "-02:30", "02:00", "-00:00")]
    assert found == [0, 3600 * SECOND, -9000 * SECOND, 7200 * SECOND, 0]
    for zone in ("", "Europe/Berlin", "utc", "+1:00", "+25:00", "+01:60", "+01:00 "):
        assert zone_offset(zone) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("getFullYear", 2009),
        ("getMonth", 1),
        ("getDate", 13),
        ("getDayOfMonth", 12),
        ("getDayOfYear", 43),
        ("getDayOfWeek", 5),
        ("getHours", 23),
        ("getMinutes", 31),
        ("getSeconds", 30),
        ("getMilliseconds", 123),
    ],
)
def test_a_timestamp_has_its_parts(name: str, value: int) -> None:
    at = Timestamp(1234567890 * SECOND + 123456789)
    assert accessor(name)(at) == accessor_in_zone(name)(at, "UTC") == value


def test_a_zone_moves_the_day() -> None:
    at = Timestamp(1234567890 * SECOND)
    assert accessor_in_zone("getDate")(at, "+01:00") == 14
    assert accessor_in_zone("getHours")(at, "-23:59") == 23
    assert isinstance(accessor_in_zone("getHours")(at, "Asia/Tokyo"), EvalError)
    assert isinstance(accessor_in_zone("getDate")(Timestamp(-62135596800 * SECOND), "-00:01"), EvalError)


@pytest.mark.parametrize(
    ("name", "value"), [("getHours", -1), ("getMinutes", -90), ("getSeconds", -5400), ("getMilliseconds", -250)]
)
def test_a_duration_has_its_parts(name: str, value: Value) -> None:
    assert accessor(name)(Duration(-(5400 * SECOND + 250_000_000))) == value
    assert isinstance(accessor("getDate")(Duration(0)), EvalError)
