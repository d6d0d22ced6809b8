"""Documents in an S3 bucket: listed page by page, and fetched piece by piece, each within bounds.

fsspec says with which rights and where (its own configuration, and that of AWS). Its calls are not used: they list
until the server says that this was all, and read whole whatever the server sends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from typing import Any, TypeVar

from checkstream.errors import DocumentUnreadable, EvidenceError, SourceRefused

_T = TypeVar("_T")

MAX_PAGES = 10_000
"""Of a listing: ten million objects, whether they are documents or not."""
_FETCH_S = 120.0
_PAGE_S = 60.0
_PIECE_BYTES = 1 << 16


class Objects:
    """Reads buckets. Its connections live on fsspec's own event loop."""

    def __init__(self, scheme: str) -> None:
        """Connect at the first call.

        Raises:
            EvidenceError: what it needs is not installed.
        """
        try:
            import fsspec  # noqa: PLC0415 - of an extra

            options = {"config_kwargs": {"http_session_cls": _staying()}}
            self._files = fsspec.filesystem(scheme, skip_instance_cache=True, **options)
        except ImportError as error:
            raise EvidenceError(f"`{scheme}://` needs the extra `checkstream[ingest]`; install it") from error
        self._scheme = scheme

    async def listed(self, source: str) -> AsyncGenerator[str]:
        """Yield the addresses of the objects below `source`, or its own if it is one itself.

        Raises:
            SourceRefused: there are too many.
            EvidenceError: they can't be listed to their end.
        """
        bucket, key, _ = self._files.split_path(source)
        key = key.strip("/")
        asked: dict[str, object] = {"Bucket": bucket, "Prefix": f"{key}/" if key else ""}
        tokens: set[str] = set()
        found = False
        for _ in range(MAX_PAGES):
            page = await self._page(source, asked)
            for one in page.get("Contents", ()):
                found = True
                yield f"{self._scheme}://{bucket}/{one['Key']}"
            if not page.get("IsTruncated"):
                if not found and key and await self._is_there(bucket, key):
                    yield f"{self._scheme}://{bucket}/{key}"
                return
            token = str(page.get("NextContinuationToken"))
            if token in tokens:
                raise EvidenceError(f"`{source}` can't be listed: its server begins again and again; check the server")
            tokens.add(token)
            asked["ContinuationToken"] = token
        raise SourceRefused(f"`{source}` holds too many objects; give its parts")

    async def fetch(self, address: str, limit: int) -> tuple[bytes, str]:
        """Return an object and what its server says it is.

        Raises:
            DocumentUnreadable: it can't be had, or has more than `limit` bytes.
        """
        bucket, key, _ = self._files.split_path(address)
        try:
            return await self._there(self._fetched(bucket, key, limit), _FETCH_S)
        except DocumentUnreadable:
            raise
        except Exception as error:  # the store's libraries have many errors, without a tree
            raise DocumentUnreadable(f"it can't be fetched: {_short(error)}; check the rights") from error

    async def _page(self, source: str, asked: dict[str, object]) -> dict[str, Any]:
        try:
            return await self._there(self._listed(asked), _PAGE_S)
        except Exception as error:  # the store's libraries have many errors, without a tree
            raise EvidenceError(
                f"`{source}` can't be listed: {_short(error)}; check the rights and the name"
            ) from error

    async def _is_there(self, bucket: str, key: str) -> bool:
        page = await self._page(f"{self._scheme}://{bucket}/{key}", {"Bucket": bucket, "Prefix": key, "MaxKeys": 1})
        return any(one["Key"] == key for one in page.get("Contents", ()))

    # --- on fsspec's loop

    async def _there(self, work: Awaitable[_T], limit_s: float) -> _T:
        async def timed() -> _T:
            async with asyncio.timeout(limit_s):
                return await work

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(timed(), self._files.loop))

    async def _listed(self, asked: dict[str, object]) -> dict[str, Any]:
        client = await self._files.set_session()
        page: dict[str, Any] = await client.list_objects_v2(**asked, **self._files.req_kw)
        return page

    async def _fetched(self, bucket: str, key: str, limit: int) -> tuple[bytes, str]:
        client = await self._files.set_session()
        response = await client.get_object(Bucket=bucket, Key=key, **self._files.req_kw)
        data = bytearray()
        async with response["Body"] as body:
            async for piece in body.iter_chunks(_PIECE_BYTES):
                data += piece
                if len(data) > limit:
                    raise DocumentUnreadable(f"it has more than the {limit} bytes allowed; split it")
        return bytes(data), str(response.get("ContentType", ""))


def _staying() -> type[object]:
    """Return the class of connections to AWS that follow no redirect, which could lead inside.

    What AWS itself means by one, another region, is read from the answer.

    Raises:
        ImportError: the library is not installed.
    """
    import aiohttp  # noqa: PLC0415 - with what follows
    from aiobotocore.httpsession import AIOHTTPSession  # noqa: PLC0415 - of an extra

    class Unled:
        def __init__(self, session: aiohttp.ClientSession) -> None:
            self._session = session

        async def request(self, method: str, **options: Any) -> aiohttp.ClientResponse:
            return await self._session.request(method, allow_redirects=False, **options)

    class Staying(AIOHTTPSession):  # type: ignore[misc]
        async def _get_session(self, proxy_url: str | None) -> Unled:
            return Unled(await super()._get_session(proxy_url))

    return Staying


def _short(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]
