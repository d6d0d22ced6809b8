"""Sources -> a store that holds what they hold now: what is new is read, what is unchanged is left, what has gone goes.

Each document is kept whole or not at all, and its record says what it was read from and how; so a run that was
killed is gone on with by running it again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from enum import StrEnum
from typing import Protocol

import msgspec
import numpy as np

from checkstream.errors import DocumentUnreadable, SourceRefused
from checkstream.evidence import extraction
from checkstream.evidence.chunking import Cutting, Tokenise, chunks
from checkstream.evidence.kinds import Kind, kind_of
from checkstream.evidence.records import Document
from checkstream.evidence.sources import Fetched, Listed, Sources, covers
from checkstream.evidence.store import Store
from checkstream.scoring.embedding import Embedder

_BATCH = 64
"""Chunks that are embedded at once."""
_MAX_NAME_BYTES = 2_000
"""Of a source: stores index it, and no index takes much more."""


class Change(StrEnum):
    """What became of a document."""

    ADDED = "added"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    FAILED = "failed"
    """It can't be read now. What the store holds of it, from when it could, stays."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One document that is done with."""

    source: str
    change: Change
    chunks: int = 0
    bytes: int = 0
    reason: str = ""
    """Why it failed."""


class Extractor(Protocol):
    """Reads documents; `sandbox.Sandbox` is the one for documents of strangers."""

    async def extract(self, data: bytes, kind: Kind, media_type: str = "") -> str:
        """Return the text of a document, as Markdown.

        Raises:
            DocumentUnreadable: it can't be read.
        """
        ...


class Ingestion:
    """Brings documents into one store."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        *,
        extractor: Extractor,
        tokenise: Tokenise,
        cutting: Cutting,
        at_once: int = 2,
    ) -> None:
        """Cut documents as `cutting` says, in tokens of `tokenise`; work on so many at once."""
        self._store = store
        self._embedder = embedder
        self._extractor = extractor
        self._tokenise = tokenise
        self._cutting = cutting
        self._at_once = at_once

    async def run(self, sources: Sequence[str], reader: Sources, told: Callable[[Step], None]) -> None:
        """Bring all documents of `sources` in, and remove those of them that are no longer there.

        Nothing is removed of a source that could not be listed to its end.

        Args:
            sources: as an operator writes them.
            reader: lists and fetches them.
            told: hears of each document, as it is done with.

        Raises:
            SourceRefused: a source is not allowed or not there; those before it are done with.
            EvidenceError: a source can't be listed, or no process can be started.
            StoreUnusable: the store can't take them.
            ScoringError: the embedder fails.
        """
        known = {document.source: document.digest for document in await self._store.documents()}
        for source in sources:
            seen: set[str] = set()
            async with aclosing(reader.listed(source)) as listed:
                await self._each(listed, known, seen, told)
            for gone in sorted(each for each in known if each not in seen and covers(source, each)):
                await self._store.delete(gone)
                told(Step(source=gone, change=Change.REMOVED))

    async def _each(
        self, listed: AsyncIterator[Listed], known: dict[str, str], seen: set[str], told: Callable[[Step], None]
    ) -> None:
        """Work on several documents at once; the first failure that is not a document's own ends all."""
        turn = asyncio.Lock()

        async def work() -> None:
            while True:
                async with turn:
                    one = await anext(listed, None)
                if one is None:
                    return
                seen.add(one.source)
                told(await self._one(one, known.get(one.source)))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._at_once):
                    group.create_task(work())
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def _one(self, listed: Listed, known: str | None) -> Step:
        """Bring one document in."""
        size = 0
        try:
            if len(listed.source.encode()) > _MAX_NAME_BYTES:
                raise DocumentUnreadable(f"its name has more than {_MAX_NAME_BYTES} bytes; shorten it")  # noqa: TRY301
            fetched = await listed.fetch()
            size = len(fetched.data)
            digest = self._digest(fetched)
            if digest == known:
                return Step(source=listed.source, change=Change.UNCHANGED, bytes=size)
            kind = kind_of(listed.source, fetched.media_type, fetched.data[:1024])
            if kind is None:
                raise DocumentUnreadable("it is of no kind that is read")  # noqa: TRY301 - told like all that follows
            text = await self._extractor.extract(fetched.data, kind, fetched.media_type)
        except (DocumentUnreadable, SourceRefused) as error:
            return Step(source=listed.source, change=Change.FAILED, bytes=size, reason=str(error))
        cut = await asyncio.to_thread(chunks, text, listed.source, self._tokenise, self._cutting)
        texts = [chunk.searched for chunk in cut]
        vectors = np.zeros((len(cut), self._store.dimensions), np.float32)
        for at in range(0, len(cut), _BATCH):
            vectors[at : at + _BATCH] = await self._embedder.embed(texts[at : at + _BATCH])
        await self._store.put(Document(source=listed.source, digest=digest), cut, vectors)
        change = Change.ADDED if known is None else Change.REPLACED
        return Step(source=listed.source, change=change, chunks=len(cut), bytes=size)

    def _digest(self, fetched: Fetched) -> str:
        """Return what tells whether a document has to be read anew."""
        how = (extraction.VERSION, self._cutting.size, self._cutting.overlap, fetched.media_type)
        return hashlib.sha256(msgspec.json.encode(how) + fetched.data).hexdigest()
