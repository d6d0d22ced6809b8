"""The newest results of a SQLite queue, for who only looks: the file is opened to be read, and never made."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from checkstream.errors import StoreFailed
from checkstream.jobs.terms import Result

_WAIT_S = 2.0


def recent_results(file: Path, count: int) -> list[Result]:
    """Return the newest results, the newest first, without their reports; none where there is no file. Blocks.

    Raises:
        StoreFailed: the file can't be read.
    """
    if not file.is_file():
        return []
    try:
        with contextlib.closing(
            sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=_WAIT_S)
        ) as connection:
            rows = connection.execute(
                "SELECT stream, route, scorer, version, risk, at_ms FROM results ORDER BY at_ms DESC LIMIT ?", (count,)
            ).fetchall()
    except sqlite3.Error as error:
        raise StoreFailed(f"`{file}` can't be read: {error}; check that it is the queue's file") from error
    return [
        Result(stream=row[0], route=row[1], scorer=row[2], version=row[3], risk=row[4], report=b"", at_ms=row[5])
        for row in rows
    ]
