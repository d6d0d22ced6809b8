"""Builds the reliability gate with what this machine has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from checkstream.app.evidence import evidence_embedder
from checkstream.app.verifiers import open_reader
from checkstream.gate.ledger import Ledger
from checkstream.gate.opening import Connections
from checkstream.gate.running import Gate


def gate_of(ledger: Ledger, folder: Path, environment: Mapping[str, str], history: str = "") -> Gate:
    """Return a gate that keeps runs in `ledger`, and in `history` too where a configuration names no other.

    What configurations name is read below `folder`.
    """
    return Gate(ledger, Connections(folder, environment, _EMBEDDERS, _READER, history).open)


_EMBEDDERS = cache(evidence_embedder)
_READER = cache(open_reader)
"""Loaded once for all runs of a process."""
