"""The control server's operations of nodes and fleets. Each topic has a file: people's acts are in `rollouts`."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from checkstream.api.openapi import About
from checkstream.api.operation import Operation
from checkstream.control.attestation import Attestation, Desired
from checkstream.control.server.fleets import Fleets
from checkstream.control.server.people import People
from checkstream.control.server.showing import FleetShown
from checkstream.control.server.tables import Happened
from checkstream.listen import Identity

ABOUT = About("checkstream control API", "Which policies is each node to have, and which has it?")
_Name = Annotated[str, Meta(max_length=64)]
_SECONDS = 30.0


class FleetsAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The query of `GET /v1/fleets`: nothing."""


class FleetNames(msgspec.Struct, frozen=True, kw_only=True):
    """The fleets."""

    fleets: tuple[str, ...]


class FleetAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which fleet."""

    fleet: _Name


class EventsAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which events."""

    fleet: _Name = ""
    """Of this fleet; empty: of all."""
    before: Annotated[int, Meta(ge=0, le=2**53 - 1)] = 0
    """Older than the event of this number; 0: from the newest on."""
    most: Annotated[int, Meta(ge=1, le=1000)] = 100


class Events(msgspec.Struct, frozen=True, kw_only=True):
    """What has happened, the newest first."""

    events: tuple[Happened, ...]


class NodesApi:
    """What nodes ask, and what is asked of them."""

    def __init__(self, fleets: Fleets, people: People) -> None:
        """Ask `fleets`, on behalf of `people`."""
        self._fleets = fleets
        self._people = people

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What can be asked."""
        refused = {"403": "The node is not what its fleet allows.", "409": "It has said something newer already."}
        attest = "A node says what it is and has, and is told what to have."
        given = (
            ("/v1/fleets", "Which fleets are there?", FleetsAsked, FleetNames, self._names),
            ("/v1/fleets/{fleet}", "How does a fleet stand?", FleetAsked, FleetShown, self._shown),
            ("/v1/events", "What has happened?", EventsAsked, Events, self._events),
        )
        return (
            Operation(
                "POST", "/v1/attestations", attest, Attestation, (Desired,), self._attest, _SECONDS, "node", refused
            ),
            *(
                Operation("GET", path, summary, asks, (gives,), work, _SECONDS, also={"403": "Who asks may not."})
                for path, summary, asks, gives, work in given
            ),
        )

    async def _attest(self, asked: Attestation, node: Identity) -> Desired:
        return await self._fleets.attest(node.name or "", asked)

    async def _names(self, _: FleetsAsked, caller: Identity) -> FleetNames:
        self._people.asker(caller, "view")
        return FleetNames(fleets=self._fleets.names)

    async def _shown(self, asked: FleetAsked, caller: Identity) -> FleetShown:
        self._people.asker(caller, "view")
        return await self._fleets.shown(asked.fleet)

    async def _events(self, asked: EventsAsked, caller: Identity) -> Events:
        self._people.asker(caller, "view")
        return Events(events=tuple(await self._fleets.events(asked.fleet, asked.before, asked.most)))
