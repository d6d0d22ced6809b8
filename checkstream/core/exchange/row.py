"""What waits of a calm answer: events that have one text and nothing else, one behind the other.

No unit is made of them unless somebody has to look at one.
"""

from __future__ import annotations

from collections import deque

from checkstream.core.channel.judge import Judge
from checkstream.core.exchange.course import Course
from checkstream.core.exchange.leaving import Leaving
from checkstream.core.exchange.midstream.outbox import MOST_UNITS
from checkstream.core.exchange.midstream.waiting import Part, Waiting
from checkstream.core.terms import Unit
from checkstream.core.wire.moulds import Cut, Moulds

_Event = tuple[int, float, bytes, str, int | None]
"""Where its text ends, when it came (seconds), its bytes and its text, and which of its stream it is, if it says so."""


class Row:
    """Events of one text, behind the units of that text that wait in the outbox."""

    __slots__ = ("_course", "_events", "_judge", "_leaving", "_like", "_looked_at", "_moulds", "_units", "bytes_held")

    def __init__(self, course: Course, leaving: Leaving) -> None:
        """Begin with none."""
        self._course = course
        self._leaving = leaving
        self._judge: Judge | None = None
        self._moulds = Moulds()
        self._units: deque[Waiting] = deque()
        self._events: deque[_Event] = deque()
        self._like = False
        """The choice knows one of the events."""
        self._looked_at = False
        """Each is looked at as it leaves: more than its text is different, or it may leave otherwise than it came."""
        self.bytes_held = 0
        """Bytes of the events."""

    def begin(self, judge: Judge, units: deque[Waiting], moulds: Moulds) -> None:
        """Begin behind some units.

        Args:
            judge: Has the text.
            units: What the outbox has, in order; it is its own.
            moulds: Has cut the events, and makes units of them.
        """
        self._judge, self._units, self._moulds, self._like = judge, units, moulds, False
        self._looked_at = moulds.varies or self._course.writer.sending.alters

    def put(self, cut: Cut, low: int, high: int, start: int, now: float) -> None:
        """Add some events at the end, the text of the first of which begins at `start`."""
        raws, texts, numbers = cut.raws, cut.texts, cut.numbers
        for at in range(low, high):
            text, raw = texts[at], raws[at]
            start += len(text)
            self._events.append((start, now, raw, text, numbers[at] if numbers else None))
            self.bytes_held += len(raw)

    def put_one(self, cut: Cut, text: str, end: int, now: float) -> None:
        """Add an event that came alone at the end, whose text ends at `end`."""
        raw, numbers = cut.raws[0], cut.numbers
        self._events.append((end, now, raw, text, numbers[0] if numbers else None))
        self.bytes_held += len(raw)

    def give_back(self) -> Waiting | None:
        """Have all wait in the outbox; return the last, None: there is none."""
        judge, last = self._judge, None
        for end, arrived, raw, text, number in self._events:
            unit = self._moulds.unit(raw, text, number)
            last = Waiting(unit, (Part(judge, end - len(text), end),), arrived)
            self._course.outbox.put(last)
        self._events.clear()
        self.bytes_held = 0
        return last

    def release(self, judge: Judge, releasable: int, now: float) -> None:
        """Send what may leave of a text, so much at a time as leaves at a time otherwise."""
        events = self._events
        if self._units:
            while self._send(judge, releasable, now):
                pass
        elif events and events[0][0] <= releasable:
            if len(events) > 1 and events[1][0] <= releasable:
                while self._send(judge, releasable, now):
                    pass
            else:  # nearly always
                event = events.popleft()
                self._leaving.send(self._let_go(judge, event), now - event[1])

    def _send(self, judge: Judge, releasable: int, now: float) -> bool:
        """Send some of the text before `releasable`; tell whether there may be more."""
        units, events = self._units, self._events
        data: list[bytes] = []
        held_s = 0.0
        if units:
            held_s = now - units[0].arrived
            while units and units[0].parts[0].end <= releasable and len(data) < MOST_UNITS:
                data.append(self._course.outbox.let_go(units[0]))
        if events and events[0][0] <= releasable and len(data) < MOST_UNITS:  # then all units, before them, have left
            if not data:
                held_s = now - events[0][1]
            some = [events.popleft()]
            while events and events[0][0] <= releasable and len(data) + len(some) < MOST_UNITS:
                some.append(events.popleft())
            data += self._let_some_go(judge, some)
        if not data:
            return False
        self._leaving.send(data[0] if len(data) == 1 else b"".join(data), held_s)
        return len(data) >= MOST_UNITS

    def _let_go(self, judge: Judge, event: _Event) -> bytes:
        """Return what is sent of an event, which leaves as it came."""
        end, _, raw, text, number = event
        self.bytes_held -= len(raw)
        self._course.writer.let_go(judge, end, text)
        if self._like and not self._looked_at:
            return raw
        unit = self._moulds.unit(raw, text, number)
        self._know(unit, judge)
        return self._course.writer.sending.as_it_came(unit)

    def _let_some_go(self, judge: Judge, some: list[_Event]) -> list[bytes]:
        """Return what is sent of some events."""
        if self._looked_at:
            return [self._let_go(judge, each) for each in some]
        raws = [each[2] for each in some]
        self.bytes_held -= sum(map(len, raws))
        end, _, raw, text, number = some[-1]
        self._course.writer.let_go(judge, end, "".join([each[3] for each in some]))
        if not self._like:
            self._know(self._moulds.unit(raw, text, number), judge)
        return raws

    def _know(self, unit: Unit, judge: Judge) -> None:
        """Keep an event that has left in mind: other events of its choice have its ids."""
        self._like = True
        self._course.answer.choice(judge.channel.choice).like = unit
