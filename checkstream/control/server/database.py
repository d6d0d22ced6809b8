"""The database of the control server: a SQLite file, or PostgreSQL. Both are asked with the same statements.

Work is a function that gets a `Session`; it runs in a thread, in one transaction, alone among all that write: SQLite
has it so, and in PostgreSQL a lock makes it so, also between several servers. INVARIANT: it is done whole, or not at
all. What only reads is asked on a connection and a thread of its own, so that a long question keeps no delivery
waiting: it sees the rows of one moment, and has a limit of time.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from checkstream.control.server.migrations import MIGRATIONS
from checkstream.control.server.migrations.change import Migration
from checkstream.errors import ControlUnusable, TookTooLong
from checkstream.sqlite_file import make_private, opened, to_wal, transaction

if TYPE_CHECKING:
    from psycopg import Connection

_T = TypeVar("_T")
Row = tuple[Any, ...]
_SQLITE = "sqlite:"
_APPLICATION = 0x63734354
"""`csCT`: tells the file from another program's database."""
_LOCK = 0x63_68_65_63
"""Of advisory locks in PostgreSQL: one at a time works."""
_PATIENCE_S = 30
"""So long a statement may take, its wait for others included."""
_QUESTION_S = 10.0
"""So long may take what only reads."""
_STEPS = 20_000
"""Of SQLite's machine between two looks at the clock: about a millisecond."""
_LEDGER = "create table if not exists migrations({int_key}, name text not null, at_ms {int} not null)"


class Session(Protocol):
    """One transaction."""

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Carry a statement out, with `?` for each value, and return its rows."""


class _Kind(Protocol):
    """What differs between the two."""

    types: dict[str, str]

    def work(self) -> AbstractContextManager[Session]:
        """Give a transaction of this thread, which writes alone."""

    def reading(self, limit_s: float) -> AbstractContextManager[Session]:
        """Give a transaction of this thread that sees one moment and can't write, and in which nothing takes longer."""

    def told(self, error: BaseException) -> ControlUnusable | None:
        """Return in our own words what the database says; None: it is something else."""

    def close(self) -> None:
        """Let go of it."""


class Database:
    """Opened by `open_database`."""

    def __init__(self, kind: _Kind, took: Callable[[float], object], question_s: float) -> None:
        """Use what is open.

        Args:
            kind: SQLite or PostgreSQL.
            took: Hears how many seconds each transaction took, the wait for its turn included.
            question_s: So long a question may take.
        """
        self._kind = kind
        self._took = took
        self._question_s = question_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="control-store")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="control-reader")

    async def transact(self, work: Callable[[Session], _T]) -> _T:
        """Do some work in a transaction, beside the loop, and return what it returns.

        Raises:
            ControlUnusable: the database can't do it; nothing of it is done then.
        """
        begun = time.perf_counter()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self.at_once, work)
        finally:
            self._took(time.perf_counter() - begun)

    def at_once(self, work: Callable[[Session], _T]) -> _T:
        """Do as `transact`, on this thread. Blocks.

        Raises:
            ControlUnusable: as there.
        """
        return self._done(self._kind.work(), work)

    async def ask(self, work: Callable[[Session], _T]) -> _T:
        """Do some work that only reads, beside the loop and beside all that is written, and return what it returns.

        Raises:
            TookTooLong: it takes longer than a question may.
            ControlUnusable: the database can't do it, or it wanted to write.
        """
        return await asyncio.get_running_loop().run_in_executor(self._reader, self.ask_at_once, work)

    def ask_at_once(self, work: Callable[[Session], _T]) -> _T:
        """Do as `ask`, on this thread. Blocks.

        Raises:
            TookTooLong: as there.
            ControlUnusable: as there.
        """
        return self._done(self._kind.reading(self._question_s), work)

    def _done(self, transaction: AbstractContextManager[Session], work: Callable[[Session], _T]) -> _T:
        try:
            with transaction as session:
                return work(session)
        except Exception as error:
            known = self._kind.told(error)
            if known is None:
                raise
            raise known from error

    async def close(self) -> None:
        """Let go of it, once what runs is done."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._reader.shutdown(wait=True)
        self._thread.shutdown(wait=True)
        self._kind.close()


def _nobody(_seconds: float) -> None:
    """Hear of nothing."""


def open_database(
    address: str,
    *,
    password: str | None = None,
    migrations: Sequence[Migration] = MIGRATIONS,
    took: Callable[[float], object] = _nobody,
    question_s: float = _QUESTION_S,
) -> Database:
    """Open a database and bring it to this version's tables. Blocks.

    Args:
        address: `sqlite:FILE` or `postgresql://...`.
        password: PostgreSQL's, in place of one in the address or in libpq's own files.
        migrations: Changes that make the tables.
        took: Hears how many seconds each transaction took.
        question_s: So long may take what only reads.

    Raises:
        ControlUnusable: it can't be used, or is of a newer version.
    """
    file = address.removeprefix(_SQLITE) if address.startswith(_SQLITE) else None
    kind: _Kind = _Postgres(address, password) if file is None else _Sqlite(Path(file))
    database = Database(kind, took, question_s)
    try:
        database.at_once(lambda session: _migrate(session, kind.types, migrations))
    except BaseException:
        database._close()  # noqa: SLF001 - its own
        raise
    return database


def _migrate(session: Session, types: dict[str, str], migrations: Sequence[Migration]) -> None:
    """Make the changes that have not been made, all of them or none.

    Raises:
        ControlUnusable: changes have been made that this version does not know.
    """
    session.execute(_LEDGER.format(int_key=f"number {types['int']} primary key", **types))
    made = {int(number): str(name) for number, name in session.execute("select number, name from migrations")}
    known = {each.number: each for each in migrations}
    newer = [f"{number} `{name}`" for number, name in sorted(made.items()) if number not in known]
    if newer:
        raise ControlUnusable(
            f"the store has the change {', '.join(newer)}, which this version does not know; use the newer version of "
            "checkstream that has made it, or another store"
        )
    for number, migration in sorted(known.items()):
        if number not in made:
            for statement in migration.statements:
                session.execute(statement.format(**types))
            values = number, migration.name, time.time_ns() // 1_000_000
            session.execute("insert into migrations values(?, ?, ?)", values)


class _Sqlite:
    """A file. Threads take turns."""

    types: dict[str, str] = {  # noqa: RUF012 - read only
        "id": "integer primary key autoincrement",
        "int": "integer",
        "real": "real",
        "bytes": "blob",
    }

    def __init__(self, path: Path) -> None:
        """Open it; it is made where it is not there.

        Raises:
            ControlUnusable: it can't be opened, or is another program's.
        """
        self._path = path
        self._turn = threading.Lock()
        self._asking = threading.Lock()
        self._reader: sqlite3.Connection | None = None
        try:
            make_private(path)
            self._connection = opened(path)
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error
        try:
            self._prepare()
        except BaseException as error:
            self._connection.close()
            if isinstance(error, sqlite3.Error):
                raise self._unusable(error) from error
            raise

    def _prepare(self) -> None:
        (application,) = self._connection.execute("PRAGMA application_id").fetchone()
        empty = self._connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is None
        if application != _APPLICATION and not empty:
            raise ControlUnusable(f"`{self._path}` is another program's database; name another file in `store`")
        to_wal(self._connection)
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(f"PRAGMA application_id = {_APPLICATION}")

    @contextmanager
    def work(self) -> Iterator[Session]:
        """Give a transaction."""
        with self._turn, transaction(self._connection):
            yield _SqliteSession(self._connection)

    @contextmanager
    def reading(self, limit_s: float) -> Iterator[Session]:
        """Give a transaction of the second connection."""
        with self._asking:
            if self._reader is None:
                self._reader = opened(self._path)
                self._reader.execute("PRAGMA query_only = ON")
            end = time.monotonic() + limit_s
            self._reader.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
            try:
                with transaction(self._reader, writing=False):
                    yield _SqliteSession(self._reader)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
                    raise _too_long() from error
                raise

    def told(self, error: BaseException) -> ControlUnusable | None:
        """Return what SQLite says."""
        return self._unusable(error) if isinstance(error, sqlite3.Error) else None

    def _unusable(self, error: BaseException) -> ControlUnusable:
        return ControlUnusable(f"the store `{self._path}` can't be used: {error}; check the path, its rights and room")

    def close(self) -> None:
        """Close the file."""
        if self._reader is not None:
            self._reader.close()
        self._connection.close()


def _too_long() -> TookTooLong:
    return TookTooLong("the question takes too long; ask for less time at once, or name a node, a route or a rule")


class _SqliteSession:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        return self._connection.execute(statement, tuple(values)).fetchall()


class _Postgres:
    """A schema of a database. A connection that was lost is made anew at the next call."""

    types: dict[str, str] = {  # noqa: RUF012 - read only
        "id": "bigint generated by default as identity primary key",
        "int": "bigint",
        "real": "double precision",
        "bytes": "bytea",
    }

    def __init__(self, address: str, password: str | None) -> None:
        """Connect to nothing yet.

        Raises:
            ControlUnusable: the extra is not installed.
        """
        try:
            import psycopg  # noqa: PLC0415 - of an extra
        except ImportError as error:
            raise ControlUnusable("PostgreSQL needs the extra `checkstream[postgres]`; install it") from error
        self._psycopg = psycopg
        self._address = address
        self._password = password
        self._turn = threading.Lock()
        self._asking = threading.Lock()
        self._connection: Connection[Row] | None = None
        self._reader: Connection[Row] | None = None

    @contextmanager
    def work(self) -> Iterator[Session]:
        """Give a transaction."""
        with self._turn:
            if self._connection is None or self._connection.closed:
                self._connection = self._connected(f"-c statement_timeout={_PATIENCE_S}s", make=True)
            with _in_transaction(self._connection):
                self._connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
                yield _PostgresSession(self._connection)

    @contextmanager
    def reading(self, limit_s: float) -> Iterator[Session]:
        """Give a transaction of the second connection, which takes no lock."""
        with self._asking:
            if self._reader is None or self._reader.closed:
                self._reader = self._connected(
                    f"-c statement_timeout={round(limit_s * 1000)} -c default_transaction_read_only=on "
                    r"-c default_transaction_isolation=repeatable\ read"
                )
            try:
                with _in_transaction(self._reader):
                    yield _PostgresSession(self._reader)
            except self._psycopg.errors.QueryCanceled as error:
                raise _too_long() from error

    def _connected(self, options: str, *, make: bool = False) -> Connection[Row]:
        made = self._psycopg.Connection.connect(
            self._address, password=self._password, autocommit=True, connect_timeout=10, options=options
        )
        try:
            if make:
                made.execute("create schema if not exists checkstream_control")
            made.execute("set search_path to checkstream_control")
        except BaseException:
            made.close()
            raise
        return made

    def told(self, error: BaseException) -> ControlUnusable | None:
        """Return what PostgreSQL says."""
        if not isinstance(error, self._psycopg.Error | OSError):
            return None
        why = (str(error) or type(error).__name__).splitlines()[0][:300]
        return ControlUnusable(f"the database can't be used: {why}; check its address and rights")

    def close(self) -> None:
        """Close the connections."""
        for connection in (self._reader, self._connection):
            if connection is not None:
                connection.close()


@contextmanager
def _in_transaction(connection: Connection[Row]) -> Iterator[None]:
    """Do all of it or nothing; a connection that was lost is let go of."""
    try:
        with connection.transaction():
            yield
    finally:
        if connection.broken:
            connection.close()


class _PostgresSession:
    def __init__(self, connection: Connection[Row]) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        cursor = self._connection.execute(statement.replace("?", "%s").encode(), tuple(values))
        return cursor.fetchall() if cursor.description is not None else []
