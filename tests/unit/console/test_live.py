"""The live page: each exchange comes once however its line was cut, and who reads slowly is cut off."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from blockbuster import blockbuster_ctx
from hypothesis import given
from hypothesis import strategies as st

from checkstream.audit.bodies import Body, StreamTold
from checkstream.audit.chain import read
from checkstream.audit.entries import RotateEntry, StreamEntry
from checkstream.audit.segments import segment_name
from checkstream.console import tail
from checkstream.console.queries import Query
from checkstream.console.serving import live
from checkstream.console.tail import Entry, New, Tail
from checkstream.errors import AuditError
from tests.console_facts import HOSTILE, MadeUp, served
from tests.records import CHAIN, record, seal_all, start


def lines(*streams: str) -> list[bytes]:
    items = [StreamEntry(stream=name, route="chat", caller=None, record=record()) for name in streams]
    return [each.line for each in seal_all([start(), *items])]


LINES = lines(*(f"s{at}" for at in range(30)))


def names(new: New) -> list[str]:
    return [entry.body.stream for entry in new.entries]


@given(st.lists(st.integers(0, sum(map(len, LINES))), max_size=8), st.integers(0, 31))
def test_each_exchange_comes_once_however_lines_are_cut(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], before: int
) -> None:
    folder = tmp_path_factory.mktemp("audit")
    path, data = folder / segment_name(CHAIN, 1), b"".join(LINES)
    at = len(b"".join(LINES[:before]))
    path.write_bytes(data[:at])
    follower = Tail(folder)
    follower.begin()
    found: list[str] = []
    for cut in [*sorted(each for each in cuts if each > at), len(data)]:
        path.write_bytes(data[:cut])
        new = follower.look()
        assert new.left_out == 0
        found += names(new)
    assert found == [f"s{each}" for each in range(max(before - 1, 0), 30)]
    assert follower.look() == New()


def test_segments_and_chains_that_come_later_are_followed(tmp_path: Path) -> None:
    follower = Tail(tmp_path / "audit")
    follower.begin()
    assert follower.look() == New()
    (tmp_path / "audit").mkdir()
    items = [StreamEntry(stream=f"s{at}", route="c", caller=None, record=record()) for at in range(4)]
    sealed = seal_all([items[0], RotateEntry(next=segment_name(CHAIN, 2)), items[1], items[2]])
    (tmp_path / "audit" / segment_name(CHAIN, 1)).write_bytes(b"".join(each.line for each in sealed[:2]))
    assert names(follower.look()) == ["s0"]
    (tmp_path / "audit" / segment_name(CHAIN, 2)).write_bytes(sealed[2].line)
    (tmp_path / "audit" / segment_name("c2", 1)).write_bytes(seal_all([items[3]], chain="c2")[0].line)
    assert sorted(names(follower.look())) == ["s1", "s3"]


def test_more_than_can_be_shown_is_left_out_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / segment_name(CHAIN, 1)
    path.write_bytes(b"")
    follower = Tail(tmp_path)
    follower.begin()
    monkeypatch.setattr(tail, "_MOST_ENTRIES", 5)
    path.write_bytes(b"".join(LINES))
    new = follower.look()
    assert (names(new), new.left_out) == ([f"s{at}" for at in range(25, 30)], 25)
    monkeypatch.setattr(tail, "_MOST_BYTES", len(LINES[-1]) * 2 + 5)
    path.write_bytes(b"".join(LINES * 2))
    new = follower.look()
    assert (names(new), new.left_out) == (["s28", "s29"], 1)


def test_what_was_cut_off_and_what_is_no_record_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / segment_name(CHAIN, 1)
    path.write_bytes(b"".join(LINES[:5]) + b'{"torn')
    follower = Tail(tmp_path)
    follower.begin()
    path.write_bytes(b"".join(LINES[:5]))
    assert follower.look() == New()
    path.write_bytes(b"".join(LINES[:5]) + b'{"kind":"stream"}\n\xff\n' + LINES[5])
    assert names(follower.look()) == ["s4"]


def test_a_file_that_can_not_be_looked_at_is_told_and_one_that_is_gone_is_none(tmp_path: Path) -> None:
    path = tmp_path / segment_name(CHAIN, 1)
    path.write_bytes(b"".join(LINES[:2]))
    follower = Tail(tmp_path)
    follower.begin()
    path.unlink()
    assert follower._size(CHAIN, 1) == 0
    path.symlink_to(path.name)
    with pytest.raises(AuditError, match="can't be read"):
        follower.look()


def test_an_event_is_one_whatever_stands_in_it() -> None:
    name = HOSTILE.encode("utf-8", "replace").decode() + "\n\ndata: x\r\n"
    entry = StreamEntry(stream="s", route="chat", caller=None, record=record())
    (sealed,) = seal_all([entry])
    told = Entry(record=read(sealed.line[:-1]), body=Body(stream=name), line=b"")
    event = live.event_of(New(entries=(told,)), Query())
    assert event is not None
    assert event.count(b"\n") == 3
    assert event.startswith(b"event: rows\ndata: {")
    assert live.event_of(New(entries=(told,)), Query(rule="other")) is None
    long = msgspec.structs.replace(told, body=Body(record=StreamTold(held_ms="9" * 100_000)))
    assert len(live.event_of(New(entries=(long,)), Query()) or b"") < 1000


@asynccontextmanager
async def asked(folder: Path) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    (folder / "audit").mkdir()
    with blockbuster_ctx("checkstream"):
        async with served(MadeUp(), folder) as url, aiohttp.ClientSession() as session:
            yield session, f"{url}/console/live"


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    async for line in response.content:
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


async def test_exchanges_come_as_they_end_to_whom_they_are_wanted_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LOOK_S", 0.02)
    path = tmp_path / "audit" / segment_name(CHAIN, 1)
    async with asked(tmp_path) as (session, url):
        await asyncio.to_thread(path.write_bytes, b"".join(LINES[:3]))
        async with session.get(url) as response:
            page = await response.text()
        assert [name in page for name in ("s0", "s1", "s2")] == [True, True, False]
        async with session.get(f"{url}/events?rule=PII-001") as one, session.get(f"{url}/events?rule=X") as other:
            assert one.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert one.headers["x-content-type-options"] == "nosniff"
            await asyncio.sleep(0.2)
            await asyncio.to_thread(path.write_bytes, b"".join(LINES[:5]))
            told = await anext(events(one))
            assert ([row["stream"] for row in told["rows"]], told["left_out"]) == (["s2", "s3"], 0)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(events(other)), 0.2)


async def test_so_many_pages_may_be_open_and_room_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MOST_OF_ONE", 2)
    async with asked(tmp_path) as (session, url):
        events_ = f"{url}/events"
        async with session.get(events_), session.get(events_), session.get(events_) as third:
            assert third.status == 429
        for _ in range(100):
            async with session.get(f"{url}/events") as again:
                if again.status == 200:
                    break
            await asyncio.sleep(0.02)
        assert again.status == 200


def test_who_reads_slowly_is_cut_off_and_waited_for_by_nobody() -> None:
    cut: list[str] = []
    reader = live._Reader("", Query(), lambda: cut.append("cut"))
    taken = [reader.put(b"event") for _ in range(live._WAITING + 2)]
    assert taken == [True] * live._WAITING + [False] * 2
    assert cut == ["cut"] * 2
    reader.end()
    assert reader.events.get_nowait() is None


async def test_the_end_of_the_process_waits_for_no_page(tmp_path: Path) -> None:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(10)) as session:
        async with served(MadeUp(), tmp_path) as url:
            response = await session.get(f"{url}/console/live/events")
            reading = asyncio.ensure_future(response.content.read())
            await asyncio.sleep(0)
        assert await reading == b"retry: 2000\n\n"


async def test_who_logs_out_hears_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_ALIVE_S", 0.02)
    own = {"sec-fetch-site": "same-origin"}
    jar = aiohttp.CookieJar(unsafe=True)
    async with (
        served(MadeUp(), tmp_path, token="secret") as url,
        aiohttp.ClientSession(cookie_jar=jar, timeout=aiohttp.ClientTimeout(10)) as session,
    ):
        await session.post(f"{url}/console/login", data={"token": "secret"}, headers=own)
        async with session.get(f"{url}/console/live/events") as response:
            assert response.status == 200
            assert await response.content.readuntil(b":\n\n")
            await session.post(f"{url}/console/logout", headers=own)
            await response.content.read()  # ends


async def test_a_log_that_can_not_be_read_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LOOK_S", 0.01)
    async with asked(tmp_path) as (session, url), session.get(f"{url}/events") as response:
        await asyncio.to_thread((tmp_path / "audit").rmdir)
        await asyncio.to_thread((tmp_path / "audit").write_text, "no folder")
        following = events(response)
        assert "can't be read" in str(await anext(following))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(following), 0.2)
