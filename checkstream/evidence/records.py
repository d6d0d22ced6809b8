"""The words of evidence: a document, its chunks, and what a search found. Frozen; offsets are code points."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from checkstream.grounding.terms import Passage


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a document, small enough to be embedded and to be read by a judge."""

    id: str
    """What `chunk_id` says of text and source."""
    source: str
    text: str
    headings: tuple[str, ...] = ()
    """Of the section that it begins in, the document's title first."""
    start: int
    """Where it begins in the cleaned document."""
    end: int

    @property
    def searched(self) -> str:
        """What is indexed and embedded: the headings say what the text is about."""
        return "\n".join((" > ".join(self.headings), self.text)) if self.headings else self.text

    def passage(self) -> Passage:
        """Return it as verifiers read it."""
        place = {"headings": " > ".join(self.headings), "start": str(self.start), "end": str(self.end)}
        return Passage(id=self.id, text=self.text, source=self.source, metadata=place)


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A document that is in a store whole."""

    source: str
    """Its address or path, unique in a store."""
    digest: str
    """Of its bytes as they were fetched, and of how they were cut: another one means that it is to be read anew."""
    chunks: int = 0


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk that a search found."""

    chunk: Chunk
    score: float
    """The search's own; scores of two searches can't be compared."""


def chunk_id(text: str, source: str) -> str:
    """Return the sha256 of source and text, white space aside: the same text of the same source is the same chunk."""
    plain = " ".join(text.split())
    return hashlib.sha256(f"{source}\x00{plain}".encode(errors="surrogatepass")).hexdigest()


def snapshot_id(chunk_ids: Iterable[str], embedder: str) -> str:
    """Return what names a state of a store: equal exactly where the same chunks are searched with the same vectors."""
    digest = hashlib.sha256(f"{embedder}\n".encode())
    for each in sorted(chunk_ids):
        digest.update(f"{each}\n".encode())
    return digest.hexdigest()


def ordered(hits: Iterable[Hit], size: int) -> list[Hit]:
    """Return the best hits, equal ones by id, so that the order in which a store computes shows nowhere."""
    return sorted(hits, key=lambda hit: (-round(hit.score, 6), hit.chunk.id))[:size]
