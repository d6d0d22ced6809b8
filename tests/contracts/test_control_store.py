"""The control server over each kind of database: what nodes say, what people do, and how rollouts go."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkstream.app.parts import open_journal
from checkstream.audit.keys import load_public_key
from checkstream.audit.verify import verify
from checkstream.config import AuditSettings
from checkstream.config.control import Allowed, Fleet, Health, Ring
from checkstream.control.attestation import Candidate, Desired
from checkstream.control.server.acts import Acts
from checkstream.control.server.database import open_database
from checkstream.control.server.fleets import Fleets
from checkstream.control.server.people import Asker
from checkstream.control.server.showing import RolloutShown
from checkstream.errors import ActConflicts, ActForbidden, ControlUnusable, NodeRefused, ThingUnknown
from tests.controlled import KINDS, address_of, attestation
from tests.evidence_stores import postgres  # noqa: F401 - a fixture

ONE, TWO, THREE = "1" * 64, "2" * 64, "3" * 64
EVE, ROB, RITA = Asker("eve", "engineer"), Asker("rob", "risk_officer"), Asker("rita", "risk_officer")
OFFERED = [{"digest": TWO, "version": "v2"}, {"digest": ONE, "version": "v1"}]
FLEET = Fleet(
    bundle="retail",
    nodes={"n1": "", "n2": "", "n3": ""},
    allow=Allowed(packages="any", configurations=("b" * 64,)),
    rings=(Ring(name="canary", nodes=("n1",), soak_s=10), Ring(name="all", percent=100, soak_s=0)),
    health=Health(exchanges=40, reach_s=30),
)


class World:
    """A control server without its sockets, and a clock that is set."""

    def __init__(self, address: str, folder: Path) -> None:
        self.fleet = FLEET
        self.address = address
        self.folder = folder
        self.now = 1_000_000_000_000
        self.sequence = 0
        self.exchanges: dict[str, list[int]] = {}

    @contextlib.asynccontextmanager
    async def served(self, name: str = "one") -> AsyncIterator[tuple[Fleets, Acts]]:
        database = await asyncio.to_thread(open_database, self.address)
        settings = AuditSettings(dir=str(self.folder / name / "audit"))
        _, journal = await asyncio.to_thread(open_journal, settings, "control")
        fleets = {"shop": self.fleet}
        clock = lambda: self.now  # noqa: E731
        try:
            yield Fleets(fleets, database, clock), Acts(fleets, database, journal, clock)
        finally:
            await journal.aclose()
            await database.close()

    async def said(self, fleets: Fleets, node: str, bundle: str = "", **more: Any) -> Desired:
        """Have a node attest, with some more exchanges than before: `(how many, how many of them stopped)`."""
        self.sequence += 1
        count = self.exchanges.setdefault(node, [0, 0])
        for place, n in enumerate(more.pop("counted", (0, 0))):
            count[place] += n
        figures = {"run": "r", "age_s": 86_400, "exchanges": count[0], "stops": count[1]}
        beside, of = more.pop("beside", None), more.pop("of", None)
        given = {"bundle": bundle, "offered": OFFERED, "figures": figures, **more}
        if beside is not None:
            given["candidate"] = {"wanted": msgspec.to_builtins(beside), "figures": of}
        return await fleets.attest(node, attestation(self.sequence, **given))

    async def passed(self, acts: Acts, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1000
            await acts.tick()

    def acts(self, name: str = "one") -> Iterator[dict[str, Any]]:
        for path in sorted((self.folder / name / "audit").glob("*.jsonl")):
            for line in path.read_text().splitlines():
                record = json.loads(line)
                if record["kind"] == "act":
                    yield record["body"]


@pytest.fixture(params=KINDS)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with address_of(request.param, tmp_path, request) as address:
        yield World(address, tmp_path)


async def everyone(world: World, fleets: Fleets, bundle: str, **more: Any) -> list[str]:
    return [(await world.said(fleets, node, bundle, **more)).bundle for node in FLEET.nodes]


async def begun(world: World, fleets: Fleets, acts: Acts) -> int:
    """Begin a rollout of `v2` in a fleet that has `v1`."""
    await everyone(world, fleets, ONE)
    await everyone(world, fleets, ONE, counted=(50, 0))
    rollout = await acts.propose(EVE, "shop", "v2", "new rules")
    assert (rollout.stage, rollout.before) == ("proposed", ONE)
    assert await everyone(world, fleets, ONE) == [ONE] * 3
    await acts.approve(ROB, rollout.id, "seen")
    return rollout.id


async def test_a_good_bundle_goes_round(world: World) -> None:
    async with world.served() as (fleets, acts):
        number = await begun(world, fleets, acts)
        assert await everyone(world, fleets, ONE) == [TWO, ONE, ONE]
        await world.said(fleets, "n1", TWO)
        await world.passed(acts, 5)
        await world.said(fleets, "n1", TWO, counted=(45, 0))
        await world.passed(acts, 6)
        assert await everyone(world, fleets, TWO) == [TWO] * 3
        await world.passed(acts, 1)
        shown = await fleets.shown("shop")
        assert shown.rollout is not None
        assert (shown.rollout.id, shown.rollout.stage) == (number, "done")
        assert [node.drifted for node in shown.nodes] == [False] * 3
        told = [(act["who"], act["act"], act["detail"]["stage"]) for act in world.acts()]
        assert told == [
            ("eve", "rollout", "proposed"),
            ("rob", "approve", "running"),
            ("control", "advance", "running"),
            ("control", "advance", "done"),
        ]
        with pytest.raises(ActConflicts, match="is what fleet `shop` is to have already"):
            await acts.propose(EVE, "shop", TWO[:12], "")
    (report,) = verify(world.folder / "one" / "audit", keys=[load_public_key(world.folder / "one" / "audit.key.pub")])
    assert (report.bad, report.records) == (None, 4)


async def test_what_a_rollout_is_judged_by_is_told_while_it_runs_and_kept_when_it_ends(world: World) -> None:
    async with world.served() as (fleets, acts):
        assert await acts.compared("shop") is None
        began = world.now
        number = await begun(world, fleets, acts)
        await world.said(fleets, "n1", TWO)
        await world.said(fleets, "n1", TWO, counted=(30, 6))
        told = await acts.compared("shop")
        assert told is not None
        counted = {each.what: (each.some, each.of, each.others, each.of_others) for each in told.shares}
        assert (told.exchanges, told.exchanges_before, counted["stops"]) == (30, 150, (6, 30, 0, 150))
        assert not any(each.too_much for each in told.shares)
        await world.said(fleets, "n1", TWO, counted=(60, 54))
        await world.passed(acts, 1)
        (rollout,) = await fleets.rollouts("shop", 10)
        assert (rollout.id, rollout.stage, rollout.reason, rollout.asked_ms) == (
            number,
            "rolled_back",
            "new rules",
            began,
        )
        await world.said(fleets, "n1", TWO, counted=(500, 0))  # what comes behind it alters nothing
        kept = await acts.compared("shop")
        assert kept is not None
        assert {each.what for each in kept.shares if each.too_much} == {"stops"}
        assert kept.exchanges == 90
        with pytest.raises(ThingUnknown, match="there is no fleet `none`"):
            await acts.compared("none")
        kinds = [each.kind for each in await fleets.events("shop", 0, 10, ("rolled_back", "rollout_advanced"))]
        assert kinds == ["rolled_back"]
        assert await fleets.events("", 0, 10, ("node_refused",)) == []


async def test_a_first_bundle_that_was_taken_back_can_be_asked_for_again(world: World) -> None:
    async with world.served() as (fleets, acts):
        await everyone(world, fleets, "")
        first = await acts.propose(EVE, "shop", "v2", "")
        await acts.approve(ROB, first.id, "")
        await acts.promote(EVE, first.id, "")
        assert await everyone(world, fleets, TWO) == [TWO] * 3
        back = await acts.roll_back(EVE, first.id, "too strict")
        assert back.why == "eve: too strict; there was no bundle before this one, so nodes that have it keep it"
        assert await everyone(world, fleets, TWO) == [""] * 3
        again = await acts.propose(EVE, "shop", "v2", "it was right")
        assert (again.stage, again.before) == ("proposed", "")


async def test_a_bad_bundle_is_taken_back_by_itself(world: World) -> None:
    async with world.served() as (fleets, acts):
        await begun(world, fleets, acts)
        await world.said(fleets, "n1", TWO)
        await world.said(fleets, "n1", TWO, counted=(45, 45))
        await world.passed(acts, 1)
        shown = await fleets.shown("shop")
        assert shown.rollout is not None
        assert shown.rollout.stage == "rolled_back"
        assert shown.rollout.why == "stops: 45 of 45 exchanges; under the bundle before 0 of 150"
        assert [(node.node, node.desired, node.drifted) for node in shown.nodes] == [
            ("n1", ONE, True),
            ("n2", ONE, False),
            ("n3", ONE, False),
        ]
        assert await everyone(world, fleets, ONE) == [ONE] * 3
        (event,) = [each for each in await fleets.events("shop", 0, 10) if each.kind == "rolled_back"]
        assert "v2: stops: 45 of 45" in event.reason
        assert [act["act"] for act in world.acts()] == ["rollout", "approve", "rollback"]
        again = await acts.propose(EVE, "shop", "v2", "once more")
        assert again.before == ONE


async def test_a_canary_that_refuses_the_bundle_is_waited_for_and_then_it_is_taken_back(world: World) -> None:
    async with world.served() as (fleets, acts):
        await begun(world, fleets, acts)
        for _ in range(31):
            await world.said(fleets, "n1", ONE, error="its case `stops` fails")
            await world.passed(acts, 1)
        shown = (await fleets.shown("shop")).rollout
        assert shown is not None
        assert (shown.stage, "`n1` among them: its case `stops` fails" in shown.why) == ("rolled_back", True)


async def test_a_canary_that_falls_silent_behind_a_bundle_takes_it_back(world: World) -> None:
    """As one does whose processes end by it: nobody else could say so."""
    async with world.served() as (fleets, acts):
        await begun(world, fleets, acts)
        await world.said(fleets, "n1", TWO)
        await world.passed(acts, 60)
        shown = (await fleets.shown("shop")).rollout
        assert shown is not None
        assert (shown.stage, "are too few" in shown.why) == ("running", True)
        await world.passed(acts, 32)
        shown = (await fleets.shown("shop")).rollout
        assert shown is not None
        assert (shown.stage, "`n1` among them: it has fallen silent" in shown.why) == ("rolled_back", True)


async def test_a_canary_that_was_silent_before_is_waited_for(world: World) -> None:
    async with world.served() as (fleets, acts):
        await everyone(world, fleets, ONE)
        world.now += 120_000
        rollout = await acts.propose(EVE, "shop", "v2", "")
        await acts.approve(ROB, rollout.id, "")
        await world.passed(acts, 100)
        shown = (await fleets.shown("shop")).rollout
        assert shown is not None
        assert (shown.stage, shown.why) == ("running", "no node of this ring has been heard of lately")


BY_CALLERS = (
    Ring(name="tenth", callers=10, soak_s=10),
    Ring(name="half", callers=50, soak_s=10),
    Ring(name="all", percent=100, soak_s=10),
)


async def both(world: World, fleets: Fleets, beside: Candidate | None, exchanges: int, **more: Any) -> set[Desired]:
    """Have every node attest with a candidate, which has decided so many exchanges so far."""
    of = {"run": "c", "exchanges": exchanges, **more}
    said = {"beside": beside, "of": of, "counted": (50, 0)}
    return {await world.said(fleets, node, ONE, **said) for node in world.fleet.nodes}


async def shown_of(fleets: Fleets) -> RolloutShown:
    found = (await fleets.shown("shop")).rollout
    assert found is not None
    return found


async def test_a_bundle_goes_round_by_callers_on_all_nodes_at_once(world: World) -> None:
    world.fleet = msgspec.structs.replace(FLEET, rings=BY_CALLERS)
    async with world.served() as (fleets, acts):
        await begun(world, fleets, acts)
        (told,) = await both(world, fleets, None, 0)
        assert told.candidate is not None
        assert (told.bundle, told.candidate.bundle, told.candidate.share) == (ONE, TWO, 10)
        salt = told.candidate.salt
        assert len(salt) == 16
        await world.passed(acts, 15)  # nobody has it yet, so it is not watched
        shown = await fleets.shown("shop")
        assert [(node.drifted, node.desired_candidate, node.candidate) for node in shown.nodes] == [
            (True, told.candidate, None)
        ] * 3
        await both(world, fleets, told.candidate, 0)
        await both(world, fleets, told.candidate, 20)
        shown = await fleets.shown("shop")
        assert [(node.drifted, node.candidate) for node in shown.nodes] == [(False, told.candidate)] * 3
        assert (await shown_of(fleets)).callers == 10
        await world.passed(acts, 10)
        (told,) = await both(world, fleets, told.candidate, 20)
        assert told.candidate == Candidate(bundle=TWO, version="v2", share=50, salt=salt)
        await world.passed(acts, 1)
        assert "have it not in force yet" in (await shown_of(fleets)).why
        await both(world, fleets, told.candidate, 20)
        await world.passed(acts, 10)
        (told,) = await both(world, fleets, told.candidate, 40)
        assert told == Desired(bundle=TWO, version="v2")
        for node in world.fleet.nodes:
            await world.said(fleets, node, TWO)
        await world.passed(acts, 11)
        assert ((await shown_of(fleets)).stage, (await shown_of(fleets)).callers) == ("done", None)


async def test_callers_of_a_bad_candidate_are_held_against_the_others_of_the_same_time(world: World) -> None:
    """Before it began others stopped as many; that is no excuse, for they don't any more."""
    world.fleet = msgspec.structs.replace(FLEET, rings=BY_CALLERS)
    async with world.served() as (fleets, acts):
        await everyone(world, fleets, ONE)
        await everyone(world, fleets, ONE, counted=(300, 300))
        world.now += 600_000
        rollout = await acts.propose(EVE, "shop", "v2", "")
        await acts.approve(ROB, rollout.id, "")
        (told,) = await both(world, fleets, None, 0)
        await both(world, fleets, told.candidate, 0)
        await both(world, fleets, told.candidate, 15, stops=15)
        await world.passed(acts, 1)
        shown = await shown_of(fleets)
        assert (shown.stage, shown.why) == (
            "rolled_back",
            "stops: 45 of 45 exchanges; under the bundle before 0 of 450",
        )
        assert await both(world, fleets, told.candidate, 15) == {Desired(bundle=ONE)}
        assert [node.drifted for node in (await fleets.shown("shop")).nodes] == [True] * 3
        assert await everyone(world, fleets, ONE) == [ONE] * 3
        assert [node.drifted for node in (await fleets.shown("shop")).nodes] == [False] * 3
        again = await acts.propose(EVE, "shop", "v2", "once more")
        await acts.approve(ROB, again.id, "")
        (more,) = await both(world, fleets, None, 0)
        assert more.candidate is not None
        assert told.candidate is not None
        assert more.candidate.salt != told.candidate.salt  # so that others come first


async def test_a_node_that_knows_no_candidates_is_waited_for_and_named(world: World) -> None:
    world.fleet = msgspec.structs.replace(FLEET, rings=BY_CALLERS)
    async with world.served() as (fleets, acts):
        await begun(world, fleets, acts)
        (told,) = await both(world, fleets, None, 0)
        for _ in range(31):
            for node in ("n1", "n2"):
                await world.said(fleets, node, ONE, beside=told.candidate)
            await world.said(fleets, "n3", ONE)
            await world.passed(acts, 1)
        shown = await shown_of(fleets)
        assert shown.stage == "rolled_back"
        assert "1 of 3 nodes have it not in force yet, `n3` among them" in shown.why


async def test_a_first_bundle_comes_to_all_callers_since_they_have_no_other(world: World) -> None:
    world.fleet = msgspec.structs.replace(FLEET, rings=BY_CALLERS)
    async with world.served() as (fleets, acts):
        await everyone(world, fleets, "")
        first = await acts.propose(EVE, "shop", "v2", "")
        assert (await acts.approve(ROB, first.id, "")).ring == "all"
        assert await everyone(world, fleets, "") == [TWO] * 3


async def test_a_server_that_is_killed_goes_on_where_it_was(world: World) -> None:
    """It has kept all of it at each step; what it did not see is no soak. Another server may go on as well."""
    async with world.served() as (fleets, acts):
        number = await begun(world, fleets, acts)
        await world.said(fleets, "n1", TWO)
        await world.passed(acts, 5)
    world.now += 3_600_000
    async with world.served("two") as (fleets, acts):
        await world.said(fleets, "n1", TWO, counted=(45, 0))
        await world.passed(acts, 1)
        shown = (await fleets.shown("shop")).rollout
        assert shown is not None
        assert (shown.id, shown.stage, shown.ring) == (number, "running", "all")  # 5 s, 10 at most for the gap
        assert await everyone(world, fleets, ONE) == [TWO] * 3


async def test_two_servers_that_look_together_count_time_once(world: World) -> None:
    async with world.served() as (fleets, acts), world.served("two") as (_, others):
        await begun(world, fleets, acts)
        await world.said(fleets, "n1", TWO)
        for _ in range(6):
            world.now += 1000
            await asyncio.gather(acts.tick(), others.tick(), acts.tick())
        shown = (await fleets.shown("shop")).rollout
        assert shown is not None
        assert shown.soaked_s == 6


async def test_who_asks_does_not_approve_and_one_rollout_is_open_at_a_time(world: World) -> None:
    async with world.served() as (fleets, acts):
        await everyone(world, fleets, ONE)
        rollout = await acts.propose(ROB, "shop", "v2", "")
        with pytest.raises(ActForbidden, match="another risk officer"):
            await acts.approve(ROB, rollout.id, "")
        with pytest.raises(ActConflicts, match=f"rollout {rollout.id} of `v2` is proposed; end it first"):
            await acts.propose(EVE, "shop", "v2", "")
        with pytest.raises(ActConflicts, match="only one that runs"):
            await acts.promote(EVE, rollout.id, "")
        await acts.approve(RITA, rollout.id, "")
        with pytest.raises(ActConflicts, match="waits for no approval"):
            await acts.approve(RITA, rollout.id, "")
        assert (await acts.promote(EVE, rollout.id, "")).ring == "all"
        assert (await acts.promote(EVE, rollout.id, "")).stage == "done"
        back = await acts.roll_back(EVE, rollout.id, "it was too much")
        assert (back.stage, back.why) == ("rolled_back", "eve: it was too much")
        with pytest.raises(ActConflicts, match="rolled back already"):
            await acts.roll_back(EVE, rollout.id, "")
        with pytest.raises(ThingUnknown, match="no rollout 99"):
            await acts.roll_back(EVE, 99, "")
        await acts.propose(EVE, "shop", "v2", "")
        with pytest.raises(ActConflicts, match=f"rollout {rollout.id} is over"):
            await acts.approve(RITA, rollout.id, "")
        assert [act["act"] for act in world.acts()] == [
            "rollout",
            "approve",
            "promote",
            "promote",
            "rollback",
            "rollout",
        ]


async def test_a_version_is_one_that_is_signed_now(world: World) -> None:
    async with world.served() as (fleets, acts):
        with pytest.raises(ThingUnknown, match="none yet; no node has attested"):
            await acts.propose(EVE, "shop", "v2", "")
        await everyone(world, fleets, "")
        for wrong in ("v3", THREE, "2222222", ""):
            with pytest.raises(ThingUnknown, match=r"signed now: v2 \(222222222222\), v1 \(111111111111\)"):
                await acts.propose(EVE, "shop", wrong, "")
        with pytest.raises(ThingUnknown, match="no fleet `bank`"):
            await acts.propose(EVE, "bank", "v2", "")
        first = await acts.propose(EVE, "shop", "22222222", "")
        assert (first.version, first.before) == ("v2", "")


async def test_one_node_that_errs_about_what_is_signed_is_outvoted_and_a_way_back_that_is_gone_is_said(
    world: World,
) -> None:
    async with world.served() as (fleets, acts):
        only = [{"digest": TWO, "version": "v2"}]
        for node in ("n1", "n2"):
            await world.said(fleets, node, ONE, bundle_version="v1", offered=only)
        await world.said(fleets, "n3", ONE, offered=[{"digest": THREE, "version": "v2"}])
        shown = await fleets.shown("shop")
        assert [(each.digest, each.version) for each in shown.offered] == [(TWO, "v2")]
        rollout = await acts.propose(EVE, "shop", "v2", "")
        assert (rollout.digest, rollout.before) == (TWO, ONE)
        assert "`v1` is not signed any more, so nodes could not be taken back to it" in rollout.why


async def test_lists_are_added_to_and_taken_from(world: World) -> None:
    async with world.served() as (fleets, acts):
        with pytest.raises(NodeRefused, match="configuration `c"):
            await world.said(fleets, "n1", configuration="c" * 64)
        await acts.allow(ROB, "shop", "configuration", "c" * 64, "a new node", allowed=True)
        await acts.allow(ROB, "shop", "configuration", "c" * 64, "again", allowed=True)
        await world.said(fleets, "n1", configuration="c" * 64)
        assert (await fleets.shown("shop")).allowed["configuration"] == ("c" * 64,)
        await acts.allow(ROB, "shop", "configuration", "c" * 64, "", allowed=False)
        with pytest.raises(NodeRefused):
            await world.said(fleets, "n1", configuration="c" * 64)
        with pytest.raises(ThingUnknown, match="what stands in the control server's file"):
            await acts.allow(ROB, "shop", "configuration", "b" * 64, "", allowed=False)
        assert [act["act"] for act in world.acts()] == ["allow", "allow", "disallow"]


async def test_a_node_says_the_same_since_it_said_something_else(world: World) -> None:
    async with world.served() as (fleets, _):
        await world.said(fleets, "n1", ONE)
        world.now += 30_000
        await world.said(fleets, "n1", ONE)
        world.now += 61_000
        node = (await fleets.shown("shop")).nodes[0]
        assert (node.since_s, node.heard_s, node.stale) == (91, 61, True)
        await world.said(fleets, "n1", TWO)
        assert (await fleets.shown("shop")).nodes[0].since_s == 0


async def test_what_can_not_be_put_on_record_is_not_done(world: World) -> None:
    async with world.served() as (fleets, acts):
        await everyone(world, fleets, ONE)
        await acts._journal.aclose()
        with pytest.raises(ControlUnusable, match="can't be put on record"):
            await acts.propose(EVE, "shop", "v2", "")
        assert (await fleets.shown("shop")).rollout is None
