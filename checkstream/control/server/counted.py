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

    fleets: Collection[str] = ()
    """All of their nodes, unless"""
    node: str = ""
    """it is this one alone."""
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
    if not scope.node and not scope.fleets:
        return {}
    per = HOUR if scope.step % HOUR == 0 else 1
    first, last = scope.since // per * per, -(-scope.until // per) * per
    if not scope.node:
        whose = f"fleet_sums where fleet in ({', '.join('?' * len(scope.fleets))}) and unit = ?"
        begins, values = "minute", [*map(as_kept, scope.fleets), per]
    else:
        table, unit = ("minutes", "minute") if per == 1 else ("hours", "hour")
        whose, begins, values = f"{table} where node = ?", unit, [as_kept(scope.node)]
        first, last = first // per, last // per
    step = scope.step // (per if scope.node else 1)
    conditions = f"{begins} >= ? and {begins} < ? and name not like ?"
    values += [first, last, "confidence%"]
    if scope.route:
        conditions += " and route = ?"
        values.append(as_kept(scope.route))
    rows = session.execute(
        f"select ({begins} - ?) / ?, name, sum(count) from {whose} and {conditions} group by 1, 2 order by 1, 2",  # noqa: S608 - ours
        [first, step, *values],
    )
    found: dict[int, dict[str, int]] = {}
    for place, name, count in rows:
        found.setdefault(scope.since + int(place) * scope.step, {})[str(name)] = int(count)
    return found


def sums(session: Session, fleet: str, unit: int, since: int, kinds: Collection[str]) -> list[tuple[int, str, int]]:
    """Return what was counted of a fleet since a minute, over all routes: first minute of a slot, name and count.

    Args:
        session: To read in.
        fleet: All of its nodes.
        unit: Minutes of a slot: 1, or those of an hour.
        since: First minute of the first slot.
        kinds: Names, or what stands before the colon of one.
    """
    named = " or ".join(["name = ? or name like ?"] * len(kinds))
    values = [value for kind in kinds for value in (kind, f"{kind}:%")]
    rows = session.execute(
        "select minute, name, sum(count) from fleet_sums where fleet = ? and unit = ? and minute >= ? "  # noqa: S608 - ours
        f"and ({named}) group by minute, name order by minute, name",
        [as_kept(fleet), unit, since, *values],
    )
    return [(int(minute), str(name), int(count)) for minute, name, count in rows]


def routes(session: Session, fleets: Collection[str], since: int) -> list[str]:
    """Return the routes of which anything was counted in some fleets since the hour of a minute, sorted."""
    if not fleets:
        return []
    rows = session.execute(
        f"select distinct route from fleet_sums where fleet in ({', '.join('?' * len(fleets))}) and unit = ? "  # noqa: S608 - ours
        "and minute >= ? order by route limit ?",
        [*map(as_kept, fleets), HOUR, since // HOUR * HOUR, _MOST_ROUTES],
    )
    return [str(route) for (route,) in rows]
