"""Opens the evidence that a configuration names: its store, and the one embedder that everything searches it with."""

from __future__ import annotations

from checkstream.config import EvidenceSettings, reveal
from checkstream.evidence.opening import open_store
from checkstream.evidence.store import Store
from checkstream.scoring.embedding import Embedder, HashingEmbedder


def evidence_embedder() -> Embedder:
    """Return the embedder of evidence: who ingests and who searches have to have the same."""
    return HashingEmbedder()


async def open_evidence(settings: EvidenceSettings, embedder: Embedder) -> Store:
    """Open the store of evidence.

    Raises:
        ConfigError: its secret is not there.
        StoreUnusable: it can't be used.
    """
    secret = None if settings.secret is None else reveal(settings.secret)
    return await open_store(settings.store, embedder, secret=secret, authority=settings.authority)
