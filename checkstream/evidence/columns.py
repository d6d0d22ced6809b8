"""A chunk as columns of a table, and what a store writes down of itself: the same in every engine. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from checkstream.evidence import analysis
from checkstream.evidence.records import Chunk
from checkstream.evidence.store import SCHEMA


def to_row(chunk: Chunk) -> tuple[str, str, str, str, int, int]:
    """Return the values of the columns id, source, text, headings, first, last."""
    headings = msgspec.json.encode(chunk.headings).decode()
    return chunk.id, chunk.source, chunk.text, headings, chunk.start, chunk.end


def from_row(row: Sequence[Any]) -> Chunk:
    """Return the chunk that stands in the columns that `to_row` fills."""
    identity, source, text, headings, first, last = row
    return Chunk(
        id=identity,
        source=source,
        text=text,
        headings=msgspec.json.decode(headings, type=tuple[str, ...]),
        start=first,
        end=last,
    )


def facts(embedder: str, dimensions: int) -> dict[str, str]:
    """Return what has to be the same whenever a store is opened."""
    return {
        "schema": str(SCHEMA),
        "analysis": str(analysis.VERSION),
        "embedder": embedder,
        "dimensions": str(dimensions),
    }
