"""Evidence in PostgreSQL with pgvector, shared by many machines.

Vectors are compared without an index: an approximate one would find other chunks than the other stores do. All are
read with half their digits, and with all of them only what these leave open. Words are kept as postings and ranked by
BM25 in SQL, since `ts_rank` knows no rarity of words and so ranks otherwise.

Source: Robertson and Zaragoza 2009, section 3.4 (BM25, with the idf of Lucene, which is never negative).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, LiteralString, Self

import numpy as np
from numpy.typing import NDArray

from checkstream.errors import StoreUnusable
from checkstream.evidence import analysis
from checkstream.evidence.columns import facts, from_row, to_row
from checkstream.evidence.postgres_tables import LOCK, make_tables
from checkstream.evidence.records import Chunk, Document, Hit, ordered, snapshot_id
from checkstream.evidence.store import COMMON_FROM, SPARE
from checkstream.evidence.vectors import Matrix

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    _Connection = AsyncConnection[tuple[Any, ...]]

_CONNECTIONS = 2
"""A claim is looked for by its words and by its vector at the same time."""
_READ_S, _WRITE_S = 30.0, 600.0
"""So long a search, and a document, may take at most: a server that hangs keeps nobody waiting for ever."""
_NUMBERS = "select nextval('checkstream.numbers') from generate_series(1, %s)"
_PUT = "copy checkstream.chunks(number, id, source, text, headings, first, last, embedding) from stdin"
_ROUGHEN = """
insert into checkstream.vectors
select number, embedding from checkstream.chunks where source = %s and embedding is not null
"""
_HOLD = "copy checkstream.frequencies(term, document, chunks) from stdin"
_RECORD = "insert into checkstream.documents(source, digest, chunks, terms) values(%s, %s, %s, %s) returning number"
_POST = "copy checkstream.postings(term, chunk, times, terms) from stdin"
_BM25 = """
with size as materialized (
  select sum(chunks)::float8 as chunks, greatest(sum(terms)::float8 / sum(chunks), 1) as terms
  from checkstream.documents where chunks > 0),
held as materialized (
  select term, sum(chunks)::float8 as chunks from checkstream.frequencies where term = any(%(terms)s) group by term),
wanted as materialized (
  select term, 2.2 * ln(1 + (size.chunks - held.chunks + 0.5) / (held.chunks + 0.5)) as weight,
    0.9 / size.terms as share
  from held cross join size
  where size.chunks < %(common_from)s or held.chunks * 2 <= size.chunks
    or not exists (select from held as rarer where rarer.chunks * 2 <= size.chunks)),
best as (
  select chunk, sum(weight * times / (times + 0.3 + share * terms)) as score
  from wanted cross join lateral (
    select chunk, times::float8, terms::float8 from checkstream.postings where term = wanted.term offset 0) as found
  group by chunk order by score desc limit %(most)s)
select score, id, source, text, headings, first, last from best join checkstream.chunks on number = chunk
"""
"""A chunk's terms stand beside each of its postings, so that the index alone answers; `offset` keeps the planner from
reading all postings where it takes a word for a common one."""
_NEAREST = """
with near as materialized (
  select chunk, (rough <#> %(vector)s::halfvec) + 0 as far from checkstream.vectors order by far limit %(some)s),
reach as (select case when count(*) = %(some)s then max(far) end as reach from near)
select reach, embedding, id, source, text, headings, first, last
from reach cross join near join checkstream.chunks on number = chunk
order by (embedding <#> %(vector)s) + 0, id collate "C" limit %(most)s
"""
"""The sums keep an approximate index, which somebody may have made, from answering. `reach` is null once all were
looked at."""
_LOST = 1.1e-3
"""More than what the product of two vectors of length 1 loses when both are rounded to 11 bits: twice 2 ** -11."""
_WIDER = 8
"""How many times as many are looked at when the rough vectors leave open which are the best."""


class PostgresStore:
    """Chunks in the schema `checkstream` of a database. Made by `open`."""

    def __init__(self, connect: Callable[[], Awaitable[_Connection]], embedder: str, dimensions: int) -> None:
        """Connect when first asked; `connect` returns a connection in autocommit that knows vectors."""
        self.embedder = embedder
        self.dimensions = dimensions
        self._connect = connect
        self._free: asyncio.LifoQueue[_Connection | None] = asyncio.LifoQueue()
        for _ in range(_CONNECTIONS):
            self._free.put_nowait(None)
        self._closing = asyncio.Lock()

    @classmethod
    async def open(cls, url: str, embedder: str, dimensions: int, *, password: str | None = None) -> Self:
        """Open the store, and make its tables where there are none.

        Args:
            url: `postgresql://...`, as libpq reads it.
            embedder: whose vectors are in it.
            dimensions: how long they are, at most 16,000.
            password: in place of one in the url or in libpq's own files.

        Raises:
            StoreUnusable: the database can't be used, or holds the vectors of another embedder.
        """
        try:
            import psycopg  # noqa: PLC0415 - of an extra
            from pgvector.psycopg import register_vector_async  # noqa: PLC0415
        except ImportError as error:
            raise StoreUnusable("PostgreSQL needs the extra `checkstream[postgres]`; install it") from error

        async def connect() -> _Connection:
            connection = await psycopg.AsyncConnection.connect(url, password=password, autocommit=True)
            try:
                await connection.execute("set jit = off")  # to compile a search takes longer than to carry it out
                await register_vector_async(connection)
            except BaseException:
                await connection.close()
                raise
            return connection

        # Once, since it waits for whoever writes; connections that are made later don't.
        connecting = psycopg.AsyncConnection.connect(url, password=password, autocommit=True)
        async with _told(), asyncio.timeout(_WRITE_S), await connecting as first:
            await make_tables(first, embedder, dimensions)
        store = cls(connect, embedder, dimensions)
        try:
            await store._require_own()
        except BaseException:
            await store.close()
            raise
        return store

    async def put(self, document: Document, chunks: Sequence[Chunk], vectors: NDArray[np.float32]) -> None:
        """Keep a document in place of what was there of its source, at once or not at all."""
        async with self._in_turn(_WRITE_S) as connection, connection.transaction(), connection.cursor() as cursor:
            await _remove(connection, document.source)
            await cursor.execute(_NUMBERS, (len(chunks),))
            numbers = [int(row[0]) for row in await cursor.fetchall()]
            counted = [Counter(analysis.terms(chunk.searched)) for chunk in chunks]
            async with cursor.copy(_PUT) as copy:
                for number, chunk, vector in zip(numbers, chunks, vectors, strict=True):
                    await copy.write_row((number, *to_row(chunk), vector if vector.any() else None))
            await cursor.execute(_ROUGHEN, (document.source,))
            async with cursor.copy(_POST) as copy:
                for number, terms in zip(numbers, counted, strict=True):
                    for term, times in terms.items():
                        await copy.write_row((term, number, times, terms.total()))
            total = sum(terms.total() for terms in counted)
            await cursor.execute(_RECORD, (document.source, document.digest, len(chunks), total))
            ((record,),) = await cursor.fetchall()
            async with cursor.copy(_HOLD) as copy:
                for term, held in Counter(chain.from_iterable(counted)).items():
                    await copy.write_row((term, record, held))

    async def delete(self, source: str) -> None:
        """Remove a document and its chunks."""
        async with self._in_turn(_WRITE_S) as connection, connection.transaction():
            await _remove(connection, source)

    async def documents(self) -> list[Document]:
        """Return the documents, in order of their sources."""
        found = [
            Document(source=source, digest=digest, chunks=chunks)
            for source, digest, chunks in await self._rows("select source, digest, chunks from checkstream.documents")
        ]
        return sorted(found, key=lambda document: document.source)

    async def count(self) -> int:
        """Return the number of chunks."""
        ((count,),) = await self._rows("select count(*) from checkstream.chunks")
        return int(count)

    async def snapshot(self) -> str:
        """Return what names this state of the store."""
        return snapshot_id((row[0] for row in await self._rows("select id from checkstream.chunks")), self.embedder)

    async def keyword(self, text: str, size: int) -> list[Hit]:
        """Return the chunks that say most of the words of a text, by BM25."""
        wanted = {"terms": analysis.query_terms(text), "common_from": COMMON_FROM, "most": size + SPARE}
        rows = await self._rows(_BM25, wanted)
        return ordered((Hit(chunk=from_row(row), score=float(score)) for score, *row in rows), size)

    async def vector(self, vector: NDArray[np.float32], size: int) -> list[Hit]:
        """Return the chunks with the closest vectors."""
        if not vector.any() or size < 1:
            return []
        some = 2 * size + SPARE
        lost = _LOST * float(np.linalg.norm(vector))
        while True:
            asked = {"vector": vector, "some": some, "most": size + SPARE}
            rows = await self._rows(_NEAREST, asked)
            found = self._exact(vector, size, rows)
            if not rows or rows[0][0] is None or -rows[0][0] < found[-1].score - lost:
                return found
            some *= _WIDER

    async def close(self) -> None:
        """Close the connections, once they are free; what is asked later fails."""
        self._connect = _closed
        taken: list[_Connection | None] = []
        async with self._closing:  # two at once would wait for each other
            try:
                while len(taken) < _CONNECTIONS:
                    taken.append(await self._free.get())
            finally:
                for _ in taken:
                    self._free.put_nowait(None)
                for connection in taken:
                    if connection is not None:
                        await connection.close()

    def _exact(self, vector: NDArray[np.float32], size: int, rows: Sequence[tuple[Any, ...]]) -> list[Hit]:
        """Return the best of what `_NEAREST` gives, as `Matrix` reckons them."""
        chunks = [from_row(row[2:]) for row in rows]
        own = np.array([row[1].to_numpy() for row in rows], np.float32).reshape(len(rows), self.dimensions)
        found = Matrix([chunk.id for chunk in chunks], own).nearest(vector, size)
        return [Hit(chunk=chunks[place], score=score) for place, score in found]

    async def _require_own(self) -> None:
        """Refuse a database of another version or another embedder.

        Raises:
            StoreUnusable: it is one.
        """
        found: dict[str, str] = dict(await self._rows("select key, value from checkstream.meta"))
        if found != facts(self.embedder, self.dimensions):
            raise StoreUnusable(
                f"the database holds the vectors of `{found.get('embedder')}` or is of another version; "
                "ingest into another database, or name that embedder"
            )

    async def _rows(self, query: LiteralString, values: Mapping[str, object] | None = None) -> list[tuple[Any, ...]]:
        async with self._in_turn(_READ_S) as connection:
            return await (await connection.execute(query, values, binary=True)).fetchall()

    @asynccontextmanager
    async def _in_turn(self, seconds: float) -> AsyncIterator[_Connection]:
        """Give a connection to one task at a time: a statement of another would stand in its transaction.

        One that was lost, as when the server started anew, or that was left in the middle of something, as when its
        task was cancelled amid a copy, is made again at the call after that.

        Args:
            seconds: so long may the wait for it and what is done with it take together.

        Raises:
            StoreUnusable: the database can't do what it is asked, or not in time.
        """
        from psycopg.pq import TransactionStatus  # noqa: PLC0415 - of an extra

        end = asyncio.get_running_loop().time() + seconds
        async with _told(), asyncio.timeout_at(end):
            connection = await self._free.get()
        try:
            async with _told(), asyncio.timeout_at(end):
                if connection is None or connection.closed:
                    connection = await self._connect()
                yield connection
        finally:
            if connection is not None and connection.info.transaction_status is not TransactionStatus.IDLE:
                await connection.close()
                connection = None
            self._free.put_nowait(connection)


async def _closed() -> _Connection:
    raise StoreUnusable("the store is closed")


async def _remove(connection: _Connection, source: str) -> None:
    """Remove a document, once no other process writes one of that source."""
    await connection.execute("select pg_advisory_xact_lock(%s, hashtext(%s))", (LOCK, source))
    await connection.execute("delete from checkstream.chunks where source = %s", (source,))
    await connection.execute("delete from checkstream.documents where source = %s", (source,))


@asynccontextmanager
async def _told() -> AsyncIterator[None]:
    """Tell the database's errors in our own words."""
    import psycopg  # noqa: PLC0415 - of an extra

    try:
        yield
    except TimeoutError as error:
        raise StoreUnusable("the database does not answer in time; check its load and its locks") from error
    except (psycopg.Error, OSError) as error:
        why = (str(error) or type(error).__name__).splitlines()[0][:300]
        raise StoreUnusable(f"the database can't be used: {why}; check its address and rights") from error
