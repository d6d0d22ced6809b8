"""What comes of the upstream: bytes become units, units go to the answer's channels, caps and fail mode apply."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence

import msgspec

from checkstream.core.commands import Observe
from checkstream.core.exchange.body import Body
from checkstream.core.exchange.course import Course, Ending, State
from checkstream.core.exchange.meter import DONE, Steps
from checkstream.core.exchange.midstream.blocks import Blocks
from checkstream.core.exchange.untouched import leaving_as_it_came
from checkstream.core.steps import dropping
from checkstream.core.terms import Channel, Unit
from checkstream.core.wire.framing import PIECE_WORK, Decoder, pieces
from checkstream.core.wire.json_text.size import COUNTING_WORK, counting
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.moulds import Cut, Moulds
from checkstream.core.wire.surface import Frame, Receiving
from checkstream.errors import EventTooLarge, WireError

_FRAME_WORK = 20
"""Of an event that is read (see `match.work`)."""
_BYTES_A_UNIT = 500
_BYTES_READ = 250
_LONGEST_MOULD = 65_536
"""Bytes of an event by which others are read: more is not repeated thousands of times."""
_EXTRAS_A_STEP = 4096
_MOST_SHORT_BYTES, _MOST_OPENED = 12_288, 64
"""Of an event that is read in one step: bytes, and containers in it, each of which has a place that may be long."""
_READING_WORK = 300
"""Of a step of reading a long event."""
_TEXT_WORK = 6
"""Of one text that an event was found to have; any other value is one unit."""


class Incoming:
    """The upstream's side of one exchange."""

    def __init__(self, course: Course) -> None:
        """Begin before the first byte."""
        self._course = course
        self._decoder = self._made()
        self._moulds = Moulds()
        self._receiving: Receiving | None = None
        self._body = Body()
        self._left_bytes = course.plan.answer_bytes

    def _made(self) -> Decoder:
        surface = self._course.surface
        return surface.framing.decoder(self._course.plan.event_bytes, surface.events)

    def begin_anew(self) -> None:
        """Read another answer: the request was sent again."""
        self._decoder = self._made()
        self._moulds = Moulds()
        self._course.blocks = Blocks()
        self._receiving = None
        self._body = Body()

    @property
    def _answer(self) -> Receiving:
        """What reads the answer, once the request is known."""
        if self._receiving is None:
            self._receiving = self._course.surface.receiving(self._course.prompt.request)
        return self._receiving

    @property
    def memory(self) -> Sequence[object]:
        """What is kept in mind of what has come."""
        return () if self._receiving is None else self._receiving.memory

    # --- streams

    def take_stream_bytes(self, data: bytes) -> Steps:
        """Read bytes of an event stream."""
        course = self._course
        if self._is_unwanted():
            return
        course.watch.heard()
        room = self._left_bytes
        self._left_bytes -= len(data)
        # What came before the cap counts, wherever the network has cut.
        for piece in pieces(data if len(data) <= room else data[:room]):
            for frame in self._decode(piece):
                known = self._moulds.read(frame)
                left = self._take_alike(known) if known is not None else None
                if left is not DONE:
                    yield from self._take_frame(frame, known) if left is None else left
                if self._is_over():
                    return
                if course.checking.meter.pauses:
                    yield
            if piece is not data:
                course.checking.meter.spend(PIECE_WORK)
                yield
        if not self._is_over():
            self._look_whether_too_much(len(data) - room)

    # --- events like the last one

    @property
    def latest(self) -> tuple[Channel, Path] | None:
        """Whose text the events have that may be like the last ones, and where; None: none may be."""
        may_be = self._decoder.gives_back and self._course.blocks.goes_on(self._moulds.latest_block)
        return self._moulds.latest if may_be else None

    @property
    def moulds(self) -> Moulds:
        """What is known of events like the last ones."""
        return self._moulds

    def cut(self, data: bytes, at: int) -> Cut:
        """Return the events like the last ones that begin at a place of some bytes."""
        return self._moulds.cut(data, at, self._decoder.next_of)

    def give_back(self) -> bytes:
        """Return what has come of an unfinished event, which is put before what comes or brought back by `keep`."""
        return self._decoder.give_back()

    def is_part(self, data: bytes) -> bool:
        """Tell whether bytes that begin an event are a part of it alone."""
        return self._decoder.is_part(data)

    def keep(self, part: bytes) -> None:
        """Keep a part of an event until the rest comes."""
        if part:
            self._decoder.decode(part)

    @property
    def room(self) -> int:
        """So many bytes may come and be one event."""
        most, left = self._course.plan.event_bytes, self._left_bytes
        return left if left < most else most

    def count(self, size: int) -> None:
        """Note that so many bytes have been taken."""
        self._course.watch.heard()
        self._left_bytes -= size

    # --- bytes

    def _look_whether_too_much(self, beyond: int) -> None:
        """Fail where the answer, or one event of it, is longer than it may be; `beyond`: bytes that were not read."""
        course = self._course
        if beyond > 0:
            course.fail("answer_too_large", f"the answer passed {course.plan.answer_bytes} bytes")
        elif self._decoder.fault is not None:
            course.fail("upstream_error", str(self._decoder.fault))

    def _decode(self, data: bytes) -> list[Frame]:
        try:
            return self._decoder.decode(data)
        except EventTooLarge as error:
            self._course.fail("upstream_error", str(error))
            return []

    def _is_over(self) -> bool:
        """Tell whether nothing more is wanted of this upstream: what comes behind the last word is no answer's part."""
        return self._is_unwanted() or self._has_last_word

    def _is_unwanted(self) -> bool:
        """Tell whether nothing more is wanted of this upstream: the answer is ending, or turns."""
        return self._course.ending is not None or self._course.answer.turning is not None

    @property
    def _has_last_word(self) -> bool:
        """The upstream has said its last word, before which something is still to be said."""
        return self._course.answer.terminated and self._course.holds_end

    def has_ended(self) -> bool:
        """End the stream where its last word waits for ours; tell whether it does. The upstream may take its time."""
        course = self._course
        if self._has_last_word and not course.checking.waiting:
            course.begin_closing(Ending("complete"))
            return True
        return False

    def end_stream(self) -> Steps:
        """Hear that an event stream has ended as HTTP says it should."""
        course = self._course
        course.upstream_open = False
        try:
            frames = self._decoder.flush()
        except EventTooLarge as error:
            course.fail("upstream_error", str(error))
            return
        for frame in frames:
            if frame.data and not self._is_unwanted():
                yield from self._take_frame(frame, self._moulds.read(frame))
        if not self._is_unwanted():
            course.begin_closing(self._ended())

    def _ended(self) -> Ending:
        """Return how what has come ends: a stream that has said neither a last word nor an error has broken off.

        Where some servers leave the last word out, that each choice has ended says it, too.
        """
        course = self._course
        choices = course.answer.choices.values()
        said = not course.surface.has_last_word and choices and all(choice.finished for choice in choices)
        if course.answer.terminated or said or course.ledger.upstream_failure is not None:
            return Ending("complete")
        course.ledger.upstream_failure = "no_end"
        message = "the upstream ended its stream before the answer was over"
        return Ending("upstream_failed", ("upstream_error", message, None))

    def _take_alike(self, unit: Unit) -> Iterable[None] | None:
        """Take an event like others before it; return what is left to do, None where more is to be: nothing is done."""
        left = self._course.intake.take_more(unit) if self._course.blocks.goes_on(unit.block) else None
        if left is not None:
            self._course.checking.meter.spent += _FRAME_WORK
            if left is not DONE:
                return self._ended_by(left)
        return left

    def _ended_by(self, steps: Iterable[None]) -> Steps:
        yield from steps
        self.look_whether_cut_off()

    def _take_frame(self, frame: Frame, known: Unit | None) -> Steps:
        """Take an event, and those that have waited for it; `known`: its unit, where it is like others before it."""
        yield from self._taking(frame, known, waited=False)
        while following := self._course.blocks.following():
            for each in following:
                if self._is_unwanted():
                    return
                yield from self._taking(each, self._moulds.read(each), waited=True)
                yield

    def _taking(self, frame: Frame, known: Unit | None, *, waited: bool) -> Steps:
        """Take an event, if it has to wait for no other; `waited`: it has."""
        course = self._course
        course.checking.meter.spend(_FRAME_WORK + (len(frame.raw) + len(frame.data or b"")) // _BYTES_A_UNIT)
        try:
            if known is not None:
                unit = None if self._course.blocks.waits(frame, known, waited=waited) else known
            else:
                unit = yield from self._read(frame, waited=waited)
            if unit is None:
                return
            reason = "event of an unknown type" if unit.opaque else None
        except WireError as error:
            unit, reason = Unit(raw=frame.raw), str(error)
        if reason is not None:
            if course.plan.fail_mode == "closed":
                course.fail("upstream_error", f"the upstream sent an event that can't be checked: {reason}")
                return
            course.ledger.unscanned("midstream:opaque_event")
        yield from course.intake.take(unit)
        self.look_whether_cut_off()

    def _read(self, frame: Frame, *, waited: bool) -> Generator[None, None, Unit | None]:
        """Return the unit of an event, with what of it rules must judge as deltas; None: it waits for others.

        Raises:
            WireError: the surface does not allow it.
        """
        course = self._course
        data = frame.data
        if data is not None and _is_long(data):
            yield
            for _ in counting(data):
                course.checking.meter.spend(COUNTING_WORK + len(data) // _BYTES_READ)
                yield
            read = yield from course.checking.meter.stepping(self._answer.reading_event(frame), _READING_WORK)
        else:
            read = self._answer.read_event(frame)
        if self._course.blocks.waits(frame, read, waited=waited):
            return None
        self._moulds.forget_others(read)
        course.checking.meter.spend(_TEXT_WORK * len(read.deltas) + len(read.extras) + len(frame.raw) // _BYTES_READ)
        if data is not None and _is_long(data):
            yield
        unit = yield from course.answer.sieve.sift(read)
        if not course.answer.sieve.extras.calm:
            self._moulds = Moulds()  # what they say of other fields goes on from here
        elif not read.shadows and len(frame.raw) <= _LONGEST_MOULD:
            self._moulds.learn(frame, unit)
        return unit

    def look_whether_cut_off(self) -> None:
        """Cut the upstream off when a rule has ended the last choice that ran, or has turned the answer."""
        course = self._course
        if course.answer.turning is not None:
            course.cancel_upstream()
        elif course.answer.cut_off and (course.state is State.STREAMING or course.answer.turned_down):
            course.cancel_upstream()
            if course.state is not State.CLOSING:
                since = course.outbox.since  # what is condemned has not left, so it waits, or came just now
                course.do(Observe("cutoff_seconds", 0.0 if since is None else course.now - since))
            course.ending = Ending("stopped", terminate=True)
            course.state = State.CLOSING

    # --- whole answers

    def take_whole_bytes(self, data: bytes) -> None:
        """Read bytes of an answer that is not streamed."""
        self._body.add(data)
        if len(self._body) > self._course.plan.answer_bytes:
            message = f"the answer passed {self._course.plan.answer_bytes} bytes"
            self._course.fail("answer_too_large", message)

    def end_whole(self) -> Steps:
        """Hear that a whole answer is there."""
        course = self._course
        course.upstream_open = False
        body = self._body.data
        course.checking.meter.spend(len(body) // _BYTES_A_UNIT)
        yield
        failed = course.status >= 400
        if failed:
            course.ledger.upstream_failure = f"status_{course.status}"
        try:
            unit = yield from self._whole(body)
        except WireError as error:
            self._take_unreadable(body, str(error))
            return
        course.state = State.CLOSING
        course.ending = Ending("upstream_failed" if failed and not unit.choices else "complete")
        if not (yield from leaving_as_it_came(course, unit)):
            yield from course.intake.take(unit)
            yield from course.endings.end_common()

    def _whole(self, body: bytes) -> Generator[None, None, Unit]:
        """Return a whole answer with what of it rules must judge as deltas, and forget the rest of it in steps.

        Raises:
            WireError: the surface does not allow it.
        """
        meter = self._course.checking.meter
        read = yield from meter.stepping(self._answer.reading_whole(body), COUNTING_WORK)
        found, unit, fault = list(read.extras), None, ""
        try:
            unit = yield from self._course.answer.sieve.sift(read, whole=True)
            unit = msgspec.structs.replace(unit, extras=())
        except WireError as error:
            fault = str(error)  # the error itself holds all that was read
        del read
        yield from meter.stepping(dropping(found, _EXTRAS_A_STEP), COUNTING_WORK)
        if unit is None:
            raise WireError(fault)
        return unit

    def _take_unreadable(self, body: bytes, reason: str) -> None:
        """Let the fail mode decide on a body that is not the surface's; an error status stays what it was."""
        course = self._course
        if course.plan.fail_mode == "open":
            course.ledger.unscanned("midstream:body")
            course.reply(course.status, body, "upstream_failed" if course.status >= 400 else "complete")
        elif course.status >= 400:
            message = f"the upstream answered with status {course.status} and a body that can't be checked"
            course.reply(course.status, course.surface.error_body("upstream_error", message), "upstream_failed")
        else:
            course.fail("upstream_error", f"the upstream sent an answer that can't be checked: {reason}")


def _is_long(data: bytes) -> bool:
    """Tell whether an event is read in steps."""
    return len(data) > _MOST_SHORT_BYTES or data.count(b"{") + data.count(b"[") > _MOST_OPENED
