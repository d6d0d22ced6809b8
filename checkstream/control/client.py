"""A node's way to its control server: requests that it signs, in bounded time and with bounded answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
import msgspec

from checkstream.config import ControlSettings
from checkstream.control.identity import NodeKey
from checkstream.control.tls import ClientTls
from checkstream.errors import ControlUnusable

_TIMEOUT = aiohttp.ClientTimeout(total=30, connect=10)
_MOST_BYTES = 1 << 20


class Answer(msgspec.Struct, frozen=True):
    """What the server has answered."""

    status: int
    body: bytes
    retry_after_s: float | None = None
    """When it is to be asked again, if the server says so."""

    @property
    def reason(self) -> str:
        """What it says is wrong, in one line."""
        try:
            said = msgspec.json.decode(self.body)["error"]["message"]
        except (msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError):
            said = f"it answers {self.status}"
        return " ".join(str(said).split())[:900]


class ControlClient:
    """Asks the control server as a node. Opened by `opened_client`."""

    def __init__(self, settings: ControlSettings, key: NodeKey, session: aiohttp.ClientSession, tls: ClientTls) -> None:
        """Ask by `session`, with the certificates that there are when it asks."""
        self._tls = tls
        self._url = settings.url.rstrip("/")
        self._key = key
        self._session = session

    async def post(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> Answer:
        """Send a body, signed, and return what is answered.

        Raises:
            ControlUnusable: the server can't be reached, or its answer has no end.
        """
        signed = {**(headers or {"content-type": "application/json"}), **self._key.headers("POST", path, body)}
        context = await asyncio.to_thread(self._tls.current)
        try:
            async with self._session.post(
                self._url + path, data=body, headers=signed, allow_redirects=False, ssl=context
            ) as response:
                read = bytearray()
                async for chunk in response.content.iter_chunked(1 << 16):
                    read += chunk
                    if len(read) > _MOST_BYTES:
                        raise ControlUnusable(f"the control server `{self._url}` answers without end")
                return Answer(response.status, bytes(read), _seconds(response.headers.get("retry-after", "")))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            why = str(error) or type(error).__name__
            raise ControlUnusable(f"the control server `{self._url}` can't be reached: {why}") from error


@asynccontextmanager
async def opened_client(settings: ControlSettings, key: NodeKey) -> AsyncIterator[ControlClient]:
    """Open the way to a control server.

    Raises:
        ControlUnusable: a certificate can't be read.
    """
    tls = ClientTls(settings.ca, settings.certificate, settings.certificate_key)
    await asyncio.to_thread(tls.current)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=4), timeout=_TIMEOUT) as session:
        yield ControlClient(settings, key, session, tls)


def _seconds(text: str) -> float | None:
    """Return a number of seconds of `Retry-After`; None: it is none."""
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
