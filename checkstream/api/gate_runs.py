"""The control server's operations on runs of the gate: what they came to, told by whoever has run them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from checkstream.api.operation import Operation
from checkstream.control.server.asked import Asked, Name
from checkstream.control.server.gate_runs import GateRun, GateRunKept, GateRuns
from checkstream.control.server.people import People
from checkstream.listen import Identity

_SECONDS = 30.0


class GateRunTold(Asked, frozen=True, kw_only=True):
    """A run of the gate."""

    fleet: Name = ""
    """Whose model it was; empty: no fleet's."""
    run: GateRun


class GateRunsAsked(Asked, frozen=True, kw_only=True):
    """Which runs."""

    fleet: Name = ""
    target: Annotated[str, Meta(max_length=500)] = ""
    """Of this model."""
    most: Annotated[int, Meta(ge=1, le=1000)] = 100


class GateRunsFound(msgspec.Struct, frozen=True, kw_only=True):
    """Runs, the newest first."""

    runs: tuple[GateRunKept, ...]


class GateRunsApi:
    """Takes runs, and tells of them."""

    def __init__(self, runs: GateRuns, people: People) -> None:
        """Ask `runs`, on behalf of `people`."""
        self._runs = runs
        self._people = people

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What can be asked."""
        also = {"403": "Who asks may not do this."}
        tell, which = "Tell what a run of the gate came to.", "What did runs of the gate come to?"
        taken = {**also, "404": "There is no such fleet.", "409": "Another run of this id was told of already."}
        path = "/v1/gate-runs"
        return (
            Operation("POST", path, tell, GateRunTold, (GateRunKept,), self._tell, _SECONDS, also=taken),
            Operation("GET", path, which, GateRunsAsked, (GateRunsFound,), self._newest, _SECONDS, also=also),
        )

    async def _tell(self, asked: GateRunTold, caller: Identity) -> GateRunKept:
        return await self._runs.tell(self._people.asker(caller, "tell"), asked.fleet, asked.run)

    async def _newest(self, asked: GateRunsAsked, caller: Identity) -> GateRunsFound:
        self._people.asker(caller, "view")
        return GateRunsFound(runs=tuple(await self._runs.newest(asked.fleet, asked.target, asked.most)))
