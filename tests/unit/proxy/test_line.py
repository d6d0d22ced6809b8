"""What a line tells of an answer, whatever the network makes of its bytes."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.proxy.line import Head, Line

ROOM = 64
OK = b"HTTP/1.1 200 OK\r\n"
BODY = b"data: a\n\ndata: b\n\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n9\r\ndata: a\n\n\r\n9\r\ndata: b\n\n\r\n0\r\n\r\n"
SIZED = OK + b"Content-Length: 18\r\n\r\n" + BODY
Told = tuple[int, dict[str, str], bytes, str]


class Wire(asyncio.Transport):
    """The upstream's end, in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.hung_up = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert data == b"request"

    def is_closing(self) -> bool:
        return self.hung_up

    def abort(self) -> None:
        self.hung_up = True


class Taking:
    def __init__(self) -> None:
        self.head: Head | None = None
        self.body = b""
        self.end = ""

    def opened(self, head: Head) -> None:
        assert self.head is None
        self.head = head

    def took(self, data: bytes) -> None:
        assert data
        assert self.head is not None
        assert not self.end
        self.body += data

    def ended(self) -> None:
        assert not self.end
        self.end = "ended"

    def broke(self, kind: str, cause: Exception | None) -> None:  # noqa: ARG002 - the caller's words say enough
        assert not self.end
        self.end = kind

    @property
    def told(self) -> Told:
        status, headers = (self.head.status, dict(self.head.headers)) if self.head is not None else (0, {})
        return status, headers, self.body, self.end


def hear(pieces: list[bytes], *, bare: bool = False, closes: bool = True) -> tuple[Told, bool]:
    """Return what is told of an answer in these pieces, and whether the connection may be used again."""
    loop = asyncio.new_event_loop()
    try:
        kept: list[Line] = []
        room = memoryview(bytearray(ROOM))
        line, wire, taking = Line(loop, room, kept.append), Wire(), Taking()
        line.connection_made(wire)
        line.ask(b"request", taking, bare=bare, silence_s=60)
        for piece in pieces:
            for at in range(0, len(piece), ROOM):
                if not wire.hung_up:
                    part = piece[at : at + ROOM]
                    line.get_buffer(-1)[: len(part)] = part
                    line.buffer_updated(len(part))
        again = bool(kept) and not wire.hung_up
        if closes and not wire.hung_up:
            line.eof_received()
            line.connection_lost(None)
        return taking.told, again
    finally:
        loop.close()


ANSWERS: dict[str, tuple[bytes, Told]] = {
    "chunked": (CHUNKED, (200, {"Transfer-Encoding": "chunked"}, BODY, "ended")),
    "sized": (SIZED, (200, {"Content-Length": "18"}, BODY, "ended")),
    "until the end": (OK + b"X: y\r\n\r\n" + BODY, (200, {"X": "y"}, BODY, "ended")),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", (204, {}, b"", "ended")),
    "hints before": (b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + SIZED, (200, {"Content-Length": "18"}, BODY, "ended")),
    "trailers": (CHUNKED[:-2] + b"X: y\r\n\r\n", (200, {"Transfer-Encoding": "chunked"}, BODY, "ended")),
    "broken off in chunks": (CHUNKED[:-5], (200, {"Transfer-Encoding": "chunked"}, BODY, "reset")),
    "broken off": (SIZED[:-1], (200, {"Content-Length": "18"}, BODY[:-1], "reset")),
    "a chunk without a length": (CHUNKED[:-5] + b"zz\r\n", (200, {"Transfer-Encoding": "chunked"}, BODY, "reset")),
    "no head": (OK, (0, {}, b"", "reset")),
    "a status of no answer": (b"HTTP/1.1 000 X\r\nContent-Length: 0\r\n\r\n", (0, {}, b"", "protocol")),
    "a status behind all others": (b"HTTP/1.1 600 X\r\nContent-Length: 0\r\n\r\n", (0, {}, b"", "protocol")),
    "no HTTP": (b"+OK hello\r\n", (0, {}, b"", "protocol")),
    "another protocol": (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", (101, {"Upgrade": "x"}, b"", "ended")),
}


@pytest.mark.parametrize("name", ANSWERS)
@given(cuts=st.lists(st.integers(0, 200), max_size=6))
def test_g03_what_is_told_of_an_answer_does_not_depend_on_how_its_bytes_come(name: str, cuts: list[int]) -> None:
    data, told = ANSWERS[name]
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    assert hear([data[a:b] for a, b in itertools.pairwise(edges)])[0] == told


@pytest.mark.parametrize("name", ANSWERS)
def test_only_a_connection_whose_answer_ended_where_it_said_is_used_again(name: str) -> None:
    data, _ = ANSWERS[name]
    assert hear([data], closes=False)[1] is (name in {"chunked", "sized", "no content"})
    assert hear([data.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)], closes=False)[1] is False


def test_an_answer_to_head_has_no_body_whatever_it_says() -> None:
    assert hear([SIZED[:-18]], bare=True) == ((200, {"Content-Length": "18"}, b"", "ended"), False)


@pytest.mark.parametrize("where", ["head", "trailers", "hints"])
def test_g22_headers_without_an_end_are_refused(where: str) -> None:
    endless = (b"X-%d: y\r\n" % number for number in itertools.count())
    before = {"head": OK, "trailers": CHUNKED[:-2], "hints": b""}[where]
    more = (b"HTTP/1.1 103 Hints\r\nX: y\r\n\r\n" for _ in itertools.count()) if where == "hints" else endless
    told, again = hear([before, *itertools.islice(more, 100_000)])
    assert told[3] == ("reset" if where == "trailers" else "protocol")
    assert not again


ENDLESS = {
    "one header": (OK + b"X: ", b"y" * ROOM, "protocol"),
    "the name of a header": (OK, b"y" * ROOM, "protocol"),
    "hints without a header": (b"", b"HTTP/1.1 103 Hints\r\n\r\n", "protocol"),
    "the length of a chunk": (CHUNKED[:-5], b"0" * ROOM, "reset"),
    "what is told of a chunk": (CHUNKED[:-5] + b"5;", b"y" * ROOM, "reset"),
    "one trailer": (CHUNKED[:-2] + b"X: ", b"y" * ROOM, "reset"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_g22_what_stands_around_an_answer_and_never_ends_is_refused(name: str) -> None:
    before, more, kind = ENDLESS[name]
    told, again = hear([before, more * 10_000])
    assert (told[3], again) == (kind, False)


def test_an_answer_in_chunks_of_one_byte_is_one() -> None:
    said = b"".join(b"00000001\r\n%c\r\n" % sign for sign in BODY * 1000)
    told, again = hear([OK + b"Transfer-Encoding: chunked\r\n\r\n", said, b"0\r\n\r\n"], closes=False)
    assert (told[2:], again) == ((BODY * 1000, "ended"), True)


TRICKLES = {"head": (b"", OK + b"X: " + b"y" * 30), "chunk": (CHUNKED[:-5], b"0" * 30)}


@pytest.mark.parametrize("where", TRICKLES)
async def test_a_head_or_the_end_of_a_body_that_only_trickles_is_silence(where: str) -> None:
    before, trickling = TRICKLES[where]
    line, taking = Line(asyncio.get_running_loop(), memoryview(bytearray(1024)), lambda _: None), Taking()
    line.connection_made(Wire())
    line.ask(b"request", taking, bare=False, silence_s=0.1)
    for piece in (before, *(trickling[at : at + 1] for at in range(40))):
        if piece and not taking.end:
            line.get_buffer(-1)[: len(piece)] = piece
            line.buffer_updated(len(piece))
        await asyncio.sleep(0.01)
    assert taking.told[3] == "idle"


async def test_what_is_asked_of_a_line_that_is_gone_is_told_as_broken_off() -> None:
    line, taking = Line(asyncio.get_running_loop(), memoryview(bytearray(ROOM)), lambda _: None), Taking()
    line.ask(b"request", taking, bare=False, silence_s=1)
    assert taking.told[3] == "reset"


async def test_silence_is_told_once_it_has_lasted_and_not_while_nobody_wants_to_read() -> None:
    class Read(Wire):
        def pause_reading(self) -> None:
            pass

        def resume_reading(self) -> None:
            pass

    line, taking = Line(asyncio.get_running_loop(), memoryview(bytearray(ROOM)), lambda _: None), Taking()
    line.connection_made(Read())
    line.ask(b"request", taking, bare=False, silence_s=0.05)
    line.pause()
    await asyncio.sleep(0.15)
    assert not taking.end
    line.resume()
    await asyncio.sleep(0.15)
    assert taking.told[3] == "idle"
