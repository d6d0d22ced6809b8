"""Evidence for a claim: by its words, by its meaning, and both fused."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from checkstream.evidence.records import Hit
from checkstream.evidence.store import Store
from checkstream.grounding.fusion import merged, reciprocal_rank
from checkstream.grounding.terms import Passage
from checkstream.scoring.embedding import Embedder

KEYWORD_SIZE = 10
VECTOR_SIZE = 5
DEPTH = 50
"""How many of each list are fused: one that both searches hold for middling is better than one that only one found."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What both searches found, each the best first."""

    keyword: tuple[Hit, ...]
    vector: tuple[Hit, ...]

    def passages(self) -> list[Passage]:
        """Return all of it as an audit lists it: keywords first, each chunk and each text once."""
        passages = ([hit.chunk.passage() for hit in hits] for hits in (self.keyword, self.vector))
        return merged(*passages, id_of=lambda passage: passage.id, text_of=lambda passage: passage.text)

    def fused(self, size: int) -> list[Hit]:
        """Return the best of both by reciprocal rank, equal ones by id; the score of a hit is that of its ranks."""
        chunks = {hit.chunk.id: hit.chunk for hit in (*self.keyword, *self.vector)}
        ranked = reciprocal_rank([[hit.chunk.id for hit in hits] for hits in (self.keyword, self.vector)])
        return [Hit(chunk=chunks[identity], score=score) for identity, score in ranked[:size]]


class Retriever:
    """Searches one store with the embedder that made its vectors."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        """Search `store`.

        Raises:
            ValueError: the store holds the vectors of another embedder.
        """
        if store.embedder != embedder.name:
            raise ValueError(f"the store holds the vectors of `{store.embedder}`, not of `{embedder.name}`")
        self.store = store
        self._embedder = embedder

    async def search(self, text: str, *, keyword: int = KEYWORD_SIZE, vector: int = VECTOR_SIZE) -> Found:
        """Return what both searches find for a claim.

        Args:
            text: the claim.
            keyword: how many by words.
            vector: how many by meaning.

        Raises:
            StoreUnusable: the store can't be searched.
            ScoringError: the claim could not be embedded.
        """
        return (await self.search_all([text], keyword=keyword, vector=vector))[0]

    async def search_all(
        self, texts: Sequence[str], *, keyword: int = KEYWORD_SIZE, vector: int = VECTOR_SIZE
    ) -> list[Found]:
        """Return what both searches find for each claim, in their order; embedding many at once is quicker.

        Raises:
            StoreUnusable: the store can't be searched.
            ScoringError: the claims could not be embedded.
        """
        vectors = await self._embedder.embed(texts)
        found = []
        for text, row in zip(texts, vectors, strict=True):
            words, near = await asyncio.gather(self.store.keyword(text, keyword), self.store.vector(row, vector))
            found.append(Found(keyword=tuple(words), vector=tuple(near)))
        return found

    async def hybrid(self, text: str, size: int = KEYWORD_SIZE) -> list[Hit]:
        """Return the best chunks for a claim, both searches fused.

        Raises:
            StoreUnusable: the store can't be searched.
            ScoringError: the claim could not be embedded.
        """
        return (await self.search(text, keyword=DEPTH, vector=DEPTH)).fused(size)
