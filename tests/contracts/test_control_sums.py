"""Sums that are kept are those that are made anew, whenever they are asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from checkstream.control.server import tables
from checkstream.control.server.database import Database, Session, open_database
from checkstream.control.server.sums import Sums
from checkstream.control.server.tables import SLOT_MS
from checkstream.control.server.tally import Tally
from tests.controlled import KINDS, address_of
from tests.evidence_stores import postgres  # noqa: F401 - a fixture


@pytest.fixture(params=KINDS)
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    async with address_of(request.param, tmp_path, request) as address:
        made = open_database(address)
        yield made
        await made.close()


@pytest.mark.parametrize("seed", range(4))
async def test_kept_sums_are_what_reading_all_of_it_gives(database: Database, seed: int) -> None:
    random, sums, now = Random(seed), Sums(), 10_000 * SLOT_MS
    since = now - 3 * SLOT_MS - 1234

    def step(session: Session) -> None:
        for digest in ("a" * 64, "b" * 64):
            told = Tally(exchanges=random.randrange(9), stops=1, times={"check": (1, random.randrange(5))})
            tables.add_counts(session, "shop", digest, now - random.randrange(5) * SLOT_MS, told)
            assert sums.rates(session, "shop", digest, since, now) == tables.rates(session, "shop", digest, since)
        sums.round_over()

    for _ in range(60):
        await database.transact(step)
        now += random.randrange(3 * SLOT_MS)


async def test_a_look_at_an_old_rollout_reads_the_last_minutes_alone(database: Database) -> None:
    sums, now = Sums(), 10_000 * SLOT_MS
    read: list[int] = []

    def fill(session: Session) -> None:
        for minute in range(200):
            tables.add_counts(session, "shop", "a" * 64, now - minute * SLOT_MS, Tally(exchanges=1))

    class Counting:
        def __init__(self, session: Session) -> None:
            self._session = session

        def execute(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
            rows = self._session.execute(statement, values)
            read.append(len(rows))
            return rows

    await database.transact(fill)
    for _ in range(2):
        read.clear()
        found = await database.transact(
            lambda session: sums.rates(Counting(session), "shop", "a" * 64, now - 500 * SLOT_MS, now)  # type: ignore[arg-type]
        )
        assert found.exchanges == 200
        sums.round_over()
    assert sum(read) <= 11
