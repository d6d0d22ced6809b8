"""Review over every database of the control server: what is drawn, whose word counts, what it comes to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from checkstream.control.review.precision import WEEK_S
from checkstream.control.server.database import Database, Session, open_database
from checkstream.control.server.people import Asker
from checkstream.control.server.reviewing import Reviewing, reviewed
from checkstream.errors import ThingUnknown
from tests.controlled import KINDS, address_of
from tests.evidence_stores import postgres  # noqa: F401 - a fixture

ANN, BEN, CAL = Asker("ann", "analyst"), Asker("ben", "engineer"), Asker("cal", "risk_officer")
DAY_MS = 86_400_000
WEEK_MS = 1000 * WEEK_S


class World:
    """A server that nodes have told of decisions."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now_ms = 2950 * WEEK_MS + DAY_MS
        self.told = 0

    def reviewing(self, per_day: int = 20) -> Reviewing:
        return Reviewing(self.database, lambda: self.now_ms, per_day=per_day, keep_days=90)

    async def tell(self, count: int, rule: str = "PII-1", at_ms: int | None = None, **more: Any) -> None:
        """Put decisions there as a delivery does."""
        moment = self.now_ms if at_ms is None else at_ms
        given = {"action": "redact", "mode": "enforce", **more}

        def put(session: Session) -> None:
            for _ in range(count):
                self.told += 1
                session.execute(
                    "insert into decisions(node, chain, seq, place, at_ms, stream, route, caller, rule_id, action, "
                    "mode, stage, policy, confidence_ppm, latency_us) "
                    "values('eu-1', 'c1', ?, 0, ?, ?, 'chat', null, ?, ?, ?, 'midstream', 'default@1', 930000, 0)",
                    (self.told, moment, f"s{self.told}", rule, given["action"], given["mode"]),
                )

        await self.database.transact(put)


@pytest.fixture(params=KINDS)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with address_of(request.param, tmp_path, request) as address:
        database = open_database(address)
        yield World(database)
        await database.close()


async def test_a_rare_rule_is_drawn_whole_and_a_frequent_one_in_part_and_each_finding_once(world: World) -> None:
    reviewing = world.reviewing()
    await world.tell(2500)
    await world.tell(7, rule="INJ-1")
    await world.tell(5, rule="LOG-1", action="log_event")
    await world.tell(5, rule="NEW-1", mode="shadow")
    await reviewing.draw()
    drawn = await reviewing.open(ANN, "", 200)
    rules = [item.rule for item in drawn]
    assert (rules.count("INJ-1"), set(rules)) == (7, {"INJ-1", "PII-1"})
    assert 5 <= rules.count("PII-1") <= 45  # 20 of 2,500 are meant
    await reviewing.draw()
    assert await reviewing.open(ANN, "", 200) == drawn
    await world.tell(1, rule="INJ-1", at_ms=world.now_ms - 5 * DAY_MS)  # of a node that was away
    await reviewing.draw()
    assert len(await reviewing.open(ANN, "INJ-1", 200)) == 8
    await world.tell(1, rule="OFF-1")
    await world.reviewing(per_day=0).draw()
    await reviewing.draw()
    assert await reviewing.open(ANN, "OFF-1", 200) == []


async def test_two_people_settle_an_item_and_each_sees_what_they_have_not_said_a_word_on(world: World) -> None:
    reviewing = world.reviewing()
    await world.tell(1)
    await reviewing.draw()
    ((item,),) = [await reviewing.open(ANN, "", 10)]
    assert (await reviewing.label(ANN, item.id, "right")).state == "open"
    assert await reviewing.open(ANN, "", 10) == []
    assert (await reviewing.label(ANN, item.id, "wrong")).people == 1  # in place of what she had said
    assert (await reviewing.label(BEN, item.id, "right")).state == "contested"
    (waiting,) = await reviewing.open(CAL, "", 10)
    assert waiting.state == "contested"
    found = await reviewing.label(CAL, item.id, "wrong")
    assert (found.state, found.word) == ("settled", "wrong")
    figures = await reviewing.figures()
    assert (figures.waiting, figures.agreement.pairs) == (0, 3)
    assert [(each.rule, each.right, each.reviewed) for each in figures.precision] == [("PII-1", 0, 1)]
    items, words = await reviewing.settled()
    assert [each.id for each in items] == [item.id]
    assert words[item.id] == {"ann": "wrong", "ben": "right", "cal": "wrong"}
    with pytest.raises(ThingUnknown, match="no item `nothing`"):
        await reviewing.label(ANN, "nothing", "right")


async def test_what_is_flagged_is_looked_at_and_makes_no_precision(world: World) -> None:
    reviewing = world.reviewing(per_day=0)
    await world.tell(1)
    item = await reviewing.flag("s1", "PII-1")
    assert await reviewing.flag("s1", "PII-1") == item
    (waiting,) = await reviewing.open(ANN, "", 10)
    assert (waiting.id, waiting.queue, waiting.probability) == (item, "flagged", 0.93)
    for who in (ANN, BEN):
        await reviewing.label(who, item, "wrong")
    assert (await reviewing.figures()).precision == ()
    with pytest.raises(ThingUnknown, match="no node has told"):
        await reviewing.flag("s2", "PII-1")


async def test_a_fall_of_precision_from_one_week_to_the_next_is_what_alerts_see(world: World) -> None:
    reviewing = world.reviewing(per_day=1000)
    for week, right in ((2, 3), (1, 1)):
        await world.tell(4, at_ms=world.now_ms - week * WEEK_MS)
        await reviewing.draw()
        for place, item in enumerate(await reviewing.open(ANN, "", 100)):
            for who in (ANN, BEN):
                await reviewing.label(who, item.id, "right" if place < right else "wrong")
    (found,) = await world.database.transact(lambda session: reviewed(session, world.now_ms))
    assert (found.subject, found.right_before, found.all_before, found.right, found.all) == ("PII-1", 3, 4, 1, 4)


async def test_what_is_old_goes_with_what_was_said_of_it(world: World) -> None:
    reviewing = world.reviewing()
    await world.tell(1)
    await reviewing.draw()
    (item,) = await reviewing.open(ANN, "", 10)
    await reviewing.label(ANN, item.id, "right")
    world.now_ms += 91 * DAY_MS
    await reviewing.draw()
    left = await world.database.transact(
        lambda s: (s.execute("select * from review_items"), s.execute("select * from review_labels"))
    )
    assert left == ([], [])


async def test_notes_stand_beside_words_and_models_are_told_apart(world: World) -> None:
    reviewing = world.reviewing()
    await world.tell(3)
    await world.database.transact(lambda s: s.execute("update decisions set model = 'tox@1' where seq < 3"))
    await reviewing.draw()
    items = await reviewing.open(ANN, "", 9)
    assert sorted(item.model for item in items) == ["", "tox@1", "tox@1"]
    for who, word in ((ANN, "right"), (BEN, "right")):
        for item in items:
            await reviewing.label(who, item.id, word, f"{who.name} says\x00 {'x' * 600}")  # type: ignore[arg-type]
    await reviewing.label(BEN, items[0].id, "wrong", "on second thoughts")
    figures = await reviewing.figures()
    assert [(each.rule, each.reviewed) for each in figures.precision] == [("PII-1", 2)]
    assert [(each.model, each.rule) for each in figures.models] == [("tox@1", "")]
    spoken = {each.id: each for each in await reviewing.spoken(9)}
    assert [(said.who, said.word) for said in spoken[items[0].id].labels] == [("ann", "right"), ("ben", "wrong")]
    assert spoken[items[0].id].labels[1].note == "on second thoughts"
    assert len(spoken[items[1].id].labels[0].note) == 500
    assert spoken[items[1].id].outcome.word == "right"
    assert len(await reviewing.spoken(2)) == 2
