"""Overview, live and exchanges of the control server's console, over a server that nodes have told something."""

from __future__ import annotations

import asyncio
import base64
import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import aiohttp
import msgspec
import pytest

from checkstream.audit.chain import linked, read_head
from checkstream.console.serving import live
from checkstream.control.telemetry.delivery import At, Run
from checkstream.control.telemetry.privacy import Privacy
from tests.console_control import attest, looking
from tests.console_facts import HOSTILE
from tests.controlled import Server, key_of
from tests.records import seal_all, start
from tests.told import Teller, exchange

XSS = "<script>alert(1)</script>"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with Server(tmp_path).serving() as served:
        yield served


async def test_an_empty_server_says_what_to_do(server: Server) -> None:
    async with looking(server, "gus") as browser:
        assert "telemetry ship --config" in (await browser.get("")).page
        assert "privacy: aggregate" in (await browser.get("exchanges")).page
        assert "Nothing yet" in (await browser.get("live")).page


async def test_nobody_locks_others_out_of_the_live_page(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MOST_OF_ONE", 1)
    monkeypatch.setattr(live, "MOST_READERS", 2)
    events = f"{server.url}/console/live/events"
    gus, eve, rob = ({"authorization": f"Bearer {key_of(name)}"} for name in ("gus", "eve", "rob"))
    async with (
        aiohttp.ClientSession() as client,
        client.get(events, headers=gus) as one,
        client.get(events, headers=gus) as again,
        client.get(events, headers=eve) as other,
        client.get(events, headers=rob) as third,
    ):
        assert [each.status for each in (one, again, other, third)] == [200, 429, 200, 429]
        assert (await again.text(), await third.text()) == (
            "1 pages of yours are open already; close one\n",
            "2 pages are open already; try again later\n",
        )


async def test_the_overview_counts_what_all_nodes_tell_and_what_one_of_them_does(server: Server) -> None:
    one, two = Teller(server), Teller(server, "n2")
    await attest(server, "n1")
    await one.tell(exchange("s1"), exchange("s2", rules=()), exchange("s3", rules=("R-2", "R-2")))
    await two.tell(exchange("s4", route="bulk", outcome="refused"), privacy=Privacy(usual="aggregate"))
    async with looking(server, "gus") as browser:
        page = (await browser.get("")).page
        assert "<dt>Exchanges</dt><dd>4</dd>" in page
        assert "<dt>Kept back in answers</dt><dd>4</dd>" in page
        assert "<dt>Refused / stopped</dt><dd>1 / 0</dd>" in page
        assert "p95</dt><dd>14.8 ms</dd>" in page, "between the bounds 10 and 15 ms"
        for query, count in (
            ("?fleet=shop", 4), ("?fleet=none", 0), ("?node=n1", 3), ("?node=n2&fleet=shop", 1), ("?node=n3", 0),
            ("?route=bulk&span=week", 1), ("?route=nothing", 0), ("?span=30+days", 4), ("?span=for%20ever", 4),
        ):  # fmt: skip
            assert f"<dt>Exchanges</dt><dd>{count}</dd>" in (await browser.get(query)).page, query
        assert "attests no more" not in page


async def test_a_broken_chain_stands_first_on_the_overview(server: Server) -> None:
    teller = Teller(server)
    await attest(server, "n1")
    first, second = seal_all([exchange("s1"), exchange("s2")], teller.chain)
    changed = msgspec.Raw(second.line[:-1].replace(b'"chat"', b'"chit"'))
    await teller.send(Run(chain=teller.chain, after=At(), items=(msgspec.Raw(first.line[:-1]), changed)))
    async with looking(server, "gus") as browser:
        assert "did not fit the log" in (await browser.get("exchanges/n1/cn1/2")).page
        page = (await browser.get("")).page
        assert "1 chain is broken" in page
        assert "<bdi>n1</bdi>, chain <code>cn1</code>" in page
        assert "1 chain is broken" not in (await browser.get("?node=n2")).page


async def test_exchanges_are_found_by_all_that_is_known_of_them(server: Server) -> None:
    one, two = Teller(server), Teller(server, "n2")
    await one.tell(exchange("b1c2"), exchange("b1d4", rules=("R-2",), action="stop", outcome="stopped"))
    await two.tell(*(exchange(f"x{at}", route="bulk") for at in range(60)))
    async with looking(server, "gus") as browser:
        for query, found in (
            ("stream=b1c2", {"b1c2"}), ("stream=b1", {"b1c2", "b1d4"}), ("rule=R-2", {"b1d4"}),
            ("node=n1", {"b1c2", "b1d4"}),
            ("action=stop", {"b1d4"}), ("outcome=stopped&route=chat", {"b1d4"}), ("caller=nobody", set()),
            ("since=2999-01-01", set()), ("until=2001", set()), ("stream=B1", set()),
        ):  # fmt: skip
            page = (await browser.get(f"exchanges?{query}")).page
            assert {name for name in ("b1c2", "b1d4", "x1") if f"<code>{name}</code>" in page} == found, query
        page = (await browser.get("exchanges?node=n2")).page
        assert page.count("/console/exchanges/n2/cn2/") == 50
        older = page.split('<a href="/console/exchanges?')[1].split('"')[0].replace("&amp;", "&")
        page = (await browser.get(f"exchanges?{older}")).page
        assert page.count("/console/exchanges/n2/cn2/") == 10
        assert "Older ones" not in page


WRONG_QUERIES = (
    ("before=x", 400, "is of no page"),
    ("before=1~n~c~99999999999999999", 400, "is of no page"),
    ("since=yesterday", 200, "<bdi>yesterday</bdi> is no time"),
    ("since=2026-13-01", 200, "is no time"),
    ("until=9999-12-31T23:59:59", 200, "b1"),
    ("until=9999-12-31", 200, "is no time"),
    ("rule=" + quote("' or 1=1 --"), 200, "No exchange like that"),
    ("stream=" + quote("%"), 200, "No exchange like that"),
    ("node=" + "n" * 5000, 200, "No exchange like that"),
    ("route=%00", 200, "No exchange like that"),
    ("rule=%ed%a0%80", 200, "No exchange like that"),
)


async def test_what_is_asked_for_badly_is_said_and_finds_nothing_else(server: Server) -> None:
    await Teller(server).tell(exchange("b1"))
    async with looking(server, "gus") as browser:
        for query, status, says in WRONG_QUERIES:
            told = await browser.get(f"exchanges?{query}")
            assert (told.status, says in told.page) == (status, True), query


async def test_names_that_try_what_they_can_are_text(server: Server) -> None:
    await Teller(server).tell(exchange(HOSTILE[:150], route=XSS, rules=(XSS,), outcome=XSS, degradations=(XSS,)))
    async with looking(server, "eve") as browser:
        for path in (
            "",
            "?span=day",
            "exchanges",
            "live",
            "exchanges/n1/cn1/1",
            f"?node={quote(XSS)}&route={quote(XSS)}",
        ):
            page = (await browser.get(path)).page
            assert XSS not in page, path
            assert "&lt;script&gt;" in page, path


async def test_a_record_comes_with_what_proves_it_also_where_it_has_stayed_on_its_node(server: Server) -> None:
    teller = Teller(server)
    sealed = await teller.tell(start(), exchange("s1"), exchange("s2"), privacy=None)
    hidden = await teller.tell(exchange("s3"), exchange("s4"), privacy=Privacy(usual="none"))
    async with looking(server, "gus") as browser:
        page = (await browser.get("exchanges/n1/cn1/2")).page
        assert "Exchange <code>s1</code>" in page
        assert 'data-proof="/console/exchanges/n1/cn1/2/proof"' in page
        proof = json.loads((await browser.get("exchanges/n1/cn1/2/proof")).page)
        assert base64.b64decode(proof["line"]) == sealed[1].line[:-1]
        head = read_head(base64.b64decode(proof["head"]))
        assert (head.seq, len(proof["after"]), linked(sealed[1].hash, proof["after"][0])) == (3, 1, head.hash)
        assert proof["key"] == teller.key.public.pem().decode()
        page = (await browser.get("exchanges/n1/cn1/4")).page
        assert "Its content has stayed on the node" in page
        assert "s3" not in page
        proof = json.loads((await browser.get("exchanges/n1/cn1/4/proof")).page)
        private = proof["private"]
        assert (proof["line"], private["prev"]) == ("", sealed[2].hash)
        assert linked(private["prev"], private["digest"]) == private["hash"] == hidden[0].hash


NOWHERE = (
    "n1/cn1", "n1/cn1/", "n1/cn1/x", "n1/cn1/-1", "n1/cn1/2/proof/x", "n1/cn1/2/other", "n1/cn1/99999999999999999",
    "n1/cn1/9", "n2/cn1/1", "%00/cn1/1", "n1/..%2F..%2Fetc/1", "", "n1/cn1/9/proof", "n1/cn1/٣",
)  # fmt: skip


async def test_a_place_that_is_none_has_no_page(server: Server) -> None:
    await Teller(server).tell(exchange("s1"))
    async with looking(server, "gus") as browser:
        for path in NOWHERE:
            assert (await browser.get(f"exchanges/{path}")).status == 404, path


async def test_a_line_that_somebody_has_changed_in_the_store_is_shown_as_it_is_and_does_not_hash(
    server: Server, tmp_path: Path
) -> None:
    await Teller(server).tell(exchange("s1"))
    with sqlite3.connect(tmp_path / "var" / "control.db") as database:
        database.execute("""update records set content = replace(content, '"chat"', '"chit"')""")
    database.close()
    async with looking(server, "gus") as browser:
        assert (await browser.get("exchanges/n1/cn1/1")).status == 200
        proof = json.loads((await browser.get("exchanges/n1/cn1/1/proof")).page)
        line = json.loads(base64.b64decode(proof["line"]))
        assert line["body"]["route"] == "chit"


async def test_the_live_page_gets_what_nodes_tell_as_it_comes_by_filter(server: Server) -> None:
    one, two = Teller(server), Teller(server, "n2")
    await one.tell(exchange("before"))
    headers = {"authorization": f"Bearer {key_of('gus')}"}

    async def events(query: str) -> list[str]:
        found: list[str] = []
        async with (
            aiohttp.ClientSession(headers=headers) as client,
            client.get(f"{server.url}/console/live/events?{query}") as response,
        ):
            assert response.status == 200
            started.set()
            async for line in response.content:
                if line.startswith(b"data:"):
                    rows = json.loads(line[5:])["rows"]
                    found += [f"{row['node']}:{row['stream']}" for row in rows]
                    if any(row["stream"] == "last" for row in rows):
                        return found
        return found

    for query, wanted in (("node=n2", ["n2:s2", "n2:last"]), ("", ["n1:s1", "n2:s2", "n2:last"])):
        started = asyncio.Event()
        reading = asyncio.get_running_loop().create_task(events(query))
        await started.wait()
        await asyncio.sleep(0.3)  # until the first look has begun
        await one.tell(exchange("s1"))
        await two.tell(exchange("s2"))
        await two.tell(exchange("last"))
        assert sorted(await asyncio.wait_for(reading, 20)) == sorted(wanted)
