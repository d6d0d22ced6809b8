"""Where chunks are kept and searched: one interface.

INVARIANT: what a search returns depends on what is in the store alone. Scores are compared to six decimals and equal
ones ordered by id, so that engines which add in another order return the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from checkstream.evidence.records import Chunk, Document, Hit

SPARE = 16
"""An engine is asked for so many more than are wanted: what it holds equal may differ in the last decimals."""
COMMON_FROM = 1_000
"""From so many chunks on, a search leaves out the words that more than half of them hold, if it has others: they decide
next to nothing, and to read where they stand is most of its time."""
SCHEMA = 2
"""Of the tables and indexes of all stores: another one is not read."""


class Store(Protocol):
    """Keeps documents as chunks with their vectors. Implementations: `SqliteStore`, `ElasticStore`, `PostgresStore`.

    All methods raise StoreUnusable where the store can't do what it is asked.
    """

    embedder: str
    """Name of the embedder whose vectors are in it."""
    dimensions: int

    async def put(self, document: Document, chunks: Sequence[Chunk], vectors: NDArray[np.float32]) -> None:
        """Keep a document in place of what was there of its source.

        Interrupted at any moment, either the old document or the new one is what `documents` tells, and another `put`
        mends the rest.

        Args:
            document: its record; `chunks` of it is set by the store.
            chunks: its chunks, with different ids.
            vectors: float32[chunk, dimension], rows of length 1, or of zeros for what no vector search shall find.
        """
        ...

    async def delete(self, source: str) -> None:
        """Remove a document and its chunks; nothing happens where there is none."""
        ...

    async def documents(self) -> list[Document]:
        """Return the documents that are in it whole, in order of their sources."""
        ...

    async def count(self) -> int:
        """Return the number of chunks."""
        ...

    async def snapshot(self) -> str:
        """Return what `records.snapshot_id` says of its chunks and its embedder."""
        ...

    async def keyword(self, text: str, size: int) -> list[Hit]:
        """Return the chunks that say most of the words of a text, the best first, by BM25."""
        ...

    async def vector(self, vector: NDArray[np.float32], size: int) -> list[Hit]:
        """Return the chunks whose vectors are closest to one of float32[dimension], by their inner product, exactly."""
        ...

    async def close(self) -> None:
        """Let go of files and connections."""
        ...
