"""The common events, told by comparison and let go at once: more of the one text of an answer, and scores of it.

Nothing is decided here. `begin` looks whether nothing is to be decided: one choice speaks, in one text, in which
nothing has been found and nothing is edited, and nothing waits but more of it. As long as events go on like that, all
that follows from one is how far the text may be released, which its holdback says. What comes in one read is taken
together. At any other event, and as soon as there is something to carry out, the exchange goes on as ever, as if it had
not been calm.

INVARIANT: nobody can see whether an exchange is calm: of the same events the same commands come.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import accumulate

from checkstream.core.channel.checks import Check
from checkstream.core.channel.judge import Judge
from checkstream.core.commands import AnyCommand
from checkstream.core.events import AnyEvent, Scored, TimerFired, UpstreamBytes
from checkstream.core.exchange.course import Course, State
from checkstream.core.exchange.incoming import Incoming
from checkstream.core.exchange.leaving import Leaving
from checkstream.core.exchange.meter import FEW_CHARS, Steps
from checkstream.core.exchange.midstream.choice import Choice
from checkstream.core.exchange.midstream.rendering import RENDERED_CHARS
from checkstream.core.exchange.midstream.waiting import CALL, Waiting
from checkstream.core.exchange.row import Row
from checkstream.core.wire.moulds import Cut

_WORK = 60
"""Of reading a piece of the text, besides what its characters cost (see `match.work`) ..."""
_EVENT_WORK = 4
"""... and of each event that has some of it."""
_MOST_AT_ONCE = 128
"""Events whose texts are read as one."""


class Calm:
    """One exchange while nothing is to be carried out."""

    __slots__ = (
        "_checking",
        "_course",
        "_free",
        "_incoming",
        "_judge",
        "_meter",
        "_most",
        "_part",
        "_room",
        "_row",
        "_scored",
        "_seen",
        "_watch",
        "rest",
    )

    def __init__(self, course: Course, incoming: Incoming, leaving: Leaving) -> None:
        """Begin with an exchange that is not calm."""
        self._course = course
        self._checking, self._meter, self._watch = course.checking, course.checking.meter, course.watch
        self._incoming = incoming
        self._row = Row(course, leaving)
        """What waits, in order."""
        self._judge: Judge | None = None
        """Has the text."""
        self._part = b""
        """What has come of an event that is not all there."""
        self._room = 0
        """So many characters can be read, at least, until each may be dear."""
        self._free = 0
        """Text before this may leave."""
        self._most = _MOST_AT_ONCE
        """So many events may be read as one, as far as the last ones tell."""
        self._scored = False
        """Classifiers have a say over the answer."""
        self._seen: Waiting | None = None
        """The last of what the outbox has that is known to be more of one text: that which it has itself."""
        self.rest: Steps | None = None
        """What is to be done when it is calm no more; None: the event is to be taken as ever."""

    @property
    def bytes_held(self) -> int:
        """Bytes of events that wait here."""
        return self._row.bytes_held

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
        self._judge, self._room, self._free = judge, judge.ahead, judge.holdback.releasable
        self._row.begin(judge, waiting, self._incoming.moulds)
        self._scored = any(each.asked for each in answer.judges.values())
        self._part = self._incoming.give_back()

    def _all_plain(self, some: deque[Waiting], judge: Judge) -> bool:
        """Tell whether all that waits is more of one text."""
        for waiting in reversed(some):
            parts, unit = waiting.parts, waiting.unit
            if len(parts) != 1 or parts[0].judge is not judge or waiting.called or len(unit.raw) > RENDERED_CHARS:
                return False
            if waiting is self._seen:
                break
            if unit.finished or unit.usage or unit.terminator or len(unit.choices) != 1 or len(unit.deltas) != 1:
                return False
        if some:
            self._seen = some[-1]
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

    def take(self, event: AnyEvent, now: float) -> list[AnyCommand] | None:
        """Take an event and return what follows; None: it is calm no more, and `rest` says what is to be done."""
        judge = self._judge
        self.rest = None
        if judge is None:
            return None
        if type(event) is UpstreamBytes:
            return self._receive(judge, event.data, now)
        if isinstance(event, Scored):
            asker = self._checking.asker(event.ticket)
            if asker is not None and (asker is judge or asker in judge.followers):
                return self._hear(judge, asker, event, now)
        elif isinstance(event, TimerFired) and event.timer == "stall" and not self._watch.is_silent(now):
            self._begin_turn(now)
            self._watch.rang("stall")
            self._watch.stalls()
            return self._look_after()
        self._end()
        return None

    def _begin_turn(self, now: float) -> None:
        checking = self._checking
        checking.commands = []
        checking.now = now
        self._meter.begin_turn()

    # --- bytes of the upstream

    def _receive(self, judge: Judge, data: bytes, now: float) -> list[AnyCommand] | None:
        """Take bytes."""
        incoming = self._incoming
        self._begin_turn(now)
        new = len(data)
        if self._part:
            data = self._part + data
        at, size = 0, len(data)
        if size > incoming.room:
            return self._stop(data, 0, new)
        cut = incoming.cut
        while at < size:
            events = cut(data, at)
            if not events.raws:
                if not incoming.is_part(data[at:]):
                    return self._stop(data, at, new)
                break
            count, end = len(events.ends), events.ends[-1]
            if count == 1 and end == size:  # nearly always
                taken, steps = self._read_last(judge, events, now)
            else:
                taken, steps = self._read(judge, events, now, more=end < size)
            at = events.ends[taken - 1] if taken else at
            if steps is not None or taken < count:
                return self._stop(data, at, new, steps)
        self._part = data[at:] if at < size else b""
        incoming.count(new)
        self._row.release(judge, self._free, now)
        return self._look_after()

    def _read(self, judge: Judge, events: Cut, now: float, *, more: bool) -> tuple[int, Steps | None]:
        """Read events until something is to be carried out, or others are to have their turn.

        Returns:
            How many, and what is to be carried out, None: nothing.
        """
        meter, holdback = self._meter, judge.holdback
        at, size = 0, len(events.texts)
        while at < size:
            start, end, checks = holdback.received, at, None
            if size - at > 1:
                end, checks = self._read_some(judge, events.texts, at)
            if checks is None:
                end, checks = at + 1, self._read_one(judge, events.texts[at])
                if checks is None:
                    break
            self._room -= holdback.received - start
            self._row.put(events, at, end, start, now)
            steps = self._follow(judge, checks, end - at)
            at = end
            if steps is not None:
                return at, steps
            if meter.spent >= meter.stops_at or ((more or at < size) and meter.pauses):
                return at, iter(())
        return at, None

    def _read_last(self, judge: Judge, events: Cut, now: float) -> tuple[int, Steps | None]:
        """Read the one event that is left of what has come; return what `_read` does."""
        meter, text = self._meter, events.texts[0]
        checks = self._read_one(judge, text)
        if checks is None:
            return 0, None
        self._room -= len(text)
        self._row.put_one(events, text, judge.holdback.received, now)
        steps = self._follow(judge, checks, 1)
        return 1, steps if steps is not None or meter.spent < meter.stops_at else iter(())

    def _follow(self, judge: Judge, checks: list[Check], count: int) -> Steps | None:
        """Do what follows from so many events that were read; return what is to be carried out, None: nothing."""
        meter = self._meter
        meter.spent += _WORK + _EVENT_WORK * count
        if judge.unread_work > _WORK:
            meter.spent += judge.take_work()
        if checks:
            self._course.answer.ask(judge, checks)
        self._free = free = judge.holdback.releasable
        if judge.rests(free):
            return None
        steps = self._decide(judge, judge)
        self._free = judge.holdback.releasable
        return steps

    def _read_some(self, judge: Judge, texts: Sequence[str], at: int) -> tuple[int, list[Check] | None]:
        """Read the texts of some events as one, if they are of known words and nothing could be decided between them.

        Returns:
            Up to which, and the checks that they make due; None: none was read.
        """
        text = "".join(texts[at : at + self._most])
        left = min(judge.ahead, judge.steady_to - judge.holdback.received - 1)
        if left >= len(text):
            checks = judge.feed_words(text)
            if checks is not None:
                count = min(self._most, len(texts) - at)
                self._most = min(2 * self._most, _MOST_AT_ONCE)
                return at + count, checks
            left = judge.words_in(text)
        edges = list(accumulate(map(len, texts[at : at + self._most])))
        end = bisect_right(edges, left)
        self._most = 2 * end + 2
        return at + end, judge.feed_words(text[: edges[end - 1]]) if end > 1 else None

    def _read_one(self, judge: Judge, text: str) -> list[Check] | None:
        """Read the text of one event; return the checks that it makes due, None where it takes steps."""
        chars = len(text)
        if chars > self._room:
            self._room = judge.ahead
        return judge.feed(text) if chars <= FEW_CHARS and chars <= self._room else None

    def _decide(self, judge: Judge, decides: Judge) -> Steps | None:
        """Take the decisions that can be taken now; return what is to be carried out, None: nothing.

        Args:
            judge: Has the text.
            decides: The same, or one that follows it.
        """
        checking = self._checking
        rulings = checking.advance_some(decides)
        while decides.behind and not rulings and not checking.meter.pauses:
            rulings = checking.advance_some(decides)
        if rulings or decides.behind or not judge.unedited:
            return self._course.decisions.carrying_out(decides, rulings)
        return None

    # --- scores

    def _hear(self, judge: Judge, asker: Judge, event: Scored, now: float) -> list[AnyCommand] | None:
        """Take an answer of classifiers to a question that was asked for the text, or for one that follows it."""
        self._begin_turn(now)
        self._checking.answered(event)
        steps = self._decide(judge, asker)
        if steps is not None:
            return self._stop(b"", 0, 0, steps)
        self._free = judge.holdback.releasable
        self._row.release(judge, self._free, now)
        return self._look_after()

    # --- what follows

    def _look_after(self) -> list[AnyCommand] | None:
        """Keep what waits within its bounds, and return what is to be done."""
        scored, watch, checking = self._scored, self._watch, self._checking
        held = self._course.bytes_held + self._row.bytes_held
        if not watch.looks_after(held, scored=scored) and watch.holds_too_much(held, scored=held > 0 and scored):
            return self._stop(b"", 0, 0)
        if scored and checking.waiting:
            watch.arm()
        return checking.commands

    def _end(self) -> None:
        """Go on as ever: another event comes."""
        self._judge = None
        self._seen = self._row.give_back() or self._seen
        self._incoming.keep(self._part)
        self._part = b""

    def _stop(self, data: bytes, at: int, new: int, steps: Steps | None = None) -> list[AnyCommand] | None:
        """Be calm no more, and do some steps; of some bytes, so many of them new, those before `at` have been taken."""
        part = len(data) - new
        if at:
            self._part = b""
        elif part:
            data = data[part:]
        if new:
            self._incoming.count(max(at - part, 0))
        self.rest = self._going_on(self._checking.commands, steps, data[at:])
        self._end()
        return None

    def _going_on(self, commands: Sequence[AnyCommand], steps: Steps | None, data: bytes) -> Steps:
        """Ask for what was asked for already, carry out what is to be carried out, and take the rest of some bytes."""
        checking = self._checking
        checking.commands += commands
        if steps is not None:
            yield from steps
            self._incoming.look_whether_cut_off()
        if checking.meter.pauses:
            yield
        if data:
            yield from self._incoming.take_stream_bytes(data)
