"""Runs of the gate that somebody has told of: which models may be deployed, by fleet and over time.

What is told is what a run came to; what it asked and heard stays where it ran.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from checkstream.config.control import Fleet
from checkstream.control.server.arrivals import as_kept
from checkstream.control.server.database import Database, Row, Session
from checkstream.control.server.fleets import named_fleet
from checkstream.control.server.people import Asker
from checkstream.errors import ActConflicts

MOST = 10_000
"""Runs that are kept; beyond, the oldest go."""
_Name = Annotated[str, Meta(min_length=1, max_length=200)]
_Count = Annotated[int, Meta(ge=0, le=2**40)]
_Seconds = Annotated[float, Meta(ge=0, le=2**36)]
_WORDS = ("target", "verifier", "config_hash", "snapshot", "decision", "reason")
_FIGURES = ("begun", "ended", "risk", "total_claims", "supported", "weakly_supported", "unsupported")
_COLUMNS = ", ".join(("fleet", "run_id", *_WORDS, *_FIGURES, "who", "told_ms"))


class GateRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run of the gate came to."""

    run_id: _Name
    target: _Name
    """The model."""
    verifier: _Name
    config_hash: _Name
    snapshot: _Name
    """Names the state of the trusted documents."""
    begun: _Seconds
    """Seconds since 1970."""
    ended: _Seconds
    decision: Literal["deploy", "warn", "block"]
    reason: Annotated[str, Meta(max_length=500)] = ""
    risk: Annotated[float, Meta(ge=0, le=1)]
    total_claims: _Count
    supported: _Count
    weakly_supported: _Count
    unsupported: _Count


class GateRunKept(msgspec.Struct, frozen=True, kw_only=True):
    """A run, and who has told of it."""

    fleet: str
    """For which it was; empty: for none of them."""
    run: GateRun
    who: str
    told_ms: int


class GateRuns:
    """All runs that were told of."""

    def __init__(self, database: Database, fleets: Mapping[str, Fleet], now_ms: Callable[[], int]) -> None:
        """Keep them in a database."""
        self._database = database
        self._fleets = fleets
        self._now_ms = now_ms

    async def tell(self, who: Asker, fleet: str, run: GateRun) -> GateRunKept:
        """Keep a run; the same told twice is one.

        Raises:
            ThingUnknown: there is no such fleet.
            ActConflicts: there is another run of this id.
            ControlUnusable: the store can't be used.
        """
        if fleet:
            named_fleet(self._fleets, fleet)
        now = self._now_ms()
        run = msgspec.structs.replace(run, **{name: as_kept(getattr(run, name), 500) for name in ("run_id", *_WORDS)})

        def keep(session: Session) -> GateRunKept:
            rows = session.execute(
                f"select {_COLUMNS} from gate_runs where fleet = ? and run_id = ?",  # noqa: S608 - ours
                (fleet, run.run_id),
            )
            if rows:
                known = _kept(rows[0])
                if known.run != run:
                    raise ActConflicts(
                        f"another run `{run.run_id[:100]}` was told of already; each has an id of its own"
                    )
                return known
            told = [getattr(run, name) for name in (*_WORDS, *_FIGURES)]
            session.execute(
                f"insert into gate_runs({_COLUMNS}) values({', '.join('?' * (len(told) + 4))})",
                (fleet, run.run_id, *told, who.name, now),
            )
            session.execute(
                "delete from gate_runs where (fleet, run_id) in "
                "(select fleet, run_id from gate_runs order by begun desc, run_id limit ? offset ?)",
                (MOST, MOST),
            )
            return GateRunKept(fleet=fleet, run=run, who=who.name, told_ms=now)

        return await self._database.transact(keep)

    async def newest(self, fleet: str, target: str, most: int) -> list[GateRunKept]:
        """Return runs, the newest first: for a fleet and of a model, or of all.

        Raises:
            TookTooLong: it takes longer than a question may.
            ControlUnusable: the store can't be used.
        """
        return await self._database.ask(lambda session: gate_runs(session, fleet, target, most))


def gate_runs(session: Session, fleet: str, target: str, most: int) -> list[GateRunKept]:
    """Return runs as `GateRuns.newest` does; part of a transaction."""
    fleet, target = as_kept(fleet), as_kept(target, 500)
    rows = session.execute(
        f"select {_COLUMNS} from gate_runs where (? = '' or fleet = ?) and (? = '' or target = ?) "  # noqa: S608 - ours
        "order by begun desc, run_id limit ?",
        (fleet, fleet, target, target, most),
    )
    return [_kept(row) for row in rows]


def _kept(row: Row) -> GateRunKept:
    told = dict(zip(("run_id", *_WORDS, *_FIGURES), row[1:], strict=False))
    return GateRunKept(
        fleet=row[0], run=msgspec.convert(told, GateRun, strict=False), who=row[-2], told_ms=int(row[-1])
    )
