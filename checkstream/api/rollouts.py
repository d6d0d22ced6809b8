"""The control server's operations of people: rollouts, and the lists of what nodes may be."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from checkstream.api.operation import Operation
from checkstream.control.server.acts import Acts
from checkstream.control.server.asked import AllowanceAsked, Asked, Name, RolloutAsked, RolloutMoved
from checkstream.control.server.fleets import Fleets
from checkstream.control.server.people import People
from checkstream.control.server.showing import RolloutShown
from checkstream.listen import Identity

_SECONDS = 30.0
_VIEW = {"403": "Who asks may not do this."}
_ALSO = {"403": "Who asks may not do this.", "409": "It doesn't go with how things stand."}


class RolloutsAsked(Asked, frozen=True, kw_only=True):
    """Whose rollouts."""

    fleet: Name
    most: Annotated[int, Meta(ge=1, le=1000)] = 20


class Rollouts(msgspec.Struct, frozen=True, kw_only=True):
    """Rollouts, the newest first."""

    rollouts: tuple[RolloutShown, ...]


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """It is done."""

    done: bool = True


class RolloutsApi:
    """What people ask for."""

    def __init__(self, fleets: Fleets, acts: Acts, people: People) -> None:
        """Carry it out by `acts`."""
        self._fleets = fleets
        self._acts = acts
        self._people = people

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What can be asked."""
        given = (
            ("/v1/rollouts", "Ask for a rollout; another has to approve.", RolloutAsked, RolloutShown, self._propose),
            ("/v1/approvals", "Approve of a rollout, which begins.", RolloutMoved, RolloutShown, self._approve),
            ("/v1/promotions", "Have a rollout go on at once.", RolloutMoved, RolloutShown, self._promote),
            ("/v1/rollbacks", "Take a rollout back.", RolloutMoved, RolloutShown, self._roll_back),
            ("/v1/allowances", "Say what nodes may be.", AllowanceAsked, Done, self._allow),
        )
        asked = "Which rollouts were there?"
        return (
            Operation("GET", "/v1/rollouts", asked, RolloutsAsked, (Rollouts,), self._list, _SECONDS, also=_VIEW),
            *(
                Operation("POST", path, summary, asks, (gives,), work, _SECONDS, also=_ALSO)
                for path, summary, asks, gives, work in given
            ),
        )

    async def _list(self, asked: RolloutsAsked, caller: Identity) -> Rollouts:
        self._people.asker(caller, "view")
        return Rollouts(rollouts=tuple(await self._fleets.rollouts(asked.fleet, asked.most)))

    async def _propose(self, asked: RolloutAsked, caller: Identity) -> RolloutShown:
        who = self._people.asker(caller, "rollout")
        return await self._acts.propose(who, asked.fleet, asked.version, asked.reason)

    async def _approve(self, asked: RolloutMoved, caller: Identity) -> RolloutShown:
        return await self._acts.approve(self._people.asker(caller, "approve"), asked.rollout, asked.reason)

    async def _promote(self, asked: RolloutMoved, caller: Identity) -> RolloutShown:
        return await self._acts.promote(self._people.asker(caller, "promote"), asked.rollout, asked.reason)

    async def _roll_back(self, asked: RolloutMoved, caller: Identity) -> RolloutShown:
        return await self._acts.roll_back(self._people.asker(caller, "rollback"), asked.rollout, asked.reason)

    async def _allow(self, asked: AllowanceAsked, caller: Identity) -> Done:
        who = self._people.asker(caller, "allow" if asked.allowed else "disallow")
        await self._acts.allow(who, asked.fleet, asked.kind, asked.value, asked.reason, allowed=asked.allowed)
        return Done()
