"""What a unit becomes as it leaves: the bytes it came in, its edit, or events that stand in its place.

A unit whose text nobody changed leaves as the bytes it came in. When it leaves is not decided here (see `outbox`).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

import msgspec

from checkstream.core.channel.holdback import Holdback
from checkstream.core.channel.judge import Judge
from checkstream.core.exchange.heard import Heard, Spoken
from checkstream.core.exchange.midstream.choice import Choice
from checkstream.core.exchange.midstream.rendering import RENDERED_CHARS, Rendering
from checkstream.core.exchange.midstream.waiting import CALL, Part, Waiting, is_doubted, last_content
from checkstream.core.terms import COMMON, Unit
from checkstream.core.wire.surface import Edit, Sending, Surface

_PARTS_A_STEP = 64
"""Texts of a unit that are written in one step."""


class Writer:
    """Writes what leaves of one answer, and keeps what has left in mind as far as something depends on it."""

    __slots__ = (
        "_choices",
        "_first",
        "_forgetting",
        "_holding",
        "_kept_chars",
        "_prefixes",
        "_surface",
        "_usage_sent",
        "_withheld",
        "heard",
        "released_chars",
        "rendering",
        "sending",
        "spent",
        "telling",
        "turned",
    )

    def __init__(self, surface: Surface, sending: Sending, choices: dict[int, Choice], prefixes: Sequence[str]) -> None:
        """Start before the first unit.

        Args:
            surface: Writes what is edited.
            sending: Writes what leaves of the stream.
            choices: The answer's own table of choices.
            prefixes: The answer's own list of texts that stand before every choice.
        """
        self._surface = surface
        self.sending = sending
        """Writes what leaves of the stream, in that order."""
        self._choices = choices
        self._prefixes = prefixes
        self._first = Unit(raw=b"")
        self._usage_sent = False
        self._forgetting: list[Holdback] = []
        """Channels that still know what was sent in place of text which has left."""
        self.rendering = Rendering()
        """What is written of the unit that leaves next, where that takes more than a step."""
        self.turned = False
        """What leaves now is the rest of an answer that was cut off: it has the ids of the beginning."""
        self.spent = 0, 0
        """Tokens of the prompt and of the answer that were spent before it turned, as estimated."""
        self.telling: Spoken | None = None
        """Tells the content of the only choice again; None: nobody asks."""
        self.heard = Heard()
        """What the caller has got of each choice's content."""
        self.released_chars = 0
        """Of all channels."""
        self._holding = self._withheld = self._kept_chars = 0
        """Which signed text waits to be whole, how many have not left, and what of those that count waits with it."""

    @property
    def sent_chars(self) -> int:
        """Of all channels, without what waits to be whole."""
        return self.released_chars - self._kept_chars

    def _look_at_signed(self, before: int) -> None:
        """Count back what has gone with a signed text; what counts since there were `before` characters may wait."""
        sending, grown = self.sending, self.released_chars - before
        if sending.holding != self._holding:
            if sending.withheld != self._withheld:
                self.released_chars -= self._kept_chars
            self._holding, self._withheld, self._kept_chars = sending.holding, sending.withheld, 0
        if self._holding:
            self._kept_chars += grown

    def know(self, unit: Unit) -> None:
        """Hear of a unit that has come: until one has left, others have the ids of the first."""
        if unit.choices and not self._first.raw and not is_doubted(unit):
            self._first = unit

    @property
    def like(self) -> Unit:
        """A unit of the answer, whose ids others can have; which one doesn't depend on how the bytes came."""
        known = (choice.like for _, choice in sorted(self._choices.items()))
        return next((unit for unit in known if unit is not None), self._first)

    def _like_of(self, number: int) -> Unit:
        return self._choices[number].like or self.like

    def remember(self, unit: Unit) -> None:
        """Keep whose ids other events can have: how much still comes of a choice behind its end depends on the cut."""
        if is_doubted(unit):
            return
        for number in () if self.turned else unit.choices:
            choice = self._choices[number]
            if not choice.closed:
                choice.like = unit

    def as_it_came(self, waiting: Waiting) -> bytes:
        """Return the bytes of a plain unit."""
        self._usage_sent = self._usage_sent or waiting.unit.usage
        before = self.released_chars
        for part in waiting.parts:
            if part.judge is not None:
                part.judge.holdback.release(part.end)
            self.released_chars += part.end - part.start
        for delta in waiting.unit.deltas:
            if delta.channel.kind == "content":
                self._note(delta.channel.choice, delta.text)
        if not self.sending.alters:
            return waiting.unit.raw
        data = self.sending.as_it_came(waiting.unit)
        if self._surface.signed:
            self._look_at_signed(before)
        return data

    def let_go(self, judge: Judge, end: int, text: str) -> None:
        """Note that text of one channel, up to `end`, leaves as it came."""
        judge.holdback.release(end)
        self.released_chars += len(text)
        if self._holding:
            self._kept_chars += len(text)
        channel = judge.channel
        if channel.kind == "content":
            self._note(channel.choice, text)

    def hand_over(self, number: int, text: str) -> None:
        """Note that a whole answer leaves as it came, whose only text is the content of a choice."""
        self.released_chars += len(text)
        self.heard.feed(number, text)
        if self.telling is not None and number == 0:
            self.telling.feed(text)

    # --- units that are edited

    def editing(self, waiting: Waiting) -> Generator[None, None, list[bytes]]:
        """Return, in steps, the bytes of one unit, with what comes before and after it; most leave as they came.

        Raises:
            WireError: it can't be edited as the policy wants.
        """
        unit, released = waiting.unit, self.released_chars
        if self.turned:
            unit = self._surface.rename_event(unit, self.like)
            if unit.usage:
                unit = self._surface.add_usage(unit, *self.spent)
            waiting = msgspec.structs.replace(waiting, unit=unit)
        self._usage_sent = self._usage_sent or unit.usage
        # What the upstream adds to a choice that it has ended itself (usage, a filter's result) stays as it came.
        closed = {n for n in unit.choices if self._choices[n].closed and self._choices[n].halt is not None}
        # INVARIANT: text that no judge has seen never leaves, e.g. what comes behind the upstream's terminator.
        closed |= {unit.deltas[i].channel.choice for i, part in enumerate(waiting.parts) if part.judge is None}
        halting = self._halting(waiting) - closed
        gone = frozenset(place for place, part in enumerate(waiting.parts) if self.is_dropped(part))
        texts = self.texts(waiting, closed, gone, range(_PARTS_A_STEP))
        for at in range(_PARTS_A_STEP, len(waiting.parts), _PARTS_A_STEP):
            yield
            texts |= self.texts(waiting, closed, gone, range(at, at + _PARTS_A_STEP))
        calls = frozenset(place for place in gone if unit.deltas[place].channel.kind in CALL)
        texts |= dict.fromkeys(() if calls else gone, "")  # a call goes with all that stands in it
        ends: dict[int, str] = {}
        drop = set(closed)
        finish: dict[int, str | None] = {
            number: "stop" for number in unit.finished if self._choices[number].calls_nothing
        }
        for number in sorted(halting):
            if number in unit.finished and self._keeps_call(waiting, number, gone):
                finish[number] = None
                ends[number] = ""
            elif number in unit.finished:
                # Its own finish reason must not stand beside ours: the text goes out in an event of its own.
                ends[number] = "".join(
                    texts.pop(place, delta.text)
                    for place, delta in enumerate(unit.deltas)
                    if delta.channel.choice == number and delta.channel.kind == "content"
                )
                drop.add(number)
            else:
                ends[number] = ""
        before = self._finish(unit, texts, drop | {number for number, reason in finish.items() if reason is None})
        # Nothing stands behind an answer's last word, which is the end of its choice too on some surfaces.
        if unit.terminator:
            before += self._ended(ends)
        edit = Edit(texts, frozenset(drop), calls, finish) if texts or drop or calls or finish else None
        if len(unit.raw) > RENDERED_CHARS:
            yield
            written = yield from self.sending.writing_event(unit, edit)
        else:
            written = self.sending.as_it_came(unit) if edit is None else self.sending.write_event(unit, edit)
        self._look_at_signed(released)
        after = [] if unit.terminator else self._ended(ends)
        self._look_at_signed(self.released_chars)
        if is_doubted(unit) and written:
            self.remember(msgspec.structs.replace(unit, raw=written, deltas=()))  # as it was edited
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
            place = last_content(unit, number)
            if place is None:
                events.append(self.sending.text_event(self._like_of(number), number, ending))
            else:
                texts[place] = texts.get(place, unit.deltas[place].text) + ending
        return events

    def _halting(self, waiting: Waiting) -> set[int]:
        """Return the choices whose end by policy falls into this unit."""
        numbers: set[int] = set()
        for part in waiting.parts:
            if part.judge is None or self.is_dropped(part):
                continue  # a call is taken out; what else there is of its choice stays until that ends
            cut = part.judge.holdback.cut
            number = part.judge.channel.choice
            if cut is not None and part.end > cut and number != COMMON and self._choices[number].halt is not None:
                numbers.add(number)
        numbers.update(number for number in waiting.unit.finished if self._choices[number].halt is not None)
        return numbers

    def is_dropped(self, part: Part) -> bool:
        """Tell whether a stretch belongs to a tool call of which nothing may leave."""
        channel = part.judge.channel if part.judge is not None else None
        if channel is None or channel.choice == COMMON:
            return False
        choice = self._choices[channel.choice]
        return bool(choice.dropped) and choice.call_of(channel) in choice.dropped

    def _keeps_call(self, waiting: Waiting, number: int, gone: frozenset[int]) -> bool:
        """Tell whether a unit carries a tool call of a choice that leaves."""
        parts = (part for place, part in enumerate(waiting.parts) if place not in gone)
        channels = (part.judge.channel for part in parts if part.judge is not None)
        return any(channel.kind in CALL and channel.choice == number for channel in channels)

    def texts(
        self, waiting: Waiting, closed: set[int], gone: frozenset[int] = frozenset(), places: range | None = None
    ) -> dict[int, str]:
        """Return the texts of a unit that leave otherwise than they came; all that may leave of it counts as sent.

        Args:
            waiting: The unit.
            closed: Choices that have ended already.
            gone: Places of deltas that are taken out.
            places: Of those that are looked at; None: all.
        """
        texts: dict[int, str] = {}
        for place in range(len(waiting.parts)) if places is None else places:
            if place >= len(waiting.parts):
                break
            part = waiting.parts[place]
            if part.judge is None or part.judge.channel.choice in closed or place in gone:
                continue
            holdback = part.judge.holdback
            hidden: str | None = None
            if holdback.changed(part.start, part.end):
                texts[place] = self.rendering.text(place, holdback, part)
                if part.judge.channel.kind == "content" and holdback.replacements.hides:
                    hidden = holdback.render(part.start, part.end, hidden=True)
            end = part.end if holdback.cut is None else min(part.end, holdback.cut)
            if holdback.release(end):
                self._forgetting.append(holdback)
            self.released_chars += max(end - part.start, 0)
            if part.judge.channel.kind == "content" and part.end > part.start:
                choice = self._choices[part.judge.channel.choice]
                text = texts.get(place, waiting.unit.deltas[place].text)
                self._note(part.judge.channel.choice, text, hidden)
                if not choice.begun:
                    choice.begun = True
                    if self._prefixes:
                        texts[place] = "".join(self._prefixes) + text
        return texts

    def forgets(self) -> bool:
        """Forget some of what was sent in place of text; tell whether there may be more."""
        if self._forgetting and not self._forgetting[-1].forget():
            self._forgetting.pop()
        return bool(self._forgetting)

    def take_back(self, part: Part) -> None:
        """Count as not sent what counted as sent, and is taken out of a whole answer after all."""
        if part.judge is not None:
            self.released_chars -= max(min(part.end, part.judge.holdback.sent) - part.start, 0)

    def _note(self, number: int, text: str, hidden: str | None = None) -> None:
        """Keep in mind what is sent of a choice's content, as far as something later depends on it.

        Args:
            number: Which choice.
            text: As the caller gets it.
            hidden: As the model has said it, where values of the caller have come back; None: as the text.
        """
        self.heard.feed(number, text if hidden is None else hidden)
        if self.telling is not None and number == 0:
            self.telling.feed(text)
        said = self._choices[number].said
        if said is not None:
            said.feed(text)

    def _ended(self, ends: Mapping[int, str]) -> list[bytes]:
        """Return the events that end choices by policy, each with its last text."""
        return [event for number, text in ends.items() for event in self._end(number, text)]

    def _end(self, number: int, text: str) -> list[bytes]:
        """Return the events that end a choice by policy: its last text, the rule's message, disclaimers, the finish."""
        choice = self._choices[number]
        choice.closed = True
        text += choice.last_words()
        events = [self.sending.text_event(self._like_of(number), number, text)] if text else []
        return [*events, self.sending.finish_event(self._like_of(number), number)]

    # --- units of which the text alone is sent

    def spoken(self, waiting: Waiting) -> list[bytes]:
        """Return the content of a unit in an event of the answer's own: who speaks has been said, under another id."""
        texts = self.texts(waiting, set())
        deltas = waiting.unit.deltas
        text = "".join(texts.get(place, deltas[place].text) for place in range(len(deltas)))
        return [self.sending.text_event(self._like_of(0), 0, text)] if text else []

    def remains(self, waiting: Waiting) -> list[bytes]:
        """Return what has been decided of the content of a unit that can't leave as it is."""
        texts = self.texts(waiting, set())
        said: dict[int, str] = {}
        for place, (delta, part) in enumerate(zip(waiting.unit.deltas, waiting.parts, strict=True)):
            if delta.channel.kind == "content" and part.judge is not None:
                number = delta.channel.choice
                said[number] = said.get(number, "") + texts.get(place, delta.text)
        return [self.sending.text_event(self._like_of(number), number, text) for number, text in said.items() if text]

    # --- the end of a stream

    def finish(self, prompt_tokens: int, completion_tokens: int, *, usage_wanted: bool) -> bytes:
        """Return what ends a stream whose upstream was cut off by policy: usage if asked for, the terminator."""
        data = b""
        if usage_wanted and not self._usage_sent:
            self._usage_sent = True
            data = self.sending.usage_event(self.like, prompt_tokens, completion_tokens)
        return data + self.sending.terminator()

    def open_ends(self) -> bytes:
        """Return the disclaimers of choices that got no finish reason, for the end of the stream."""
        events = []
        for number, choice in sorted(self._choices.items()):
            if choice.halt is not None and not choice.closed:
                events += self._end(number, "")
            elif not choice.closed and (ending := choice.last_words()):
                events.append(self.sending.text_event(self._like_of(number), number, ending))
                choice.closed = True
        return b"".join(events)
