"""Opens the evidence that a configuration names: its store, and the one embedder that everything searches it with."""

from __future__ import annotations

from checkstream.config import EmbedderKind, EvidenceSettings, bundled, reveal
from checkstream.errors import ConfigError, Fault, ModelError
from checkstream.evidence.chunking import Tokenise, words
from checkstream.evidence.opening import open_store
from checkstream.evidence.store import Store
from checkstream.gate import bedrock
from checkstream.gate.bedrock import TitanEmbedder
from checkstream.scoring.catalog import load_models
from checkstream.scoring.embedding import Embedder, HashingEmbedder
from checkstream.scoring.sentence_encoder import SentenceEncoder

_MODEL = "embedding"
_TITAN_S = 60.0


def evidence_embedder(kind: EmbedderKind = "model") -> Embedder:
    """Return the embedder of evidence: who ingests and who searches have to have the same.

    Loading the model blocks for half a second; it is loaded where evidence is used, and nowhere else.

    Raises:
        ConfigError: the model is not there, or can't be used.
        GateError: Bedrock can't be used.
    """
    match kind:
        case "hashing":
            return HashingEmbedder()
        case "titan":
            return TitanEmbedder(bedrock.client(_TITAN_S))
        case "model":
            return sentence_encoder()


def sentence_encoder() -> SentenceEncoder:
    """Load the embedding model that is shipped.

    Raises:
        ConfigError: it is not there, or can't be used.
    """
    try:
        (model,) = load_models(bundled("models"), (_MODEL,))
        return SentenceEncoder(model)
    except ModelError as error:
        advice = "`evidence: {embedder: hashing}` does without; it knows no meanings, and documents are ingested anew"
        raise ConfigError((Fault(file=f"model {_MODEL}", reason=str(error), advice=advice),)) from error


def tokenise_of(embedder: Embedder) -> Tokenise:
    """Return how chunks are measured: in the tokens of the model that reads them, else in words."""
    return embedder.tokens if isinstance(embedder, SentenceEncoder) else words


async def open_evidence(settings: EvidenceSettings, embedder: Embedder) -> Store:
    """Open the store of evidence.

    Raises:
        ConfigError: its secret is not there.
        StoreUnusable: it can't be used.
    """
    secret = None if settings.secret is None else reveal(settings.secret)
    return await open_store(settings.store, embedder, secret=secret, authority=settings.authority)
