"""The file of the embedded queue: opened, checked, and brought to its schema. Only its owner can read it.

It is in WAL mode, so a torn tail of the log takes the last commits only; how far a commit goes is for its caller to
say (`PRAGMA synchronous`). What is deleted is overwritten with zeros.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from checkstream.errors import StoreFailed
from checkstream.sqlite_file import make_private, opened, to_wal, transaction

_APPLICATION = 0x63734A51
"""`csJQ`: tells the file from another program's database."""
_VERSION = 1
_SCHEMA = """
CREATE TABLE jobs (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  stream TEXT NOT NULL,
  body BLOB NOT NULL,
  put_ms INTEGER NOT NULL,
  due REAL NOT NULL,
  lease TEXT,
  attempts INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX jobs_due ON jobs (due, seq);
CREATE INDEX jobs_leased ON jobs (due) WHERE lease IS NOT NULL;
CREATE INDEX jobs_delayed ON jobs (due) WHERE lease IS NULL AND attempts > 0;
CREATE TABLE dead (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  stream TEXT NOT NULL,
  body BLOB,
  put_ms INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  error TEXT NOT NULL,
  at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE results (
  stream TEXT NOT NULL,
  route TEXT NOT NULL,
  scorer TEXT NOT NULL,
  version TEXT NOT NULL,
  risk REAL NOT NULL,
  report BLOB NOT NULL,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (stream, scorer, version)
) STRICT;
CREATE INDEX results_at ON results (at_ms);
CREATE TABLE markers (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation TEXT NOT NULL,
  stream TEXT NOT NULL,
  scorer TEXT NOT NULL,
  risk REAL NOT NULL,
  expires_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE load (jobs INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT;
INSERT INTO load VALUES (0, 0);
CREATE TRIGGER job_comes AFTER INSERT ON jobs BEGIN
  UPDATE load SET jobs = jobs + 1, bytes = bytes + length(new.body);
END;
CREATE TRIGGER job_goes AFTER DELETE ON jobs BEGIN
  UPDATE load SET jobs = jobs - 1, bytes = bytes - length(old.body);
END;
CREATE TABLE boot (id TEXT NOT NULL) STRICT;
INSERT INTO boot VALUES ('');
"""


def connect(path: Path, *, make: bool) -> sqlite3.Connection:
    """Open the file; make it if it is not there and that is wanted.

    Raises:
        StoreFailed: it is not there, can't be made or opened, or is not a queue of this version.
    """
    try:
        if make:
            make_private(path)
        elif not path.is_file():
            raise StoreFailed(f"there is no queue `{path}`; check `jobs.store`")
        connection = opened(path)
    except (OSError, sqlite3.Error) as error:
        raise StoreFailed(f"the queue `{path}` can't be opened: {error}; check the path and its rights") from error
    try:
        _prepare(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise StoreFailed(f"the queue `{path}` can't be used: {error}; if it is damaged, move it away") from error
    except StoreFailed:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Set the file up as this module's docstring says; one that is not ours is left as it is.

    Raises:
        sqlite3.Error: it is no database, or can't be written.
        StoreFailed: it is another program's, or of another version.
    """
    if not _is_empty(connection):
        _require_own(connection, path)
    to_wal(connection)
    connection.execute("PRAGMA secure_delete = ON")
    with transaction(connection):
        if _is_empty(connection):
            for statement in _statements():
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        _require_own(connection, path)


def _is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is None


def _require_own(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse what is no queue of this version.

    Raises:
        sqlite3.Error: it is no database.
        StoreFailed: it is another program's, or of another version.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        raise StoreFailed(f"`{path}` is another program's database; name another file")
    if version != _VERSION:
        raise StoreFailed(
            f"`{path}` is a queue of version {version}, this is {_VERSION}; use the version that wrote it"
        )


def _statements() -> list[str]:
    """Return the statements of the schema; a script would commit the transaction that they belong to."""
    found = []
    text = ""
    for line in _SCHEMA.splitlines():
        text += line + "\n"
        if sqlite3.complete_statement(text):
            found.append(text)
            text = ""
    return found
