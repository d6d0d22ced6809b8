"""SQLite files that several processes share: in WAL mode, and written by whole transactions."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

BUSY_S = 10.0
"""How long a call waits for another process's transaction."""


def make_private(path: Path) -> None:
    """Make an empty file that nobody else may read, and its folder; one that is there is not opened.

    To close a database's file a second time in one process would drop the locks that SQLite holds on it.

    Raises:
        OSError: it can't be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def opened(path: str | Path) -> sqlite3.Connection:
    """Open a file for threads that take turns, in autocommit.

    Raises:
        sqlite3.Error: it can't be opened.
    """
    return sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)


def to_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL; several processes may do so at the same time, and SQLite doesn't wait for its locks here.

    Raises:
        sqlite3.Error: it can't be switched.
    """
    end = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


@contextmanager
def transaction(connection: sqlite3.Connection, *, writing: bool = True) -> Iterator[None]:
    """Do all of it or nothing, and see no change of others meanwhile. For a connection in autocommit.

    Args:
        connection: is in no transaction.
        writing: whoever else writes waits.

    Raises:
        sqlite3.Error: it can't be begun or committed; nothing of it is done then.
    """
    connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk has ended it by itself
            connection.execute("ROLLBACK")
        raise
