"""Conversions."""

from __future__ import annotations

import math

import pytest

from checkstream.core.cel.conversions import to_bytes, to_double, to_int, to_string, to_uint, type_of
from checkstream.core.cel.values import EvalError, TypeValue, Uint, Value


@pytest.mark.parametrize(
    ("text", "number"), [("12", 12), ("+5", 5), ("-0007", -7), ("9223372036854775807", 2**63 - 1), ("0" * 900 + "1", 1)]
)
def test_a_text_reads_as_int(text: str, number: int) -> None:
    assert to_int(text) == number


@pytest.mark.parametrize(
    "text", ["", "+", "1.0", " 1", "1_000", "0x10", "\u0661", "²", "9223372036854775808", "9" * 5000]
)
def test_a_text_that_is_no_int_is_an_error(text: str) -> None:
    assert isinstance(to_int(text), EvalError)


@pytest.mark.parametrize("text", ["-1", "+1", "", "18446744073709551616", "1u"])
def test_a_text_that_is_no_uint_is_an_error(text: str) -> None:
    assert isinstance(to_uint(text), EvalError)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 2.0**63, -(2.0**63), 1e300])
def test_a_double_beyond_int_is_an_error(value: float) -> None:
    assert isinstance(to_int(value), EvalError)
    assert to_uint(2.0**63) == Uint(2**63)
    assert isinstance(to_uint(-0.5), EvalError)
    assert isinstance(to_uint(2.0**64), EvalError)


@pytest.mark.parametrize("text", ["", "1_0", " 1", "1e", "inf", "nan", "0x1", "1,5", "1" * 500, "--1"])
def test_a_text_that_is_no_double_is_an_error(text: str) -> None:
    assert isinstance(to_double(text), EvalError)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-0.0, "-0"),
        (1.5, "1.5"),
        (1e300, "1e+300"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (Uint(3), "3"),
    ],
)
def test_a_number_is_written_so_that_it_reads_back(value: Value, text: str) -> None:
    assert to_string(value) == text
    again = to_double(text)
    assert again == value or (isinstance(again, float) and math.isnan(again))


def test_a_text_without_utf8_and_bytes_that_are_none_are_errors() -> None:
    assert to_bytes("é") == b"\xc3\xa9"
    assert isinstance(to_bytes("\ud800"), EvalError)
    assert isinstance(to_string(b"\xff"), EvalError)


def test_the_type_of_an_error_is_the_error() -> None:
    assert type_of(EvalError("x")) == EvalError("x")
    assert type_of(Uint(1)) == TypeValue("uint")
    assert type_of(type_of(1)) == TypeValue("type")
