"""Laws of the event-stream decoder: no split of the bytes is ever seen (G3, G19)."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.wire import sse
from checkstream.core.wire.sse import Decoder
from checkstream.core.wire.surface import Frame
from checkstream.errors import EventTooLarge
from tests.chance import examples

PIECES = [b"\n", b"\r", b"\r\n", b"\n\n", b"\r\n\r\n", b"\r\r", b"data", b"data:", b"data: x", b":c", b"event: e"]
PIECES += [b"id: \0", b" ", "é😀".encode(), b"\xef\xbb\xbf", b"\xff", b'data: {"a":1}\n\n']
streams = st.lists(st.sampled_from(PIECES), max_size=20).map(b"".join) | st.binary(max_size=60)


def run(reads: list[bytes], cap: int) -> tuple[list[Frame], bool]:
    decoder = Decoder(cap)
    frames: list[Frame] = []
    try:
        for read in reads:
            frames += decoder.decode(read)
            assert decoder.held_bytes <= cap
        frames += decoder.flush()
    except EventTooLarge:
        return frames, True
    return frames, False


@settings(max_examples=examples(300), deadline=None)
@given(streams, st.lists(st.integers(0, 400), max_size=8), st.sampled_from([10, 25, 10_000]))
def test_g03_any_split_gives_equal_frames(stream: bytes, cuts: list[int], cap: int) -> None:
    at = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    whole = run([stream], cap)
    assert run([stream[a:b] for a, b in itertools.pairwise(at)], cap) == whole
    assert run([stream[i : i + 1] for i in range(len(stream))], cap) == whole


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def reference(stream: bytes) -> list[tuple[str, bytes]]:
    """WHATWG HTML 9.2.6, word for word and slowly."""
    text = stream.removeprefix(b"\xef\xbb\xbf")
    lines = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")[:-1]
    out: list[tuple[str, bytes]] = []
    data, event = b"", b""
    for line in lines:
        if not line:
            if data:
                out.append((event.decode("utf-8", "replace"), data.removesuffix(b"\n")))
            data, event = b"", b""
        elif not line.startswith(b":"):
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                data += value + b"\n"
            elif name == b"event":
                event = value
    return out


@settings(max_examples=examples(300), deadline=None)
@given(streams)
def test_g19_agrees_with_the_standard(stream: bytes) -> None:
    frames, _ = run([stream], 10_000)
    assert [(frame.event, frame.data) for frame in frames if frame.data is not None and frame.complete] == [
        (event, data if not is_utf8(data) else sse.one_line(data)) for event, data in reference(stream)
    ]


@settings(max_examples=examples(150), deadline=None)
@given(st.text(max_size=30), st.sampled_from(["", "error", "m 1"]))
def test_decode_of_encode_is_the_identity(text: str, event: str) -> None:
    data = sse.one_line(text.encode())
    (frame,) = Decoder(events={event}).decode(sse.encode(data, event))
    assert (frame.raw, frame.data, frame.event, frame.complete) == (sse.encode(data, event), data, event, True)
