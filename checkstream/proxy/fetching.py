"""The upstream's side of one exchange: its answer is read as fast as guard, caller and room allow."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from checkstream.core import events as on
from checkstream.errors import UpstreamError
from checkstream.listen import Connection, Visit
from checkstream.proxy.capacity import Load
from checkstream.proxy.counts import StreamCounts
from checkstream.proxy.headers import JSON
from checkstream.proxy.inbox import Inbox
from checkstream.proxy.outgoing import Outgoing
from checkstream.proxy.upstream import Answer, UpstreamClient

_BACKLOG_BYTES = 262_144
"""Bytes read from the upstream that may wait for the guard before reading pauses."""
_ROOM_S = 30.0
"""How long an answer that holds more than its own part waits for room."""
_OF_UPSTREAM = (on.UpstreamOpened, on.UpstreamBytes, on.UpstreamClosed, on.UpstreamFailed)


class Fetching:
    """Sends the request and puts what comes of it into the inbox; a request that is sent again takes its place."""

    def __init__(
        self,
        upstream: UpstreamClient,
        outgoing: Outgoing,
        *,
        media: str,
        connection: Connection,
        inbox: Inbox,
        visit: Visit,
        load: Load,
        counts: StreamCounts,
        tasks: asyncio.TaskGroup,
    ) -> None:
        """Fetch nothing yet.

        Args:
            upstream: Where the request goes.
            outgoing: What goes there besides the body.
            media: Type of the body of an answer that is a stream.
            connection: The caller's, which may not keep up.
            inbox: Takes the events.
            visit: The room that the request has; counts what is held of the answer.
            load: What the exchange was admitted with; hears of its answer.
            counts: Takes metrics.
            tasks: Wait for the upstream; the exchange ends after them.
        """
        self._upstream = upstream
        self._outgoing = outgoing
        self._media = media
        self._connection = connection
        self._inbox = inbox
        self._visit = visit
        self._load = load
        self._counts = counts
        self._tasks = tasks
        self._loop = asyncio.get_running_loop()
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._held_back = False
        self._backlog = 0
        self._room_late: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self.answer: Answer | None = None
        """What the upstream has begun to answer."""

    def begin(self, body: bytes, without: Collection[str] = ()) -> None:
        """Send the request, without some headers; a further one of the exchange goes under a key of its own."""
        self._counts.forwarded()
        self._outgoing = self._outgoing.bare(without)
        if self._task is not None:
            self._outgoing = self._outgoing.again()
        self._task = self._tasks.create_task(self._fetch(body))

    def hold_back(self, *, held: bool) -> None:
        """Read no more until told so, or go on."""
        self._held_back = held
        self.look_whether_to_read()

    def taken(self, data: bytes) -> None:
        """Hear that the guard takes bytes out of the inbox."""
        self._backlog -= len(data)
        self.look_whether_to_read()

    def end(self) -> None:
        """Cut the upstream off, and wait for no room."""
        if self._room_late is not None:
            self._room_late.cancel()
        self.cancel()

    def forget(self) -> None:
        """Let go of the task: a cancelled one keeps the error, whose frames know the exchange."""
        self._task = None

    async def _fetch(self, body: bytes) -> None:
        outgoing = self._outgoing
        try:
            async with self._upstream.send(
                outgoing.method,
                outgoing.target,
                outgoing.headers,
                body or None,
                key_header=outgoing.key_header,
                content_type=JSON if body else None,
                caller=outgoing.caller,
                patient=outgoing.patient,
            ) as answer:
                self.answer = answer
                self._counts.upstream_answered(answer.status)
                self._inbox.put(on.UpstreamOpened(answer.status, answer.is_of(self._media)))
                while data := await answer.read():
                    self._take(data)
                    await self._may_read.wait()
                self._inbox.put(on.UpstreamClosed())
        except UpstreamError as error:
            self._counts.upstream_failed(error)
            self._inbox.put(on.UpstreamFailed(error.kind, str(error)))

    def _take(self, data: bytes) -> None:
        self._backlog += len(data)
        self._visit.hold(len(data))
        self._load.took(len(data))
        self._inbox.put(on.UpstreamBytes(data))
        self.look_whether_to_read()

    def look_whether_to_read(self) -> None:
        """Read from the upstream while the guard wants it, the caller keeps up and there is room."""
        wanted = not (self._held_back or self._backlog > _BACKLOG_BYTES or self._connection.writing_paused)
        room = not wanted or self._visit.has_room(self.look_whether_to_read)
        if wanted and room:
            self._may_read.set()
        else:
            self._may_read.clear()
        if room and self._room_late is not None:
            self._room_late.cancel()
            self._room_late = None
        elif not room and self._room_late is None:
            self._room_late = self._loop.call_later(_ROOM_S, self._give_up_waiting)

    def _give_up_waiting(self) -> None:
        """End an answer of which more is held than is its own, when what others of the caller hold never got less."""
        self.cancel()
        self._inbox.put(
            on.UpstreamFailed(
                "room", "your answers hold all the bytes that they may; read them, or ask for less at once"
            )
        )

    def cancel(self) -> None:
        """Cut the upstream off; what has come of it and not been taken yet is not wanted any more."""
        if self._task is not None:
            self._task.cancel()
        for event in self._inbox.drop(_OF_UPSTREAM):
            if isinstance(event, on.UpstreamBytes):
                self._backlog -= len(event.data)
                self._visit.hold(-min(self._visit.held, len(event.data)))
