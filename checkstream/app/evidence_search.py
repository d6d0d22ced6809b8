"""Evidence from the store, for answers whose request brought no documents along."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

from checkstream.app.evidence import evidence_embedder, open_evidence
from checkstream.app.force import searching_routes
from checkstream.app.profiles import Brought, Evidence
from checkstream.config import Config
from checkstream.errors import ConfigError, Fault
from checkstream.evidence.search import Retriever
from checkstream.grounding.claims import Level, checkable, claims
from checkstream.grounding.terms import Passage
from checkstream.jobs import Exchange

_CLAIMS = 16
"""Of one answer that are searched for."""
_BEST = 4
"""Chunks for each of them."""


class Searched:
    """Documents of the request, or what the store has for the claims of the answer. Implements `Evidence`."""

    def __init__(self, retriever: Retriever, routes: frozenset[str]) -> None:
        """Search by `retriever` for answers of `routes`."""
        self._retriever = retriever
        self._routes = routes

    async def passages(self, exchange: Exchange) -> Sequence[Passage]:
        """Return what an answer is held against.

        Raises:
            StoreUnusable: the store can't be searched.
            ScoringError: claims could not be embedded.
        """
        if exchange.documents or exchange.route not in self._routes:
            return exchange.documents
        found = await asyncio.to_thread(claims, exchange.answer, Level.SENTENCE)
        texts = [claim.text for claim in checkable(found)[:_CLAIMS]]
        hits = await self._retriever.search_all(texts) if texts else []
        chunks = {hit.chunk.id: hit.chunk for each in hits for hit in each.fused(_BEST)}
        return [chunk.passage() for chunk in chunks.values()]


@contextlib.asynccontextmanager
async def open_search(config: Config) -> AsyncIterator[Evidence]:
    """Open the store of evidence if a route looks there; it belongs to this event loop.

    Raises:
        ConfigError: its secret or its embedder is not there, or it was filled by another embedder.
        StoreUnusable: it can't be used.
    """
    routes = searching_routes(config)
    if not routes:
        yield Brought()
        return
    embedder = await asyncio.to_thread(evidence_embedder, config.evidence.embedder)
    store = await open_evidence(config.evidence, embedder)
    try:
        try:
            retriever = Retriever(store, embedder)
        except ValueError as error:
            advice = "ingest the documents anew, or name the embedder that they were ingested with"
            raise ConfigError((Fault(file="evidence", reason=str(error), advice=advice),)) from error
        yield Searched(retriever, routes)
    finally:
        await store.close()
