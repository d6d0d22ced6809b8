"""Texts with marked entities: the one form of every source, silver or generated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec


class Span(msgspec.Struct, frozen=True, array_like=True):
    """One entity."""

    start: int
    """In characters of the text."""
    end: int
    entity: str


class Marked(msgspec.Struct, frozen=True):
    """A text and the entities in it, in order, none overlapping."""

    text: str
    spans: tuple[Span, ...]


def write_marked(path: Path, texts: Iterable[Marked]) -> None:
    """Write JSON lines; a cut-off leaves no half file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    with beside.open("wb") as lines:
        for text in texts:
            lines.write(msgspec.json.encode(text) + b"\n")
    beside.replace(path)


def read_marked(path: Path) -> Iterator[Marked]:
    """Yield what `write_marked` wrote."""
    decoder = msgspec.json.Decoder(Marked)
    with path.open("rb") as lines:
        for line in lines:
            yield decoder.decode(line)
