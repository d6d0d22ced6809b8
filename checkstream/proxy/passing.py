"""A request that a route marks as unguarded: sent on, and its answer back as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from aiohttp.web import BaseRequest, Response, StreamResponse

from checkstream.errors import AuditError, UpstreamError
from checkstream.listen import Connection
from checkstream.proxy.accept import Route
from checkstream.proxy.ids import identify
from checkstream.proxy.outgoing import Outgoing

Record = Callable[[int], Awaitable[None]]
"""Puts on record that a request was passed on, and which status it got."""


class Passing:
    """One unguarded request; the caller's leaving cancels the upstream."""

    def __init__(self, request: BaseRequest, connection: Connection, headers: dict[str, str], record: Record) -> None:
        """Answer `request` with the upstream's answer and `headers` besides; `record` is told its status first."""
        self._request = request
        self._connection = connection
        self._headers = {**headers, "server": "checkstream"}
        self._record = record
        self._response: StreamResponse | None = None
        self._failure: UpstreamError | AuditError | None = None

    async def run(self, route: Route, outgoing: Outgoing, body: bytes) -> StreamResponse:
        """Return the response, sent already.

        Raises:
            UpstreamError: it failed before its first byte.
            AuditError: the request can't be recorded; nothing was sent.
        """
        async with asyncio.TaskGroup() as tasks:
            copying = tasks.create_task(self._copy(route, outgoing, body))
            self._connection.watch(lambda: _cancel(copying), _nothing)
        if self._failure is not None:
            if self._response is None:
                raise self._failure
            if self._request.transport is not None:
                self._request.transport.abort()  # what broke off must not look complete
        return self._response if self._response is not None else Response(status=499)

    async def _copy(self, route: Route, outgoing: Outgoing, body: bytes) -> None:
        try:
            sent = msgspec.structs.replace(outgoing, method=self._request.method)
            async with route.upstream.send(sent, body or None) as pulled:
                headers = pulled.answer.headers_passed()
                headers.update(self._headers)
                identify(headers)
                data = await pulled.read()
                await self._record(pulled.answer.status)
                self._response = StreamResponse(status=pulled.answer.status, headers=headers)
                await self._response.prepare(self._request)
                while data:
                    await self._response.write(data)
                    data = await pulled.read()
                await self._response.write_eof()
        except (UpstreamError, AuditError) as error:
            self._failure = error
        except ConnectionError:
            return  # the caller left


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


def _nothing() -> None:
    """Do nothing: aiohttp's own drain waits for the caller to read."""
