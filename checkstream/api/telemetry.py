"""The control server's operations on telemetry: what nodes deliver, and what people ask of it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from checkstream.api.operation import Operation
from checkstream.config.servers import CALLER_CHARS
from checkstream.control.server.people import People
from checkstream.control.server.telemetry import Telemetry
from checkstream.control.server.traffic import ChainShown, Decided, Exchanged, Filter, Proof, Rates
from checkstream.control.telemetry.delivery import Delivery, Received
from checkstream.listen import Identity

_SECONDS = 30.0
_Short = Annotated[str, Meta(max_length=200)]
_Ms = Annotated[int, Meta(ge=0, le=2**48)]
_Most = Annotated[int, Meta(ge=1, le=1000)]


class _Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    node: _Short = ""
    route: _Short = ""
    caller: Annotated[str, Meta(max_length=CALLER_CHARS)] = ""
    rule: _Short = ""
    """In which this rule has fired."""
    action: _Short = ""
    since_ms: _Ms = 0
    """Not before this moment, milliseconds since 1970."""
    until_ms: _Ms = 0
    """And before this one; 0: up to now."""
    before: _Short = ""
    """The `next` of the page before; empty: the newest."""
    most: _Most = 100


class ExchangesAsked(_Asked, frozen=True):
    """Which exchanges."""

    outcome: _Short = ""


class DecisionsAsked(_Asked, frozen=True):
    """Which decisions."""


class ExchangeAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which exchange."""

    stream: _Short
    """Its id, as its caller got it in `x-checkstream-stream`."""


class ChainsAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which chains."""

    node: _Short = ""
    most: _Most = 100


class RatesAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose rates."""

    node: _Short = ""
    """Of this node; empty: of all."""
    since_ms: _Ms = 0
    """From the minute of this moment on, milliseconds since 1970."""


class Exchanges(msgspec.Struct, frozen=True, kw_only=True):
    """A page of exchanges, the newest first."""

    exchanges: tuple[Exchanged, ...]
    next: str
    """Asks for the page behind this one, as `before`; empty: there is none."""


class Decisions(msgspec.Struct, frozen=True, kw_only=True):
    """A page of decisions, the newest first."""

    decisions: tuple[Decided, ...]
    next: str
    """Asks for the page behind this one, as `before`; empty: there is none."""


class Proofs(msgspec.Struct, frozen=True, kw_only=True):
    """The records of one exchange; nodes could tell of two with one id, if one of them lies."""

    records: tuple[Proof, ...]


class Chains(msgspec.Struct, frozen=True, kw_only=True):
    """Chains, those first that were heard of last."""

    chains: tuple[ChainShown, ...]


class TelemetryApi:
    """What nodes tell of their audit chains, and what is known by it."""

    def __init__(self, telemetry: Telemetry, people: People) -> None:
        """Ask `telemetry`, on behalf of `people`."""
        self._telemetry = telemetry
        self._people = people

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What can be asked."""
        given = (
            ("/v1/exchanges", "Which exchanges were there?", ExchangesAsked, Exchanges, self._exchanges),
            (
                "/v1/exchanges/{stream}",
                "What fired in an exchange, and what proves it?",
                ExchangeAsked,
                Proofs,
                self._proofs,
            ),
            ("/v1/decisions", "Which rules fired?", DecisionsAsked, Decisions, self._decisions),
            ("/v1/rates", "How do exchanges come out, and how long are they held?", RatesAsked, Rates, self._rates),
            ("/v1/chains", "How far have audit chains come, and do they hold?", ChainsAsked, Chains, self._chains),
        )
        deliver = "A node tells of its audit chains; the body is packed by Zstandard."
        return (
            Operation(
                "POST", "/v1/telemetry", deliver, Delivery, (Received,), self._deliver, _SECONDS, "node", packed=True
            ),
            *(
                Operation("GET", path, summary, asks, (gives,), work, _SECONDS, also={"403": "Who asks may not."})
                for path, summary, asks, gives, work in given
            ),
        )

    async def _deliver(self, body: bytes, node: Identity) -> Received:
        return await self._telemetry.receive(node.name or "", body)

    async def _exchanges(self, asked: ExchangesAsked, caller: Identity) -> Exchanges:
        self._people.asker(caller, "view")
        page, following = await self._telemetry.exchanges(Filter(**msgspec.structs.asdict(asked)))
        return Exchanges(exchanges=tuple(page), next=following)

    async def _decisions(self, asked: DecisionsAsked, caller: Identity) -> Decisions:
        self._people.asker(caller, "view")
        page, following = await self._telemetry.decisions(Filter(**msgspec.structs.asdict(asked)))
        return Decisions(decisions=tuple(page), next=following)

    async def _proofs(self, asked: ExchangeAsked, caller: Identity) -> Proofs:
        self._people.asker(caller, "view")
        return Proofs(records=tuple(await self._telemetry.proofs(asked.stream)))

    async def _rates(self, asked: RatesAsked, caller: Identity) -> Rates:
        self._people.asker(caller, "view")
        return await self._telemetry.rates([asked.node] if asked.node else [], asked.since_ms)

    async def _chains(self, asked: ChainsAsked, caller: Identity) -> Chains:
        self._people.asker(caller, "view")
        return Chains(chains=tuple(await self._telemetry.chains(asked.node, asked.most)))
