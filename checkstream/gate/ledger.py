"""Every run, kept: what each step gave, for going on after a cut-off, for search, trend and comparison. SQLite.

INVARIANT: a row of `items` is written once; a run that has ended is never written to again. What a kill finds written
stays. That a run has begun or ended is on disk when the call returns; of what its items gave, a power cut may take the
last back, and they are asked again.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from checkstream.errors import GateError, RunsUnusable
from checkstream.gate.history import DEPLOYED, NEWEST, ModelTotals, Trend, trends
from checkstream.gate.terms import Run, Said
from checkstream.sqlite_file import make_private, opened, to_wal, transaction

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
  run_id TEXT PRIMARY KEY, config_hash TEXT NOT NULL, target TEXT NOT NULL, verifier TEXT NOT NULL,
  snapshot TEXT NOT NULL, begun REAL NOT NULL, ended REAL, decision TEXT, risk REAL, total_claims INTEGER,
  supported INTEGER, weakly_supported INTEGER, unsupported INTEGER, failure TEXT, report TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS runs_by_time ON runs (begun);
CREATE TABLE IF NOT EXISTS items (
  run_id TEXT NOT NULL REFERENCES runs, step TEXT NOT NULL, item TEXT NOT NULL, made TEXT NOT NULL, at REAL NOT NULL,
  PRIMARY KEY (run_id, step, item)
) STRICT;
CREATE VIRTUAL TABLE IF NOT EXISTS said USING fts5 (
  run_id UNINDEXED, kind UNINDEXED, item UNINDEXED, at UNINDEXED, text, tokenize = "unicode61 remove_diacritics 2"
);
"""
_NAMES = ", ".join(Run.__struct_fields__)
_NEWEST = """
SELECT {names} FROM (
  SELECT *, row_number() OVER (PARTITION BY config_hash ORDER BY begun DESC, run_id) AS place FROM runs {where}
) WHERE place <= {most}
"""
_TOTALS = """
SELECT config_hash, target, sum(decision = 'deploy'), sum(decision = 'warn'), sum(decision = 'block'), count(*),
  min(risk), avg(risk), max(risk), sum(ifnull(total_claims, 0)),
  sum(ifnull(supported, 0)), sum(ifnull(weakly_supported, 0)), sum(ifnull(unsupported, 0))
FROM runs {where} GROUP BY config_hash, target
"""
_LATER = 1
"""Version of the schema; a file of a later one is refused."""


class Ledger:
    """A file of runs. Its calls block; the async ones of `Kept` hand them to a thread. Threads take turns."""

    def __init__(self, path: Path) -> None:
        """Open the file, made when it isn't there.

        Raises:
            RunsUnusable: it can't be opened, is no such file, or is of a later version.
        """
        self._name = path.name  # callers of the API are told no more of where it is
        self._turn = Lock()
        try:
            make_private(path)  # answers may hold what only some may read
            self._db = opened(path)
            weakref.finalize(self, self._db.close)
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version > _LATER:
                raise RunsUnusable(f"`{self._name}` was written by a later version; use that, or another file")
            to_wal(self._db)
            self._db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {_LATER}; COMMIT;")
        except (OSError, sqlite3.Error) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise RunsUnusable(f"`{self._name}` can't be used as the file of runs: {why}; name another") from error

    @contextmanager
    def _used(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """Take the connection; `durable`: what is committed is on disk, with all that was committed before."""
        try:
            with self._turn:
                self._db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                yield self._db
        except sqlite3.Error as error:
            raise RunsUnusable(
                f"the file of runs `{self._name}` can't be used: {error}; check the file and the disk"
            ) from error

    def begin(self, run: Run) -> None:
        """Write a run that begins.

        Raises:
            GateError: there is one of that id.
        """
        with self._used(durable=True) as db:
            try:
                db.execute(
                    "INSERT INTO runs (run_id, config_hash, target, verifier, snapshot, begun) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    (run.run_id, run.config_hash, run.target, run.verifier, run.snapshot, run.begun),
                )
            except sqlite3.IntegrityError as error:
                raise GateError(f"there is a run `{run.run_id}` already; go on with it, or take another id") from error

    def recall(self, run_id: str, step: str, item: str) -> str | None:
        """Return what an item gave, as JSON; None when it was not kept."""
        with self._used() as db:
            row = db.execute(
                "SELECT made FROM items WHERE run_id = ? AND step = ? AND item = ?", (run_id, step, item)
            ).fetchone()
        return None if row is None else str(row[0])

    def keep(self, place: tuple[str, str, str], made: str, said: Sequence[Said], at: float) -> None:
        """Keep what an item gave, and make what it says findable; both or neither, and once.

        Args:
            place: run, step and item.
            made: what it gave, as JSON.
            said: what of that has words.
            at: seconds since 1970.
        """
        with self._used() as db, transaction(db):
            fresh = db.execute("INSERT OR IGNORE INTO items VALUES (?, ?, ?, ?, ?)", (*place, made, at)).rowcount
            if fresh:
                db.executemany(
                    "INSERT INTO said (run_id, kind, item, at, text) VALUES (?, ?, ?, ?, ?)",
                    [(each.run_id, each.kind, each.item, each.at, each.text) for each in said],
                )

    def end(self, run: Run, report: str | None, said: Sequence[Said] = ()) -> None:
        """Write how a run ended; a second end of a run that was decided is not taken.

        Raises:
            GateError: there is no such run, or it was decided before.
        """
        with self._used(durable=True) as db, transaction(db):
            changed = db.execute(
                "UPDATE runs SET ended = ?, decision = ?, risk = ?, total_claims = ?, supported = ?, "
                "weakly_supported = ?, unsupported = ?, failure = ?, report = ? WHERE run_id = ? AND decision IS NULL",
                (run.ended, run.decision, run.risk, run.total_claims, run.supported, run.weakly_supported,
                 run.unsupported, run.failure, report, run.run_id),
            ).rowcount  # fmt: skip
            db.executemany(
                "INSERT INTO said (run_id, kind, item, at, text) VALUES (?, ?, ?, ?, ?)",
                [(each.run_id, each.kind, each.item, each.at, each.text) for each in said if changed],
            )
        if not changed:
            raise GateError(f"there is no undecided run `{run.run_id}`; list the runs")

    def run(self, run_id: str) -> Run | None:
        """Return a run; None when there is none of that id."""
        found = self._runs("WHERE run_id = ?", (run_id,), 1)
        return found[0] if found else None

    def report(self, run_id: str) -> str | None:
        """Return the report of a decided run, as JSON."""
        with self._used() as db:
            row = db.execute("SELECT report FROM runs WHERE run_id = ?", (run_id,)).fetchone()
        return None if row is None or row[0] is None else str(row[0])

    def runs(
        self,
        *,
        since: float | None = None,
        config_hash: str | None = None,
        target: str | None = None,
        decided: bool = False,
        limit: int = 100,
    ) -> list[Run]:
        """Return runs, the newest first.

        Args:
            since: only those that began at this time or later; seconds since 1970.
            config_hash: only those of this configuration.
            target: only those of this model.
            decided: only those that came to a decision.
            limit: at most this many.
        """
        where, values = _chosen(since, config_hash, target, decided=decided)
        return self._runs(where, values, limit)

    def trends(
        self, *, since: float | None = None, config_hash: str | None = None, target: str | None = None
    ) -> list[Trend]:
        """Return the trend of each configuration, of decided runs chosen as `runs` does."""
        where, values = _chosen(since, config_hash, target, decided=True)
        of_all, named = _chosen(None, config_hash, None, decided=True)
        of_all += " AND decision = 'deploy'"
        with self._used() as db, transaction(db, writing=False):
            newest = db.execute(_NEWEST.format(names=_NAMES, where=where, most=NEWEST), values).fetchall()
            deployed = db.execute(_NEWEST.format(names=_NAMES, where=of_all, most=DEPLOYED), named).fetchall()
            rows = db.execute(_TOTALS.format(where=where), values).fetchall()
        totals: dict[str, list[ModelTotals]] = {}
        for row in rows:
            totals.setdefault(row[0], []).append(_totals(row[1:]))
        return trends([_run(row) for row in newest], [_run(row) for row in deployed], totals)

    def last_deployed(self, config_hash: str, before: float) -> Run | None:
        """Return the newest run of a configuration that was deployed before a time: what regressions are told from."""
        found = self._runs("WHERE config_hash = ? AND decision = 'deploy' AND begun < ?", (config_hash, before), 1)
        return found[0] if found else None

    def _runs(self, where: str, values: Sequence[object], limit: int) -> list[Run]:
        with self._used() as db:
            rows = db.execute(
                f"SELECT {_NAMES} FROM runs {where} ORDER BY begun DESC, run_id LIMIT ?",  # noqa: S608 - own words only
                (*values, limit),
            ).fetchall()
        return [_run(row) for row in rows]

    def said(self, run_id: str) -> list[Said]:
        """Return all that a run said, in order."""
        with self._used() as db:
            rows = db.execute(
                "SELECT run_id, kind, item, at, text FROM said WHERE run_id = ? ORDER BY rowid", (run_id,)
            ).fetchall()
        return [Said(run_id=row[0], kind=row[1], item=row[2], at=row[3], text=row[4]) for row in rows]

    def search(
        self,
        words: str,
        *,
        kind: str | None = None,
        since: float | None = None,
        until: float | None = None,
        limit: int = 50,
    ) -> list[Said]:
        """Return what runs said that has all of the words, the best match first.

        Args:
            words: looked for as words; nothing in them is read as an operator.
            kind: only this kind.
            since: said at this time or later; seconds since 1970.
            until: said before this time.
            limit: at most this many.
        """
        plain = "".join(char if char.isprintable() else " " for char in words).replace('"', '""')
        asked = " ".join(f'"{word}"' for word in plain.split())
        if not asked:
            return []
        conditions, values = ["said MATCH ?"], [asked]
        for condition, value in (("kind = ?", kind), ("at >= ?", since), ("at < ?", until)):
            if value is not None:
                conditions.append(condition)
                values.append(value)  # type: ignore[arg-type]  # a number or a word; SQLite binds either
        with self._used() as db:
            rows = db.execute(
                "SELECT run_id, kind, item, at, text FROM said "  # noqa: S608 - own words only
                f"WHERE {' AND '.join(conditions)} ORDER BY rank, at DESC, rowid LIMIT ?",
                (*values, limit),
            ).fetchall()
        return [Said(run_id=row[0], kind=row[1], item=row[2], at=row[3], text=row[4]) for row in rows]


def _chosen(
    since: float | None, config_hash: str | None, target: str | None, *, decided: bool
) -> tuple[str, list[object]]:
    """Return which runs are meant: conditions, and the values that they are filled with."""
    conditions, values = ["1"], list[object]()
    for condition, value in (("begun >= ?", since), ("config_hash = ?", config_hash), ("target = ?", target)):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    if decided:
        conditions.append("decision IS NOT NULL")
    return f"WHERE {' AND '.join(conditions)}", values


def _run(row: Sequence[Any]) -> Run:
    return msgspec.convert(dict(zip(Run.__struct_fields__, row, strict=True)), Run)


def _totals(row: Sequence[Any]) -> ModelTotals:
    target, deploy, warn, block, runs, least, mean, most, *claims = row
    decisions = {"deploy": deploy, "warn": warn, "block": block}
    total, supported, weakly, unsupported = claims
    return ModelTotals(
        target=target,
        runs=runs,
        decisions={name: count for name, count in decisions.items() if count},
        least_risk=least,
        mean_risk=round(mean, 6),
        most_risk=most,
        total_claims=total,
        supported=supported,
        weakly_supported=weakly,
        unsupported=unsupported,
    )
