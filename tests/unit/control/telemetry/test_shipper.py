"""A shipper before real servers: a control server, and ones that answer what servers answer on bad days."""

from __future__ import annotations

import asyncio
import hashlib
import io
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
import yaml
from aiohttp import web

from checkstream.app.control import serve_control
from checkstream.audit.journal import Journal, JournalSettings
from checkstream.config import load_control
from checkstream.control.identity import NodeKey
from checkstream.control.telemetry.composing import Composer
from checkstream.control.telemetry.courier import Courier
from checkstream.control.telemetry.delivery import MOST_BYTES, Received, read_delivery
from checkstream.control.telemetry.packing import unpacked
from checkstream.control.telemetry.privacy import Privacy
from checkstream.control.telemetry.shipper import PATH, Shipped, Shipper
from checkstream.errors import ControlUnusable
from checkstream.telemetry.logs import open_log
from tests.controlled import asked, key_of, node_key
from tests.received import Receiver
from tests.records import KEY, stream


class Answer(msgspec.Struct):
    status: int
    body: bytes
    reason: str = "why"
    retry_after_s: float | None = None


def posting(url: Callable[[], str], key: NodeKey | None = None) -> Callable[[str, bytes, Any], Awaitable[Answer]]:
    async def post(path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        signed = {**headers, **(key.headers("POST", path, body) if key is not None else {})}
        try:
            async with aiohttp.ClientSession() as session, session.post(url() + path, data=body, headers=signed) as got:
                after = got.headers.get("retry-after")
                return Answer(got.status, await got.read(), retry_after_s=None if after is None else float(after))
        except (aiohttp.ClientError, OSError) as error:
            raise ControlUnusable(str(error)) from error

    return post


class Clock:
    def __init__(self) -> None:
        self.ms = 1_800_000_000_000

    def __call__(self) -> int:
        self.ms += 1
        return self.ms


def shipper(
    folder: Path, post: Any, clock: Clock | None = None, *, spool_bytes: int = 1 << 30, **limits: Any
) -> Shipper:
    composer = Composer(folder, Privacy(), (KEY.public.raw.hex(),), spool_bytes=spool_bytes)
    return Shipper(composer, post, now_ms=clock or Clock(), draw=lambda: 1.0, **limits)


async def shipped_all(one: Shipper) -> list[Shipped]:
    """Step until there is nothing to send."""
    steps = [await one.step()]
    while steps[-1].shipping != "idle":
        steps.append(await one.step())
        assert len(steps) < 100
    return steps


def written(folder: Path, count: int, first: int = 0) -> None:
    journal = Journal(JournalSettings(directory=folder, fsync_ms=1.0, head_ms=1.0), KEY, process="p")
    for number in range(first, first + count):
        journal.append(stream(number))
    journal.close()


def config_of(folder: Path) -> Path:
    gus = {"role": "auditor", "key_sha256": hashlib.sha256(key_of("gus").encode()).hexdigest()}
    fleets = {"shop": {"bundle": "retail", "nodes": {"n1": "keys/n1.pub"}}}
    file = folder / "control.yaml"
    file.write_text(yaml.safe_dump({"listen": "127.0.0.1:0", "people": {"gus": gus}, "fleets": fleets}))
    return file


async def test_a_log_arrives_over_ends_of_the_server_and_of_the_shipper(tmp_path: Path) -> None:
    log, url = tmp_path / "audit", ""
    key = node_key("n1", tmp_path / "keys")
    config = load_control(config_of(tmp_path))
    post = posting(lambda: url, key)
    one = shipper(log, post, batch_records=7)
    await asyncio.to_thread(written, log, 20)
    for round_ in range(3):
        async with serve_control(config, open_log("json", io.BytesIO())) as address:
            url = f"http://{address}"
            steps = await shipped_all(one)
            assert {step.shipping for step in steps} == {"sent", "idle"}
            (chain,) = (await asked("GET", url, "/v1/chains", person="gus"))[1]["chains"]
            assert (chain["seq"], chain["signed"], chain["flaws"]) == (20 + 10 * round_,) * 2 + ([],)
        await asyncio.to_thread(written, log, 10, 20 + 10 * round_)
        step = await one.step()
        assert step.shipping == "unreachable"
        assert step.waiting > 1000
        if round_:
            one = shipper(log, post)
    async with serve_control(config, open_log("json", io.BytesIO())) as address:
        url = f"http://{address}"
        await shipped_all(one)
        found = (await asked("GET", url, "/v1/exchanges?most=1000", person="gus"))[1]["exchanges"]
        assert sorted(int(exchange["stream"][1:]) for exchange in found) == list(range(50))
        assert all(exchange["proven"] for exchange in found)


async def test_a_server_that_was_away_too_long_gets_the_newest_whole_and_hears_how_many_it_will_not_get(
    tmp_path: Path,
) -> None:
    log, url = tmp_path / "audit", ""
    key = node_key("n1", tmp_path / "keys")
    config = load_control(config_of(tmp_path))
    one = shipper(log, posting(lambda: url, key), spool_bytes=20_000, batch_records=9)
    await asyncio.to_thread(written, log, 10)
    async with serve_control(config, open_log("json", io.BytesIO())) as address:
        url = f"http://{address}"
        await shipped_all(one)
    for round_ in range(6):
        await asyncio.to_thread(written, log, 15, 10 + 15 * round_)
        step = await one.step()
        assert (step.shipping, step.skipped) == ("unreachable", 0), "what nobody was told of is not left out"
    size = step.waiting / 90
    async with serve_control(config, open_log("json", io.BytesIO())) as address:
        url = f"http://{address}"
        skipped = sum(step.skipped for step in await shipped_all(one))
        assert 0 < (90 - skipped) * size <= 20_000 + size, "as much as may wait"
        found = (await asked("GET", url, "/v1/exchanges?most=1000", person="gus"))[1]["exchanges"]
        there = sorted(int(exchange["stream"][1:]) for exchange in found)
        assert there == [*range(10), *range(10 + skipped, 100)]
        (chain,) = (await asked("GET", url, "/v1/chains", person="gus"))[1]["chains"]
        assert (chain["missing"], chain["flaws"], chain["signed"]) == (skipped, [], chain["seq"])
        await asyncio.to_thread(written, log, 5, 100)
        assert sum(step.records for step in await shipped_all(one)) == 5


@asynccontextmanager
async def serving(respond: Callable[[bytes], web.Response]) -> AsyncIterator[str]:
    """Serve what answers each body in turn."""

    async def answer(request: web.BaseRequest) -> web.Response:
        assert request.rel_url.path == PATH
        return respond(await request.read())

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def received(receiver: Receiver, body: bytes) -> web.Response:
    answer = receiver.receive(read_delivery(unpacked(body, MOST_BYTES)))
    return web.Response(body=msgspec.json.encode(answer))


@pytest.mark.parametrize(
    ("status", "headers", "shipping", "wait_s"),
    [
        (429, {"retry-after": "7"}, "unreachable", 7.0),
        (503, {}, "unreachable", 1.0),
        (500, {}, "unreachable", 1.0),
        (408, {}, "unreachable", 1.0),
        (400, {}, "refused", 1.0),
        (401, {}, "refused", 1.0),
        (403, {}, "refused", 1.0),
        (302, {"location": "http://127.0.0.1:1/"}, "refused", 1.0),
        (200, {}, "unreachable", 1.0),
    ],
)
async def test_what_is_not_taken_is_tried_again_later_and_nothing_is_lost(
    tmp_path: Path, status: int, headers: dict[str, str], shipping: str, wait_s: float
) -> None:
    await asyncio.to_thread(written, tmp_path, 5)
    receiver, bad = Receiver(), True

    def respond(body: bytes) -> web.Response:
        if bad:
            return web.Response(status=status, headers=headers, body=b"\xff{")
        return received(receiver, body)

    async with serving(respond) as url:

        async def post(path: str, body: bytes, more: Mapping[str, str]) -> Answer:
            async with (
                aiohttp.ClientSession() as session,
                session.post(url + path, data=body, headers=more, allow_redirects=False) as got,
            ):
                after = got.headers.get("retry-after")
                return Answer(got.status, await got.read(), retry_after_s=None if after is None else float(after))

        one = shipper(tmp_path, post)
        step = await one.step()
        assert (step.shipping, step.wait_s) == (shipping, wait_s)
        for _ in range(10):
            step = await one.step()
        assert 30.0 <= step.wait_s <= 60.0
        bad = False
        assert [each.shipping for each in await shipped_all(one)] == ["sent", "sent", "idle"]
        bad = True
        await asyncio.to_thread(written, tmp_path, 5, 5)
        step = await one.step()
        assert (step.shipping, step.wait_s) == (shipping, wait_s)
        bad = False
        await shipped_all(one)
        assert len(receiver.records) == 10


async def test_what_is_too_large_is_sent_in_smaller_parts(tmp_path: Path) -> None:
    await asyncio.to_thread(written, tmp_path, 300)
    receiver = Receiver()
    sizes: list[int] = []

    def respond(body: bytes) -> web.Response:
        size = len(unpacked(body, MOST_BYTES))
        if size > 60_000:
            return web.Response(status=413)
        sizes.append(size)
        return received(receiver, body)

    async with serving(respond) as url:
        await shipped_all(shipper(tmp_path, posting(lambda: url), batch_bytes=1 << 20))
    assert len(receiver.records) == 300
    assert max(sizes) <= 60_000


async def test_where_nothing_happens_the_server_hears_that_nothing_does(tmp_path: Path) -> None:
    await asyncio.to_thread(written, tmp_path, 1)
    receiver, clock = Receiver(), Clock()
    async with serving(lambda body: received(receiver, body)) as url:
        one = shipper(tmp_path, posting(lambda: url), clock)
        await shipped_all(one)
        number = receiver.number
        assert (await one.step()).shipping == "idle"
        clock.ms += 30_000
        assert (await one.step()).shipping == "sent"
        assert receiver.number > number


async def test_a_clock_that_goes_back_loses_nothing(tmp_path: Path) -> None:
    await asyncio.to_thread(written, tmp_path, 3)
    receiver, clock = Receiver(), Clock()
    async with serving(lambda body: received(receiver, body)) as url:
        await shipped_all(shipper(tmp_path, posting(lambda: url), clock))
        await asyncio.to_thread(written, tmp_path, 3, 3)
        clock.ms -= 3_600_000
        await shipped_all(shipper(tmp_path, posting(lambda: url), clock))
    assert len(receiver.records) == 6


async def test_a_server_that_never_moves_is_not_asked_without_end(tmp_path: Path) -> None:
    await asyncio.to_thread(written, tmp_path, 3)
    stuck = msgspec.json.encode(Received(number=1, positions={}))
    async with serving(lambda _: web.Response(body=stuck)) as url:
        one = shipper(tmp_path, posting(lambda: url))
        steps = [await one.step() for _ in range(12)]
    assert {step.shipping for step in steps[1:]} == {"unreachable"}
    assert "stands elsewhere" in steps[-1].reason
    assert steps[-1].wait_s == 60.0


async def test_a_log_that_can_t_be_read_is_told_and_tried_again(tmp_path: Path) -> None:
    async with serving(lambda body: received(Receiver(), body)) as url:
        one = shipper(tmp_path / "none", posting(lambda: url))
        assert (await one.step()).shipping == "sent", "where the server stands is asked first"
        step = await one.step()
        assert (step.shipping, step.wait_s) == ("unreadable", 1.0)
        assert "can't be read" in step.reason
        (tmp_path / "none").mkdir()
        await asyncio.to_thread(written, tmp_path / "none", 2)
        assert (await one.step()).shipping == "sent"


async def test_evidence_that_is_not_taken_is_tried_ever_more_seldom_and_records_go_on(tmp_path: Path) -> None:
    folder, receiver, clock = tmp_path / "out", Receiver(), Clock()
    folder.mkdir()
    (folder / "1.sealed").write_bytes(b"{}")
    tries: list[int] = []
    full = True

    async def post(path: str, body: bytes, more: Mapping[str, str]) -> Answer:
        assert more["content-type"] == "application/zstd"
        if path == PATH:
            answer = received(receiver, body).body
            assert isinstance(answer, bytes)
            return Answer(200, answer)
        tries.append(clock.ms)
        return Answer(429 if full else 200, b"")

    one = shipper(tmp_path / "log", post, clock, courier=Courier(folder, ".sealed", post))
    await asyncio.to_thread(written, tmp_path / "log", 5)
    for _ in range(250):
        step = await one.step()
        assert (step.shipping, step.reason) == ("unreachable", "why")
        assert step.wait_s <= 1.0, "records wait for nothing"
        clock.ms += 1000
    assert len(receiver.records) == 5
    waits = [after - before for before, after in itertools.pairwise(tries)]
    assert waits[0] < 3000
    assert 59_000 < waits[-1] < 63_000
    assert len(tries) < 12
    clock.ms -= 3_600_000
    full = False
    while (step := await one.step()).shipping != "idle":
        clock.ms += 1000
    assert list(folder.iterdir()) == []
