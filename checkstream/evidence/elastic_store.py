"""Evidence in Elasticsearch 9, shared by many machines.

Two indexes: the chunks, and the documents that are there whole. Words are ranked by the engine's own BM25 over the
terms of `analysis`; vectors are compared one by one (`flat`), since a graph of them would find other chunks than the
other stores do. Both lists are fused by whoever asked: fusion in the engine needs a licence.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from checkstream.errors import StoreUnusable
from checkstream.evidence import analysis
from checkstream.evidence.columns import facts
from checkstream.evidence.elastic import client_of, make_index, told, write
from checkstream.evidence.records import Chunk, Document, Hit, ordered, snapshot_id
from checkstream.evidence.store import SPARE

if TYPE_CHECKING:
    from elasticsearch import AsyncElasticsearch

DEFAULT_INDEX = "checkstream-evidence"
_BATCH = 200
"""Chunks of one bulk request: some megabytes with their vectors."""
_PAGE = 5_000
_CANDIDATES = 100
_SETTINGS = {
    "number_of_shards": 1,  # the rarity of a word is counted by shard
    "analysis": {"analyzer": {"terms": {"type": "custom", "tokenizer": "whitespace"}}},
}
_DOCUMENTS = {
    "dynamic": "strict",
    "properties": {"source": {"type": "keyword"}, "digest": {"type": "keyword"}, "chunks": {"type": "integer"}},
}


class ElasticStore:
    """Chunks in one index, documents in another beside it. Made by `open`."""

    def __init__(self, client: AsyncElasticsearch, index: str, embedder: str, dimensions: int) -> None:
        """Take a client."""
        self.embedder = embedder
        self.dimensions = dimensions
        self._client = client
        self._index = index
        self._records = f"{index}-documents"
        self._writes = 1
        self._shown = 0
        """How many of them are searchable."""

    @classmethod
    async def open(
        cls, url: str, embedder: str, dimensions: int, *, api_key: str | None = None, authority: str | None = None
    ) -> Self:
        """Open the store, and make its indexes where there are none.

        Args:
            url: of the cluster; its path, if it has one, names the index.
            embedder: whose vectors are in it.
            dimensions: how long they are, at most 4,096.
            api_key: sent with each request.
            authority: file with the certificate of who signed the cluster's, if it is one of your own.

        Raises:
            StoreUnusable: the cluster can't be used, or the index holds the vectors of another embedder.
        """
        client, index = client_of(url, api_key=api_key, authority=authority)
        store = cls(client, index or DEFAULT_INDEX, embedder, dimensions)
        try:
            async with told():
                await make_index(client, store._index, store._mappings(), _SETTINGS)
                await make_index(client, store._records, _DOCUMENTS, {"number_of_shards": 1})
            await store._require_own()
        except BaseException:
            await client.close()
            raise
        return store

    async def put(self, document: Document, chunks: Sequence[Chunk], vectors: NDArray[np.float32]) -> None:
        """Keep a document in place of what was there of its source; its record is written last."""
        async with told():
            for at in range(0, len(chunks), _BATCH):
                part = zip(chunks[at : at + _BATCH], vectors[at : at + _BATCH], strict=True)
                await write(self._client, self._index, {chunk.id: _source(chunk, vector) for chunk, vector in part})
            await self._remove(document.source, [chunk.id for chunk in chunks])
            record = {"source": document.source, "digest": document.digest, "chunks": len(chunks)}
            await self._client.index(index=self._records, id=_record_id(document.source), document=record)

    async def delete(self, source: str) -> None:
        """Remove a document and its chunks, its record first."""
        async with told():
            await self._client.options(ignore_status=404).delete(index=self._records, id=_record_id(source))
            await self._remove(source, [])

    async def documents(self) -> list[Document]:
        """Return the documents, in order of their sources."""
        found = [
            Document(source=hit["_source"]["source"], digest=hit["_source"]["digest"], chunks=hit["_source"]["chunks"])
            async for hit in self._all(self._records, "source", read=True)
        ]
        return sorted(found, key=lambda document: document.source)

    async def count(self) -> int:
        """Return the number of chunks."""
        async with told():
            await self._settle()
            return int((await self._client.count(index=self._index))["count"])

    async def snapshot(self) -> str:
        """Return what names this state of the store."""
        return snapshot_id([hit["_id"] async for hit in self._all(self._index, "id", read=False)], self.embedder)

    async def keyword(self, text: str, size: int) -> list[Hit]:
        """Return the chunks that say most of the words of a text, by BM25."""
        wanted = analysis.query_terms(text)
        if not wanted:
            return []
        async with told():
            await self._settle()
            query = {"match": {"terms": {"query": " ".join(wanted), "operator": "or"}}}
            answer = await self._client.search(index=self._index, query=query, size=size + SPARE)
        return ordered((Hit(chunk=_chunk(hit), score=float(hit["_score"])) for hit in answer["hits"]["hits"]), size)

    async def vector(self, vector: NDArray[np.float32], size: int) -> list[Hit]:
        """Return the chunks with the closest vectors."""
        if not vector.any():
            return []
        wanted = size + SPARE
        async with told():
            await self._settle()
            knn = {
                "field": "embedding",
                "query_vector": [float(value) for value in vector],
                "k": wanted,
                "num_candidates": max(wanted, _CANDIDATES),
            }
            answer = await self._client.search(index=self._index, knn=knn, size=wanted)
        hits = answer["hits"]["hits"]
        # The engine tells (1 + product) / 2, which is never negative.
        return ordered((Hit(chunk=_chunk(hit), score=2 * float(hit["_score"]) - 1) for hit in hits), size)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _mappings(self) -> dict[str, Any]:
        vector = {
            "type": "dense_vector",
            "dims": self.dimensions,
            "index": True,
            "similarity": "dot_product",
            "index_options": {"type": "flat"},
        }
        return {
            "dynamic": "strict",
            "_meta": facts(self.embedder, self.dimensions),
            "_source": {"excludes": ["terms", "embedding"]},
            "properties": {
                "id": {"type": "keyword"},
                "source": {"type": "keyword"},
                "content": {"type": "text"},
                "headings": {"type": "keyword", "index": False},
                "start": {"type": "integer", "index": False},
                "end": {"type": "integer", "index": False},
                "terms": {"type": "text", "analyzer": "terms"},
                "embedding": vector,
            },
        }

    async def _require_own(self) -> None:
        """Refuse an index of another version or another embedder.

        Raises:
            StoreUnusable: it is one.
        """
        async with told():
            answer = await self._client.indices.get_mapping(index=self._index)
        found = next(iter(answer.values()))["mappings"].get("_meta", {})
        if found != facts(self.embedder, self.dimensions):
            raise StoreUnusable(
                f"the index `{self._index}` holds the vectors of `{found.get('embedder')}` or is of another version; "
                "ingest into another index, or name that embedder"
            )

    async def _remove(self, source: str, but: Sequence[str]) -> None:
        """Remove the chunks of a source that are not among those ids."""
        await self._client.indices.refresh(index=self._index)
        await self._client.delete_by_query(
            index=self._index,
            query={"bool": {"filter": [{"term": {"source": source}}], "must_not": [{"ids": {"values": list(but)}}]}},
            conflicts="proceed",
        )
        self._writes += 1

    async def _settle(self) -> None:
        """Make what was written searchable; a cluster does that by itself, a second later."""
        if self._shown < self._writes:
            writes = self._writes  # what is written while this waits is not shown by it
            await self._client.indices.refresh(index=f"{self._index},{self._records}")
            self._shown = max(self._shown, writes)

    async def _all(self, index: str, key: str, *, read: bool) -> AsyncIterator[Mapping[str, Any]]:
        """Yield everything in an index, page by page."""
        last: list[Any] | None = None
        while True:
            async with told():
                await self._settle()
                answer = await self._client.search(
                    index=index, sort=[{key: "asc"}], search_after=last, size=_PAGE, source=read
                )
            hits = answer["hits"]["hits"]
            for hit in hits:
                yield hit
            if len(hits) < _PAGE:
                return
            last = hits[-1]["sort"]


def _record_id(source: str) -> str:
    """Return the id of a document's record: ids are at most 512 bytes."""
    return snapshot_id([source], "")


def _source(chunk: Chunk, vector: NDArray[np.float32]) -> dict[str, Any]:
    """Return what is indexed of a chunk; a vector of zeros has no place among those of length 1."""
    fields: dict[str, Any] = {
        "id": chunk.id,
        "source": chunk.source,
        "content": chunk.text,
        "headings": list(chunk.headings),
        "start": chunk.start,
        "end": chunk.end,
        "terms": " ".join(analysis.terms(chunk.searched)),
    }
    if vector.any():
        fields["embedding"] = [float(value) for value in vector]
    return fields


def _chunk(hit: Mapping[str, Any]) -> Chunk:
    found = hit["_source"]
    return Chunk(
        id=hit["_id"],
        source=found["source"],
        text=found["content"],
        headings=tuple(found["headings"]),
        start=found["start"],
        end=found["end"],
    )
