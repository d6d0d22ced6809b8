"""Pages of exchanges: found, shown, and hostile whatever stands in them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
import pytest
from blockbuster import blockbuster_ctx

from checkstream.audit.entries import AnyEntry, StreamEntry
from checkstream.core.terms import Channel, Span
from tests.console_facts import HOSTILE, MadeUp, served
from tests.records import CHAIN, KEY, head, record, seal_all, start, verdict, write_chain

NAME = HOSTILE[:400].encode("utf-8", "replace").decode()


@asynccontextmanager
async def asked(folder: Path) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    with blockbuster_ctx("checkstream"):
        async with served(MadeUp(), folder) as url, aiohttp.ClientSession() as session:
            yield session, f"{url}/console/"


def write(folder: Path, *items: AnyEntry) -> None:
    sealed = seal_all([start(), *items])
    write_chain(folder / "audit", [[each.line for each in sealed]], [head(sealed[-1])])
    (folder / "audit.key.pub").write_bytes(KEY.public.pem())


def hostile() -> StreamEntry:
    fired = msgspec.structs.replace(
        verdict(NAME, spans=300), action=NAME, mode=NAME, policy=NAME, regulation=NAME, citation=NAME, severity=NAME,
        triggers=(NAME,), excepted_by=NAME, channel=Channel(NAME), spans=(Span(0, 10**9), Span(5, 6), Span(-3, 2)),
    )  # fmt: skip
    told = msgspec.structs.replace(
        record(verdicts=(fired,) * 300), outcome=NAME, scanned=(NAME,), unscanned=(NAME,), degradations=(NAME,),
        removed=(NAME,), policies=(NAME,), detectors=(NAME,), upstream_failure=NAME, pseudonyms={NAME: 3},
    )  # fmt: skip
    return StreamEntry(stream=NAME, route=NAME, caller=NAME, record=told)


async def test_an_exchange_is_found_and_shown_with_what_fired(tmp_path: Path) -> None:
    write(tmp_path, *(StreamEntry(stream=f"s{at}", route="chat", caller="app1", record=record()) for at in range(3)))
    async with asked(tmp_path) as (session, url):
        async with session.get(f"{url}exchanges?stream=s1&rule=PII-001&route=chat&action=redact") as response:
            page = await response.text()
        assert page.count(f'href="/console/exchanges/{CHAIN}/') == 1
        assert f'href="/console/exchanges/{CHAIN}/3"' in page
        async with session.get(f"{url}exchanges/{CHAIN}/3") as response:
            page = await response.text()
        for said in ("app1", "PII-001", "midstream:content/0", "12.5 ms", "entity:EMAIL", "answer 100", "90 were sent"):
            assert said in page, said
        async with session.get(f"{url}exchanges/{CHAIN}/3/proof") as response:
            proof = await response.json()
        assert len(proof["after"]) == 1
        assert proof["key"].startswith("-----BEGIN PUBLIC KEY")


@pytest.mark.parametrize("path", ["9", "0", "x", "3/other", "3/proof/", "%0a", "99999999999999999999", "-1", "٣"])
async def test_what_is_no_record_is_not_there(tmp_path: Path, path: str) -> None:
    write(tmp_path)
    async with asked(tmp_path) as (session, url), session.get(f"{url}exchanges/{CHAIN}/{path}") as response:
        assert response.status == 404
    async with asked(tmp_path) as (session, url), session.get(f"{url}exchanges/..%2f{CHAIN}/1/proof") as response:
        assert response.status == 404


async def test_hostile_records_stand_in_pages_as_text(tmp_path: Path) -> None:
    write(tmp_path, hostile())
    async with asked(tmp_path) as (session, url):
        for path in ("exchanges", f"exchanges/{CHAIN}/2"):
            async with session.get(url + path) as response:
                assert response.status == 200
                page = await response.text()
            assert "&lt;script&gt;alert(1)" in page
            for never in ("<script>alert", "\u202e", "\x00", "<b>"):
                assert never not in page, (path, never)


async def test_hostile_searches_find_nothing_and_stand_in_the_page_as_text(tmp_path: Path) -> None:
    write(tmp_path, StreamEntry(stream="s", route="chat", caller=None, record=record()))
    given = '"><script>alert(1)</script>\u202e' + "x" * 3000
    async with asked(tmp_path) as (session, url):
        for field in ("stream", "rule", "route", "action", "since", "until"):
            async with session.get(f"{url}exchanges", params={field: given}) as response:
                assert response.status == 200
                page = await response.text()
            assert "<script>alert" not in page
            assert "\u202e" not in page
            assert ("No exchange like that" in page) is (field not in ("since", "until"))
            assert ("is no time" in page) is (field in ("since", "until"))


async def test_empty_logs_teach_and_broken_lines_are_told(tmp_path: Path) -> None:
    async with asked(tmp_path) as (session, url):
        async with session.get(f"{url}exchanges") as response:
            assert "No exchange has been recorded yet" in await response.text()
        write(tmp_path, StreamEntry(stream="s", route="chat", caller=None, record=record()))
        log = tmp_path / "audit" / f"{CHAIN}-000001.jsonl"
        log.write_bytes(log.read_bytes().replace(b'"route":"chat"', b'"route": "chat"'))
        async with session.get(f"{url}exchanges") as response:
            page = await response.text()
        assert "Lines that are no records" in page
        assert "checkstream audit verify" in page
        async with session.get(f"{url}exchanges/{CHAIN}/2") as response:
            assert "This line is no record" in await response.text()
