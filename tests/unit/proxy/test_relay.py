"""The pump on real sockets, with a scripted guard in place of the real one."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from checkstream.config import Quota
from checkstream.core import commands as do
from checkstream.core import events as on
from checkstream.errors import AuditError, Overloaded
from checkstream.listen import Admission, Times, Who
from checkstream.proxy.upstream import Answer
from tests.relayed import RECORD, Hanging, Rig, model, passing, streaming


async def test_a_stream_passes_with_its_headers_and_one_record() -> None:
    rig = Rig(passing)
    pieces = [b"data: a\n\n", b"data: b\n\n"]
    async with model(streaming(*pieces)) as upstream, rig.asked(upstream) as response:
        assert response.status == 200
        assert response.headers["x-request-id"] == "r1"
        assert response.headers["x-checkstream-stream"] == "s"
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert await response.read() == b"data: a\n\ndata: b\n\ndata: [DONE]\n\n"
    assert rig.ledger.records == [RECORD], rig.log.getvalue()
    assert rig.guard.kinds()[:2] == ["RequestReceived", "UpstreamOpened"]


@pytest.mark.parametrize("first", [None, b"data: a\n\n"], ids=["before_first_byte", "after_first_byte"])
@pytest.mark.parametrize("way", ["fin", "rst"])
async def test_g21_the_callers_leaving_cancels_the_upstream(first: bytes | None, way: str) -> None:
    rig = Rig(passing)
    hanging = Hanging(first)
    async with model(hanging.answer) as upstream, rig.serving(upstream) as url:
        port = int(url.rstrip("/").rpartition(":")[2])
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
        await hanging.reached.wait()
        begun = time.monotonic()
        if way == "rst":
            writer.transport.abort()
        else:
            writer.write_eof()
        await asyncio.wait_for(hanging.left.wait(), 2)
        assert time.monotonic() - begun < 0.05
        writer.close()
        await asyncio.sleep(0)
    assert rig.ledger.records == [RECORD], rig.log.getvalue()
    assert rig.guard.kinds()[-1] == "DownstreamClosed"


@pytest.mark.parametrize("leaves", [False, True])
async def test_all_that_an_exchange_used_is_freed_without_a_collection(leaves: bool) -> None:
    rig = Rig(passing)
    hanging = Hanging(b"data: a\n\n")
    gc.disable()
    try:
        async with model(hanging.answer if leaves else streaming(b"data: a\n\n")) as upstream:
            async with rig.asked(upstream) as response:
                assert await response.content.readany()
                assert rig.exchange is not None
                left, rig.exchange = weakref.ref(rig.exchange), None
                if not leaves:
                    await response.read()
            await asyncio.sleep(0)
        assert rig.ledger.records == [RECORD], rig.log.getvalue()
        assert left() is None
    finally:
        gc.enable()


async def test_an_answer_that_broke_off_is_freed_without_a_collection() -> None:
    async def breaking(request: web.Request) -> web.StreamResponse:
        response = await streaming(b"data: a\n\n")(request)
        assert request.transport is not None
        request.transport.abort()
        return response

    def ending(event: on.AnyEvent) -> list[do.AnyCommand]:
        return [do.CloseDownstream(), do.Record(RECORD)] if isinstance(event, on.UpstreamFailed) else passing(event)

    rig = Rig(ending)
    gc.collect()
    gc.disable()
    try:
        async with model(breaking) as upstream, rig.asked(upstream) as response:
            await response.read()
        rig.exchange = None
        await asyncio.sleep(0)
        assert "UpstreamFailed" in rig.guard.kinds()
        assert not any(type(each) is Answer for each in gc.get_objects())
    finally:
        gc.enable()


async def test_a_caller_who_reads_slowly_slows_the_upstream() -> None:
    sent = 0
    stalled = asyncio.Event()

    async def flood(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for _ in range(400):
            try:
                async with asyncio.timeout(0.3):
                    await response.write(b"x" * 65_536)
            except TimeoutError:
                stalled.set()
                break
            sent += 65_536
        return response

    rig = Rig(passing)
    async with model(flood) as upstream, rig.serving(upstream) as url:
        port = int(url.rstrip("/").rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
        await asyncio.wait_for(stalled.wait(), 10)
        assert rig.admission.held_bytes < 1_000_000
        assert sent < 400 * 65_536
        writer.transport.abort()
        assert reader is not None


async def test_a_caller_who_never_reads_is_cut_off() -> None:
    rig = Rig(passing)
    rig.times = Times(header_s=5, write_s=0.2)
    left = asyncio.Event()

    async def flood(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 65_536)
        finally:
            left.set()

    async with model(flood) as upstream, rig.serving(upstream) as url:
        port = int(url.rstrip("/").rpartition(":")[2])
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
        await asyncio.wait_for(left.wait(), 10)
        writer.transport.abort()
    assert rig.ledger.records == [RECORD], rig.log.getvalue()


async def test_a_guard_that_breaks_gives_an_internal_error_and_a_record() -> None:
    def react(event: on.AnyEvent) -> list[do.AnyCommand]:
        if isinstance(event, on.RequestReceived):
            raise ZeroDivisionError
        return [do.Record(RECORD)]

    rig = Rig(react)
    async with rig.asked("http://127.0.0.1:9") as response:
        assert response.status == 500
        assert (await response.json())["error"]["type"] == "internal_error"
    assert [record.outcome for record in rig.ledger.records] == ["failed"]
    assert b"ZeroDivisionError" in rig.log.getvalue()


async def test_a_stream_that_breaks_does_not_look_complete() -> None:
    def react(event: on.AnyEvent) -> list[do.AnyCommand]:
        if isinstance(event, on.UpstreamClosed):
            raise ZeroDivisionError
        return passing(event)

    rig = Rig(react)
    async with model(streaming(b"data: a\n\n")) as upstream, rig.asked(upstream) as response:
        with pytest.raises(aiohttp.ClientError):
            await response.read()


async def test_an_answer_that_cant_be_recorded_is_not_finished() -> None:
    rig = Rig(passing, AuditError("disk full"))
    async with model(streaming(b"data: a\n\n")) as upstream, rig.asked(upstream) as response:
        body = await response.read()
    assert b"[DONE]" not in body
    assert b"can't be recorded" in body


async def test_a_whole_answer_that_cant_be_recorded_is_refused() -> None:
    rig = Rig(lambda _: [do.Reply(200, b"{}"), do.Record(RECORD)], AuditError("disk full"))
    async with rig.asked("http://127.0.0.1:9") as response:
        assert response.status == 503


async def test_the_upstreams_failures_have_their_kinds() -> None:
    async def reset(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def compressed(_: web.Request) -> web.StreamResponse:
        return web.Response(body=b"x", headers={"content-encoding": "gzip"})

    async def elsewhere(_: web.Request) -> web.StreamResponse:
        return web.Response(status=307, headers={"location": "http://127.0.0.1:9/v1/chat/completions"})

    cases: list[tuple[Any, dict[str, int], str]] = [
        (reset, {}, "reset"),
        (elsewhere, {}, "protocol"),
        (compressed, {}, "protocol"),
        (Hanging(None).answer, {"first_byte_ms": 50}, "first_byte"),
    ]
    for handler, settings, kind in cases:
        rig = Rig(passing, None, **settings)
        async with model(handler) as upstream, rig.asked(upstream) as response:
            assert (response.status, await response.text()) == (502, kind)
    rig = Rig(passing, None, retries=1)
    async with rig.asked("http://127.0.0.1:9") as response:
        assert (response.status, await response.text()) == (502, "connect")
    line = next(line for line in rig.log.getvalue().decode().splitlines() if "upstream.failed" in line)
    assert '"detail":"no connection to upstream `u`","cause":"ConnectionRefusedError"' in line
    assert list(msgspec.json.decode(line))[:3] == ["at", "level", "event"]


async def test_a_whole_answer_keeps_each_of_several_headers_of_one_name() -> None:
    def react(event: on.AnyEvent) -> list[do.AnyCommand]:
        if isinstance(event, on.UpstreamClosed):
            return [do.Reply(200, b"{}"), do.Record(RECORD)]
        return [] if isinstance(event, on.UpstreamOpened | on.UpstreamBytes) else passing(event)

    async def limited(_: web.Request) -> web.StreamResponse:
        response = web.json_response({}, headers={"x-checkstream-stream": "forged", "x-request-id": "r"})
        response.headers.add("x-ratelimit-limit", "1")
        response.headers.add("x-ratelimit-limit", "2")
        response.headers.add("set-cookie", "a=1")
        return response

    rig = Rig(react)
    async with model(limited) as upstream, rig.asked(upstream) as response:
        assert response.headers.getall("x-ratelimit-limit") == ["1", "2"]
        assert "set-cookie" not in response.headers
        assert response.headers.getall("x-checkstream-stream") == ["s"]
        assert response.headers["x-request-id"] == "r"


async def test_an_upstream_that_falls_silent_is_idle() -> None:
    failed: list[str] = []

    def react(event: on.AnyEvent) -> list[do.AnyCommand]:
        if isinstance(event, on.UpstreamFailed):
            failed.append(event.kind)
            return [do.CloseDownstream(), do.Record(RECORD)]
        return passing(event)

    rig = Rig(react, None, idle_ms=50)
    async with model(Hanging(b"data: a\n\n").answer) as upstream, rig.asked(upstream) as response:
        assert await response.read() == b"data: a\n\n"
    assert failed == ["idle"]


async def test_g24_requests_are_shed_while_the_guard_asks_for_it_and_taken_again_a_second_later() -> None:
    def react(event: on.AnyEvent) -> list[do.AnyCommand]:
        assert isinstance(event, on.RequestReceived)
        return [do.Degraded("check_over_budget"), do.ShedRequests(), do.Reply(200, b"{}"), do.Record(RECORD)]

    rig = Rig(react)
    rig.admission.look_whether_shed("r")
    async with rig.asked("http://127.0.0.1:9") as response:
        assert response.status == 200
    with pytest.raises(Overloaded):
        rig.admission.look_whether_shed("r")
    rig.admission.look_whether_shed("another")


async def test_draining_reaches_the_guard() -> None:
    rig = Rig(passing)
    hanging = Hanging(b"data: a\n\n")
    async with model(hanging.answer) as upstream, rig.asked(upstream) as response:
        assert await response.content.readany() == b"data: a\n\n"
        assert rig.exchange is not None
        rig.exchange.drain()
        await asyncio.wait_for(hanging.left.wait(), 2)
    assert rig.guard.kinds()[-1] == "Draining"


async def test_g22_an_answer_that_holds_more_than_there_is_room_for_waits_and_then_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("checkstream.proxy.fetching._ROOM_S", 0.3)
    most: list[int] = []
    failed: list[tuple[str, str]] = []

    def holding(event: on.AnyEvent) -> list[do.AnyCommand]:
        most.append(rig.admission.held_bytes)
        if isinstance(event, on.UpstreamFailed):
            failed.append((event.kind, event.detail))
            return [do.CloseDownstream(), do.Record(RECORD)]
        return [] if isinstance(event, on.UpstreamBytes) else passing(event)

    rig = Rig(holding)
    rig.admission = Admission(streams=2, held_bytes=200_000, quota=Quota())
    async with model(streaming(*[b"x" * 50_000] * 20)) as upstream, rig.asked(upstream) as response:
        await response.read()
    assert [kind for kind, _ in failed] == ["room"]
    assert "ask for less" in failed[0][1]
    assert 25_000 < max(most) <= 100_000


async def test_g33_what_one_caller_holds_does_not_slow_the_answer_of_another() -> None:
    full = asyncio.Event()

    def holding(event: on.AnyEvent) -> list[do.AnyCommand]:
        if greedy.admission.held_bytes > 60_000:
            full.set()
        return [] if isinstance(event, on.UpstreamBytes) else passing(event)

    greedy, rig = Rig(holding), Rig(passing)
    greedy.admission = rig.admission = Admission(streams=4, held_bytes=400_000, quota=Quota())
    greedy.who, rig.who = Who("greedy"), Who("other")
    flood = streaming(*[b"x" * 50_000] * 20)
    async with (
        model(flood) as first,
        model(flood) as second,
        rig.serving(second) as url,
        aiohttp.ClientSession() as client,
        greedy.asked(first),
        asyncio.timeout(5),
    ):
        await full.wait()
        async with client.post(url, data=b"{}") as response:
            assert len(await response.read()) > 1_000_000
