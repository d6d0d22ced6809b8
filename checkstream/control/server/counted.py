"""Tells what exchanges came to by slots of time: of all nodes or some, of all routes or one."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from checkstream.control.server.arrivals import as_kept
from checkstream.control.server.database import Session

HOUR = 60
"""Minutes."""
_MOST_ROUTES = 500


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Whose exchanges, and of which time."""

    nodes: Collection[str] | None = None
    """None: all."""
    route: str = ""
    """Empty: all."""
    since: int
    """First minute, since 1970: the beginning of a slot."""
    until: int
    """The minute behind the last."""
    step: int
    """Minutes of a slot. From whole hours on, the sums of hours are read in place of those of minutes."""


Slots = Mapping[int, Mapping[str, int]]
"""First minute of a slot -> what `telemetry.minutes` counts, by name; slots in which nothing was counted are left
out."""


def counted(session: Session, scope: Scope) -> Slots:
    """Return what was counted, by slot."""
    if scope.nodes is not None and not scope.nodes:
        return {}
    table, unit, per = ("hours", "hour", HOUR) if scope.step % HOUR == 0 else ("minutes", "minute", 1)
    step = scope.step // per
    first = scope.since // per
    conditions = [f"{unit} >= ?", f"{unit} < ?", "name not like ?"]
    values: list[object] = [first, step, first, -(-scope.until // per), "confidence%"]
    if scope.nodes is not None:
        conditions.append(f"node in ({', '.join('?' * len(scope.nodes))})")
        values += map(as_kept, scope.nodes)
    if scope.route:
        conditions.append("route = ?")
        values.append(as_kept(scope.route))
    rows = session.execute(
        f"select ({unit} - ?) / ?, name, sum(count) from {table} "  # noqa: S608 - ours
        f"where {' and '.join(conditions)} group by 1, 2 order by 1, 2",
        values,
    )
    found: dict[int, dict[str, int]] = {}
    for place, name, count in rows:
        found.setdefault(scope.since + int(place) * scope.step, {})[str(name)] = int(count)
    return found


def routes(session: Session, since: int) -> list[str]:
    """Return the routes of which anything was counted since the hour of a minute, sorted."""
    rows = session.execute(
        "select distinct route from hours where hour >= ? order by route limit ?", (since // HOUR, _MOST_ROUTES)
    )
    return [str(route) for (route,) in rows]
