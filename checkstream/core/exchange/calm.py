"""The common event, told by comparison and let go at once: more of the one text that an answer tells.

Nothing is decided here. `begin` looks whether nothing is to be decided: one choice speaks, in one text, in which
nothing has been found and nothing is edited, and nothing waits but more of it. As long as events go on like that, all
that follows from one is how far the text may be released, which its holdback says. At any other event, and as soon as
there is something to decide, the exchange goes on as ever, as if it had not been calm.

INVARIANT: nobody can see whether an exchange is calm: of the same events the same commands come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from checkstream.core.channel.checks import NO_CHECKS, Check
from checkstream.core.channel.judge import Judge
from checkstream.core.commands import AnyCommand
from checkstream.core.exchange.choice import Choice
from checkstream.core.exchange.course import Course, State
from checkstream.core.exchange.incoming import Incoming
from checkstream.core.exchange.leaving import Leaving
from checkstream.core.exchange.meter import FEW_CHARS, Steps
from checkstream.core.exchange.outbox import MOST_UNITS
from checkstream.core.exchange.rendering import RENDERED_CHARS
from checkstream.core.exchange.waiting import CALL, Part, Released, Waiting

_EVENT_WORK = 80
"""Of an event, besides what reading its text costs (see `match.work`)."""


class Calm:
    """One exchange while nothing is to be decided."""

    __slots__ = ("_course", "_incoming", "_judge", "_leaving", "_room", "_scored", "_seen", "_waiting", "rest")

    def __init__(self, course: Course, incoming: Incoming, leaving: Leaving) -> None:
        """Begin with an exchange that is not calm."""
        self._course = course
        self._incoming = incoming
        self._leaving = leaving
        self._judge: Judge | None = None
        """Has the text."""
        self._room = 0
        """So many characters can be read, at least, until each may be dear."""
        self._scored = False
        """Classifiers have a say over the answer."""
        self._waiting: deque[Waiting] = deque()
        """What the outbox has, in order."""
        self._seen: Waiting | None = None
        """The last of it that is known to be more of the text."""
        self.rest: Steps = iter(())
        """What is to be done when it is calm no more."""

    @property
    def on(self) -> bool:
        """It is calm."""
        return self._judge is not None

    def begin(self) -> None:
        """Look whether nothing is to be decided."""
        course = self._course
        answer = course.answer
        if course.state is not State.STREAMING or len(answer.choices) != 1:
            return
        latest = self._incoming.latest
        judge = answer.judges.get(latest[0]) if latest is not None else None
        if latest is None or judge is None or judge.channel.kind in CALL or judge.channel.kind == "extra":
            return
        number = judge.channel.choice
        if not self._is_quiet(answer.choice(number), judge) or not course.intake.goes_on(*latest):
            return
        waiting = course.outbox.only(number)
        if waiting is None or not self._all_plain(waiting, judge):
            return
        self._judge, self._waiting, self._room = judge, waiting, judge.ahead
        self._scored = any(each.asked for each in answer.judges.values())

    def _all_plain(self, some: deque[Waiting], judge: Judge) -> bool:
        """Tell whether all that waits is more of one text."""
        for waiting in reversed(some):
            if waiting is self._seen:
                break
            parts, unit = waiting.parts, waiting.unit
            if len(parts) != 1 or parts[0].judge is not judge or waiting.called or len(unit.raw) > RENDERED_CHARS:
                return False
            if unit.finished or unit.usage or unit.terminator or len(unit.choices) != 1 or len(unit.deltas) != 1:
                return False
        return True

    def _is_quiet(self, choice: Choice, judge: Judge) -> bool:
        """Tell whether nothing ends, nothing is to be done to the choice, and its text is all that goes on."""
        course = self._course
        answer, border = course.answer, choice.border
        if course.ending is not None or course.closing or answer.turning is not None or answer.terminated:
            return False
        if answer.failed is not None or course.checking.refused or answer.first_text_at is None:
            return False
        if not choice.running or choice.closed or not choice.begun or choice.calls:
            return False
        if border.owed or border.latest is not judge or answer.sieve.extras.has_open:
            return False
        return judge.unedited and judge.rests(judge.holdback.releasable)

    def end(self) -> None:
        """Go on as ever: another event comes."""
        self._judge = None

    def receive(self, data: bytes, now: float) -> list[AnyCommand] | None:
        """Take bytes of the upstream and return what follows; None: it is calm no more, and `rest` is to be done."""
        judge, course = self._judge, self._course
        checking = course.checking
        meter = checking.meter
        checking.commands = []
        checking.now = now
        meter.begin_turn()
        if judge is None or not self._incoming.has_room(len(data)):
            self._stop(data, 0)
            return None
        holdback, outbox, cut = judge.holdback, course.outbox, self._incoming.cut
        at, size = 0, len(data)
        while (found := cut(data, at)) is not None:
            unit, end = found
            text = unit.deltas[0].text
            chars = len(text)
            if chars > self._room:
                self._room = judge.ahead
            if chars > FEW_CHARS or chars > self._room:
                break
            self._room -= chars
            start, at = holdback.received, end
            checks = judge.feed(text)
            meter.spent += _EVENT_WORK
            if judge.unread_work > _EVENT_WORK:
                meter.spent += judge.take_work()
            self._seen = waiting = Waiting(unit, (Part(judge, start, holdback.received),), now)
            outbox.put(waiting)
            releasable = holdback.releasable
            if checks or not judge.rests(releasable):
                self._stop(data, at, checks, decides=True)
                return None
            if meter.spent >= meter.stops_at or (at < size and meter.pauses):
                break
            if at == size and self._release(releasable, now):
                self._incoming.count(size)
                return checking.commands
        self._stop(data, at)
        return None

    def _release(self, releasable: int, now: float) -> bool:
        """Send what may leave; False: something else is to be done about what waits."""
        course, waiting = self._course, self._waiting
        outbox = course.outbox
        if not course.watch.looks_after(outbox.bytes_held, scored=self._scored):
            return False
        if not waiting or waiting[0].parts[0].end > releasable:
            return True
        if len(waiting) > MOST_UNITS:
            return False
        held_s, data = now - waiting[0].arrived, outbox.let_go(waiting[0])
        while waiting and waiting[0].parts[0].end <= releasable:
            data += outbox.let_go(waiting[0])
        self._leaving.send(Released(data, held_s))
        return True

    def _stop(self, data: bytes, at: int, checks: Sequence[Check] = NO_CHECKS, *, decides: bool = False) -> None:
        """Be calm no more; of some bytes those before `at` have been taken."""
        self._incoming.count(at)
        judge, self._judge = self._judge, None
        self.rest = self._going_on(judge if decides else None, checks, data[at:])

    def _going_on(self, judge: Judge | None, checks: Sequence[Check], data: bytes) -> Steps:
        """Decide what is to be decided, in steps, and take the rest of some bytes."""
        course = self._course
        if judge is not None:
            if checks:
                course.answer.ask(judge, checks)
            yield from course.decisions.deciding(judge)
            self._incoming.look_whether_cut_off()
        if course.checking.meter.pauses:
            yield
        if data:
            yield from self._incoming.take_stream_bytes(data)
