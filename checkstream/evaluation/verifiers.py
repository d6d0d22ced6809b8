"""Verifiers by name, on trial: `verifier:embedded`, `verifier:meaning`, or `verifier:` and a model of pairs."""

from __future__ import annotations

from pathlib import Path

from checkstream.app.evidence import sentence_encoder
from checkstream.errors import ModelError
from checkstream.grounding.cross_encoder import CrossEncoderVerifier
from checkstream.grounding.embedded import EmbeddedVerifier
from checkstream.grounding.meaning import MeaningVerifier
from checkstream.grounding.terms import Verifier
from checkstream.scoring.manifest import ModelKind
from checkstream.scoring.pairs import PairSession
from checkstream.scoring.provenance import described_models, load_described

PREFIX = "verifier:"
EMBEDDED, MEANING = "embedded", "meaning"


def open_verifier(name: str, own: Path | None) -> Verifier:
    """Open the verifier that a name behind `verifier:` stands for.

    Args:
        name: `embedded`, `meaning`, or a model of the kind `pair`.
        own: the `models.yaml` of such models.

    Raises:
        ConfigError: models.yaml holds faults, or the embedding model is missing.
        ModelError: there is no such verifier, or its model can't be used.
    """
    if name == EMBEDDED:
        return EmbeddedVerifier()
    if name == MEANING:
        return MeaningVerifier(sentence_encoder())
    pairs = {found: model for found, model in described_models(own).items() if model.entry.kind is ModelKind.PAIR}
    if name not in pairs:
        known = ", ".join(f"`{PREFIX}{each}`" for each in (EMBEDDED, MEANING, *pairs))
        raise ModelError(
            f"there is no verifier `{name}`; known: {known}, and models of the kind `pair` of a models.yaml"
        )
    return CrossEncoderVerifier(PairSession(load_described(pairs[name])))
