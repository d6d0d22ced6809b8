"""The event-stream rules of WHATWG HTML 9.2, with the standard's own examples."""

from __future__ import annotations

import pytest

from checkstream.core.wire import sse
from checkstream.core.wire.sse import Decoder
from checkstream.core.wire.surface import Frame
from checkstream.errors import EventTooLarge, WireError


def decode(*reads: bytes, cap: int = 1 << 20) -> list[Frame]:
    decoder = Decoder(cap)
    frames = [frame for read in reads for frame in decoder.decode(read)]
    return frames + decoder.flush()


def dispatched(*reads: bytes) -> list[tuple[str, bytes]]:
    return [(frame.event, frame.data) for frame in decode(*reads) if frame.data is not None and frame.complete]


# The examples of WHATWG HTML 9.2.6, in its order.
STANDARD = [
    (b"data: YHOO\ndata: +2\ndata: 10\n\n", [("", b"YHOO\n+2\n10")]),
    (
        b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n",
        [("", b"first event"), ("", b"second event")],
    ),
    (b"data\n\ndata\ndata\n\ndata:", [("", b""), ("", b"\n")]),
    (b"data:test\n\ndata: test\n\n", [("", b"test"), ("", b"test")]),
    (
        b"event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\nevent: add\ndata: 113411\n\n",
        [("add", b"73857293"), ("remove", b"2153"), ("add", b"113411")],
    ),
]


@pytest.mark.parametrize("ending", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize(("stream", "events"), STANDARD)
def test_g19_standard_examples_with_each_line_end(
    stream: bytes, events: list[tuple[str, bytes]], ending: bytes
) -> None:
    stream = stream.replace(b"\n", ending)
    events = [(event, data.replace(b"\n", b" ")) for event, data in events]
    assert dispatched(stream) == events
    assert dispatched(*(stream[i : i + 1] for i in range(len(stream)))) == events


def test_g19_byte_order_mark_is_skipped_at_the_start_only() -> None:
    bom = b"\xef\xbb\xbf"
    assert dispatched(bom + b"data: a\n\n") == [("", b"a")]
    assert dispatched(bom[:1], bom[1:], b"data: a\n\n") == [("", b"a")]
    assert dispatched(b"data: a\n\n", bom + b"data: b\n\n") == [("", b"a")]
    assert decode(bom + b"data: a\n\n")[0].raw == b"data: a\n\n"


def test_g19_only_one_leading_space_is_stripped() -> None:
    assert dispatched(b"data:  a \n\n") == [("", b" a ")]


def test_g19_field_names_are_exact() -> None:
    assert dispatched(b"DATA: a\n\ndatas: b\n\n data: c\n\ndata : d\n\n") == []


def test_g19_nul_in_an_id_and_a_bad_retry_change_nothing() -> None:
    assert dispatched(b"id: a\0b\nretry: soon\ndata: x\n\n") == [("", b"x")]


def test_g19_split_utf8_comes_out_whole() -> None:
    stream = "data: Grüße 😀\n\n".encode()
    for cut in range(len(stream)):
        assert dispatched(stream[:cut], stream[cut:]) == [("", "Grüße 😀".encode())]


@pytest.mark.parametrize("raw", [b": ping\n\n", b":\r\r", b"id: 1\n: x\n\n", b"event: x\r\n:x\r\n\r\n"])
def test_g36_comments_become_ours(raw: bytes) -> None:
    (frame,) = decode(raw)
    assert (frame.raw, frame.data) == (sse.KEEP_ALIVE, None)


def test_g36_what_no_client_needs_does_not_leave() -> None:
    assert decode(b": ping\n", b"id: 4\nretry: 1\nfoo: b\ndata: a\n\n") == [
        Frame(raw=b"data: a\n\n", data=b"a", strange=True)
    ]
    assert [frame.raw for frame in decode(b"id: 4\n\nevent: x\n\n\n\n")] == [b"", b""]


def test_a_type_leaves_where_clients_know_it() -> None:
    (known, unknown) = Decoder(events={"error"}).decode(b"event: error\ndata: a\n\nevent: thread.x\ndata: b\n\n")
    assert (known.raw, known.event) == (b"event: error\ndata: a\n\n", "error")
    assert (unknown.raw, unknown.event) == (b"data: b\n\n", "thread.x")


def test_what_is_no_utf8_is_shown_as_it_came_and_never_leaves() -> None:
    (frame,) = decode(b"data: a\xff\n\n")
    assert (frame.raw, frame.data) == ("data: a\ufffd\n\n".encode(), b"a\xff")


def test_unfinished_event_comes_incomplete() -> None:
    assert decode(b"data: [DONE]\n") == [Frame(raw=b"data: [DONE]\n\n", data=b"[DONE]", complete=False)]
    assert decode(b"data: a\n\n") == [Frame(raw=b"data: a\n\n", data=b"a")]
    assert decode() == []


def test_crlf_split_between_reads_is_one_line_end() -> None:
    assert decode(b"data: a\r", b"\ndata: b\r\n\r", b"\n") == [
        Frame(raw=b"data: a b\n\n", data=b"a b"),
    ]


def test_cr_only_event_is_not_kept_waiting_for_a_line_feed() -> None:
    decoder = Decoder()
    assert decoder.decode(b"data: a\r\r") == [Frame(raw=b"data: a\n\n", data=b"a")]
    # A line feed that follows belongs to that line end.
    assert decoder.decode(b"\ndata: b\n\n") == [Frame(raw=b"data: b\n\n", data=b"b")]


def test_crlf_at_the_end_of_the_stream_without_its_line_feed_ends_the_event() -> None:
    assert decode(b"data: a\r\n\r") == [Frame(raw=b"data: a\n\n", data=b"a")]
    assert decode(b"data: a\r") == [Frame(raw=b"data: a\n\n", data=b"a", complete=False)]
    assert decode(b"data: a\r\r\n") == [Frame(raw=b"data: a\n\n", data=b"a")]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n", b"\n\r"])
def test_blank_lines_between_events_are_no_events(end: bytes) -> None:
    read = decode(end * 9, b"data: a" + end * 9, end * 9, b"data: b" + end * 9)
    assert [frame.data for frame in read] == [b"a", b"b"]


def test_a_byte_order_mark_behind_a_blank_line_is_none() -> None:
    assert decode(b"\n\xef\xbb\xbfdata: a\n\n") == [Frame(raw=b"", data=None, strange=True)]


def test_g33_an_event_of_more_lines_than_anybody_writes_is_not_read() -> None:
    for end in (b"\n", b"\r", b"\r\n"):
        assert decode(b"data: x" + end + (b"data:" + end) * 5000 + end) == [Frame(b"", None, strange=True)]


def test_a_long_event_is_told_as_a_short_one_is() -> None:
    for inner in ("x", "\u2028", "\x0b", "\x85", "\x1e"):
        for size in (1, 3000):
            (frame,) = decode(b'data: "' + (inner * size).encode() + b'"\n\n')
            assert len(frame.raw.decode().splitlines()) == 2
            assert frame.data is not None
            assert frame.raw == b"data: " + frame.data + b"\n\n"


def test_g22_an_event_that_never_ends_is_refused_at_the_cap() -> None:
    decoder = Decoder(100)
    decoder.decode(b"data: " + b"x" * 94)
    with pytest.raises(EventTooLarge, match="`100`"):
        decoder.decode(b"x")
    assert decoder.held_bytes == 0
    with pytest.raises(EventTooLarge):
        decoder.decode(b"\n\n")
    with pytest.raises(EventTooLarge):
        decoder.flush()


@pytest.mark.parametrize("ending", [b"\n", b"\r", b"\r\n"])
def test_g22_the_cap_counts_whole_events_and_spares_those_before(ending: bytes) -> None:
    good = b"data: a" + ending + ending
    bad = b": c" + ending + b"data: " + b"x" * 30 + ending + ending
    decoder = Decoder(len(bad) - 1)
    assert [frame.data for frame in decoder.decode(good + bad + good)] == [b"a"]
    with pytest.raises(EventTooLarge):
        decoder.decode(b"")
    assert [frame.data for frame in decode(good + bad + good, cap=len(bad))] == [b"a", b"x" * 30, b"a"]


def test_g22_one_oversized_event_in_one_read() -> None:
    with pytest.raises(EventTooLarge):
        Decoder(10).decode(b"data: 123456789\n\n")


def test_g10_tiny_reads_do_not_search_again() -> None:
    class Counting(bytearray):
        looked = 0

        def find(self, *args: object) -> int:
            Counting.looked += len(self) - int(str(args[1]))
            return super().find(*args)  # type: ignore[arg-type]

    for first in (b"x", b"\rx"):
        Counting.looked = 0
        decoder = Decoder()
        decoder._held = Counting()
        decoder.decode(first)
        for _ in range(2000):
            decoder.decode(b"x")
        assert Counting.looked < 3 * 2 * 2001


def test_g36_what_is_encoded_stands_on_one_line() -> None:
    assert sse.encode(b"a\r\nb\rc\n", "ping") == b"event: ping\ndata: a  b c \n\n"
    assert sse.encode('"\u2028\x85\x0b"'.encode()) == b'data: "\\u2028\\u0085\\u000b"\n\n'
    with pytest.raises(WireError):
        sse.encode(b"", "a\nb")
    with pytest.raises(WireError):
        sse.encode(b"", "a\u2028b")


def test_our_comment_ends_no_event() -> None:
    assert dispatched(b"data: a\n" + sse.KEEP_ALIVE + b"data: b\n\n") == [("", b"a b")]


@pytest.mark.parametrize("head", [b"", b"event: error\n"])
def test_reframe_keeps_the_type(head: bytes) -> None:
    assert sse.reframe(head + b"data: old\n\n", '"a\u2029"'.encode()) == head + b'data: "a\\u2029"\n\n'
    assert sse.parse(head + b"data: old\n\n").data == b"old"


def test_an_event_of_many_lines_is_one_for_clients_that_take_each_line_for_one() -> None:
    (frame,) = decode(b'data: {"x":\ndata: {"choices": []}\ndata: }\n\n')
    assert frame.raw == b'data: {"x": {"choices": []} }\n\n'
