"""What is wrong, the worst first; what people were told, and what nobody wants to hear of. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from checkstream.control.alerts.wording import TITLES
from checkstream.control.server.alerting import Alerts, Silenced, Standing, Waiting
from checkstream.control.server.tables import Happened

DURATIONS = (
    (900, "15 minutes"), (3600, "1 hour"), (4 * 3600, "4 hours"), (86_400, "1 day"), (7 * 86_400, "7 days"),
    (30 * 86_400, "30 days"),
)  # fmt: skip
"""For how long somebody can be left in peace."""
_STATES = ("firing", "pending", "silenced")
_EVENTS = {
    "alert_fired": ("bad", "fired"),
    "alert_reminded": ("fair", "still there"),
    "alert_recovered": ("good", "over"),
    "notice_lost": ("bad", "given up"),
}


class TroubleRow(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is wrong."""

    standing: Standing
    title: str
    seconds: float
    """For how long."""


class EventRow(msgspec.Struct, frozen=True, kw_only=True):
    """Something that people were told, or could not be."""

    id: int
    at_s: float
    kind: str
    """How it is marked."""
    state: str
    reason: str


class AlertsView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about alerts."""

    troubles: tuple[TroubleRow, ...]
    silences: tuple[Silenced, ...]
    waiting: tuple[Waiting, ...]
    receivers: tuple[tuple[str, str], ...]
    events: tuple[EventRow, ...]

    @property
    def pages(self) -> int:
        """Troubles of which somebody was told that they should look now."""
        return sum(row.standing.severity == "page" and row.standing.state == "firing" for row in self.troubles)


def alerts_view(
    alerts: Alerts, receivers: Sequence[tuple[str, str]], happened: Sequence[Happened], now_s: float
) -> AlertsView:
    """Return the view of a moment."""
    rows = [
        TroubleRow(
            standing=each,
            title=TITLES.get(each.kind, each.kind),  # type: ignore[call-overload] # of an older version, perhaps
            seconds=max(now_s - each.since_ms / 1000, 0.0),
        )
        for each in alerts.troubles
    ]
    rows.sort(key=lambda row: (_STATES.index(row.standing.state), row.standing.severity != "page", -row.seconds))
    return AlertsView(
        troubles=tuple(rows),
        silences=alerts.silences,
        waiting=alerts.waiting,
        receivers=tuple(receivers),
        events=tuple(_event(each) for each in happened),
    )


def _event(each: Happened) -> EventRow:
    kind, state = _EVENTS.get(each.kind, ("plain", each.kind))
    return EventRow(id=each.id, at_s=each.at_ms / 1000, kind=kind, state=state, reason=each.reason)
