"""A listener for who watches a process that has no other for it: what it counts, and whether it lives."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from aiohttp.web import BaseRequest, Response

from checkstream.config import Address
from checkstream.errors import CallerUnknown
from checkstream.listen import Callers, Hosts, Listener, Times
from checkstream.listen.tls import ServerTls
from checkstream.telemetry.metrics import CONTENT_TYPE

_TIMES = Times(header_s=10.0, write_s=30.0)
_LISTED = "there are /metrics, /livez and /readyz\n"


@contextlib.asynccontextmanager
async def serve_metrics(
    address: Address, render: Callable[[], Awaitable[bytes]], *, token: str | None = None, tls: ServerTls | None = None
) -> AsyncIterator[str]:
    """Serve `/metrics`, `/livez` and `/readyz` meanwhile, and yield the address.

    Args:
        address: Where.
        render: Returns the metrics.
        token: Must come with who asks for metrics; None: nobody is asked for one.
        tls: Its certificate; None: it speaks in the clear.

    Raises:
        OSError: the address can't be bound.
    """
    callers = Callers(None if token is None else {"admin": token})

    async def respond(request: BaseRequest) -> Response:
        path = request.rel_url.raw_path
        if request.method != "GET" or path not in ("/metrics", "/livez", "/readyz"):
            return Response(status=404, text=_LISTED)
        if path != "/metrics":
            return Response(text="ok\n")
        try:
            await callers.identify(request)
        except CallerUnknown:
            return Response(status=401, text="no valid token; send it as `Authorization: Bearer TOKEN`\n")
        return Response(body=await render(), headers={"content-type": CONTENT_TYPE})

    listener = Listener(respond, _TIMES, Hosts() if token is None else None, tls=tls)
    await listener.open(address)
    try:
        yield str(listener.address)
    finally:
        await listener.close()
