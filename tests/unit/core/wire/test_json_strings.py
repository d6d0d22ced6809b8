"""Texts written as JSON: at once, or piece by piece."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.wire.json_text.strings import Quoted, quote, quote_like

HALVES = st.sampled_from(["", "\\ud83d", "\\ude00", "\\ud83d\\ude00", "\\\\ud83d", "\\\\", "\\u0041", "a", "\\n"])
TEXTS = st.text('ab"\\\n\x01\u2028\u6f22\U0001f600\ud83d\ude00', max_size=12)


@given(st.lists(TEXTS, min_size=1, max_size=6))
def test_a_text_written_piece_by_piece_is_what_it_is_at_once(pieces: list[str]) -> None:
    text = Quoted.of((piece, quote(piece)) for piece in pieces)
    assert text == "".join(pieces)
    assert quote(text) == quote("".join(pieces))
    assert quote(text + "!") == quote("".join(pieces) + "!"), "what is made of it is a text like others"


@given(HALVES, HALVES, HALVES, st.sampled_from(["new", "\U0001f600x", "x\ufffd", "\ufffd"]))
def test_a_long_text_begins_and_ends_with_the_halves_that_a_short_one_does(
    begins: str, ends: str, last: str, text: str
) -> None:
    short, long = (f'"{begins}{"-" * size}{ends}{last}"' for size in (1, 5000))
    assert quote_like(text, long) == quote_like(text, short)
