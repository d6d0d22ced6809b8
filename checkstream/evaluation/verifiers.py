"""Verifiers by name, on trial: `verifier:embedded`, `verifier:meaning`, or `verifier:` and a model of pairs."""

from __future__ import annotations

from pathlib import Path

from checkstream.app.evidence import sentence_encoder
from checkstream.app.verifiers import open_pairs
from checkstream.errors import ModelError
from checkstream.grounding.cross_encoder import CrossEncoderVerifier
from checkstream.grounding.embedded import EmbeddedVerifier
from checkstream.grounding.meaning import MeaningVerifier
from checkstream.grounding.terms import Verifier

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
    try:
        return CrossEncoderVerifier(open_pairs(name, own))
    except ModelError as error:
        raise ModelError(f"{error}; `{PREFIX}{EMBEDDED}` and `{PREFIX}{MEANING}` need none") from error
