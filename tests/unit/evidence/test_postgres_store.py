"""What the store in PostgreSQL does beside what all stores do."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import numpy as np
import pytest

from checkstream.errors import StoreUnusable
from checkstream.evidence import postgres_store as module
from checkstream.evidence.postgres_store import PostgresStore
from checkstream.evidence.postgres_tables import LOCK
from checkstream.evidence.records import Chunk, Document, chunk_id
from checkstream.evidence.vectors import Matrix
from checkstream.scoring.embedding import HashingEmbedder
from tests.evidence_stores import opened, postgres

__all__ = ["postgres"]

EMBEDDER = HashingEmbedder(48)
NONE = np.zeros((0, EMBEDDER.dimensions), np.float32)


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_READ_S", 0.2)
    monkeypatch.setattr(module, "_WRITE_S", 0.2)


def cut(count: int) -> list[Chunk]:
    texts = [f"text {number}" for number in range(count)]
    return [Chunk(id=chunk_id(text, "v"), source="v", text=text, start=0, end=9) for text in texts]


async def test_an_approximate_index_that_somebody_made_does_not_answer(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(1500, EMBEDDER.dimensions)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    chunks = cut(len(rows))
    oracle = Matrix([chunk.id for chunk in chunks], rows)
    async with opened("postgres", tmp_path, request) as open_one:
        store = await open_one(EMBEDDER)
        assert isinstance(store, PostgresStore)
        await store.put(Document(source="v", digest="d"), chunks, rows)
        graph = "create index on checkstream.{} using hnsw ({}_ip_ops) with (m = 2, ef_construction = 4)"
        graphs = (graph.format("chunks", "embedding vector"), graph.format("vectors", "rough halfvec"))
        for statement in (*graphs, "set hnsw.ef_search = 1", "set enable_seqscan = off", "set enable_sort = off"):
            async with store._in_turn(60) as connection:
                await connection.execute(statement.encode())
        for query in rows[:30] + 0.3 * rows[30:60]:
            wanted = [chunks[place].id for place, _ in oracle.nearest(query, 5)]
            assert [hit.chunk.id for hit in await store.vector(query, 5)] == wanted


@pytest.mark.parametrize("spread", [0.0, 1e-6, 2e-4])
async def test_vectors_too_close_for_the_rough_ones_to_tell_apart_are_told_apart(
    tmp_path: Path, request: pytest.FixtureRequest, spread: float
) -> None:
    rng = np.random.default_rng(3)
    rows = np.ones((900, EMBEDDER.dimensions)) + spread * rng.normal(size=(900, EMBEDDER.dimensions))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    chunks = cut(len(rows))
    oracle = Matrix([chunk.id for chunk in chunks], rows)
    query = rng.normal(size=EMBEDDER.dimensions).astype(np.float32)
    async with opened("postgres", tmp_path, request) as open_one:
        store = await open_one(EMBEDDER)
        await store.put(Document(source="v", digest="d"), chunks, rows)
        for size in (1, 5, 899, 2000):
            wanted = [chunks[place].id for place, _ in oracle.nearest(query, size)]
            assert [hit.chunk.id for hit in await store.vector(query, size)] == wanted


async def test_a_database_from_before_its_later_tables_is_searched_as_it_was(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    query = (await EMBEDDER.embed(["text 7"]))[0]
    async with opened("postgres", tmp_path, request) as open_one:
        store = await open_one(EMBEDDER)
        assert isinstance(store, PostgresStore)
        await store.put(Document(source="v", digest="d"), cut(9), await EMBEDDER.embed([each.text for each in cut(9)]))
        before = (await store.vector(query, 3), await store.keyword("text 7", 9))
        async with store._in_turn(60) as connection:
            await connection.execute("drop table checkstream.vectors, checkstream.frequencies")
            await connection.execute("alter table checkstream.documents drop column number")
        again = await open_one(EMBEDDER)
        assert (await again.vector(query, 3), await again.keyword("text 7", 9)) == before


async def test_a_search_waits_for_no_document_that_is_being_written(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with opened("postgres", tmp_path, request) as open_one:
        store = await open_one(EMBEDDER)
        assert isinstance(store, PostgresStore)
        await store.put(Document(source="v", digest="d"), cut(9), await EMBEDDER.embed([each.text for each in cut(9)]))
        async with store._in_turn(60) as writing, writing.transaction():
            await writing.execute("delete from checkstream.chunks")
            await writing.execute("delete from checkstream.documents")
            assert len(await store.keyword("text 7", 3)) == 3  # by a connection that is made now


async def test_a_server_that_closed_its_connections_is_asked_again(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with opened("postgres", tmp_path, request) as open_one:
        store, other = await open_one(EMBEDDER), await open_one(EMBEDDER)
        assert isinstance(store, PostgresStore)
        assert isinstance(other, PostgresStore)
        await asyncio.gather(store.count(), store.count())
        ends = """
            select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()
        """
        async with other._in_turn(60) as connection:
            await connection.execute(ends)
        told = await asyncio.gather(*(store.count() for _ in range(4)), return_exceptions=True)
        assert {type(each) for each in told} == {StoreUnusable, int}
        assert list(await asyncio.gather(store.count(), store.count())) == [0, 0]


async def test_a_database_that_does_not_answer_keeps_nobody_waiting(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened("postgres", tmp_path, request) as open_one:
        store, other = await open_one(EMBEDDER), await open_one(EMBEDDER)
        assert isinstance(other, PostgresStore)
        hurry(monkeypatch)
        async with other._in_turn(60) as locking, locking.transaction():
            await locking.execute("lock table checkstream.chunks, checkstream.documents in access exclusive mode")
            for waiting in (store.count(), store.delete("v"), store.put(Document(source="v", digest="d"), [], NONE)):
                with pytest.raises(StoreUnusable, match="does not answer in time"):
                    await asyncio.wait_for(waiting, 10)
        monkeypatch.undo()
        assert list(await asyncio.gather(store.count(), store.count())) == [0, 0]


async def test_nobody_waits_longer_for_a_free_connection_or_for_the_tables(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened("postgres", tmp_path, request) as open_one:
        store = await open_one(EMBEDDER)
        assert isinstance(store, PostgresStore)
        hurry(monkeypatch)
        async with store._in_turn(60) as locking, store._in_turn(60):
            with pytest.raises(StoreUnusable, match="does not answer in time"):
                await asyncio.wait_for(store.count(), 10)
            await locking.execute("select pg_advisory_lock(%s)", (LOCK,))
            with pytest.raises(StoreUnusable, match="does not answer in time"):
                await asyncio.wait_for(open_one(EMBEDDER), 10)
            await locking.execute("select pg_advisory_unlock(%s)", (LOCK,))
        monkeypatch.undo()
        assert list(await asyncio.gather(store.count(), store.count())) == [0, 0]


async def test_a_store_is_closed_though_closing_it_was_given_up_or_asked_twice(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with opened("postgres", tmp_path, request) as open_one:
        store = await open_one(EMBEDDER)
        assert isinstance(store, PostgresStore)
        await asyncio.gather(store.count(), store.count())
        async with store._in_turn(60) as busy:
            given_up = asyncio.create_task(store.close())
            await asyncio.sleep(0.05)
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            with pytest.raises(StoreUnusable, match="closed"):
                await asyncio.wait_for(store.count(), 10)
            both = [asyncio.create_task(store.close()) for _ in range(2)]
            await asyncio.sleep(0.05)
        await asyncio.wait_for(asyncio.gather(*both), 10)
        assert busy.closed
        with pytest.raises(StoreUnusable, match="closed"):
            await asyncio.wait_for(store.count(), 10)


async def test_a_connection_that_was_left_amid_a_copy_is_given_to_nobody(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with opened("postgres", tmp_path, request) as open_one:
        store = await open_one(EMBEDDER)
        assert isinstance(store, PostgresStore)
        with contextlib.suppress(asyncio.CancelledError):
            async with store._in_turn(60) as connection, connection.cursor() as cursor:
                copy = cursor.copy("copy checkstream.meta from stdin")
                await copy.__aenter__()  # whose end a second cancellation kept from being reached
                raise asyncio.CancelledError
        assert list(await asyncio.gather(store.count(), store.count(), store.count())) == [0, 0, 0]


async def test_a_closed_store_says_so(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    async with opened("postgres", tmp_path, request) as open_one:
        store = await open_one(EMBEDDER)
        await store.close()
        for _ in range(2):
            with pytest.raises(StoreUnusable, match="closed"):
                await asyncio.wait_for(store.count(), 10)


@pytest.mark.parametrize(
    "url", ["postgresql://127.0.0.1:1/none", "postgresql://[", "postgresql://u:secret@127.0.0.1:1/x"]
)
async def test_a_server_that_is_not_there_is_told_without_the_password(url: str) -> None:
    with pytest.raises(StoreUnusable, match="can't be used") as caught:
        await PostgresStore.open(url, EMBEDDER.name, EMBEDDER.dimensions)
    assert "secret" not in str(caught.value)
