"""Alerts over every database of the control server: looks, notices and silences, and what a kill leaves of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from checkstream.audit.entries import ActEntry
from checkstream.control.alerts.conditions import Limits, Severity
from checkstream.control.alerts.facts import Facts, Node
from checkstream.control.alerts.standing import Notice, Pace
from checkstream.control.server import tables
from checkstream.control.server.alerting import GIVE_UP_MS, Alerting, Channel
from checkstream.control.server.database import Database, Session, open_database
from checkstream.control.server.people import Asker
from checkstream.errors import NoticeUnsent, ThingUnknown
from tests.controlled import KINDS, address_of
from tests.evidence_stores import postgres  # noqa: F401 - a fixture

ANN = Asker("ann", "engineer")


class Receiver:
    """Somebody who is told, and may not answer."""

    def __init__(self) -> None:
        self.got: list[Notice] = []
        self.away = False

    async def send(self, notice: Notice) -> None:
        if self.away:
            raise NoticeUnsent("the webhook of `ops` answered 503; check it")
        self.got.append(notice)

    @property
    def said(self) -> list[str]:
        return [f"{notice.event} {notice.finding.key}" for notice in self.got]


class World:
    """A clock, nodes that are not heard of, and who is told of it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now_ms = 1_000_000_000
        self.silent: set[str] = set()
        self.receiver = Receiver()
        self.acts: list[ActEntry] = []
        self.alerting = self.server()

    def server(self, least: Severity = "ticket") -> Alerting:
        return Alerting(
            self.database,
            {"ops": Channel(self.receiver, least)},
            self.facts,
            record=self.acts.append,
            limits=Limits(),
            pace=Pace(after_s=60, calm_s=120, again_s=600),
            now_ms=lambda: self.now_ms,
        )

    def facts(self, _: Session, __: int) -> Facts:
        nodes = (Node(subject=name, unheard_s=99, stale_s=60, wanted="", reported="") for name in self.silent)
        return Facts(nodes=tuple(nodes))

    async def turn(self, seconds: int = 30) -> None:
        self.now_ms += 1000 * seconds
        await self.alerting.look()
        await self.alerting.send_due()

    async def events(self, kind: str) -> list[str]:
        found = await self.database.transact(lambda session: tables.events(session, most=1000))
        return [each.reason for each in found if each.kind == kind]


@pytest.fixture(params=KINDS)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with address_of(request.param, tmp_path, request) as address:
        database = open_database(address)
        yield World(database)
        await database.close()


async def test_a_trouble_is_told_once_and_that_it_is_over(world: World) -> None:
    world.silent = {"shop/eu-1"}
    for _ in range(3):
        await world.turn()
    (stands,) = (await world.alerting.shown()).troubles
    assert (stands.key, stands.state, stands.told_ms) == ("node_stale:shop/eu-1", "firing", 1_000_030_000)
    world.silent = set()
    for _ in range(6):
        await world.turn()
    assert world.receiver.said == ["fired node_stale:shop/eu-1", "recovered node_stale:shop/eu-1"]
    assert (await world.alerting.shown()).troubles == ()
    assert len(await world.events("alert_fired")) == len(await world.events("alert_recovered")) == 1


async def test_a_server_that_starts_anew_says_nothing_twice_and_forgets_nothing(world: World) -> None:
    world.silent = {"shop/eu-1"}
    world.now_ms += 1
    await world.alerting.look()  # and ends before it sends
    world.alerting = world.server()
    await world.turn()
    world.alerting = world.server()
    await world.turn()
    assert world.receiver.said == ["fired node_stale:shop/eu-1"]


async def test_a_notice_that_was_being_sent_is_sent_again_when_its_time_is_over(world: World) -> None:
    world.silent = {"shop/eu-1"}
    await world.alerting.look()
    await world.database.transact(world.alerting._claim)  # and is killed while it sends
    await world.turn()
    assert world.receiver.said == []
    await world.turn(120)
    assert world.receiver.said == ["fired node_stale:shop/eu-1"]


async def test_a_receiver_that_is_away_gets_it_later_and_more_seldom_tried(world: World) -> None:
    world.silent, world.receiver.away = {"shop/eu-1"}, True
    await world.turn()
    (waits,) = (await world.alerting.shown()).waiting
    assert (waits.channel, waits.tries) == ("ops", 1)
    assert "503" in waits.failure
    for _ in range(40):
        await world.turn(5)
    assert 5 <= (await world.alerting.shown()).waiting[0].tries <= 7  # after 5, 15, 35, 75, 155 seconds
    world.receiver.away = False
    await world.turn(900)
    assert world.receiver.said[0] == "fired node_stale:shop/eu-1"
    assert (await world.alerting.shown()).waiting == ()


async def test_what_nobody_takes_for_a_day_is_lost_and_that_is_an_event(world: World) -> None:
    world.silent, world.receiver.away = {"shop/eu-1"}, True
    await world.turn()
    world.silent = set()
    await world.turn(GIVE_UP_MS // 1000 + 60)
    (lost,) = await world.events("notice_lost")
    assert lost.startswith("node_stale:shop/eu-1, fired, to `ops`: the webhook of `ops` answered 503")
    assert len((await world.alerting.shown()).waiting) == 1  # that it is over


async def test_a_silence_mutes_until_it_ends_and_keeps_who_asked(world: World) -> None:
    world.silent = {"shop/eu-1", "shop/us-1"}
    made = await world.alerting.silence(ANN, "node_stale:shop/eu-*", 3600, "they move")
    await world.turn()
    assert world.receiver.said == ["fired node_stale:shop/us-1"]
    shown = await world.alerting.shown()
    assert [trouble.state for trouble in shown.troubles] == ["silenced", "firing"]
    assert [(each.by, each.reason) for each in shown.silences] == [("ann", "they move")]
    assert await world.alerting.speak(ANN, made.id) == made
    await world.turn()
    assert world.receiver.said[-1] == "fired node_stale:shop/eu-1"
    with pytest.raises(ThingUnknown, match=f"no silence {made.id}"):
        await world.alerting.speak(ANN, made.id)
    assert [(act.who, act.act, act.subject) for act in world.acts] == [
        ("ann", "silence", "node_stale:shop/eu-*"),
        ("ann", "speak", "node_stale:shop/eu-*"),
    ]


async def test_a_receiver_that_only_pages_does_not_hear_of_the_rest(world: World) -> None:
    world.alerting = world.server("page")
    world.silent = {"shop/eu-1"}
    await world.turn()
    assert world.receiver.said == ["fired node_stale:shop/eu-1"]
    note = Facts(nodes=(Node(subject="x", unheard_s=0, stale_s=60, wanted="b", reported="a"),))
    world.alerting._facts = lambda _, __: note
    for _ in range(4):
        await world.turn()
    assert not [said for said in world.receiver.said if "astray" in said]
    assert any("node_astray" in each for each in await world.events("alert_fired"))


async def test_of_a_receiver_that_is_no_more_the_notices_go(world: World) -> None:
    world.silent = {"shop/eu-1"}
    await world.alerting.look()
    world.alerting._channels = {}
    await world.alerting.send_due()
    assert await world.events("notice_lost") == [
        "node_stale:shop/eu-1, fired, to `ops`: there is no such receiver any more"
    ]
