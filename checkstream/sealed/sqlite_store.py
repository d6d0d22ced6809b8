"""The store of one machine: a table in a SQLite file, shared by the processes that serve it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from checkstream.errors import VaultFailed
from checkstream.sealed.store import Blob
from checkstream.sqlite_file import make_private, opened, to_wal, transaction

_TABLE = """
CREATE TABLE IF NOT EXISTS states (
    id BLOB PRIMARY KEY, version INTEGER NOT NULL, sealed BLOB NOT NULL, expires_ms INTEGER NOT NULL
) WITHOUT ROWID
"""
_BY_TIME = "CREATE INDEX IF NOT EXISTS states_by_time ON states (expires_ms)"
_GONE_A_TIME = 16
"""States whose time is over that one call takes out."""


class SqliteStore:
    """Keeps blobs in a file that nobody else may read. Times are those of the machine's clock."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it.

        Raises:
            VaultFailed: it can't be used.
        """
        self._lock = threading.Lock()
        try:
            make_private(path)
            self._connection = opened(path)
            to_wal(self._connection)
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute("PRAGMA secure_delete = ON")
            self._connection.execute(_TABLE)
            self._connection.execute(_BY_TIME)
        except (OSError, sqlite3.Error) as error:
            raise VaultFailed(f"`{path}` can't be used for conversations: {str(error).lower()}") from error

    def get(self, key: bytes) -> Blob | None:
        """Return what is kept under a key; None: nothing, or its time is over."""
        with self._using() as connection:
            row = connection.execute(
                "SELECT sealed, version FROM states WHERE id = ? AND expires_ms > ?", (key, _now_ms())
            ).fetchone()
        return None if row is None else Blob(bytes(row[0]), int(row[1]))

    def put(self, key: bytes, sealed: bytes, *, seen: int, ttl_ms: int) -> bool:
        """Keep a blob, unless another has been kept since (see `Store`)."""
        with self._using() as connection, transaction(connection):
            now = _now_ms()
            old = connection.execute("SELECT id FROM states WHERE expires_ms <= ? LIMIT ?", (now, _GONE_A_TIME))
            connection.executemany("DELETE FROM states WHERE id = ? AND expires_ms <= ?", [(*row, now) for row in old])
            connection.execute("DELETE FROM states WHERE id = ? AND expires_ms <= ?", (key, now))
            row = connection.execute("SELECT version FROM states WHERE id = ?", (key,)).fetchone()
            if (0 if row is None else int(row[0])) != seen:
                return False
            connection.execute(
                "INSERT OR REPLACE INTO states (id, version, sealed, expires_ms) VALUES (?, ?, ?, ?)",
                (key, seen + 1, sealed, now + ttl_ms),
            )
            return True

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connection
            except sqlite3.Error as error:
                raise VaultFailed(f"the store of conversations failed: {str(error).lower()}") from error


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
