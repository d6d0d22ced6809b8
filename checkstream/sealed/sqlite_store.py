"""The store of one machine: a table in a SQLite file, shared by the processes that serve it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from checkstream.errors import VaultFailed
from checkstream.sealed.store import Blob, Share
from checkstream.sqlite_file import make_private, opened, to_wal, transaction

_TABLE = """
CREATE TABLE IF NOT EXISTS states (
    id BLOB PRIMARY KEY, version INTEGER NOT NULL, sealed BLOB NOT NULL, expires_ms INTEGER NOT NULL, share BLOB
) WITHOUT ROWID
"""
_BY_TIME = "CREATE INDEX IF NOT EXISTS states_by_time ON states (expires_ms)"
_BY_SHARE = "CREATE INDEX IF NOT EXISTS states_by_share ON states (share, expires_ms)"
_SHARES = """
CREATE TABLE IF NOT EXISTS shares (id BLOB PRIMARY KEY, bytes INTEGER NOT NULL, number INTEGER NOT NULL) WITHOUT ROWID
"""
_COMES = """
CREATE TRIGGER IF NOT EXISTS states_come AFTER INSERT ON states WHEN new.share IS NOT NULL BEGIN
    INSERT INTO shares VALUES (new.share, length(new.sealed) + 512, 1)
    ON CONFLICT (id) DO UPDATE SET bytes = bytes + excluded.bytes, number = number + 1;
END
"""
_GOES = """
CREATE TRIGGER IF NOT EXISTS states_go AFTER DELETE ON states WHEN old.share IS NOT NULL BEGIN
    UPDATE shares SET bytes = bytes - length(old.sealed) - 512, number = number - 1 WHERE id = old.share;
    DELETE FROM shares WHERE id = old.share AND number <= 0;
END
"""
_GONE_A_TIME = 16
"""States whose time is over that one call takes out."""


class SqliteStore:
    """Keeps blobs in a file that nobody else may read. Times are those of the machine's clock."""

    def __init__(self, path: Path, what: str = "conversations") -> None:
        """Open the file, or make it.

        Args:
            path: Of the file.
            what: What is kept there, as errors say it.

        Raises:
            VaultFailed: it can't be used.
        """
        self._lock = threading.Lock()
        self._what = what
        try:
            make_private(path)
            self._connection = opened(path)
            to_wal(self._connection)
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute("PRAGMA secure_delete = ON")
            self._connection.execute(_TABLE)
            self._add_shares()
            for each in (_BY_TIME, _BY_SHARE, _SHARES, _COMES, _GOES):
                self._connection.execute(each)
        except (OSError, sqlite3.Error) as error:
            raise VaultFailed(f"`{path}` can't be used for {what}: {str(error).lower()}") from error

    def get(self, key: bytes) -> Blob | None:
        """Return what is kept under a key; None: nothing, or its time is over."""
        with self._using() as connection:
            row = connection.execute(
                "SELECT sealed, version FROM states WHERE id = ? AND expires_ms > ?", (key, _now_ms())
            ).fetchone()
        return None if row is None else Blob(bytes(row[0]), int(row[1]))

    def _add_shares(self) -> None:
        """Give a file of an earlier version what it lacks; two processes may do so at the same time."""
        with transaction(self._connection):
            if all(row[1] != "share" for row in self._connection.execute("PRAGMA table_info(states)")):
                self._connection.execute("ALTER TABLE states ADD COLUMN share BLOB")

    def put(self, key: bytes, sealed: bytes, *, seen: int, ttl_ms: int, share: Share | None = None) -> bool:
        """Keep a blob, unless another has been kept since (see `Store`)."""
        with self._using() as connection, transaction(connection):
            now = _now_ms()
            old = connection.execute("SELECT id FROM states WHERE expires_ms <= ? LIMIT ?", (now, _GONE_A_TIME))
            connection.executemany("DELETE FROM states WHERE id = ? AND expires_ms <= ?", [(*row, now) for row in old])
            connection.execute("DELETE FROM states WHERE id = ? AND expires_ms <= ?", (key, now))
            row = connection.execute("SELECT version FROM states WHERE id = ?", (key,)).fetchone()
            if (0 if row is None else int(row[0])) != seen:
                return False
            connection.execute("DELETE FROM states WHERE id = ?", (key,))
            connection.execute(
                "INSERT INTO states (id, version, sealed, expires_ms, share) VALUES (?, ?, ?, ?, ?)",
                (key, seen + 1, sealed, now + ttl_ms, None if share is None else share.key),
            )
            if share is not None:
                _make_room(connection, share.most_bytes)
            return True

    def count(self) -> int:
        """Return how many blobs of shares are kept, about."""
        with self._using() as connection:
            return int(connection.execute("SELECT coalesce(sum(number), 0) FROM shares").fetchone()[0])

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
                raise VaultFailed(f"the store of {self._what} failed: {str(error).lower()}") from error


def _make_room(connection: sqlite3.Connection, most_bytes: int) -> None:
    """Take out what has rested longest, of the share that has most, until all shares together have their room."""
    while connection.execute("SELECT coalesce(sum(bytes), 0) FROM shares").fetchone()[0] > most_bytes:
        connection.execute(
            "DELETE FROM states WHERE id = (SELECT id FROM states "
            "WHERE share = (SELECT id FROM shares ORDER BY bytes DESC LIMIT 1) ORDER BY expires_ms LIMIT 1)"
        )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
