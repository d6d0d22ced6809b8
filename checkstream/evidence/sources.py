"""Where documents are: files and folders, https addresses, object stores. Lists them and fetches each within bounds.

A source is given by an operator; what lies behind it is not trusted: a folder may hold links that lead out of it or
round in circles, names that are no files, and files that never end.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from pathlib import Path, PurePosixPath
from typing import NoReturn
from urllib.parse import urlsplit

import msgspec

from checkstream.errors import DocumentUnreadable, EvidenceError, SourceRefused
from checkstream.evidence.kinds import named
from checkstream.evidence.objects import Objects
from checkstream.evidence.web import Web

STORES = ("s3",)
"""Object stores that are read."""
MAX_DOCUMENTS = 1_000_000
_FILE = "file://"


class Fetched(msgspec.Struct, frozen=True):
    """A document as it was fetched."""

    data: bytes
    media_type: str = ""
    """What its server said; empty where nobody did."""


class Listed(msgspec.Struct, frozen=True):
    """A document that a source holds."""

    source: str
    """Its own address or path."""
    fetch: Callable[[], Awaitable[Fetched]]
    """Raises DocumentUnreadable where it can't be had, SourceRefused where it may not be."""


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """How sources are read."""

    web: Web
    max_bytes: int = 64 << 20
    """Of one document."""

    def listed(self, source: str) -> AsyncGenerator[Listed]:
        """Yield the documents of a source, in order of their names.

        Raises:
            SourceRefused: the source is of no kind that is known, is not there, or holds too many documents.
            EvidenceError: it can't be listed.
        """
        scheme = urlsplit(source).scheme if "://" in source else ""
        if "::" in source:
            raise SourceRefused(f"`{source}` is a chain of sources; give the last one itself")
        if scheme in ("", "file"):
            return self._files(source.removeprefix(_FILE))
        if scheme in ("http", "https"):
            self.web.require_allowed(source)
            return self._page(source)
        if scheme in STORES:
            return self._objects(source, scheme)
        known = ", ".join(f"{each}://" for each in ("https", *STORES))
        raise SourceRefused(f"`{source}` is of no kind that is read; give a path or {known}")

    async def _page(self, url: str) -> AsyncGenerator[Listed]:
        async def fetch() -> Fetched:
            data, media_type = await self.web.fetch(url, self.max_bytes)
            return Fetched(data, media_type)

        yield Listed(url, fetch)

    async def _files(self, source: str) -> AsyncGenerator[Listed]:
        for path in await asyncio.to_thread(_paths, Path(source)):
            yield Listed(_encodable(path.as_posix()), _file_fetch(path, self.max_bytes))

    async def _objects(self, source: str, scheme: str) -> AsyncGenerator[Listed]:
        objects = Objects(scheme)
        count = 0
        found = False
        async with aclosing(objects.listed(source)) as addresses:
            async for address in addresses:
                found = True
                if named(address) is None:
                    continue
                count += 1
                if count > MAX_DOCUMENTS:
                    raise SourceRefused(f"`{source}` holds more than {MAX_DOCUMENTS} documents; give its parts")
                yield Listed(address, _object_fetch(objects, address, self.max_bytes))
        if not found:
            raise SourceRefused(f"there is nothing in `{source}`; check the name")


def covers(source: str, document: str) -> bool:
    """Tell whether a document, by its own address or path, is one that a source would list if it were there."""
    if "://" not in source or source.startswith(_FILE):
        root = PurePosixPath(source.removeprefix(_FILE)).as_posix()
        if root == ".":
            return "://" not in document and not document.startswith(("/", "../"))
    else:
        root = source
    return document == root or document.startswith(root.rstrip("/") + "/")


def _paths(root: Path) -> list[Path]:
    """Return the documents that a path means, in order.

    Raises:
        SourceRefused: there are none.
    """
    if not root.exists():
        raise SourceRefused(f"there is no `{root}`; check the path")
    if root.is_dir():
        return sorted(_walked(root))
    if named(root.name) is None:
        raise SourceRefused(f"`{root}` is no document that can be read; its name says no known kind")
    return [root]


def _walked(root: Path) -> Iterator[Path]:
    """Yield the documents below a folder; links are followed to files inside it, never to folders."""
    inside = root.resolve()
    count = 0
    for folder, folders, names in os.walk(root, onerror=_unlistable, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            path = Path(folder) / name
            if name.startswith(".") or named(name) is None:
                continue
            try:
                real = path.resolve(strict=True)
                is_document = real.is_relative_to(inside) and real.is_file()
            except (FileNotFoundError, RuntimeError):  # a link to nowhere, or round in a circle
                continue
            except OSError as error:
                _unlistable(error)
            if is_document:
                count += 1
                if count > MAX_DOCUMENTS:
                    raise SourceRefused(f"`{root}` holds more than {MAX_DOCUMENTS} documents; give its parts")
                yield path


def _unlistable(error: OSError) -> NoReturn:
    """What can't be looked at is not gone.

    Raises:
        EvidenceError: always.
    """
    name = _encodable(os.fsdecode(error.filename or ""))[:200]
    raise EvidenceError(f"`{name}` can't be listed: {error.strerror or error}; check its rights") from error


def _encodable(name: str) -> str:
    """Return a file's name as text that can be kept: bytes in it that are no UTF-8 are written out."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _file_fetch(path: Path, limit: int) -> Callable[[], Awaitable[Fetched]]:
    def read() -> Fetched:
        try:
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise DocumentUnreadable("it is no file")
                data = file.read(limit + 1)
        except OSError as error:
            raise DocumentUnreadable(f"it can't be read: {error.strerror or error}; check its rights") from error
        return Fetched(_within(data, limit))

    return lambda: asyncio.to_thread(read)


def _object_fetch(objects: Objects, address: str, limit: int) -> Callable[[], Awaitable[Fetched]]:
    async def fetch() -> Fetched:
        return Fetched(*await objects.fetch(address, limit))

    return fetch


def _within(data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise DocumentUnreadable(f"it has more than the {limit} bytes allowed; split it")
    return data
