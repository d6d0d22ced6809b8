"""Texts written as JSON: at once, or piece by piece."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.wire.json_text.strings import Quoted, quote

TEXTS = st.text('ab"\\\n\x01\u2028\u6f22\U0001f600\ud83d\ude00', max_size=12)


@given(st.lists(TEXTS, min_size=1, max_size=6))
def test_a_text_written_piece_by_piece_is_what_it_is_at_once(pieces: list[str]) -> None:
    text = Quoted.of((piece, quote(piece)) for piece in pieces)
    assert text == "".join(pieces)
    assert quote(text) == quote("".join(pieces))
    assert quote(text + "!") == quote("".join(pieces) + "!"), "what is made of it is a text like others"
