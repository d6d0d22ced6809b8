"""Fleets in the console: who has not what they should have stands first, and lists are what people say."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from checkstream.console.views.fleets import MOST_NODES, STATES, fleet_row, fleet_view, standing
from checkstream.control.server.showing import FleetShown, NodeShown
from tests.console_control import attest, looking
from tests.console_facts import HOSTILE
from tests.controlled import Server

SAID = HOSTILE.encode("utf-8", "replace").decode()
NODES = st.builds(
    NodeShown,
    node=st.text("abc-1", min_size=1, max_size=4),
    ring=st.just("all"),
    desired=st.sampled_from(["", "1" * 64]),
    reported=st.sampled_from(["", "1" * 64, "2" * 64]),
    version=st.sampled_from(["", "v1"]),
    drifted=st.booleans(),
    refused=st.booleans(),
    stale=st.booleans(),
    heard_s=st.sampled_from([None, 5.0]),
    since_s=st.none(),
    why=st.just(""),
)


def fleet(nodes: list[NodeShown]) -> FleetShown:
    return FleetShown(fleet="shop", bundle="retail", offered=(), allowed={}, rollout=None, nodes=tuple(nodes))


@given(st.lists(NODES, max_size=20), st.sampled_from(["", *STATES]), st.text("abc", max_size=1))
def test_every_node_that_is_wanted_is_there_once_and_none_in_order_stands_before_one_that_is_not(
    nodes: list[NodeShown], state: str, name: str
) -> None:
    view = fleet_view(fleet(nodes), state, name)
    wanted = [
        each
        for each in nodes
        if name in each.node and (not state or state in {found.state for found in standing(each)})
    ]
    assert sorted(map(repr, (row.node for row in view.rows))) == sorted(map(repr, wanted))
    orders = [row.standing[0].state == "in order" for row in view.rows]
    assert orders == sorted(orders)
    for node in nodes:
        found = {each.state for each in standing(node)}
        assert ("in order" in found) == (found == {"in order"})
        assert ("refused" in found) == node.refused
        assert {"drifted", "unheard"} - found  # of whom nobody has heard, nobody knows what they have
    assert sum(count for _, count in fleet_row(fleet(nodes)).counts) >= len(nodes)


def test_of_very_many_nodes_the_first_are_shown_and_the_rest_is_counted() -> None:
    one = NodeShown(
        node="n", ring="all", desired="", reported="", version="", drifted=False, refused=False, stale=False,
        heard_s=1.0, since_s=1.0, why="",
    )  # fmt: skip
    view = fleet_view(fleet([one] * (MOST_NODES + 7)), "", "")
    assert (len(view.rows), view.more) == (MOST_NODES, 7)


async def test_a_fleet_says_who_is_refused_and_leads_to_the_list(tmp_path: Path) -> None:
    async with Server(tmp_path).serving() as server, looking(server, "rob") as browser:
        assert await attest(server, "n1", package="d" * 64, models={"pii-small": "e" * 64}, error="disk full") == 403
        page = (await browser.get("fleets/shop")).page
        assert page.index(">n1<") < page.index(">n2<")
        for said in ("gets no bundle", "never heard of", "e" * 64, "disk full", "put it on the list"):
            assert said in page
        assert page.count("put it on the list") == 1  # and not of what may be anything
        link = next(part for part in page.split('href="/console/') if part.startswith("fleets/shop?kind=package"))
        filled = (await browser.get(link.partition('#allow"')[0].replace("&amp;", "&"))).page
        assert f'value="{"d" * 64}"' in filled
        form = {"fleet": "shop", "kind": "package", "value": "d" * 64, "reason": "the new build"}
        shown = await browser.done("allowances", form)
        assert "It is on the list now." in shown.page
        assert await attest(server, "n1", 2, package="d" * 64) == 200
        assert "in order" in (await browser.get("fleets/shop?state=in+order&node=n1")).page
        shown = await browser.done("allowances", {**form, "allowed": "false"})
        assert "It is off the list." in shown.page
        assert await attest(server, "n1", 3, package="d" * 64) == 403


HOSTILE_FORMS: tuple[tuple[dict[str, str], int, str], ...] = (
    ({"fleet": "none"}, 404, "there is no fleet"),
    ({"fleet": SAID[:60]}, 404, "&lt;script&gt;"),
    ({"fleet": "x" * 65}, 400, "<code>fleet</code>"),
    ({"kind": "everything"}, 400, "<code>kind</code>"),
    ({"value": "d" * 201}, 400, "<code>value</code>"),
    ({"value": "two words"}, 400, "<code>value</code>"),
    ({"value": ""}, 400, "missing required field <code>value</code>"),
    ({"allowed": "perhaps"}, 400, "<code>allowed</code>"),
    ({"reason": "x" * 1001}, 400, "<code>reason</code>"),
    ({"more": "1"}, 400, "<code>more</code>"),
    ({"allowed": "false"}, 404, "nobody has added"),
)


async def test_forms_that_make_no_sense_are_refused_with_the_reason(tmp_path: Path) -> None:
    async with Server(tmp_path).serving() as server, looking(server, "rob") as browser:
        form = {"fleet": "shop", "kind": "package", "value": "d" * 64, "reason": "why <b>not</b>"}
        for changed, status, said in HOSTILE_FORMS:
            told = await browser.post("allowances", form | changed)
            assert (told.status, said in told.page) == (status, True), told.page
            if status == 400 and "fleet" not in changed and "reason" not in changed:
                assert 'value="why &lt;b&gt;not&lt;/b&gt;"' in told.page  # what was written is not lost
            assert "<script>alert" not in told.page


async def test_what_is_no_form_is_refused(tmp_path: Path) -> None:
    async with Server(tmp_path).serving() as server, looking(server, "rob") as browser:
        told = await browser.post("allowances", {"value": "x" * 300_000})
        assert told.status == 400
        assert "is no form, or is too large" in told.page
        for path in ("fleets/none", "fleets/shop/n1", "fleets/", "fleets/%2fshop", "fleets/" + "x" * 5000):
            assert (await browser.get(path)).status == 404
        for query in ("state=nothing&node=" + "%3Cscript%3E" * 100, "kind=%00&value=%22%3E%3Cimg+src%3Dx%3E&done=x"):
            told = await browser.get(f"fleets/shop?{query}")
            assert told.status == 200
            assert "<script>" not in told.page
            assert "<img src=x>" not in told.page


async def test_nodes_say_hostile_things_of_themselves(tmp_path: Path) -> None:
    async with Server(tmp_path).serving() as server, looking(server, "eve") as browser:
        said = SAID[:150]
        await attest(server, "n1", version=said, image=said, error=said, models={said: "e" * 64}, bundle_version=said)
        for path in ("fleets", "fleets/shop"):
            told = await browser.get(path)
            assert told.status == 200
            assert "<script>alert" not in told.page
            assert "\u202e" not in told.page


async def test_who_has_no_fleet_or_no_node_yet_is_told_what_to_write(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.written["fleets"] = {}
    async with server.serving(), looking(server, "eve") as browser:
        assert "checkstream bundle key n1 --to keys" in (await browser.get("fleets")).page
    server.written["fleets"] = {"shop": {"bundle": "retail"}}
    async with server.serving(), looking(server, "eve") as browser:
        assert "no nodes" in (await browser.get("fleets")).page
        page = (await browser.get("fleets/shop")).page
        assert "fleets.shop.nodes" in page
        assert "nothing, so no node gets a bundle" in page
