"""What nodes tell of their audit chains, over the database: taking it, telling of it, and letting go of what is old."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

import msgspec

from checkstream.control.server import arrivals, counted, logs, traffic
from checkstream.control.server.counted import Scope, Slots
from checkstream.control.server.database import Database, Session
from checkstream.control.server.logs import Place, Stand, Told, Vouched
from checkstream.control.server.traffic import ChainShown, Decided, Exchanged, Filter, Proof, Rates, Troubled
from checkstream.control.telemetry.delivery import MOST_BYTES, Delivery, Received, read_delivery
from checkstream.control.telemetry.packing import unpacked
from checkstream.errors import RequestInvalid

_AT_ONCE = 4
"""Deliveries that are unpacked at a time; each may be of `MOST_BYTES`."""
_STEP = 500
"""Rows of each kind that are let go of in one transaction."""
_PAUSE_S = 0.05
_DAY_MS = 86_400_000


class Telemetry:
    """All that nodes tell of what they do."""

    def __init__(
        self,
        database: Database,
        fleet_of: Mapping[str, str],
        now_ms: Callable[[], int],
        *,
        keep_days: int,
        silent_s: int,
    ) -> None:
        """Keep for `keep_days`; a node that attests and tells nothing for `silent_s` is silent."""
        self._database = database
        self._fleet_of = dict(fleet_of)
        self._now_ms = now_ms
        self._keep_ms = keep_days * _DAY_MS
        self._silent_ms = silent_s * 1000
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def receive(self, node: str, body: bytes) -> Received:
        """Take what a node has signed, and tell it where its chains stand.

        Raises:
            RequestInvalid: it is no delivery, or something in it is not of the form.
            ControlUnusable: the store can't be used.
        """
        async with self._room:
            delivery = await asyncio.to_thread(_read, body)
            fleet, now_ms = self._fleet_of.get(node, ""), self._now_ms()
            return await self._database.transact(lambda s: arrivals.receive(s, node, fleet, delivery, now_ms))

    async def exchanges(self, wanted: Filter) -> tuple[list[Exchanged], str]:
        """Return a page of exchanges and what asks for the next (see `traffic.exchanges`)."""
        return await self._database.ask(lambda session: traffic.exchanges(session, wanted))

    async def decisions(self, wanted: Filter) -> tuple[list[Decided], str]:
        """Return a page of decisions and what asks for the next (see `traffic.decisions`)."""
        return await self._database.ask(lambda session: traffic.decisions(session, wanted))

    async def proofs(self, stream: str) -> list[Proof]:
        """Return the records of one exchange (see `traffic.proofs`)."""
        return await self._database.ask(lambda session: traffic.proofs(session, stream))

    async def chains(self, node: str, most: int) -> list[ChainShown]:
        """Return how far chains have come (see `traffic.chains`)."""
        return await self._database.ask(lambda session: traffic.chains(session, node, most))

    async def rates(self, nodes: Collection[str], since_ms: int) -> Rates:
        """Return what some nodes did from a moment on (see `traffic.rates`)."""
        return await self._database.ask(lambda session: traffic.rates(session, nodes, since_ms))

    async def found(self, wanted: Filter) -> tuple[list[Exchanged], str, dict[Place, tuple[str, ...]]]:
        """Return a page of exchanges, what asks for the next, and the rules that fired in each."""

        def find(session: Session) -> tuple[list[Exchanged], str, dict[Place, tuple[str, ...]]]:
            page, after = traffic.exchanges(session, wanted)
            return page, after, logs.rules_of(session, [(one.node, one.chain, one.seq) for one in page])

        return await self._database.ask(find)

    async def told(self, place: Place) -> tuple[Told, bool] | None:
        """Return a record, and whether the one behind it has come, too; None: it has not come itself."""

        def find(session: Session) -> tuple[Told, bool] | None:
            node, chain, seq = place
            record = logs.told(session, place)
            return None if record is None else (record, logs.told(session, (node, chain, seq + 1)) is not None)

        return await self._database.ask(find)

    async def proof(self, place: Place) -> tuple[Told, Vouched] | None:
        """Return a record and the way to a head that vouches for it; None: it has not come."""

        def find(session: Session) -> tuple[Told, Vouched] | None:
            record = logs.told(session, place)
            return None if record is None else (record, logs.vouched(session, place))

        return await self._database.ask(find)

    async def counted(self, scope: Scope) -> Slots:
        """Return what was counted by slots of time (see `counted.counted`)."""
        return await self._database.ask(lambda session: counted.counted(session, scope))

    async def routes(self) -> list[str]:
        """Return the routes of which anything was counted in the last week."""
        since = (self._now_ms() - 7 * _DAY_MS) // 60_000
        fleets = {*self._fleet_of.values()}
        return await self._database.ask(lambda session: counted.routes(session, fleets, since))

    async def troubled(self) -> list[Troubled]:
        """Return which chains are broken, and which are silent (see `traffic.troubled`)."""
        before_ms = self._now_ms() - self._silent_ms
        return await self._database.ask(lambda session: traffic.troubled(session, before_ms))

    def stand(self) -> Stand:
        """Return how far all chains have come. Blocks."""
        return self._database.ask_at_once(logs.stand)

    def news(self, since: Stand, most: int) -> tuple[list[Told], int, Stand]:
        """Return what has come since (see `logs.news`). Blocks."""
        return self._database.ask_at_once(lambda session: logs.news(session, since, most))

    async def look(self) -> None:
        """Note who is silent, and let go of what is old: in small steps, so that deliveries don't wait.

        Raises:
            ControlUnusable: the store can't be used.
        """
        now_ms = self._now_ms()
        await self._database.transact(lambda s: traffic.silences(s, self._fleet_of, now_ms, self._silent_ms))
        gone = _STEP
        while gone:
            gone = await self._database.transact(lambda s: traffic.forget(s, now_ms - self._keep_ms, _STEP))
            await asyncio.sleep(_PAUSE_S)


def _read(body: bytes) -> Delivery:
    try:
        return read_delivery(unpacked(body, MOST_BYTES))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestInvalid(f"the body is no delivery of telemetry: {error}") from error
