"""What the store in PostgreSQL does beside what all stores do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from checkstream.errors import StoreUnusable
from checkstream.evidence.postgres_store import PostgresStore
from checkstream.evidence.records import Chunk, Document, chunk_id
from checkstream.evidence.vectors import Matrix
from checkstream.scoring.embedding import HashingEmbedder
from tests.evidence_stores import opened, postgres

__all__ = ["postgres"]

EMBEDDER = HashingEmbedder(48)


async def test_an_approximate_index_that_somebody_made_does_not_answer(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(1500, EMBEDDER.dimensions)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    texts = [f"text {number}" for number in range(len(rows))]
    chunks = [Chunk(id=chunk_id(text, "v"), source="v", text=text, start=0, end=9) for text in texts]
    oracle = Matrix([chunk.id for chunk in chunks], rows)
    async with opened("postgres", tmp_path, request) as open_one:
        store = await open_one(EMBEDDER)
        assert isinstance(store, PostgresStore)
        await store.put(Document(source="v", digest="d"), chunks, rows)
        graph = (
            "create index on checkstream.chunks using hnsw (embedding vector_ip_ops) with (m = 2, ef_construction = 4)"
        )
        for statement in (graph, "set hnsw.ef_search = 1", "set enable_seqscan = off", "set enable_sort = off"):
            await store._connection.execute(statement.encode())
        for query in rows[:30] + 0.3 * rows[30:60]:
            wanted = [chunks[place].id for place, _ in oracle.nearest(query, 5)]
            assert [hit.chunk.id for hit in await store.vector(query, 5)] == wanted


@pytest.mark.parametrize(
    "url", ["postgresql://127.0.0.1:1/none", "postgresql://[", "postgresql://u:secret@127.0.0.1:1/x"]
)
async def test_a_server_that_is_not_there_is_told_without_the_password(url: str) -> None:
    with pytest.raises(StoreUnusable, match="can't be used") as caught:
        await PostgresStore.open(url, EMBEDDER.name, EMBEDDER.dimensions)
    assert "secret" not in str(caught.value)
