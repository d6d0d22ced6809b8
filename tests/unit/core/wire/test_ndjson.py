"""Lines of JSON: cut the same however the network has cut them, and lines again when they leave."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.wire.frame import Frame
from checkstream.core.wire.framing import LINES
from checkstream.core.wire.ndjson import Decoder
from checkstream.errors import EventTooLarge

STREAMS = st.lists(
    st.sampled_from([
        b'{"a": 1}', b"\n", b"\r\n", b"\r", b"{}", b" ", b"\xef\xbb\xbf", b"\xff", b'{"b": "\xe2\x80\xa8"}', b"data: x",
    ]),
    max_size=12,
).map(b"".join)  # fmt: skip


def decode(*reads: bytes, cap: int = 1 << 20) -> list[Frame]:
    decoder = Decoder(cap)
    return [frame for read in reads for frame in decoder.decode(read)] + decoder.flush()


@given(STREAMS, st.lists(st.integers(0, 60)))
def test_g03_frames_do_not_depend_on_how_the_network_has_cut(stream: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[start:end] for start, end in itertools.pairwise(places)]
    assert decode(*pieces) == decode(stream) == decode(*(stream[i : i + 1] for i in range(len(stream))))


def test_g05_a_line_leaves_as_it_came() -> None:
    stream = b'{"a": "b \\n data: x"}\n{ "c":1 }\n'
    assert b"".join(LINES.out(frame.raw) for frame in decode(stream)) == stream
    assert LINES.out(b": keep-alive\n") == b""
    assert LINES.out(b': keep-alive\ndata: {}\n\nevent: error\ndata: {"a":1}\n\n') == b'{}\n{"a":1}\n'


def test_g36_what_some_client_takes_for_the_end_of_a_line_is_escaped() -> None:
    ends = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
    (frame,) = decode(f'{{"a": "{ends}"}}\n'.encode())
    assert frame.data is not None
    assert len(LINES.out(frame.raw).decode().splitlines()) == 1
    assert frame.data.decode() == '{"a": "' + "".join(f"\\u{ord(end):04x}" for end in ends) + '"}'


def test_a_last_line_may_have_no_end_and_empty_ones_are_none() -> None:
    assert [frame.data for frame in decode(b'\n\r\n  \n{"a":1}\r\n\n{"b":2}')] == [b'{"a":1}', b'{"b":2}']
    assert [frame.data for frame in decode(b'\xef\xbb\xbf{"a":1}\n\xef\xbb\xbf{}')] == [b'{"a":1}', b"\xef\xbb\xbf{}"]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_g22_a_line_over_the_cap_ends_the_stream_and_what_was_whole_before_it_counts(size: int) -> None:
    stream = b'{"a":1}\n' + b"x" * 200 + b"\n{}\n"
    decoder = Decoder(100)
    frames: list[Frame] = []

    def feed() -> None:
        for at in range(0, len(stream) + size, size):
            frames.extend(decoder.decode(stream[at : at + size]))
        decoder.flush()

    with pytest.raises(EventTooLarge, match="`100` bytes"):
        feed()
    assert [frame.data for frame in frames] == [b'{"a":1}']
    assert decoder.held_bytes == 0
