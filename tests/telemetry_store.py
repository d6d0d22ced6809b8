"""Databases that take the deliveries of nodes, beside dictionaries that take them, too."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from checkstream.audit.chain import Record, Sealed, read
from checkstream.control.server.arrivals import receive
from checkstream.control.server.database import Database, open_database
from checkstream.control.server.tables import events
from checkstream.control.telemetry.delivery import At, Delivery, Received, Run
from checkstream.control.telemetry.minutes import moment_of
from checkstream.control.telemetry.privacy import Privacy, run_of
from tests.controlled import KINDS, address_of
from tests.received import Receiver
from tests.records import CHAIN, KEY, TIME, head

KEY_HEX = KEY.public.raw.hex()
AT = moment_of(TIME) or 0
NODES = map("n{}".format, itertools.count())


@pytest_asyncio.fixture(params=KINDS, scope="module", loop_scope="module")
async def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Database]:
    async with address_of(request.param, tmp_path_factory.mktemp("db"), request) as address:
        opened = await asyncio.to_thread(open_database, address)
        yield opened
        await opened.close()


class Kept:
    """A database that takes the deliveries of one node, beside dictionaries that take them, too."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.node = next(NODES)
        self.plainly = Receiver(KEY)
        self.now_ms = AT

    def receive(self, delivery: Delivery) -> Received:
        delivery = msgspec.structs.replace(delivery, time_ms=self.now_ms)
        answer: Received = self.do(receive, self.node, "shop", delivery, self.now_ms)
        should = self.plainly.receive(delivery)
        assert answer == should
        return answer

    def do(self, work: Callable[..., Any], *args: Any) -> Any:
        return self.database.at_once(lambda session: work(session, *args))

    def rows(self, table: str, columns: str) -> list[Any]:
        select = f"select {columns} from {table} where node = ? order by {columns}"
        return list(self.do(lambda session: session.execute(select, (self.node,))))

    def send(self, sealed: Sequence[Sealed], privacy: Privacy | None = None, **more: Any) -> Received:
        """Send records behind what has come."""
        after = self.plainly.positions.get(CHAIN, At())
        run = run_of(CHAIN, after, pairs(sealed), privacy or Privacy())
        return self.runs(msgspec.structs.replace(run, **more))

    def runs(self, *runs: Run, keys: tuple[str, ...] = (KEY_HEX,)) -> Received:
        return self.receive(Delivery(number=self.plainly.number + 1, time_ms=AT, keys=keys, runs=runs))

    def told(self, kind: str) -> list[str]:
        found = self.do(lambda session: events(session, most=1000))
        return [one.reason for one in found if (one.node, one.kind) == (self.node, kind)]


@pytest.fixture
def kept(database: Database) -> Kept:
    return Kept(database)


def pairs(sealed: Sequence[Sealed]) -> list[tuple[bytes, Record]]:
    return [(one.line[:-1], read(one.line[:-1])) for one in sealed]


def raw(sealed: Sealed) -> tuple[msgspec.Raw, ...]:
    return (msgspec.Raw(head(sealed)[:-1]),)
