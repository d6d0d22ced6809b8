"""The embedded store: one SQLite file with a full-text index, and vectors that are compared exactly in memory.

One thread owns the connection. Readers and one writer in other processes are welcome (WAL); their changes are seen at
the next search. Terms are cut by `analysis`, so FTS5 splits at spaces alone, keeps no second copy of the text
(contentless), and finds words of every script. *Instead of* `unicode61` with a trigram table beside it: trigrams find
no word of two letters, as most Chinese words are, and the other stores would cut words by other rules.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from checkstream.errors import StoreUnusable
from checkstream.evidence import analysis
from checkstream.evidence.columns import facts, from_row, to_row
from checkstream.evidence.records import Chunk, Document, Hit, ordered, snapshot_id
from checkstream.evidence.store import COMMON_FROM, SCHEMA, SPARE
from checkstream.evidence.vectors import Matrix
from checkstream.sqlite_file import opened, to_wal, transaction

_T = TypeVar("_T")
_P = ParamSpec("_P")

_TABLES = """
create table meta(key text primary key, value text not null) strict;
create table documents(source text primary key, digest text not null, chunks integer not null) strict;
create table chunks(
  number integer primary key, id text not null unique, source text not null, text text not null,
  headings text not null, first integer not null, last integer not null, vector blob
) strict;
create index chunks_by_source on chunks(source);
create virtual table terms using fts5(words, content='', tokenize='ascii');
"""
_OF_ALL = "select number, id, source, text, headings, first, last from chunks"
_OF_SOURCE = f"{_OF_ALL} where source = ?"
_OF_NUMBER = "select id, source, text, headings, first, last from chunks where number = ?"
_PUT = "insert into chunks(id, source, text, headings, first, last, vector) values(?, ?, ?, ?, ?, ?, ?)"
_MATCH = """
select -score, id, source, text, headings, first, last
from (select rowid, bm25(terms) as score from terms where terms match ? order by score limit ?) as found
join chunks on number = found.rowid
"""


class SqliteStore:
    """Chunks in one SQLite file. Made by `open`."""

    def __init__(self, path: str, embedder: str, dimensions: int) -> None:
        """Open nothing yet."""
        self.embedder = embedder
        self.dimensions = dimensions
        self._path = path
        self._name = Path(path).name
        """All that messages tell of the path: they reach callers of the API."""
        self._thread = ThreadPoolExecutor(1, "evidence")
        self._db: sqlite3.Connection
        self._loaded: tuple[int, Sequence[int], Matrix] | None = None

    @classmethod
    async def open(cls, path: str, embedder: str, dimensions: int) -> Self:
        """Open the store, and make it where there is none.

        Args:
            path: of its file; its folder is made too. `:memory:` keeps it in this process alone.
            embedder: whose vectors are in it.
            dimensions: how long they are.

        Raises:
            StoreUnusable: the file can't be used, or holds the vectors of another embedder.
        """
        store = cls(path, embedder, dimensions)
        try:
            await store._run(SqliteStore._open)
        except BaseException:
            store._thread.shutdown(wait=False)
            raise
        return store

    async def put(self, document: Document, chunks: Sequence[Chunk], vectors: NDArray[np.float32]) -> None:
        """Keep a document in place of what was there of its source, at once or not at all."""
        await self._run(SqliteStore._put, document, chunks, vectors)

    async def delete(self, source: str) -> None:
        """Remove a document and its chunks."""
        await self._run(SqliteStore._delete, source)

    async def documents(self) -> list[Document]:
        """Return the documents, in order of their sources."""
        rows = await self._run(SqliteStore._rows, "select source, digest, chunks from documents")
        return sorted(
            (Document(source=source, digest=digest, chunks=chunks) for source, digest, chunks in rows),
            key=lambda document: document.source,
        )

    async def count(self) -> int:
        """Return the number of chunks."""
        return int((await self._run(SqliteStore._rows, "select count(*) from chunks"))[0][0])

    async def snapshot(self) -> str:
        """Return what names this state of the store."""
        return snapshot_id(
            (row[0] for row in await self._run(SqliteStore._rows, "select id from chunks")), self.embedder
        )

    async def keyword(self, text: str, size: int) -> list[Hit]:
        """Return the chunks that say most of the words of a text, by BM25."""
        return await self._run(SqliteStore._keyword, text, size)

    async def vector(self, vector: NDArray[np.float32], size: int) -> list[Hit]:
        """Return the chunks with the closest vectors."""
        return await self._run(SqliteStore._vector, vector, size)

    async def close(self) -> None:
        """Close the file."""
        await self._run(lambda self: self._db.close())
        self._thread.shutdown()

    async def _run(self, work: Callable[Concatenate[Self, _P], _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Do some work on the thread of the connection."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(self, *args, **kwargs))
        except (sqlite3.Error, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise StoreUnusable(
                f"the store `{self._name}` can't be used: {why}; check the file and the disk"
            ) from error

    def _open(self) -> None:
        if self._path != ":memory:":
            Path(self._path).parent.mkdir(parents=True, exist_ok=True)
        self._db = opened(self._path)
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            raise

    def _prepare(self) -> None:
        """Make the tables where there are none; a file that is not ours is left as it is."""
        if not self._is_empty():
            self._require_own()
        to_wal(self._db)
        self._db.execute("pragma synchronous = normal")
        with transaction(self._db):
            if self._is_empty():
                for statement in _TABLES.strip().split(";\n"):
                    self._db.execute(statement)
                self._db.executemany("insert into meta values(?, ?)", facts(self.embedder, self.dimensions).items())
            found = self._require_own()
            if found["analysis"] != str(analysis.VERSION):
                self._index_anew()
        self._db.execute("create virtual table temp.vocabulary using fts5vocab(main, terms, 'row')")

    def _is_empty(self) -> bool:
        return self._db.execute("select 1 from sqlite_master limit 1").fetchone() is None

    def _require_own(self) -> dict[str, str]:
        """Return what the file says of itself; refuse one of another version or another embedder.

        Raises:
            StoreUnusable: it is one.
        """
        found: dict[str, str] = dict(self._db.execute("select key, value from meta").fetchall())
        if found.get("schema") != str(SCHEMA) or "analysis" not in found:
            raise StoreUnusable(f"`{self._name}` is of another version; ingest into a new file")
        if found.get("embedder") != self.embedder or found.get("dimensions") != str(self.dimensions):
            raise StoreUnusable(
                f"`{self._name}` holds the vectors of `{found.get('embedder')}`, not of `{self.embedder}`; "
                "ingest into a new file, or name that embedder"
            )
        return found

    def _index_anew(self) -> None:
        """Fill the full-text index with the terms as they are cut now."""
        self._db.execute("insert into terms(terms) values('delete-all')")
        for number, *row in self._db.execute(_OF_ALL).fetchall():
            self._db.execute("insert into terms(rowid, words) values(?, ?)", (number, _terms(from_row(row))))
        self._db.execute("update meta set value = ? where key = 'analysis'", (str(analysis.VERSION),))

    def _put(self, document: Document, chunks: Sequence[Chunk], vectors: NDArray[np.float32]) -> None:
        with transaction(self._db):
            self._remove(document.source)
            for chunk, vector in zip(chunks, vectors, strict=True):
                kept = vector.astype("<f4").tobytes() if vector.any() else None
                cursor = self._db.execute(_PUT, (*to_row(chunk), kept))
                self._db.execute("insert into terms(rowid, words) values(?, ?)", (cursor.lastrowid, _terms(chunk)))
            self._db.execute("insert into documents values(?, ?, ?)", (document.source, document.digest, len(chunks)))
        self._loaded = None

    def _delete(self, source: str) -> None:
        with transaction(self._db):
            self._remove(source)
        self._loaded = None

    def _remove(self, source: str) -> None:
        """Remove a document; a contentless index is told the terms that it is to forget."""
        for number, *row in self._db.execute(_OF_SOURCE, (source,)).fetchall():
            self._db.execute(
                "insert into terms(terms, rowid, words) values('delete', ?, ?)", (number, _terms(from_row(row)))
            )
        self._db.execute("delete from chunks where source = ?", (source,))
        self._db.execute("delete from documents where source = ?", (source,))

    def _rows(self, query: str) -> list[tuple[str, str, int]]:
        return self._db.execute(query).fetchall()

    def _keyword(self, text: str, size: int) -> list[Hit]:
        wanted = self._deciding(analysis.query_terms(text))
        if not wanted:
            return []
        rows = self._db.execute(
            _MATCH,
            (" OR ".join(f'"{term}"' for term in wanted), size + SPARE),
        ).fetchall()
        return ordered((Hit(chunk=from_row(row), score=score) for score, *row in rows), size)

    def _deciding(self, terms: Sequence[str]) -> Sequence[str]:
        """Return the terms without those that most chunks hold, if others are left."""
        chunks = self._db.execute("select sum(chunks) from documents").fetchone()[0] or 0
        if chunks < COMMON_FROM:
            return terms
        held = (
            self._db.execute("select doc from temp.vocabulary where term = ?", (term,)).fetchone() for term in terms
        )
        rare = [term for term, row in zip(terms, held, strict=True) if row is not None and row[0] * 2 <= chunks]
        return rare or terms

    def _vector(self, vector: NDArray[np.float32], size: int) -> list[Hit]:
        with transaction(self._db, writing=False):  # what is found must not be removed before it is read
            numbers, matrix = self._vectors()
            found = matrix.nearest(vector, size)
            rows = [self._db.execute(_OF_NUMBER, (numbers[place],)).fetchone() for place, _ in found]
        return [Hit(chunk=from_row(row), score=score) for row, (_, score) in zip(rows, found, strict=True)]

    def _vectors(self) -> tuple[Sequence[int], Matrix]:
        """Return the vectors as they are in the file now, with the numbers of their chunks."""
        version = self._db.execute("pragma data_version").fetchone()[0]
        if self._loaded is None or self._loaded[0] != version:
            rows = self._db.execute("select number, id, vector from chunks where vector is not null").fetchall()
            matrix = np.frombuffer(b"".join(row[2] for row in rows), "<f4").reshape(len(rows), self.dimensions)
            self._loaded = (version, [row[0] for row in rows], Matrix([row[1] for row in rows], matrix))
        return self._loaded[1:]


def _terms(chunk: Chunk) -> str:
    return " ".join(analysis.terms(chunk.searched))
