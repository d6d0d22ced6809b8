"""Alerts, acts and events in the console: what is wrong, who is left in peace, and who did what."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.console.queries import ActQuery
from checkstream.console.views.alerts import alerts_view
from checkstream.control.server.alerting import HISTORY, Alerts, Standing
from checkstream.control.server.tables import Happened
from tests.console_control import Browser, attest, looking
from tests.console_facts import HOSTILE
from tests.controlled import Server

SAID = HOSTILE.encode("utf-8", "replace").decode()
STANDING = st.builds(
    Standing,
    key=st.just("k"),
    kind=st.sampled_from(["node_stale", "of a version to come"]),
    severity=st.sampled_from(["page", "ticket"]),
    subject=st.just("shop/n1"),
    says=st.just(""),
    state=st.sampled_from(["pending", "firing", "silenced"]),
    since_ms=st.integers(0, 10**7),
    told_ms=st.none(),
)


@given(st.lists(STANDING, max_size=12))
def test_what_pages_stands_first_and_nothing_is_left_out(troubles: list[Standing]) -> None:
    happened = [Happened(id=1, at_ms=1, kind=kind, fleet="", node="", reason="") for kind in (*HISTORY, "another")]
    view = alerts_view(Alerts(troubles=tuple(troubles), silences=(), waiting=()), [], happened, 10_000)
    states = [row.standing.state for row in view.troubles]
    assert states == sorted(states, key=["firing", "pending", "silenced"].index)
    firing = [row.standing.severity for row in view.troubles if row.standing.state == "firing"]
    assert firing == sorted(firing)  # page, ticket
    assert sorted(map(repr, (row.standing for row in view.troubles))) == sorted(map(repr, troubles))
    assert view.pages == firing.count("page")
    assert [row.state for row in view.events] == ["fired", "still there", "over", "given up", "another"]


async def refused(server: Server) -> None:
    """Have something be wrong: a node that is on no list."""
    assert await attest(server, "n1", package="d" * 64) == 403


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path)


async def test_a_silence_is_kept_with_its_reason_and_ends(server: Server) -> None:
    async with server.serving(), looking(server, "eve") as eve, looking(server, "gus") as gus:
        page = (await eve.get("alerts")).page
        assert "Nobody is told" in page
        assert "Nothing, of what is looked at" in page
        form = {"pattern": "node_refused:shop/*", "seconds": "3600", "reason": "they <b>move</b>"}
        page = (await eve.done("silences", form)).page
        assert "It is silent." in page
        assert "they &lt;b&gt;move&lt;/b&gt;" in page
        assert 'name="id" value="1"' in page
        page = (await gus.get("alerts")).page
        assert "<code>gus</code> is <code>auditor</code>, and <code>silence</code> is for" in page
        for path, sent in (("silences", form), ("silences/end", {"id": "1"})):
            assert (await gus.post(path, sent)).status == 403
            assert (await eve.post(path, sent, {"origin": "http://evil.example"})).status == 403
        assert 'name="id" value="1"' in (await eve.get("alerts")).page
        assert "The silence is over." in (await eve.done("silences/end", {"id": "1"})).page
        assert (await eve.post("silences/end", {"id": "1"})).status == 404
        page = (await eve.get("acts")).page
        assert page.index("ended a silence") < page.index("muted alerts")
        assert "they &lt;b&gt;move&lt;/b&gt;" in page


async def test_silences_that_make_no_sense_are_refused_with_the_reason(server: Server) -> None:
    async with server.serving(), looking(server, "eve") as eve:
        form = {"pattern": SAID[:150], "seconds": "3600", "reason": "why <b>not</b>"}
        for changed, said in (
            ({"pattern": ""}, "<code>pattern</code>"),
            ({"pattern": "x" * 201}, "<code>pattern</code>"),
            ({"seconds": "0"}, "<code>seconds</code>"),
            ({"seconds": "1e9"}, "<code>seconds</code>"),
            ({"seconds": "99999999"}, "<code>seconds</code>"),
            ({"seconds": "9" * 400}, "<code>seconds</code>"),
            ({"reason": ""}, "<code>reason</code>"),
            ({"reason": "x" * 501}, "<code>reason</code>"),
            ({"by": "ada"}, "<code>by</code>"),
        ):
            told = await eve.post("silences", form | changed)
            assert (told.status, said in told.page) == (400, True), told.page
            assert "<script>alert" not in told.page
            if "reason" not in changed:
                assert 'value="why &lt;b&gt;not&lt;/b&gt;"' in told.page
        for number in ("", "0", "-1", "x", "9" * 40):
            assert (await eve.post("silences/end", {"id": number})).status == 400
        assert (await eve.post("silences", form)).status == 303
        assert "<script>alert" not in (await eve.get("alerts")).page
        assert "<script>alert" not in (await eve.get("acts")).page


async def test_acts_are_found_by_who_what_and_where(server: Server) -> None:
    async with server.serving(), looking(server, "rob") as rob, looking(server, "eve") as eve:
        assert "Nobody has done anything yet" in (await rob.get("acts")).page
        for value in ("c", "d"):
            form = {"fleet": "shop", "kind": "package", "value": value * 64, "reason": SAID[:300]}
            await rob.done("allowances", form)
        await rob.done("allowances", {**form, "allowed": "false", "reason": ""})
        await eve.done("silences", {"pattern": "node_*", "seconds": "900", "reason": "a test"})

        async def found(query: str) -> list[str]:
            page = (await rob.get(f"acts?{query}")).page
            assert "<script>alert" not in page
            return [part.partition("<")[0] for part in page.split('data-is="Did">')[1:]]

        put, took, muted = "put on the list", "took off the list", "muted alerts"
        assert await found("") == [muted, took, put, put]
        assert await found("who=rob") == [took, put, put]
        assert await found("act=silence") == [muted]
        assert await found("fleet=shop&act=allow") == [put, put]
        for query in ("who=ro", "act=%00", "fleet=%22", "who=" + "x" * 5000, "until=2020"):
            assert await found(query) == []
        assert await found("until=2999-01-01") == [muted, took, put, put]
        assert "is no time" in (await rob.get("acts?until=yesterday")).page


async def test_events_say_what_happened_and_where_older_ones_are(server: Server) -> None:
    async with server.serving(), looking(server, "gus") as gus:
        assert "Nothing has happened yet" in (await gus.get("events")).page
        await refused(server)
        page = (await gus.get("events?fleet=shop")).page
        assert "<code>node_refused</code>" in page
        assert "is not on the list of fleet" in page
        for query in ("kind=node_stale", "kind=%27%20or%201=1", "before=1", "fleet=shop&kind=x"):
            assert "Nothing of that has happened." in (await gus.get(f"events?{query}")).page
        for before in ("-1", "x", "9" * 30, "%00"):
            assert "node_refused" in (await gus.get(f"events?before={before}")).page
        assert (await gus.get("events?fleet=none")).status == 404


async def test_what_is_wrong_leads_to_a_silence_of_it(server: Server) -> None:
    async with server.serving():
        await refused(server)
    async with server.serving(), looking(server, "eve") as eve:  # at its start it looks at once
        page = await _until_told(eve)
        assert "a node is not let in" in page
        assert 'alerts?pattern=node_refused%3Ashop/n1#silence"' in page
        filled = (await eve.get("alerts?pattern=node_refused%3Ashop/n1")).page
        assert 'value="node_refused:shop/n1"' in filled


async def _until_told(browser: Browser) -> str:
    for _ in range(300):
        page = (await browser.get("alerts")).page
        if "a node is not let in" in page:
            return page
        await asyncio.sleep(0.05)
    raise AssertionError(page)


def test_queries_of_acts_ask_for_what_their_needles_say() -> None:
    query = ActQuery(who='a"b', act="allow", fleet="é")
    assert list(query.needles()) == [
        (b'"kind":"act"',), (b'"who":"a\\"b"',), (b'"act":"allow"',), ('"fleet":"é"'.encode(),)
    ]  # fmt: skip
    assert ActQuery().empty
    assert not query.empty
