"""Units of the answer that wait for their text to be decided, and the order in which they leave.

Order holds within a choice; another choice may overtake a held one. A unit that speaks of the stream as a
whole (usage, terminator) leaves when all before it have left, and nothing overtakes it. A unit whose text
nobody changed leaves as the bytes it came in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from checkstream.core.channel.actions import Halt
from checkstream.core.channel.holdback import Holdback
from checkstream.core.channel.judge import Judge
from checkstream.core.exchange.closing import Closing, Said
from checkstream.core.exchange.heard import Heard
from checkstream.core.exchange.order import ChoiceQueue
from checkstream.core.terms import COMMON, Channel, Delta, Unit
from checkstream.core.wire.json_spans import Path
from checkstream.core.wire.surface import Edit, Surface
from checkstream.errors import WireError

MOST_UNITS = 128
"""That leave at a time, or as many texts in fewer."""
_RENDERED_CHARS = 8192
"""Of an edited text, that are written in one step."""
CALL = frozenset({"tool_name", "tool_arguments"})
"""Channels of a tool call."""


class Part(msgspec.Struct, frozen=True):
    """The stretch of a channel that one delta of a unit carries; `judge` is None for text of a stopped choice."""

    judge: Judge | None
    start: int
    end: int


class Waiting(msgspec.Struct, frozen=True):
    """A unit and the channels' stretches that it carries."""

    unit: Unit
    parts: tuple[Part, ...]
    arrived: float
    """When it came, seconds."""
    called: bool = False
    """It belongs to a tool call, or stands behind one that goes on: it waits for that call to be whole."""


class Choice(msgspec.Struct):
    """What the guard knows of one choice of the answer."""

    judges: list[Judge] = msgspec.field(default_factory=list)
    calls: dict[int, list[Judge]] = msgspec.field(default_factory=dict)
    """Number of a tool call -> the judges of its name and arguments."""
    dropped: set[int] = msgspec.field(default_factory=set)
    """Tool calls of which nothing may leave: blocked by a rule, or torn."""
    functions: set[int] = msgspec.field(default_factory=set)
    """Tool calls whose arguments are JSON; what else is called takes any text."""
    calling: set[int] = msgspec.field(default_factory=set)
    """Tool calls that may still go on: the one that has begun last, and those that have gone on since."""
    calls_nothing: bool = False
    """Its finish reason says that tools are called, and no call is left."""
    withheld: str = ""
    """Stands in place of calls that the upstream has left torn."""
    halt: Halt | None = None
    """A rule has ended it; what follows in it is never sent."""
    says_why: bool = True
    """The message of that rule is added: not to half an object, where clients take it for one of its values."""
    finished: bool = False
    """The upstream has given its finish reason."""
    at_once: bool = False
    """All of it has come in one unit, its end included."""
    closed: bool = False
    """Its last unit has been released."""
    begun: bool = False
    """Some of its content has been released."""
    inserted: set[str] = msgspec.field(default_factory=set)
    """Texts that have been put behind sentences of it."""
    trailing: list[str] = msgspec.field(default_factory=list)
    """Texts that belong behind its last sentence."""
    closings: list[Closing] = msgspec.field(default_factory=list)
    """Texts that wait for its end."""
    like: Unit | None = None
    """Its latest unit that has left before its end: other events of it have the same ids."""
    said: Said | None = None
    """Reads what is sent of it, where a closing counts only if the answer doesn't have it."""

    def last_words(self) -> str:
        """Return what is added at its end: the message of the rule that has ended it, and what waits for the end.

        Nothing waits for the end of an answer that has not begun.
        """
        words = self.withheld if self.halt is None else self.halt.message if self.says_why else ""
        if not self.begun:
            return words
        words += "".join(self.trailing)
        said = self.said or Said()
        said.feed(words + "".join(each.text for each in self.closings if not each.unless_said))
        return words + "".join(each.text for each in self.closings if not said.has(each))

    def begin_call(self, number: int, judge: Judge) -> None:
        """Take the first text of a tool call's name or arguments."""
        if number not in self.calls:
            self.calls[number] = []
            self.calling.clear()
        self.calls[number].append(judge)

    def go_on_with_call(self, delta: Delta) -> None:
        """Note that text of a tool call has come."""
        self.calling.add(delta.channel.index)
        if delta.channel.kind == "tool_arguments" and not delta.free:
            self.functions.add(delta.channel.index)

    @property
    def running(self) -> bool:
        """Neither the upstream nor a rule has ended it."""
        return self.halt is None and not self.finished


class Released(msgspec.Struct, frozen=True):
    """What one release sends."""

    data: bytes
    held_s: float
    """Longest time that a unit of it waited, seconds."""


class _Rendering:
    """The texts of one unit that are written piece by piece, the first to leave."""

    __slots__ = ("_cuts", "pieces", "waiting")

    def __init__(self, waiting: Waiting) -> None:
        self.waiting = waiting
        self.pieces: dict[int, list[str]] = {}
        self._cuts: dict[int, int | None] = {}

    def pieces_of(self, place: int, cut: int | None) -> list[str]:
        """Return what has been written of a text whose channel ends at `cut`; nothing counts if that has changed."""
        if place not in self.pieces or self._cuts[place] != cut:
            self.pieces[place], self._cuts[place] = [], cut
        return self.pieces[place]


class Outbox:
    """The queue between decisions and the wire."""

    __slots__ = (
        "_choices",
        "_first",
        "_holds_end",
        "_lost",
        "_prefixes",
        "_queue",
        "_rendering",
        "_surface",
        "_turned",
        "_turning",
        "behind",
        "breaks_off",
        "bytes_held",
        "call_bytes_held",
        "calls_whole",
        "fault",
        "heard",
        "looked",
        "released_chars",
        "usage_sent",
    )

    def __init__(self, surface: Surface, choices: dict[int, Choice], prefixes: Sequence[str]) -> None:
        """Start empty.

        Args:
            surface: Writes what is edited.
            choices: The guard's own table of choices.
            prefixes: The answer's own list of texts that stand before every choice.
        """
        self._surface = surface
        self._choices = choices
        self._prefixes = prefixes
        self._queue: ChoiceQueue[Waiting] = ChoiceQueue()
        self._first = Unit(raw=b"")
        self._turning: Judge | None = None
        self._turned = False
        self._rendering: _Rendering | None = None
        self.looked = 0
        """Texts that were looked at in the last release, whether or not they could leave."""
        self.behind = False
        """The last release has taken as many units as one may."""
        self._lost: set[int] = set()
        """Choices that have come to text which will never be decided."""
        self.breaks_off = False
        """The stream ends with an error: of a choice nothing is sent behind text that will never be decided, and no
        last word, which would make it look complete."""
        self.bytes_held = 0
        """Bytes of units that wait for decisions."""
        self.call_bytes_held = 0
        """Bytes of units that wait for a tool call to be whole."""
        self.calls_whole = True
        """A tool call leaves when it is whole and decided; False: as its text is released."""
        self.heard = Heard()
        self._holds_end = False
        self.released_chars = 0
        self.usage_sent = False
        self.fault: str | None = None
        """Why a unit could not be edited as the policy wants; it and all that waited behind it were dropped."""

    def __len__(self) -> int:
        """Return how many units wait."""
        return len(self._queue) + (self._rendering is not None)

    def put(self, waiting: Waiting) -> None:
        """Add a unit at the end."""
        self._queue.put(waiting, waiting.unit.choices)
        self._count(waiting, 1)
        if waiting.unit.choices and not self._first.raw and not _is_doubted(waiting.unit):
            self._first = waiting.unit

    def _count(self, waiting: Waiting, sign: int) -> None:
        """Count a unit in, or out again."""
        if waiting.called:
            self.call_bytes_held += sign * len(waiting.unit.raw)
        else:
            self.bytes_held += sign * len(waiting.unit.raw)

    def _clear(self) -> None:
        """Drop all that waits."""
        self._queue.clear()
        self._rendering = None
        self.bytes_held = self.call_bytes_held = 0

    @property
    def like(self) -> Unit:
        """A unit of the answer, whose ids others can have; which one doesn't depend on how the bytes came."""
        known = (choice.like for _, choice in sorted(self._choices.items()))
        return next((unit for unit in known if unit is not None), self._first)

    def _like(self, number: int) -> Unit:
        return self._choices[number].like or self.like

    # --- answers that are continued

    @property
    def said(self) -> str:
        """The content that has been sent, without what rules have put before it."""
        return self.heard.text(0)

    def turn(self, judge: Judge) -> None:
        """Send nothing behind the place at which `judge` has cut its channel."""
        self._turning = judge

    def go_on(self) -> None:
        """Send what comes from here on as the rest of the same answer."""
        self._turning = None
        self._turned = True

    def _is_behind_turn(self, waiting: Waiting) -> bool:
        """Tell whether a unit holds the place at which the answer turns, or stands behind it."""
        if self._turning is None:
            return False
        cut = self._turning.holdback.cut
        beyond = any(part.judge is self._turning and cut is not None and part.end > cut for part in waiting.parts)
        return beyond or bool(waiting.unit.finished) or not waiting.unit.choices

    def _spoken(self, waiting: Waiting) -> list[bytes]:
        """Return the content of a unit in an event of the answer's own: who speaks has been said, under another id."""
        texts = self._texts(waiting, set())
        deltas = waiting.unit.deltas
        text = "".join(texts.get(place, deltas[place].text) for place in range(len(deltas)))
        return [self._surface.text_event(self._like(0), 0, text)] if text else []

    def _is_speech(self, waiting: Waiting) -> bool:
        """Tell whether a unit of a continued answer carries nothing but more of its content."""
        unit = waiting.unit
        return (
            self._turned
            and unit.choices == (0,)
            and not unit.finished
            and self._choices[0].halt is None
            and all(part.judge is not None and part.judge.channel.kind == "content" for part in waiting.parts)
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

    def _remains(self, waiting: Waiting) -> list[bytes]:
        """Return what has been decided of the content of a unit that can't leave as it is."""
        texts = self._texts(waiting, set())
        said: dict[int, str] = {}
        for place, (delta, part) in enumerate(zip(waiting.unit.deltas, waiting.parts, strict=True)):
            if delta.channel.kind == "content" and part.judge is not None:
                number = delta.channel.choice
                said[number] = said.get(number, "") + texts.get(place, delta.text)
        return [self._surface.text_event(self._like(number), number, text) for number, text in said.items() if text]

    # --- streams

    def release(self, now: float, *, holds_end: bool = False) -> Released | None:
        """Take out what may leave now, up to `MOST_UNITS` (see `behind`); None when nothing may.

        Args:
            now: Seconds.
            holds_end: Keep the surface's last word: something is still to be said before it.
        """
        self._holds_end = holds_end
        data: list[bytes] = []
        held_s = 0.0
        taken, self.behind, self.looked = 0, False, 0
        self._queue.begin()
        while (waiting := self._next()) is not None:
            if len(waiting.unit.raw) > _RENDERED_CHARS and not self._is_rendered(waiting):
                self.behind = True
                break
            taken += 1 + len(waiting.parts) // 2
            self._count(waiting, -1)
            self._remember(waiting.unit)
            try:
                if self._plain(waiting):
                    data.append(self._as_it_came(waiting))
                else:
                    data += self._leave(waiting)
            except WireError as error:
                # What can't be edited must not leave as it came, and what stands behind it not without it.
                self.fault = str(error)
                self._clear()
                break
            self._rendering = None
            if not waiting.called:  # nobody can act on half a call: that it comes whole delays nothing
                held_s = max(held_s, now - waiting.arrived)
            if taken >= MOST_UNITS:
                self.behind = True
                break
        joined = b"".join(data)
        return Released(joined, held_s) if joined else None

    def _leave(self, waiting: Waiting) -> list[bytes]:
        """Return what is sent of a unit.

        Raises:
            WireError: it can't be edited as the policy wants.
        """
        if self._is_behind_turn(waiting):
            spoken = self._spoken(waiting) if waiting.unit.choices else []
            self._clear()
            return spoken
        if self._is_lost(waiting):
            return self._remains(waiting)
        if self._is_speech(waiting):
            return self._spoken(waiting)
        if self._turned:
            unit = self._surface.rename_event(waiting.unit, self.like)
            return self._emit(msgspec.structs.replace(waiting, unit=unit))
        return self._emit(waiting)

    def _next(self) -> Waiting | None:
        return self._rendering.waiting if self._rendering is not None else self._queue.pop(self._ready)

    def _is_rendered(self, waiting: Waiting) -> bool:
        """Write some more of the edited texts of a unit that are long; tell whether all of them are written."""
        for place, part in enumerate(waiting.parts):
            if part.judge is None or part.end - part.start <= _RENDERED_CHARS:
                continue
            holdback = part.judge.holdback
            if holdback.changed(part.start, part.end):
                rendering = self._rendering = self._rendering or _Rendering(waiting)
                pieces = rendering.pieces_of(place, holdback.cut)
                at = part.start + len(pieces) * _RENDERED_CHARS
                if at < part.end:
                    pieces.append(holdback.render(at, min(at + _RENDERED_CHARS, part.end)))
                    return False
        return True

    def _rendered(self, place: int, holdback: Holdback, part: Part) -> str:
        """Return the text that is sent for a part which was edited."""
        if self._rendering is not None and place in self._rendering.pieces:
            return "".join(self._rendering.pieces_of(place, holdback.cut))
        return holdback.render(part.start, part.end)

    def _remember(self, unit: Unit) -> None:
        """Keep whose ids other events can have: how much still comes of a choice behind its end depends on the cut."""
        if _is_doubted(unit):
            return
        for number in () if self._turned else unit.choices:
            choice = self._choices[number]
            if not choice.closed:
                choice.like = unit

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
        if not self.calls_whole or channel.index in choice.dropped:
            return True
        return not choice.running and all(judge.complete for judge in choice.calls[channel.index])

    def _is_halted(self, number: int) -> bool:
        return number != COMMON and self._choices[number].halt is not None

    def _complete(self, number: int) -> bool:
        """Tell whether every decision that could still add to a finished choice has been taken."""
        choice = self._choices.get(number)
        if choice is None or choice.closed:
            return True
        return all(judge.complete for judge in choice.judges)

    def _emit(self, waiting: Waiting) -> list[bytes]:
        """Return the bytes of one unit, with what comes before and after it; most units leave as they came."""
        unit = waiting.unit
        self.usage_sent = self.usage_sent or unit.usage
        # What the upstream adds to a choice that it has ended itself (usage, a filter's result) stays as it came.
        closed = {n for n in unit.choices if self._choices[n].closed and self._choices[n].halt is not None}
        # INVARIANT: text that no judge has seen never leaves, e.g. what comes behind the upstream's terminator.
        closed |= {unit.deltas[i].channel.choice for i, part in enumerate(waiting.parts) if part.judge is None}
        halting = self._halting(waiting) - closed
        gone = frozenset(place for place, part in enumerate(waiting.parts) if self._is_dropped(part))
        texts = self._texts(waiting, closed, gone)
        after: list[bytes] = []
        drop = set(closed)
        finish: dict[int, str | None] = {
            number: "stop" for number in unit.finished if self._choices[number].calls_nothing
        }
        for number in sorted(halting):
            if number in unit.finished and self._keeps_call(waiting, number, gone):
                finish[number] = None
                after += self._end(number, "")
            elif number in unit.finished:
                # Its own finish reason must not stand beside ours: the text goes out in an event of its own.
                rest = "".join(
                    texts.pop(place, delta.text)
                    for place, delta in enumerate(unit.deltas)
                    if delta.channel.choice == number and delta.channel.kind == "content"
                )
                drop.add(number)
                after += self._end(number, rest)
            else:
                after += self._end(number, "")
        before = self._finish(unit, texts, drop | {number for number, reason in finish.items() if reason is None})
        if not texts and not drop and not gone and not finish:
            return [*before, unit.raw, *after]
        written = self._surface.write_event(unit, Edit(texts, frozenset(drop), gone, finish))
        if _is_doubted(unit) and written:
            self._remember(msgspec.structs.replace(unit, raw=written, deltas=()))  # as it was edited
        return [*before, written, *after]

    def _finish(self, unit: Unit, texts: dict[int, str], drop: set[int]) -> list[bytes]:
        """Close the choices that end in a unit; add their disclaimers to its text or return events for them."""
        events: list[bytes] = []
        for number in unit.finished:
            choice = self._choices[number]
            if number in drop or choice.closed:
                continue
            choice.closed = True
            ending = choice.last_words()
            if not ending:
                continue
            place = _last_content(unit, number)
            if place is None:
                events.append(self._surface.text_event(self._like(number), number, ending))
            else:
                texts[place] = texts.get(place, unit.deltas[place].text) + ending
        return events

    def _plain(self, waiting: Waiting) -> bool:
        """Tell whether a unit is the common one: more text of one choice, with nothing to change or to add."""
        unit = waiting.unit
        if unit.finished or len(unit.choices) != 1 or self._turned or self.breaks_off or self._turning is not None:
            return False
        choice = self._choices[unit.choices[0]]
        if choice.closed or choice.halt is not None or not choice.begun:
            return False
        for part in waiting.parts:
            if part.judge is None or part.judge.holdback.cut is not None or part.judge.holdback.replacements.items:
                return False
        return True

    def _as_it_came(self, waiting: Waiting) -> bytes:
        """Return the bytes of a plain unit."""
        self.usage_sent = self.usage_sent or waiting.unit.usage
        for part in waiting.parts:
            if part.judge is not None:
                part.judge.holdback.release(part.end)
            self.released_chars += part.end - part.start
        for delta in waiting.unit.deltas:
            if delta.channel.kind == "content":
                self._note(delta.channel.choice, delta.text)
        return waiting.unit.raw

    def _is_dropped(self, part: Part) -> bool:
        """Tell whether a stretch belongs to a tool call of which nothing may leave."""
        channel = part.judge.channel if part.judge is not None else None
        return channel is not None and channel.kind in CALL and channel.index in self._choices[channel.choice].dropped

    def _keeps_call(self, waiting: Waiting, number: int, gone: frozenset[int]) -> bool:
        """Tell whether a unit carries a tool call of a choice that leaves."""
        parts = (part for place, part in enumerate(waiting.parts) if place not in gone)
        channels = (part.judge.channel for part in parts if part.judge is not None)
        return any(channel.kind in CALL and channel.choice == number for channel in channels)

    def _halting(self, waiting: Waiting) -> set[int]:
        """Return the choices whose end by policy falls into this unit."""
        numbers: set[int] = set()
        for part in waiting.parts:
            if part.judge is None or self._is_dropped(part):
                continue  # a call is taken out; what else there is of its choice stays until that ends
            cut = part.judge.holdback.cut
            number = part.judge.channel.choice
            if cut is not None and part.end > cut and self._is_halted(number):
                numbers.add(number)
        numbers.update(number for number in waiting.unit.finished if self._choices[number].halt is not None)
        return numbers

    def _texts(self, waiting: Waiting, closed: set[int], gone: frozenset[int] = frozenset()) -> dict[int, str]:
        texts: dict[int, str] = {}
        for place, part in enumerate(waiting.parts):
            if part.judge is None or part.judge.channel.choice in closed or place in gone:
                continue
            holdback = part.judge.holdback
            if holdback.changed(part.start, part.end):
                texts[place] = self._rendered(place, holdback, part)
            end = part.end if holdback.cut is None else min(part.end, holdback.cut)
            holdback.release(end)
            self.released_chars += max(end - part.start, 0)
            if part.judge.channel.kind == "content" and part.end > part.start:
                choice = self._choices[part.judge.channel.choice]
                text = texts.get(place, waiting.unit.deltas[place].text)
                self._note(part.judge.channel.choice, text)
                if not choice.begun:
                    choice.begun = True
                    if self._prefixes:
                        texts[place] = "".join(self._prefixes) + text
        return texts

    def _note(self, number: int, text: str) -> None:
        """Keep in mind what is sent of a choice's content, as far as something later depends on it."""
        self.heard.feed(number, text)
        said = self._choices[number].said
        if said is not None:
            said.feed(text)

    def _end(self, number: int, text: str) -> list[bytes]:
        """Return the events that end a choice by policy: its last text, the rule's message, disclaimers, the finish."""
        choice = self._choices[number]
        choice.closed = True
        text += choice.last_words()
        events = [self._surface.text_event(self._like(number), number, text)] if text else []
        return [*events, self._surface.finish_event(self._like(number), number)]

    def finish(self, prompt_tokens: int, completion_tokens: int, *, usage_wanted: bool) -> bytes:
        """Return what ends a stream whose upstream was cut off by policy: usage if asked for, the terminator."""
        data = b""
        if usage_wanted and not self.usage_sent:
            self.usage_sent = True
            data = self._surface.usage_event(self.like, prompt_tokens, completion_tokens)
        return data + self._surface.terminator()

    def open_ends(self) -> bytes:
        """Return the disclaimers of choices that got no finish reason, for the end of the stream."""
        events = []
        for number, choice in sorted(self._choices.items()):
            if choice.halt is not None and not choice.closed:
                events += self._end(number, "")
            elif not choice.closed and (ending := choice.last_words()):
                events.append(self._surface.text_event(self._like(number), number, ending))
                choice.closed = True
        return b"".join(events)

    # --- whole answers

    def first_whole(self) -> tuple[Unit, dict[int, str]]:
        """Return the unit of a whole answer that is continued, and what its texts become before the turn."""
        waiting = self._queue.pop(self._ready)
        if waiting is None:
            raise AssertionError("an answer is continued when all before the turn has been decided")
        self._count(waiting, -1)
        return waiting.unit, self._texts(waiting, set())

    def first_stopped(self, unit: Unit, texts: Mapping[int, str]) -> Released:
        """Return the whole answer that could not be continued: what was released of it, and how its rule ends it.

        Raises:
            WireError: the answer's JSON does not allow the edit that the policy wants.
        """
        choice = self._choices[0]
        kept = {
            place: texts.get(place, delta.text)
            for place, delta in enumerate(unit.deltas)
            if delta.channel.kind not in CALL
        }
        place = _last_content(unit, 0)
        if place is not None:
            kept[place] += choice.last_words()
        return Released(self._surface.write_whole(unit, Edit(kept, frozenset({0})), {0: "content_filter"}), 0.0)

    def whole(self, now: float) -> Released:
        """Return the one unit of a whole answer, edited, all of whose decisions have been taken.

        Raises:
            WireError: the answer's JSON does not allow the edit that the policy wants.
        """
        waiting = self._queue.pop(self._ready)
        if waiting is None:
            raise AssertionError("a whole answer is written when all of it has been decided")
        self._count(waiting, -1)
        unit = waiting.unit
        halted = {number: choice.halt for number, choice in self._choices.items() if choice.halt is not None}
        dropped = (place for place, part in enumerate(waiting.parts) if self._is_dropped(part))
        gone = frozenset(place for place in dropped if unit.deltas[place].channel.choice not in halted)
        texts = self._texts(waiting, set(), gone)
        self._keep_of_stopped(waiting, frozenset(halted), texts)
        for number, choice in self._choices.items():
            place = _last_content(unit, number)
            if place is None:
                continue
            tail = choice.last_words()
            if tail:
                texts[place] = texts.get(place, unit.deltas[place].text) + tail
        held_s = now - waiting.arrived
        if not texts and not halted and not gone:
            return Released(unit.raw, held_s)
        edit = Edit(texts, frozenset(halted), gone)
        finish = dict.fromkeys(halted, "content_filter")
        finish |= {number: "stop" for number, choice in self._choices.items() if choice.calls_nothing}
        return Released(self._surface.write_whole(unit, edit, finish), held_s)

    def _keep_of_stopped(self, waiting: Waiting, halted: frozenset[int], texts: dict[int, str]) -> None:
        """Put into `texts` what stays of stopped choices: text up to the cut, and tool calls of which nothing is cut.

        Writing a whole answer takes out of a stopped choice all that is not named.
        """
        deltas = waiting.unit.deltas
        gone = {_call_of(deltas[place].path) for place, part in enumerate(waiting.parts) if self._is_dropped(part)}
        for place, part in enumerate(waiting.parts):
            if part.judge is None or part.judge.channel.choice not in halted:
                continue
            if self._is_dropped(part):
                texts.pop(place, None)
                self.released_chars -= part.judge.holdback.sent - part.start
            elif _call_of(deltas[place].path) in gone:
                texts.pop(place, None)
            else:
                texts.setdefault(place, deltas[place].text)


def _call_of(path: Path) -> Path | None:
    """Return where the tool call stands that a path leads into; None for any other."""
    place = next((i for i, name in enumerate(path) if name in ("tool_calls", "function_call")), None)
    return None if place is None else path[: place + 2] if path[place] == "tool_calls" else path[: place + 1]


def _is_doubted(unit: Unit) -> bool:
    """Tell whether something is judged of what all events of an answer repeat."""
    for delta in unit.deltas:  # noqa: SIM110 - of every event
        if delta.channel.choice == COMMON:
            return True
    return False


def _last_content(unit: Unit, number: int) -> int | None:
    """Return the place of the last content delta of a choice in a unit."""
    places: Iterable[int] = (
        place
        for place, delta in enumerate(unit.deltas)
        if delta.channel.choice == number and delta.channel.kind == "content"
    )
    return max(places, default=None)
