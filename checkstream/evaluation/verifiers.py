"""Verifiers by name, on trial: `verifier:embedded`, `verifier:reader`, or `verifier:` and a model of pairs."""

from __future__ import annotations

from pathlib import Path

from checkstream.app.verifiers import open_pairs, open_reader
from checkstream.errors import ModelError
from checkstream.grounding.cross_encoder import CrossEncoderVerifier
from checkstream.grounding.embedded import EmbeddedVerifier
from checkstream.grounding.terms import Verifier

PREFIX = "verifier:"
EMBEDDED, READER = "embedded", "reader"


def open_verifier(name: str, own: Path | None) -> Verifier:
    """Open the verifier that a name behind `verifier:` stands for.

    Args:
        name: `embedded`, `reader`, or a model of the kind `pair`.
        own: the `models.yaml` of such models.

    Raises:
        ConfigError: models.yaml holds faults, or the model `reader` is missing.
        ModelError: there is no such verifier, or its model can't be used.
    """
    if name == EMBEDDED:
        return EmbeddedVerifier()
    if name == READER:
        return open_reader()
    try:
        return CrossEncoderVerifier(open_pairs(name, own))
    except ModelError as error:
        raise ModelError(f"{error}; `{PREFIX}{EMBEDDED}` and `{PREFIX}{READER}` need none") from error
