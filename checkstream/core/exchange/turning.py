"""An answer that goes on under stricter parameters: the upstream is cut off, and asked to go on from what was sent."""

from __future__ import annotations

from collections.abc import Generator

from checkstream.core.channel.actions import Pivot
from checkstream.core.commands import ForwardRequest
from checkstream.core.exchange.course import CHARS_PER_TOKEN, Course, Ending, State
from checkstream.core.exchange.leaving import Leaving
from checkstream.core.exchange.meter import Steps
from checkstream.errors import WireError

_TURNING_WORK = 500
"""Of a step of keeping what has been said."""


class Turning:
    """The turn of one answer; there is at most one."""

    def __init__(self, course: Course, leaving: Leaving) -> None:
        """Begin with an answer that has not turned."""
        self._course = course
        self._leaving = leaving
        self._turned: Pivot | None = None

    def steps(self) -> Generator[None, None, bool]:
        """Send what stands before the turn; when all of it is decided, ask the upstream to go on from there, in steps.

        Returns:
            Whether the answer is closing now, since it can't turn.
        """
        course = self._course
        if course.streaming and not self._leaving.release():
            course.answer.turning = None
            course.fail("upstream_error", f"the upstream sent an event that can't be edited: {course.outbox.fault}")
            return True
        if course.checking.undecided or (course.streaming and len(course.outbox)):
            return False
        if not (yield from course.answer.settling()):
            return False
        return not (yield from self._turn())

    def _turn(self) -> Generator[None, None, bool]:
        """Send the request again, with what the caller has got of the answer as the beginning of it.

        Returns:
            Whether it could be sent; else the answer stops here.
        """
        course = self._course
        pivot, request = course.answer.turning, course.prompt.request
        if pivot is None or request is None:
            raise AssertionError("only the answer to a request turns")
        if not course.streaming:
            yield from course.checking.meter.stepping(course.whole.turning(), _TURNING_WORK)
        said = yield from course.checking.meter.stepping(course.writer.heard.telling(0), _TURNING_WORK)
        course.prompt.wishes.be_safe(pivot.action, pivot.rule, pivot.action.instruction or "")
        begun = said.rstrip() if course.surface.trims_beginning else said
        spent = -(-course.prompt.chars // CHARS_PER_TOKEN), -(-course.writer.sent_chars // CHARS_PER_TOKEN)
        self._turned, course.ending, course.ledger.turned_at = pivot, None, pivot.position
        course.decisions.go_on(said, said[len(begun) :], spent)
        try:
            body = yield from course.prompt.rendering(request, begun)
        except WireError:
            yield from self.stopping()  # of a form that can't be gone on with
            return False
        course.state = State.STREAMING if course.streaming else State.FORWARDED
        course.upstream_open = True
        course.watch.resume()
        course.do(ForwardRequest(body, request.streaming, course.prompt.outside.left_out))
        return True

    def continued(self, *, status: int, streaming: bool) -> Steps | None:
        """Hear that the upstream goes on with the answer, or will not: then it is stopped where it turned."""
        course = self._course
        if self._turned is None or course.answer.turning is not None:
            return None
        course.watch.heard()
        course.watch.begin_stream()
        return self.stopping() if not streaming or status >= 400 else None

    def stopping(self) -> Steps:
        """End the answer where it turned, in steps."""
        course = self._course
        course.cancel_upstream()
        course.checking.degrade("not_continued")
        if self._turned is not None:
            yield from course.decisions.stopping_here(self._turned)
        course.ending = Ending("stopped", terminate=True)
        course.state = State.CLOSING
