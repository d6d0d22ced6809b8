"""Files of an operator's models, brought from where they are to this disk: within bounds, hashed as they come.

Nothing here parses what it brings. INVARIANT: a file never grows past its cap, whatever its server says of its size,
and no redirect leads from https to http or to another kind of place.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import IO
from urllib.parse import quote, urljoin, urlsplit

import aiohttp
import msgspec

from checkstream.config import ModelSource, require_safe_url
from checkstream.errors import ModelError

MAX_REDIRECTS = 5
_CONNECT_S, _IDLE_S = 20.0, 60.0
_CHUNK_BYTES = 1 << 20

Told = Callable[[str, int], None]
"""Hears the name of a file and how many bytes of it have come."""


class Fetched(msgspec.Struct, frozen=True):
    """A file that has come whole."""

    path: Path
    sha256: str
    bytes: int


async def fetch(source: ModelSource, base: Path, name: str, to: Path, *, limit: int, told: Told) -> Fetched:
    """Bring one file of a source.

    Args:
        source: where the file is.
        base: folder that a source of kind `path` is relative to.
        name: of the file at the source.
        to: file that is written; there is none yet. Whoever calls removes it.
        limit: bytes that it may have.
        told: hears how far it is.

    Raises:
        ModelError: it can't be had, or is too large.
    """
    digest, size = hashlib.sha256(), 0
    try:
        with to.open("xb") as file:
            async for piece in _pieces(source, base, name):
                size += len(piece)
                _refuse_over(limit, size, name)
                digest.update(piece)
                file.write(piece)
                told(name, size)
            _settle(file)
    except (OSError, aiohttp.ClientError, TimeoutError) as error:
        why = str(error) or type(error).__name__
        raise ModelError(f"file `{name}` can't be had from `{source.origin}`: {why}; check the source") from error
    return Fetched(to, digest.hexdigest(), size)


def _refuse_over(limit: int, size: int, name: str) -> None:
    if size > limit:
        raise ModelError(f"file `{name}` has more than the {limit} bytes allowed; bring a smaller one")


def _settle(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _pieces(source: ModelSource, base: Path, name: str) -> AsyncIterator[bytes]:
    if source.path is not None:
        return _from_disk(base / source.path, name)
    if source.url is not None:
        return _from_web(source.url + quote(name), {})
    url, headers = _hub_place(source, name)
    return _from_web(url, headers)


async def _from_disk(folder: Path, name: str) -> AsyncIterator[bytes]:
    with _inside(folder, name).open("rb") as file:
        while piece := await asyncio.to_thread(file.read, _CHUNK_BYTES):
            yield piece


def _inside(folder: Path, name: str) -> Path:
    root = folder.resolve()
    path = (root / name).resolve()
    if not path.is_relative_to(root):
        raise ModelError(f"file `{name}` leads outside its folder; put the file itself there")
    if not path.is_file():
        raise ModelError(f"there is no file `{name}` in `{folder}`; check the path")
    return path


async def _from_web(url: str, headers: dict[str, str]) -> AsyncIterator[bytes]:
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=_IDLE_S)
    plain = {"accept-encoding": "identity"}  # what is hashed and counted is what is sent
    async with aiohttp.ClientSession(timeout=timeout, auto_decompress=False, headers=plain, trust_env=True) as client:
        first = urlsplit(url)[:2]
        for _ in range(MAX_REDIRECTS + 1):
            own = headers if urlsplit(url)[:2] == first else {}  # a token is for its hub alone
            async with client.get(url, headers=own, allow_redirects=False) as response:
                if response.status in (301, 302, 303, 307, 308):
                    url = _next_place(url, response.headers.get("location", ""))
                    continue
                if response.status != 200:
                    raise ModelError(f"`{_shown(url)}` answered {response.status}; {_advice(response.status)}")
                async for piece in response.content.iter_chunked(_CHUNK_BYTES):
                    yield piece
                return
    raise ModelError(f"`{_shown(url)}` redirects more than {MAX_REDIRECTS} times; give the place itself")


def _next_place(url: str, location: str) -> str:
    place = urljoin(url, location)
    try:
        require_safe_url(_shown(place))  # storage behind a hub signs its urls in a query
    except ValueError as error:
        raise ModelError(f"`{_shown(url)}` redirects to where nothing is fetched from: {error}") from error
    if urlsplit(url).scheme == "https" != urlsplit(place).scheme:
        raise ModelError(f"`{_shown(url)}` redirects to `{_shown(place)}`, which is not encrypted; it must stay https")
    return place


def _shown(url: str) -> str:
    """Return the url without its query, which may be a signature."""
    return urlsplit(url)._replace(query="", fragment="").geturl()


def _advice(status: int) -> str:
    if status in (401, 403):
        return "accept the model's terms and set `HF_TOKEN`, or check your rights"
    return "check the name of the file and the revision" if status == 404 else "try again later"


def _hub_place(source: ModelSource, name: str) -> tuple[str, dict[str, str]]:
    """Return the url of a file of the hub, and the headers that go with it: the operator's token, if there is one.

    Raises:
        ModelError: the hub's library is not there.
    """
    try:
        import huggingface_hub  # noqa: PLC0415 - large, and needed for one kind of source alone
    except ImportError as error:
        raise ModelError("a `hub` source needs the package `huggingface_hub`; install it, or give a `url`") from error
    url = huggingface_hub.hf_hub_url(str(source.hub), name, revision=source.revision)
    try:
        require_safe_url(url)
    except ValueError as error:
        raise ModelError(f"the hub's address can't be used: {error}") from error
    token = huggingface_hub.get_token()
    return url, {} if token is None else {"authorization": f"Bearer {token}"}
