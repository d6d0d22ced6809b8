"""The queue between decisions and the wire: which units wait, and in which order they leave.

Order holds within a choice; another choice may overtake a held one. A unit that speaks of the stream as a
whole (usage, terminator) leaves when all before it have left, and nothing overtakes it. What a unit becomes as
it leaves is the `Writer`'s.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator

from checkstream.core.channel.judge import Judge
from checkstream.core.exchange.midstream.choice import Choice
from checkstream.core.exchange.midstream.order import ChoiceQueue
from checkstream.core.exchange.midstream.rendering import RENDERED_CHARS
from checkstream.core.exchange.midstream.waiting import CALL, Part, Released, Waiting
from checkstream.core.exchange.midstream.writer import Writer
from checkstream.core.steps import done
from checkstream.core.terms import COMMON, Channel
from checkstream.errors import WireError

MOST_UNITS = 128
"""That leave at a time, or as many texts in fewer."""
_EDITED_UNITS = 8
"""What a unit counts for that does not leave as it came ..."""
_BYTES_A_UNIT = 512
"""... and what so many bytes of it count for besides."""


class Outbox:
    """The units of one answer that wait."""

    __slots__ = (
        "_choices",
        "_holds_end",
        "_lost",
        "_queue",
        "_rendering",
        "_turning",
        "_writer",
        "behind",
        "breaks_off",
        "bytes_held",
        "call_bytes_held",
        "calls_whole",
        "fault",
        "looked",
    )

    def __init__(self, writer: Writer, choices: dict[int, Choice]) -> None:
        """Start empty.

        Args:
            writer: Writes what leaves.
            choices: The answer's own table of choices.
        """
        self._writer = writer
        self._rendering = writer.rendering
        self._choices = choices
        self._queue: ChoiceQueue[Waiting] = ChoiceQueue()
        self._turning: Judge | None = None
        self._holds_end = False
        self._lost: set[int] = set()
        """Choices that have come to text which will never be decided."""
        self.looked = 0
        """Texts that were looked at in the last release, whether or not they could leave."""
        self.behind = False
        """The last release has taken as many units as one may."""
        self.breaks_off = False
        """The stream ends with an error: of a choice nothing is sent behind text that will never be decided, and no
        last word, which would make it look complete."""
        self.bytes_held = 0
        """Bytes of units that wait for decisions."""
        self.call_bytes_held = 0
        """Bytes of units that wait for a tool call to be whole."""
        self.calls_whole = True
        """A tool call leaves when it is whole and decided; False: as its text is released."""
        self.fault: str | None = None
        """Why a unit could not be edited as the policy wants; it and all that waited behind it were dropped."""

    def __len__(self) -> int:
        """Return how many units wait."""
        return len(self._queue) + (self._rendering.waiting is not None)

    @property
    def since(self) -> float | None:
        """When the unit came that has waited for longest, seconds; None: none waits."""
        first = self._rendering.waiting or self._queue.first
        return None if first is None else first.arrived

    def put(self, waiting: Waiting) -> None:
        """Add a unit at the end."""
        self._queue.put(waiting, waiting.unit.choices)
        self._count(waiting, 1)
        self._writer.know(waiting.unit)

    def _count(self, waiting: Waiting, sign: int) -> None:
        """Count a unit in, or out again."""
        if waiting.called:
            self.call_bytes_held += sign * len(waiting.unit.raw)
        else:
            self.bytes_held += sign * len(waiting.unit.raw)

    def _clear(self) -> None:
        """Drop all that waits."""
        self._queue.clear()
        self._rendering.clear()
        self.bytes_held = self.call_bytes_held = 0

    def release(self, now: float, *, holds_end: bool = False) -> Released | None:
        """Take out what may leave now, up to `MOST_UNITS` (see `behind`); None when nothing may.

        Args:
            now: Seconds.
            holds_end: Keep the surface's last word: something is still to be said before it.
        """
        self._holds_end = holds_end
        data: list[bytes] = []
        held_s = 0.0
        taken, self.behind, self.looked = 0, self._writer.forgets(), 0
        if self.behind:
            return None
        self._queue.begin()
        while (waiting := self._next()) is not None:
            try:
                left = self._left(waiting)
            except WireError as error:
                # What can't be edited must not leave as it came, and what stands behind it not without it.
                self.fault = str(error)
                self._clear()
                break
            if left is None:
                self.behind = True
                break
            data += left
            taken += 1 + len(waiting.parts) // 2
            if left != [waiting.unit.raw]:
                taken += _EDITED_UNITS + len(waiting.unit.raw) // _BYTES_A_UNIT
            if self._rendering.waiting is not None:
                self._rendering.clear()
            if not waiting.called:  # nobody can act on half a call: that it comes whole delays nothing
                held_s = max(held_s, now - waiting.arrived)
            if taken >= MOST_UNITS:
                self.behind = True
                break
        joined = b"".join(data)
        return Released(joined, held_s) if joined else None

    # --- while nothing is to be decided

    def only(self, number: int) -> deque[Waiting] | None:
        """Return what waits, in order, if all of it is of one choice and leaves as it came; else None."""
        if self.breaks_off or self._turning is not None or self.call_bytes_held or self.fault is not None:
            return None
        if self._writer.turned or self._writer.forgets() or self._rendering.waiting is not None:
            return None
        return self._queue.only(number)

    def let_go(self, waiting: Waiting) -> bytes:
        """Take out the first of what `only` has returned, which is plain; return what is sent of it."""
        self._queue.drop()
        self.bytes_held -= len(waiting.unit.raw)
        self._choices[waiting.unit.choices[0]].like = waiting.unit
        return self._writer.as_it_came(waiting)

    def _next(self) -> Waiting | None:
        return self._rendering.waiting or self._queue.pop(self._ready)

    def _left(self, waiting: Waiting) -> list[bytes] | None:
        """Return what is sent of a unit; of a long one some is written, and None returned until all is.

        Raises:
            WireError: it can't be edited as the policy wants.
        """
        rendering = self._rendering
        if not rendering.is_writing:
            long = len(waiting.unit.raw) > RENDERED_CHARS
            if long and not rendering.is_done(waiting):
                return None
            self._count(waiting, -1)
            self._writer.remember(waiting.unit)
            if self._is_plain(waiting) and not (long and self._writer.sending.alters):
                return [self._writer.as_it_came(waiting)]
            if not long:
                return done(self._leaving(waiting))
            rendering.begin(waiting, self._leaving(waiting))
        return rendering.go_on()

    def _leaving(self, waiting: Waiting) -> Generator[None, None, list[bytes]]:
        """Return, in steps, what is sent of a unit.

        Raises:
            WireError: it can't be edited as the policy wants.
        """
        if self._is_behind_turn(waiting):
            spoken = self._writer.spoken(waiting) if waiting.unit.choices else []
            self._clear()
            return spoken
        if self._is_lost(waiting):
            return self._writer.remains(waiting)
        if self._is_speech(waiting):
            return self._writer.spoken(waiting)
        return (yield from self._writer.editing(waiting))

    def _is_plain(self, waiting: Waiting) -> bool:
        """Tell whether a unit is the common one: more text of one choice, with nothing to change or to add."""
        unit = waiting.unit
        if unit.finished or len(unit.choices) != 1:
            return False
        if self._writer.turned or self.breaks_off or self._turning is not None:
            return False
        choice = self._choices[unit.choices[0]]
        if choice.closed or choice.halt is not None or not choice.begun:
            return False
        for part in waiting.parts:
            if part.judge is None or part.judge.holdback.cut is not None or part.judge.holdback.replacements.items:
                return False
        return True

    def _ready(self, waiting: Waiting) -> bool:
        self.looked += 1 + len(waiting.parts)
        if self._holds_end and waiting.unit.terminator and self._turning is None:
            return False
        for part in waiting.parts:
            if part.judge is None:
                continue
            holdback = part.judge.holdback
            if part.judge.channel.kind in CALL and not self._call_decided(part.judge.channel):
                return False
            end = part.end if holdback.cut is None else min(part.end, holdback.cut)
            if holdback.releasable < end:
                return False
            # The end of a choice carries its disclaimers, whoever has ended it.
            number = part.judge.channel.choice
            if end < part.end and self._is_halted(number) and not self._complete(number):
                return False
        return all(self._complete(choice) for choice in waiting.unit.finished)

    def _call_decided(self, channel: Channel) -> bool:
        """Tell whether nothing more comes of a tool call, and every decision on it has been taken."""
        choice = self._choices[channel.choice]
        if not self.calls_whole or channel.call in choice.dropped:
            return True
        is_over = not choice.running or channel.call in choice.over
        return is_over and all(judge.complete for judge in choice.calls[channel.call])

    def _is_halted(self, number: int) -> bool:
        return number != COMMON and self._choices[number].halt is not None

    def _complete(self, number: int) -> bool:
        """Tell whether every decision that could still add to a finished choice has been taken."""
        choice = self._choices.get(number)
        return choice is None or choice.decided

    def take_whole(self) -> Waiting:
        """Take out the one unit of a whole answer, all of whose decisions have been taken."""
        waiting = self._queue.pop(lambda _: True)
        if waiting is None:
            raise AssertionError("a whole answer is written when all of it has been decided")
        self._count(waiting, -1)
        return waiting

    # --- answers that are continued

    def turn(self, judge: Judge) -> None:
        """Send nothing behind the place at which `judge` has cut its channel."""
        self._turning = judge

    def go_on(self, spent: tuple[int, int]) -> None:
        """Send what comes from here on as the rest of the same answer, which has cost so much before."""
        self._turning = None
        self._writer.turned = True
        self._writer.sending.go_on()
        self._writer.spent = spent

    def _is_behind_turn(self, waiting: Waiting) -> bool:
        """Tell whether a unit holds the place at which the answer turns, or stands behind it."""
        if self._turning is None:
            return False
        cut = self._turning.holdback.cut
        beyond = any(part.judge is self._turning and cut is not None and part.end > cut for part in waiting.parts)
        return beyond or bool(waiting.unit.finished) or not waiting.unit.choices

    def _is_speech(self, waiting: Waiting) -> bool:
        """Tell whether a unit of a continued answer carries nothing but more of its content."""
        unit = waiting.unit
        return (
            self._writer.turned
            and not self._writer.sending.tells_rest
            and unit.choices == (0,)
            and not unit.finished
            and not self._choices[0].closed
            and all(_is_before_end(part) for part in waiting.parts)
        )

    # --- answers that end with an error

    def _is_lost(self, waiting: Waiting) -> bool:
        """Tell whether a unit stands behind text that will never be decided, or holds where it begins."""
        if not self.breaks_off:
            return False
        unit = waiting.unit
        for part in waiting.parts:
            # Nobody is to act on a call whose answer ends with an error.
            if part.judge is not None and (
                part.judge.channel.kind in CALL or part.judge.holdback.torn_before(part.end)
            ):
                self._lost.update((part.judge.channel.choice, *unit.choices))
        for number in unit.finished:
            if any(judge.holdback.torn_before(judge.holdback.received) for judge in self._choices[number].judges):
                self._lost.add(number)
        return not unit.choices or not self._lost.isdisjoint(unit.choices)


def _is_before_end(part: Part) -> bool:
    """Tell whether a stretch is content, and stands before the place where a rule has ended it, if one has."""
    if part.judge is None or part.judge.channel.kind != "content":
        return False
    cut = part.judge.holdback.cut
    return cut is None or part.end <= cut
