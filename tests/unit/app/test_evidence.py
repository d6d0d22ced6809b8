"""The embedder of evidence is the model that is shipped, said so where it is missing, and never part of `serve`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from checkstream.app.evidence import evidence_embedder, open_evidence, sentence_encoder, tokenise_of
from checkstream.app.force import load
from checkstream.app.models import labels_of
from checkstream.config import EvidenceSettings, bundled, default_config
from checkstream.errors import ConfigError, StoreUnusable
from checkstream.evidence.chunking import Cutting, chunks, words
from checkstream.scoring.embedding import HashingEmbedder
from checkstream.scoring.manifest import ModelKind
from checkstream.scoring.provenance import described_models
from checkstream.scoring.sentence_encoder import SentenceEncoder

CLAIM = "The refund is paid within 30 days."
TEXTS = (CLAIM, "You get your money back in a month.", "Penguins live in the south.")


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return sentence_encoder()


async def test_the_shipped_model_finds_a_paraphrase_that_shares_no_word(encoder: SentenceEncoder) -> None:
    vectors = await encoder.embed(TEXTS)
    assert vectors.shape == (3, 384)
    cosines = vectors @ vectors[0]
    assert cosines[1] > 0.5
    assert cosines[2] < 0.2
    hashed = await HashingEmbedder().embed(TEXTS)
    assert abs(float(hashed[1] @ hashed[0])) < 0.2


async def test_its_vectors_are_those_of_the_published_model(encoder: SentenceEncoder) -> None:
    """First numbers of float32 vectors, as the recipe's own float32 graph gives them."""
    vectors = await encoder.embed(TEXTS)
    published = json.loads(Path(__file__).with_name("minilm_vectors.json").read_text())
    for vector, other in zip(vectors, np.array(published, np.float32), strict=True):
        assert float(vector @ other) > 0.99


def test_chunks_are_measured_in_the_tokens_of_who_reads_them(encoder: SentenceEncoder) -> None:
    assert tokenise_of(HashingEmbedder()) is words
    text = "Antidisestablishmentarianism notwithstanding, reimbursement is straightforward. " * 60
    tokenise = tokenise_of(encoder)
    found = chunks(text, "a", tokenise, Cutting(size=100, overlap=10))
    assert len(tokenise(text)) > 1.5 * len(words(text))
    assert all(len(tokenise(chunk.text)) <= 100 for chunk in found)


async def test_a_store_that_another_embedder_filled_is_refused(tmp_path: Path, encoder: SentenceEncoder) -> None:
    settings = EvidenceSettings(store=f"sqlite:{tmp_path}/evidence.db", embedder="hashing")
    hashing = evidence_embedder(settings.embedder)
    assert isinstance(hashing, HashingEmbedder)
    await (await open_evidence(settings, hashing)).close()
    with pytest.raises(StoreUnusable, match=hashing.name):
        await open_evidence(settings, encoder)


def test_without_the_model_the_way_out_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models").mkdir()
    monkeypatch.setattr("checkstream.app.evidence.bundled", lambda kind: tmp_path / kind)
    shutil.copy(bundled("models") / "manifest.json", tmp_path / "models")
    with pytest.raises(ConfigError, match=r"can't be read.*\{embedder: hashing\}"):
        evidence_embedder()
    (tmp_path / "models" / "embedding").mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        data = bytearray((bundled("models") / "embedding" / name).read_bytes())
        data[len(data) // 2] ^= 1
        (tmp_path / "models" / "embedding" / name).write_bytes(data)
    with pytest.raises(ConfigError, match="sha256 differs"):
        evidence_embedder()
    assert isinstance(evidence_embedder("hashing"), HashingEmbedder)


def test_serve_does_not_load_it_and_no_policy_can_ask_for_it() -> None:
    described = described_models()
    assert described["embedding"].entry.kind is ModelKind.EMBEDDING
    opened = {model.entry.name for model in load(lambda: default_config("http://127.0.0.1:1")).models}
    assert "injection" in opened
    assert "embedding" not in opened
    assert not [label for label in labels_of(described.values()) if label.name.startswith("embedding")]
