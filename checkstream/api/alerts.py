"""The control server's operations on alerts: what stands, and what nobody wants to hear of."""

from __future__ import annotations

import msgspec

from checkstream.api.operation import Operation
from checkstream.control.server.alerting import Alerting, Alerts, Silenced
from checkstream.control.server.asked import EndAsked, SilenceAsked
from checkstream.control.server.people import People
from checkstream.listen import Identity

_SECONDS = 30.0


class AlertsAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The query of `GET /v1/alerts`: nothing."""


class AlertsApi:
    """What people ask of alerts."""

    def __init__(self, alerting: Alerting, people: People) -> None:
        """Ask `alerting`."""
        self._alerting = alerting
        self._people = people

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What can be asked."""
        shown = "Which alerts stand, and which are silenced?"
        begin = "Mute alerts for some time. What is over is told all the same."
        refused = {"403": "Who asks may not do this."}
        too_many = {**refused, "409": "There are too many silences."}
        return (
            Operation("GET", "/v1/alerts", shown, AlertsAsked, (Alerts,), self._shown, _SECONDS, also=refused),
            Operation("POST", "/v1/silences", begin, SilenceAsked, (Silenced,), self._silence, _SECONDS, also=too_many),
            Operation(
                "POST", "/v1/silences/end", "End a silence.", EndAsked, (Silenced,), self._end, _SECONDS, also=refused
            ),
        )

    async def _shown(self, _: AlertsAsked, caller: Identity) -> Alerts:
        self._people.asker(caller, "view")
        return await self._alerting.shown()

    async def _silence(self, asked: SilenceAsked, caller: Identity) -> Silenced:
        who = self._people.asker(caller, "silence")
        return await self._alerting.silence(who, asked.pattern, asked.seconds, asked.reason)

    async def _end(self, asked: EndAsked, caller: Identity) -> Silenced:
        return await self._alerting.speak(self._people.asker(caller, "silence"), asked.id)
