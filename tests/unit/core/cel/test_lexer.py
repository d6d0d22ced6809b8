"""Tokens."""

from __future__ import annotations

import pytest

from checkstream.core.cel.lexer import tokens
from checkstream.core.cel.values import Uint
from checkstream.errors import ExpressionError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("0x1F", 31),
        ("0X1fU", Uint(31)),
        ("7u", Uint(7)),
        ("1.5", 1.5),
        (".5e-1", 0.05),
        ("2e3", 2000.0),
        ("00000000000000000000000000001", 1),
        ("true", True),
        ("null", None),
        (r"'a\n\x41\u00e9\U0001F431\101\''", "a\nAé🐱A'"),
        ("'''a\n'b''c'''", "a\n'b''c"),
        (r"r'\n'", r"\n"),
        (r"b'\xff\377é'", b"\xff\xff\xc3\xa9"),
        (r"bR'\xff'", rb"\xff"),
        ('""', ""),
    ],
)
def test_a_literal_has_its_value(text: str, value: object) -> None:
    token, end = tokens(text)
    assert (token.kind, type(token.value), token.value) == ("literal", type(value), value)
    assert (end.kind, end.position) == ("end", len(text))


def test_names_marks_comments_and_places() -> None:
    found = tokens("a.b // b < c\n&& in `x-y`")
    assert [(token.kind, token.text, token.position) for token in found] == [
        ("name", "a", 0),
        ("mark", ".", 1),
        ("name", "b", 2),
        ("mark", "&&", 13),
        ("mark", "in", 16),
        ("quoted", "x-y", 19),
        ("end", "", 24),
    ]


def test_a_dot_after_a_number_is_not_its_own_unless_digits_follow() -> None:
    assert [token.text for token in tokens("1.size 1.5")] == ["1", ".", "size", "1.5", ""]


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("a = b", 2, "`=` means nothing here"),
        ("a & b", 2, "`&` means nothing here"),
        ("a\x00", 1, "`U+0000` means nothing here"),
        ("a\ud800", 1, "a lone surrogate is not a character"),
        ("'abc", 0, "a string is not closed"),
        ("'a\nb'", 0, "a string is not closed"),
        ("'''a'", 0, "a string is not closed"),
        (r"'\q'", 1, r"`\q'` is no escape"),
        (r"'\ud800'", 1, r"`\ud800` is no escape"),
        (r"'\U00110000'", 1, r"`\U00110000` is no escape"),
        (r"b'\u0041'", 2, r"`\u00` is no escape"),
        (r"'\4'", 1, r"`\4'` is no escape"),
        ("18446744073709551616u", 0, "a number passes the range of uint"),
        ("9" * 5000, 0, "a number passes the range of int"),
        ("1e999", 0, "a number passes the range of double"),
        ("12abc", 2, "a number runs into a name"),
        ("``", 0, "a quoted name is not closed"),
        ("`a", 0, "a quoted name is not closed"),
    ],
)
def test_what_is_no_token_is_refused_at_its_place(text: str, position: int, reason: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        tokens(text)
    assert (raised.value.position, raised.value.reason) == (position, reason)
    assert raised.value.advice
