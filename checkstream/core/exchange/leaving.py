"""What leaves of an answer, and how its end is told: released text, whole answers, closing frames.

INVARIANT: every byte that a caller gets of an answer is asked for here, and comes from the released side of each
channel: `Outbox` says when, `Writer` and `WholeAnswer` write it.
"""

from __future__ import annotations

from checkstream.core.channel.actions import Halt
from checkstream.core.commands import Assess, CloseDownstream, Observe, SendDownstream
from checkstream.core.exchange.assessment import MOST_CHARS
from checkstream.core.exchange.course import CHARS_PER_TOKEN, Course, Ending, State
from checkstream.core.steps import Walk
from checkstream.core.wire import sse
from checkstream.errors import WireError

_TOO_LONG = "thinking_withheld:too_long"
"""A signed text of the answer had more than may wait, so that it has not left."""


class Leaving:
    """The caller's side of one exchange."""

    def __init__(self, course: Course) -> None:
        """Begin with nothing sent."""
        self._course = course
        self._written = course.surface.framing.written
        self._begun = False
        self._kept_at: float | None = None
        """Since when a signed text waits to be whole, seconds; None: none does."""
        self._ends_said = False
        """What is said before a stream's last word was."""
        self._finished: tuple[bytes, str] | None = None
        """A whole answer as it may go out, and the outcome that it stands for."""

    def release(self) -> bool:
        """Send what may leave of a stream; False: something can't be edited, and nothing behind it may leave."""
        course = self._course
        released = course.outbox.release(course.now, holds_end=course.holds_end)
        if released is not None:
            self.send(released.data, released.held_s)
        self._look_at_signed()
        return course.outbox.fault is None

    def _look_at_signed(self, *, over: bool = False) -> None:
        """Note how long a signed text has waited to be whole, and whether that was given up.

        Args:
            over: Nothing follows.
        """
        course = self._course
        sending = course.writer.sending
        if sending.holding and not over:
            self._kept_at = course.now if self._kept_at is None else self._kept_at
        elif self._kept_at is not None:
            held_s, self._kept_at = course.now - self._kept_at, None
            course.ledger.held_s = max(course.ledger.held_s, held_s)
            course.do(Observe("hold_seconds", held_s))
        if sending.gave_up and course.ledger.withheld is None:
            course.ledger.withheld = _TOO_LONG
            course.checking.degrade(_TOO_LONG)

    def send(self, released: bytes, held_s: float) -> None:
        """Send what has been taken out of what waits, where the first of it came `held_s` seconds ago."""
        if not released:
            return  # it waits to be whole
        self._write(released)
        course = self._course
        course.given = True
        course.watch.sent()
        if held_s > 0:
            ledger = course.ledger
            if held_s > ledger.held_s:
                ledger.held_s = held_s
            course.checking.commands.append(Observe("hold_seconds", held_s))
        if not self._begun and course.writer.sent_chars:
            began_at = course.answer.first_text_at
            if began_at is not None:
                self._begun = True
                course.do(Observe("added_ttft_seconds", course.now - began_at))

    def keep_alive(self) -> None:
        """Show the caller that the stream lives, where nothing has been sent for so long."""
        course = self._course
        held = len(course.outbox) > 0 or course.writer.sending.holding > 0 or course.state is State.ASSESSING
        if course.watch.wants_comment(held=held):
            self._write(sse.KEEP_ALIVE)

    def _write(self, events: bytes) -> None:
        """Send events in the form of the surface's streams, which may have none for a comment."""
        written = self._written
        data = events if written is None else written(events)
        if data:
            self._course.checking.commands.append(SendDownstream(data))

    @property
    def delivered(self) -> str | None:
        """What the exchange came to if the caller has all of the answer: many hang up at its last word. Else None."""
        course = self._course
        if not course.given or not course.streaming or len(course.outbox) or course.ending is not None:
            return None
        if course.answer.running or course.answer.turning is not None or course.assessment.waits:
            return None
        return "stopped" if course.answer.stopped else "complete"

    # --- streams

    def close_stream(self) -> bool:
        """Send the end of a stream, all of which has been decided, and close; or have it assessed first.

        Returns:
            Whether some of it is still to be written: the last word can say all of the answer once more.
        """
        course = self._course
        ending = course.ending or Ending("complete")
        if not self._ends_said and ending.error is None and self._assess():
            return False
        data = self._ends(ending)
        self._look_at_signed(over=True)
        last = course.outbox.release(course.now)
        data += last.data if last is not None else b""
        if course.outbox.behind and course.outbox.fault is None:
            self._write(data)
            return True
        if len(course.outbox):
            # Can't happen while every channel has ended; if it does, the caller must know that text is missing.
            course.checking.degrade("undecided_text")
            ending = Ending("failed", ("guard_error", "part of the answer could not be decided", None))
        if ending.error is not None:
            data += course.writer.sending.error_event(*ending.error)
        elif ending.terminate and not course.answer.terminated:
            request = course.prompt.request
            data += course.writer.finish(
                -(-course.prompt.chars // CHARS_PER_TOKEN),
                -(-course.writer.sent_chars // CHARS_PER_TOKEN),
                usage_wanted=request is not None and request.usage_wanted,
            )
        self._write(data)
        course.do(CloseDownstream())
        outcome = ending.outcome
        if outcome == "complete" and course.answer.stopped:
            outcome = "stopped"
        elif outcome == "complete" and course.ledger.upstream_failure is not None:
            outcome = "upstream_failed"
        course.close(outcome)
        return False

    def _ends(self, ending: Ending) -> bytes:
        """Return, once, what is said before a stream's last word: ends that the upstream left open, and the results."""
        if self._ends_said:
            return b""
        self._ends_said = True
        course = self._course
        rest = course.outbox.release(course.now, holds_end=True)
        data = rest.data if rest is not None else b""
        data += course.writer.open_ends()
        members = course.members
        if members and ending.error is None:
            data += course.writer.sending.result_event(course.writer.like, members)
        return data

    # --- whole answers

    def giving_whole(self) -> Walk:
        """Answer with the whole answer, edited, in steps, now that all of it has been decided."""
        course = self._course
        refused = course.answer.refused_whole
        if refused is not None:
            self._refuse_answer(refused)
            return
        try:
            whole = yield from course.whole.writing(course.now)
        except WireError as error:
            course.fail("upstream_error", f"the upstream sent an answer that can't be edited: {error}")
            return
        course.ledger.held_s = max(course.ledger.held_s, whole.held_s)
        outcome = course.ending.outcome if course.ending is not None else "complete"
        self._finished = whole.data, "stopped" if course.answer.stopped else outcome
        if not self._assess():
            yield from self.delivering()

    def delivering(self) -> Walk:
        """Give the caller, in steps, the whole answer, with what was said of it; or say that it is blocked."""
        if self._finished is None:
            raise AssertionError("a whole answer is finished before it is delivered")
        course = self._course
        data, outcome = self._finished
        refusal = course.assessment.refusal
        if refusal is not None:
            course.ledger.carried_out("stop")
            body = course.surface.error_body("response_blocked", refusal)
            course.reply(502, body, "stopped", action="stop", retry=False)
            return
        members = course.members
        if members:
            try:
                data = yield from course.surface.writing_results(data, members)
            except WireError:
                course.checking.degrade("results_not_written")
        course.given = True
        course.reply(course.status, data, outcome, action=course.ledger.action)

    def _refuse_answer(self, halt: Halt) -> None:
        """Answer with an error in place of a whole answer that a rule has stopped with a status."""
        course = self._course
        course.ledger.carried_out("stop")
        message = halt.message or "the answer was blocked by policy"
        body = course.surface.error_body("response_blocked", message, halt.rule.id)
        course.reply(halt.status or 502, body, "stopped", action="stop", retry=False)

    # --- what evidence says of it, while the caller waits

    def _assess(self) -> bool:
        """Have what was said held against evidence, where that is wanted; tell whether it is under way."""
        course = self._course
        assessment, heard = course.assessment, course.writer.heard
        if not assessment.waits:
            return False
        answers = heard.answers
        too_long = heard.too_long or sum(map(len, answers.values())) > MOST_CHARS
        if not answers and not too_long:
            assessment.drop()
            return False
        assessment.asked = True
        course.state = State.ASSESSING
        dialogue = course.prompt.dialogue({} if too_long else answers)
        course.do(Assess(dialogue, assessment.profiles, assessment.deadline_ms))
        return True
