"""Rebuild the model `embedding` from a package's weights, and measure what INT8 changes.

    python -m models.training.embedding    writes models/embedding, with its card

Nothing is trained, so nothing is random. The texts that it is measured on are the pool's.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from checkstream.scoring.embedding import HashingEmbedder
from models.training import corpus
from models.training.embedding.card import card
from models.training.embedding.measure import SETS, compared, drift, retrieval, tasks
from models.training.embedding.ship import NAME, encoder, ship
from models.training.export import MODELS


def main() -> int:
    """Do what the command line asks; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m models.training.embedding", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=corpus.data_folder(), help="folder of the pool of labelled data")
    asked = parser.parse_args()
    ship()
    small, full = encoder(int8=True), encoder(int8=False)
    texts = compared(asked.data)
    found = [
        retrieval(task, embedder)
        for task in tasks(asked.data, SETS)
        for embedder in (small, full, HashingEmbedder(small.dimensions))
    ]
    (MODELS / NAME / "CARD.md").write_text(card(drift(texts, small, full), found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
