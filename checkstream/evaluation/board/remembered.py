"""What models have said of texts, in a file outside of the project, so that a board made again asks only about the new.

It is kept by the model, by what runs it, and by the text. INVARIANT: what is answered from the file is what the model
would say now: another model or another line of the code that runs models finds nothing there.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Self, TypeVar

import msgspec

import checkstream
from checkstream.errors import FileUnreadable
from checkstream.sqlite_file import opened

_T = TypeVar("_T")
_RUNS = ("core", "scoring", "grounding", "evaluation/reading.py", "evaluation/verifiers.py", "app/evidence.py")
"""Whatever scores depend on."""


class Remembered:
    """Answers by a digest."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Use a file that is open."""
        self._connection = connection
        connection.execute("PRAGMA synchronous = OFF")  # what a crash loses is asked again
        connection.execute("CREATE TABLE IF NOT EXISTS said (key TEXT PRIMARY KEY, value BLOB NOT NULL)")
        self._code = _code()

    @classmethod
    @contextmanager
    def open(cls, path: Path | None) -> Iterator[Self]:
        """Open a file, made where there is none; None: remember in memory alone.

        Raises:
            FileUnreadable: it can't be opened, read or written, then or while it is used.
        """
        try:
            with closing(opened(":memory:" if path is None else path)) as connection:
                yield cls(connection)
        except sqlite3.Error as error:
            advice = "name another with --cache, or remove it"
            raise FileUnreadable(f"`{path}` can't be used to remember scores: {error}; {advice}") from error

    def ask(self, model: str, text: str, form: type[_T], fresh: Callable[[], _T]) -> _T:
        """Return what is remembered of a text, or what `fresh` says, which is kept.

        Args:
            model: digest of what answers.
            text: digest of the text.
            form: what answers look like.
            fresh: asks.
        """
        key = hashlib.sha256(f"{self._code} {model} {text}".encode()).hexdigest()
        row = self._connection.execute("SELECT value FROM said WHERE key = ?", (key,)).fetchone()
        if row is not None:
            try:
                return msgspec.json.decode(row[0], type=form)
            except (msgspec.DecodeError, UnicodeDecodeError, TypeError):
                pass  # not what was written: it is asked anew
        said = fresh()
        self._connection.execute("INSERT OR REPLACE INTO said VALUES (?, ?)", (key, msgspec.json.encode(said)))
        return said


def _code() -> str:
    """Return a digest of the code that scores depend on."""
    package = Path(checkstream.__file__).resolve().parent
    found = hashlib.sha256()
    for name in _RUNS:
        place = package / name
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            found.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()
