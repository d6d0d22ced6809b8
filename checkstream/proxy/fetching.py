"""The upstream's side of one exchange: its answer is read as fast as guard, caller and room allow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

import msgspec

from checkstream.core import events as on
from checkstream.errors import UpstreamError
from checkstream.listen import Connection, Visit
from checkstream.proxy.capacity import Load
from checkstream.proxy.counts import StreamCounts
from checkstream.proxy.headers import JSON
from checkstream.proxy.line import Line
from checkstream.proxy.outgoing import Outgoing
from checkstream.proxy.upstream import Answer, Asking, UpstreamClient

_ROOM_S = 30.0
"""How long an answer that holds more than its own part waits for room."""
OF_UPSTREAM = (on.UpstreamOpened, on.UpstreamBytes, on.UpstreamClosed, on.UpstreamFailed)


class Fetching:
    """Sends the request and tells what comes of it; a request that is sent again takes its place."""

    def __init__(
        self,
        upstream: UpstreamClient,
        outgoing: Outgoing,
        *,
        media: str,
        connection: Connection,
        post: Callable[[on.AnyEvent], None],
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
            post: Takes the events, in the turn in which their bytes come.
            visit: The room that the request has; counts what is held of the answer.
            load: What the exchange was admitted with; hears of its answer.
            counts: Takes metrics.
            tasks: Wait for the upstream; the exchange ends after them.
        """
        self._upstream = upstream
        self._outgoing = outgoing if counts.traceparent is None else outgoing.traced(counts.traceparent)
        self._media = media
        self._connection = connection
        self._post = post
        self._visit = visit
        self._load = load
        self._counts = counts
        self._tasks = tasks
        self._loop = asyncio.get_running_loop()
        self._held_back = self._paused = False
        self._backlog = 0
        self._room_late: asyncio.TimerHandle | None = None
        self._began = False
        self._connecting: asyncio.Task[None] | None = None
        self._asking: Asking | None = None
        self.answer: Answer | None = None
        """What the upstream has begun to answer."""

    def begin(self, body: bytes, without: Collection[str] = ()) -> None:
        """Send the request, without some headers; a further one of the exchange goes under a key of its own."""
        self._counts.forwarded()
        outgoing = self._outgoing.bare(without)
        if self._began:
            outgoing = outgoing.again()
        self._began = True
        self._outgoing = outgoing = msgspec.structs.replace(outgoing, content_type=JSON if body else None)
        try:
            request = self._upstream.request(outgoing, body or None)
        except UpstreamError as error:
            self.failed(error)
            return
        line = self._upstream.take(outgoing.party)
        if line is None:
            self._connecting = self._tasks.create_task(self._connect(request))
        else:
            self._ask(line, request)

    async def _connect(self, request: bytes) -> None:
        try:
            line = await self._upstream.connect(self._outgoing.party)
        except UpstreamError as error:
            self.failed(error)
        else:
            self._ask(line, request)

    def _ask(self, line: Line, request: bytes) -> None:
        self._asking = self._upstream.begin(line, request, self._outgoing, self)
        self.look_whether_to_go_on()
        if self._paused:
            self._asking.pause()

    def hold_back(self, *, held: bool) -> None:
        """Read no more until told so, or go on."""
        self._held_back = held
        self.look_whether_to_read()

    def taken(self, count: int) -> None:
        """Hear that the guard takes so many bytes."""
        self._backlog -= count

    def end(self) -> None:
        """Cut the upstream off, and wait for no room."""
        if self._room_late is not None:
            self._room_late.cancel()
        self.cancel()

    def forget(self) -> None:
        """Let go of the task: a cancelled one keeps the error, whose frames know the exchange."""
        self._connecting = None

    # --- what the upstream says

    def opened(self, answer: Answer) -> None:
        """Tell that the answer begins."""
        self.answer = answer
        self._counts.upstream_answered(answer.status)
        self._post(on.UpstreamOpened(answer.status, answer.is_of(self._media)))

    def took(self, data: bytes) -> None:
        """Tell of bytes of its body."""
        self._visit.hold(len(data))
        self._load.took(len(data))
        self._backlog += len(data)
        self._post(on.UpstreamBytes(data))
        self.look_whether_to_read()

    def ended(self) -> None:
        """Tell that it is whole."""
        self._asking = None
        self._post(on.UpstreamClosed())

    def failed(self, error: UpstreamError) -> None:
        """Tell that no more comes."""
        self._asking = None
        self._counts.upstream_failed(error)
        self._post(on.UpstreamFailed(error.kind, str(error)))

    # --- how fast it is read

    def look_whether_to_read(self) -> None:
        """Read from the upstream while the guard wants it and has taken what came, the caller keeps up, there is room.

        What the system keeps meanwhile comes as one piece: who is behind has fewer wake-ups, and catches up.
        """
        wanted = not (self._held_back or self._backlog or self._connection.writing_paused)
        room = not wanted or self._visit.has_room(self.look_whether_to_read)
        paused = not (wanted and room)
        if paused != self._paused and self._asking is not None:
            self._asking.pause() if paused else self._asking.resume()
        self._paused = paused
        if room and self._room_late is not None:
            self._room_late.cancel()
            self._room_late = None
        elif not room and self._room_late is None:
            self._room_late = self._loop.call_later(_ROOM_S, self._give_up_waiting)

    def look_whether_to_go_on(self) -> None:
        """Read again if nothing stands against it any more."""
        if self._paused:
            self.look_whether_to_read()

    def _give_up_waiting(self) -> None:
        """End an answer of which more is held than is its own, when what others of the caller hold never got less."""
        self.cancel()
        self._post(
            on.UpstreamFailed(
                "room", "your answers hold all the bytes that they may; read them, or ask for less at once"
            )
        )

    def cancel(self) -> None:
        """Cut the upstream off."""
        if self._connecting is not None:
            self._connecting.cancel()
        asking, self._asking = self._asking, None
        if asking is not None:
            asking.leave()

    def dropped(self, count: int) -> None:
        """Hear that so many bytes were thrown away that waited for the guard."""
        self._backlog -= count
        self._visit.hold(-min(self._visit.held, count))
