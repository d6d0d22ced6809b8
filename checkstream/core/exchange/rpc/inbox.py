"""The events of a server's stream that wait to be read, one message at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from checkstream.core.commands import PauseUpstream
from checkstream.core.exchange.ingress.refusal import Refusal
from checkstream.core.exchange.rpc.course import Course
from checkstream.core.wire.frame import Frame
from checkstream.errors import EventTooLarge


class Inbox:
    """What has come of a stream; the server is not read from while too much of it waits."""

    def __init__(self, course: Course) -> None:
        """Begin with nothing."""
        self._course = course
        surface, plan = course.surface, course.plan
        self._decoder = surface.framing.decoder(plan.event_bytes, surface.events)
        self._frames: deque[Frame] = deque()
        self._bytes = 0

    def __bool__(self) -> bool:
        """Tell whether an event waits."""
        return bool(self._frames)

    def take(self, data: bytes) -> None:
        """Take bytes; an event that passes its bound ends the exchange."""
        self._put(lambda: self._decoder.decode(data))

    def end(self) -> None:
        """Take what is whole of the rest, as `take` does: nothing more will come."""
        self._put(lambda: [frame for frame in self._decoder.flush() if frame.complete])

    def next(self) -> Frame:
        """Return the next event; there is one."""
        frame = self._frames.popleft()
        self._bytes -= len(frame.raw)
        if self._bytes <= self._course.plan.held_bytes // 4:
            self._course.watch.resume()
        return frame

    def clear(self) -> None:
        """Forget what waits."""
        self._frames.clear()

    def _put(self, decode: Callable[[], list[Frame]]) -> None:
        course = self._course
        try:
            frames = decode()
        except EventTooLarge as error:
            course.fail(Refusal(502, "upstream_error", str(error)))
            return
        self._frames += frames
        self._bytes += sum(len(frame.raw) for frame in frames)
        if self._bytes > course.plan.held_bytes // 2 and not course.watch.paused:
            course.watch.paused = True
            course.do(PauseUpstream())
