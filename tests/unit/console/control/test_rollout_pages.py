"""Rollouts in the console: asked for by one, approved by another, and refused to whoever may not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.config.control import Health
from checkstream.console.views.rollouts import choices_of, rings_of, shares_of
from checkstream.control.server.judging import compared, judged
from checkstream.control.server.people import MAY, ROLES, Act, objection
from checkstream.control.server.showing import FleetShown, RolloutShown
from checkstream.control.server.tally import Tally
from tests.console_control import Browser, attest, looking
from tests.console_facts import HOSTILE
from tests.controlled import Server

ONE, TWO = "1" * 64, "2" * 64
OFFERED = [{"digest": TWO, "version": "v2"}, {"digest": ONE, "version": "v1"}]
SAID = HOSTILE.encode("utf-8", "replace").decode()
STAGES = ("proposed", "running", "done", "rolled_back")


def rollout(**more: Any) -> RolloutShown:
    given: dict[str, Any] = {
        "id": 7, "fleet": "shop", "digest": TWO, "version": "v2", "before": ONE, "before_version": "v1",
        "stage": "running", "ring": "canary", "rings": ("canary", "half", "all"), "asked_by": "eve",
        "approved_by": "rob", "soaked_s": 30.0, "soak_s": 60, "why": "",
    }  # fmt: skip
    return RolloutShown(**given | more)


@given(st.sampled_from(STAGES), st.sampled_from(["eve", "rob"]), st.sampled_from(ROLES))
def test_what_is_offered_is_what_the_server_would_do(stage: str, name: str, role: Any) -> None:
    why_not: dict[Act, str] = {act: objection(name, role, act) for act in MAY}
    choices = {each.act: each.why_not for each in choices_of(rollout(stage=stage), name, why_not)}
    acts = {"proposed": {"approve", "rollback"}, "running": {"promote", "rollback"}, "done": {"rollback"}}
    assert set(choices) == acts.get(stage, set())
    for act, why in choices.items():
        own = act == "approve" and name == "eve"
        assert (why == "") == (role in MAY[act] and not own)


@pytest.mark.parametrize(
    ("stage", "ring", "states"),
    [
        ("proposed", "", ["waits", "waits", "waits"]),
        ("running", "canary", ["gets it now", "waits", "waits"]),
        ("running", "all", ["has it", "has it", "gets it now"]),
        ("done", "all", ["has it", "has it", "has it"]),
        ("rolled_back", "half", ["goes back", "goes back", "waits"]),
        ("rolled_back", "", ["waits", "waits", "waits"]),
    ],
)
def test_rings_are_reached_in_their_order(stage: str, ring: str, states: list[str]) -> None:
    fleet = FleetShown(fleet="shop", bundle="b", offered=(), allowed={}, rollout=None, nodes=())
    rows = rings_of(fleet, rollout(stage=stage, ring=ring))
    assert [row.state for row in rows] == states
    assert [row.share for row in rows] == [0.5 if row.state == "gets it now" else None for row in rows]


@given(st.lists(st.integers(0, 300), min_size=6, max_size=6))
def test_what_is_called_too_much_is_what_a_rollout_is_taken_back_for(counts: list[int]) -> None:
    health = Health(exchanges=50)
    new, old = (
        Tally(exchanges=max(three), refusals=three[0], stops=three[1], failures=three[2])
        for three in (counts[:3], counts[3:])
    )
    found = compared(health, new, old)
    worse = judged(health, new, old).worse
    rows = shares_of(found)
    assert any(row.says == "too much" for row in rows) == bool(worse)
    enough = min(new.exchanges, old.exchanges) >= 50
    for row, share in zip(rows, found.shares, strict=True):
        assert (row.says == "too few to say") == (not enough)  # and never that it is not worse
        assert (row.now == "nothing yet") == (share.of == 0)


async def signed(server: Server) -> None:
    for node in server.nodes:
        assert await attest(server, node, bundle=ONE, bundle_version="v1", offered=OFFERED) == 200


async def proposed(browser: Browser, reason: str = "fewer false alarms") -> str:
    return (await browser.done("proposals", {"fleet": "shop", "version": TWO, "reason": reason})).page


async def test_one_asks_another_approves_and_either_takes_it_back(tmp_path: Path) -> None:
    async with Server(tmp_path).serving() as server:
        await signed(server)
        async with looking(server, "rita") as rita, looking(server, "rob") as rob, looking(server, "eve") as eve:
            page = await proposed(rita)
            assert "It is asked for." in page
            assert "fewer false alarms" in page
            assert "<code>rita</code>, have asked for it: another risk officer" in page
            told = await rita.post("approvals?fleet=shop", {"rollout": "1"})
            assert told.status == 403
            assert "another risk officer has to approve" in told.page
            page = (await eve.get("rollouts/shop")).page
            assert "<code>eve</code> is <code>engineer</code>, and <code>approve</code> is for" in page
            assert (await eve.post("approvals?fleet=shop", {"rollout": "1"})).status == 403
            page = (await rob.done("approvals", {"rollout": "1", "reason": "read it"})).page
            assert "It is approved, and has begun." in page
            assert "gets it now" in page
            assert "prompts refused" in page
            told = await rob.post("approvals?fleet=shop", {"rollout": "1"})
            assert told.status == 409
            assert "waits for no approval" in told.page
            assert "It goes on to the next ring." in (await eve.done("promotions", {"rollout": "1"})).page
            page = (await eve.done("rollbacks", {"rollout": "1", "reason": SAID[:200]})).page
            assert "It is taken back." in page
            assert "<script>alert" not in page
            assert "You can&#39;t" not in page
            page = await proposed(eve, SAID[:900])
            assert "<script>alert" not in page
            page = (await eve.done("rollbacks", {"rollout": "2"})).page
            assert "What became of it" in page  # the first, below the newest
            assert "rolled back" in page


async def test_forms_that_make_no_sense_are_refused_with_the_reason(tmp_path: Path) -> None:
    async with Server(tmp_path).serving() as server, looking(server, "eve") as eve, looking(server, "gus") as gus:
        await signed(server)
        form = {"fleet": "shop", "version": TWO, "reason": "why <b>not</b>"}
        for changed, status, said in (
            ({"version": "v9"}, 404, "no version is called"),
            ({"version": SAID[:100]}, 404, "no version is called"),
            ({"version": ""}, 400, "missing required field"),
            ({"version": "x" * 201}, 400, "<code>version</code>"),
            ({"reason": "x" * 1001}, 400, "<code>reason</code>"),
            ({"fleet": "none"}, 404, "there is no fleet"),
            ({"rollout": "1"}, 400, "<code>rollout</code>"),
        ):
            told = await eve.post("proposals", form | changed)
            assert (told.status, said in told.page) == (status, True), told.page
            assert "<script>alert" not in told.page
            if said == "<code>version</code>":
                assert 'value="why &lt;b&gt;not&lt;/b&gt;"' in told.page
        for path in ("promotions", "rollbacks"):
            for number, status in (("9", 404), ("0", 400), ("-1", 400), ("1.5", 400), ("9" * 30, 400), ("", 400)):
                for query in ("?fleet=shop", "?fleet=none", ""):
                    assert (await eve.post(path + query, {"rollout": number})).status == status
        for path, sent in (("proposals", form), ("rollbacks", {"rollout": "1"}), ("approvals", {"rollout": "1"})):
            assert (await gus.post(path, sent)).status == 403
            assert (await eve.post(path, sent, {"origin": "http://evil.example"})).status == 403
        assert (await eve.get("rollouts/none")).status == 404
        assert "Nothing has been rolled out yet" in (await eve.get("rollouts/shop")).page
        await proposed(eve)
        told = await eve.post("proposals", form)
        assert (told.status, "end it first, or roll it back" in told.page) == (409, True)


async def test_the_list_leads_to_the_fleet_or_has_those_that_go_round_first(tmp_path: Path) -> None:
    server = Server(tmp_path)
    async with server.serving(), looking(server, "eve") as eve:
        assert (await eve.get("rollouts")).headers["location"] == "/console/rollouts/shop"
        assert "No node has told yet which versions are signed" in (await eve.get("rollouts/shop")).page
    server.written["fleets"] = {"attic": {"bundle": "b"}, **server.written["fleets"]}
    async with server.serving(), looking(server, "eve") as eve:
        await signed(server)
        await proposed(eve)
        page = (await eve.get("rollouts")).page
        assert page.index('rollouts/shop"') < page.index('rollouts/attic"')
        shown = await asyncio.gather(*(eve.get(f"rollouts/{name}") for name in ("shop", "attic")))
        assert [told.status for told in shown] == [200, 200]
