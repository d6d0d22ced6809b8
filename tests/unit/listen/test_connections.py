from __future__ import annotations

import asyncio
import gc
import weakref
import zlib

import pytest
from aiohttp.test_utils import make_mocked_request
from aiohttp.web import BaseRequest, RequestPayloadError, Response, StreamResponse

from checkstream.config import Address
from checkstream.errors import BodyTooLarge, CallerUnknown, Overloaded
from checkstream.listen import Admission, Callers, Identity, Listener, Times, connection_of, read_body

TIMES = Times(header_s=0.2, write_s=1)


def request(**headers: str) -> BaseRequest:
    return make_mocked_request("POST", "/", headers={name.replace("_", "-"): value for name, value in headers.items()})


async def test_callers_have_their_own_keys() -> None:
    callers = Callers({"a": "key-a", "b": "key-b"})
    assert await callers.identify(request(authorization="Bearer key-a")) == Identity("a", "authorization")
    assert await callers.identify(request(authorization="bearer key-b")) == Identity("b", "authorization")
    assert await callers.identify(request(x_api_key="key-b", authorization="Bearer upstreams")) == Identity(
        "b", "x-api-key"
    )
    for wrong in ({}, {"authorization": "Bearer"}, {"authorization": "key-a"}, {"x_api_key": ""}, {"x_api_key": "kéy"}):
        with pytest.raises(CallerUnknown):
            await callers.identify(request(**wrong))


async def test_without_callers_everyone_is_nameless() -> None:
    assert await Callers(None).identify(request(authorization="Bearer x")) == Identity()


async def test_g24_a_shed_route_takes_requests_again_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    admission = Admission(streams=2, held_bytes=100)
    admission.shed("a")
    admission.look_whether_shed("b")
    now += 0.9
    with pytest.raises(Overloaded, match="checks"):
        admission.look_whether_shed("a")
    admission.shed("a")
    now += 0.9
    with pytest.raises(Overloaded):
        admission.look_whether_shed("a")
    now += 0.1
    admission.look_whether_shed("a")


async def exchange(data: bytes, limit: int = 1000) -> tuple[list[bytes | type[Exception]], bytes]:
    seen: list[bytes | type[Exception]] = []

    async def respond(request: BaseRequest) -> StreamResponse:
        try:
            seen.append(await read_body(request, limit, TIMES, Admission(streams=2, held_bytes=1 << 20).visit()))
        except Exception as error:  # noqa: BLE001 - whatever it is, the test names it
            seen.append(type(error))
        return Response(text="ok")

    listener = Listener(respond, TIMES)
    await listener.open(Address("127.0.0.1", 0))
    try:
        reader, writer = await asyncio.open_connection(listener.address.host, listener.address.port)
        writer.write(data)
        answer = await asyncio.wait_for(reader.read(400), 2)
        writer.close()
        return seen, answer
    finally:
        await listener.close()


async def test_bodies_are_read_to_their_end() -> None:
    seen, answer = await exchange(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc")
    assert seen == [b"abc"]
    assert answer.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "cut", [b"content-length: 9\r\n\r\nabc", b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\na"]
)
async def test_g22_what_came_of_a_body_that_breaks_off_is_freed_without_a_collection(cut: bytes) -> None:
    reads, ended, left = asyncio.Event(), asyncio.Event(), []

    async def respond(request: BaseRequest) -> StreamResponse:
        left.append(weakref.ref(request))
        reads.set()
        try:
            await read_body(request, 1000, TIMES, Admission(streams=2, held_bytes=1 << 20).visit())
        except (ConnectionError, RequestPayloadError):
            ended.set()
        return Response()

    listener = Listener(respond, TIMES)
    await listener.open(Address("127.0.0.1", 0))
    gc.collect()
    gc.disable()
    try:
        _, writer = await asyncio.open_connection(listener.address.host, listener.address.port)
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\n" + cut)
        await asyncio.wait_for(reads.wait(), 2)
        writer.transport.abort()
        await asyncio.wait_for(ended.wait(), 2)
        await listener.close()
        assert [each() for each in left] == [None]
    finally:
        gc.enable()


async def test_g22_a_compressed_body_counts_as_what_it_becomes() -> None:
    bomb = zlib.compress(b"x" * 1_000_000)
    head = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-encoding: deflate\r\ncontent-length: %d\r\n\r\n" % len(bomb)
    seen, _ = await exchange(head + bomb, limit=10_000)
    assert seen == [BodyTooLarge]


async def test_who_watches_late_still_hears_that_the_caller_left() -> None:
    heard: list[str] = []
    told = asyncio.Event()
    left = asyncio.Event()

    async def respond(request: BaseRequest) -> StreamResponse:
        connection = connection_of(request)
        connection.watch(left.set, lambda: None)
        await left.wait()
        connection.watch(lambda: heard.append("gone"), lambda: None)
        told.set()
        return Response()

    listener = Listener(respond, TIMES)
    await listener.open(Address("127.0.0.1", 0))
    _, writer = await asyncio.open_connection(listener.address.host, listener.address.port)
    writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    writer.write_eof()
    await asyncio.wait_for(told.wait(), 2)
    writer.close()
    await listener.close()
    assert heard == ["gone"]


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"HELLO\r\n\r\n", b"400"),
        (b"GET /secret HTTP/1.1\r\nhost: x\r\nbad header: s3cret\r\n\r\n", b"400"),
        (b"GET /secret HTTP/1.1\r\nhost: x\r\nhost: s3cret\r\n\r\n", b"400"),
        (b"GET /%s HTTP/1.1\r\nhost: x\r\n\r\n" % (b"s3cret" * 4096), b"400"),
        (b"GET / HTTP/1.1\r\nhost: x\r\nlong: %s\r\n\r\n" % (b"s3cret" * 8192), b"400"),
        (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-encoding: br\r\ncontent-length: 1\r\n\r\nx", b"415"),
    ],
)
async def test_g20_what_is_not_http_gets_an_error_object_in_our_own_words(head: bytes, status: bytes) -> None:
    seen, answer = await exchange(head)
    assert seen == []
    assert answer.startswith(b"HTTP/1.1 " + status), "though nobody could read the head"
    top, _, body = answer.partition(b"\r\n\r\n")
    assert b"Server: checkstream" in top
    assert b"application/json" in top
    assert body.startswith(b'{"error":{"type":"invalid_request_error"')
    assert b"s3cret" not in body
    assert b"aiohttp" not in answer


async def test_a_request_is_answered_whole_when_idle_sockets_leave_its_own_no_place_afterwards() -> None:
    answer, asked = asyncio.Event(), asyncio.Event()

    async def respond(_: BaseRequest) -> StreamResponse:
        asked.set()
        await answer.wait()
        return Response(text="whole" * 10_000)

    listener = Listener(respond, TIMES, sockets=8)
    await listener.open(Address("127.0.0.1", 0))
    host, port = listener.address.host, listener.address.port
    try:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await asked.wait()
        idle = [await asyncio.open_connection(host, port) for _ in range(12)]
        await asyncio.sleep(0.05)
        answer.set()
        got = await asyncio.wait_for(reader.read(), 2)
        assert got.endswith(b"whole" * 10_000)
        for _, each in (*idle, (None, writer)):
            each.close()
    finally:
        await listener.close()


async def test_g33_idle_sockets_cost_their_own_address() -> None:
    async def respond(_: BaseRequest) -> StreamResponse:
        return Response(text="ok")

    listener = Listener(respond, TIMES, sockets=8)
    await listener.open(Address("127.0.0.1", 0))
    host, port = listener.address.host, listener.address.port
    ask = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"

    async def connect(own: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(host, port, local_addr=(own, 0))

    try:
        idle = [await connect("127.0.0.1") for _ in range(12)]
        await asyncio.sleep(0.05)
        assert listener._waiting.taken == 6
        reader, writer = await connect("127.0.0.2")
        for _ in range(3):  # kept open between requests
            writer.write(ask)
            assert (await asyncio.wait_for(reader.readuntil(b"ok"), 2)).startswith(b"HTTP/1.1 200")
        for _, each in idle:
            each.transport.abort()
        await asyncio.sleep(0.05)
        reader, again = await connect("127.0.0.1")
        again.write(ask)
        assert (await asyncio.wait_for(reader.readuntil(b"ok"), 2)).startswith(b"HTTP/1.1 200")
        again.close()
        writer.close()
        await asyncio.sleep(0.05)
        assert listener._waiting.taken == 0
    finally:
        await listener.close()
