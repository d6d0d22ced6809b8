"""What follows when time runs out, or room does: early checks, signs of life, checks that nobody waits for any more."""

from __future__ import annotations

from collections.abc import Sequence

from checkstream.core.channel.judge import Judge
from checkstream.core.exchange.course import Course, State
from checkstream.core.exchange.leaving import Leaving
from checkstream.core.exchange.watch import Timer


class Timers:
    """The timers of one exchange, and the room that it takes."""

    def __init__(self, course: Course, leaving: Leaving) -> None:
        """Begin with no timer armed."""
        self._course = course
        self._leaving = leaving

    def rang(self, timer: Timer) -> Sequence[Judge]:
        """Take note that a timer has run out; return the judges that wait no longer for a score."""
        course = self._course
        course.watch.rang(timer)
        if timer == "budget":
            return course.checking.give_up_late()
        if timer == "hold":
            return course.checking.give_up_waiting()
        if timer == "keepalive":
            self._leaving.keep_alive()
        elif course.state is State.STREAMING and course.watch.stalls():
            let_go = course.endings.stall()
            if course.watch.paused and not course.checking.waiting and not let_go:
                # Nothing is under way that could let go of what is held, and nothing more is being read.
                self._hold_too_much()
            return let_go
        return ()

    def gives_up_holding(self) -> bool:
        """Keep what is held of a stream within its caps; tell whether it had to be given up."""
        course = self._course
        if course.outbox.call_bytes_held > course.plan.call_bytes:
            return self._gives_up_call()
        held = course.bytes_held
        scored = held > 0 and any(judge.asked for judge in course.answer.judges.values())
        if course.watch.holds_too_much(held, scored=scored):
            self._hold_too_much()
            return True
        return False

    def _gives_up_call(self) -> bool:
        """Let the fail mode decide on a tool call that is too long to wait for."""
        course = self._course
        if course.plan.fail_mode == "open":
            course.outbox.calls_whole = False
            course.checking.degrade("calls_not_whole")
        else:
            course.fail("held_too_large", f"a tool call passed the {course.plan.call_bytes} bytes that may wait for it")
        return True

    def _hold_too_much(self) -> None:
        most = self._course.plan.held_bytes
        self._course.fail("held_too_large", f"more than {most} bytes of the answer had to be held")
