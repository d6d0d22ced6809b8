from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.control.telemetry.packing import packed, unpacked
from checkstream.errors import RequestInvalid


@given(st.binary(max_size=3000))
def test_what_was_packed_comes_out_and_nothing_longer_than_allowed(content: bytes) -> None:
    frame = packed(content)
    assert unpacked(frame, len(content)) == content
    if content:
        with pytest.raises(RequestInvalid, match="longer than"):
            unpacked(frame, len(content) - 1)


def test_of_a_bomb_no_more_is_made_than_allowed() -> None:
    bomb = packed(bytes(1 << 28))
    assert len(bomb) < 1 << 15
    with pytest.raises(RequestInvalid, match="longer than 65536 bytes"):
        unpacked(bomb, 1 << 16)


@given(st.binary(max_size=200), st.data())
def test_what_is_cut_or_followed_or_no_frame_is_refused(content: bytes, data: st.DataObject) -> None:
    frame = packed(content)
    cut = data.draw(st.integers(0, len(frame) - 1))
    for other in (frame[:cut], frame + b"x", frame + frame, content + b"\x00"):
        with pytest.raises(RequestInvalid, match="Zstandard"):
            unpacked(other, 10_000)
