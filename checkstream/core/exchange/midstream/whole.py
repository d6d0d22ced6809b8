"""An answer that is not streamed, as it goes out: one unit, written when all of it has been decided."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping

from checkstream.core.exchange.midstream.choice import Choice
from checkstream.core.exchange.midstream.outbox import Outbox
from checkstream.core.exchange.midstream.waiting import CALL, Released, Waiting, last_content
from checkstream.core.exchange.midstream.writer import Writer
from checkstream.core.steps import Walk
from checkstream.core.terms import Unit
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.surface import Edit, Surface

_PARTS_A_STEP = 256
_NOTHING = frozenset[int]()
_IN_ORDER = frozenset[Path]({("content",), ("output",)})
"""Where blocks and items stand in an answer that has them."""


class WholeAnswer:
    """The one unit of the answer; two, where it was continued."""

    def __init__(self, surface: Surface, outbox: Outbox, writer: Writer, choices: dict[int, Choice]) -> None:
        """Begin before it has come.

        Args:
            surface: Writes what is edited.
            outbox: Where it waits.
            writer: Knows what becomes of its texts.
            choices: The answer's own table of choices.
        """
        self._surface = surface
        self._outbox = outbox
        self._writer = writer
        self._choices = choices
        self._first: tuple[Unit, dict[int, str]] | None = None
        """The unit that was continued, and what its texts became before the turn."""
        self._untouched: tuple[Unit, float] | None = None
        """The answer, and when it had come, where nothing is to be done to it."""

    @property
    def turned(self) -> bool:
        """It is continued: its first part is kept, for the second to be joined to it."""
        return self._first is not None

    @property
    def untouched(self) -> bool:
        """It leaves as it came."""
        return self._untouched is not None

    def leave_as_it_came(self, unit: Unit, now: float) -> None:
        """Take an answer to which nothing is to be done, all of which has come at `now`, seconds."""
        self._untouched = unit, now

    def turning(self) -> Walk:
        """Keep, in steps, what has come as the first part, all of which has been decided up to the turn."""
        waiting = self._outbox.take_whole()
        self._first = waiting.unit, (yield from self._texts(waiting))

    def writing(self, now: float) -> Generator[None, None, Released]:
        """Return the answer as it goes out, in steps.

        Raises:
            WireError: its JSON does not allow the edit that the policy wants.
        """
        if self._untouched is not None:
            unit, arrived = self._untouched
            return Released(unit.raw, now - arrived)
        if self._first is None:
            return (yield from self._editing(now))
        if not len(self._outbox):
            return Released((yield from self._first_stopped(*self._first)), 0.0)
        rest = yield from self._editing(now)
        second = yield from self._surface.reading_whole(rest.data)
        data = yield from self._surface.joining_whole(*self._first, second)
        return Released(data, rest.held_s)

    def _first_stopped(self, unit: Unit, texts: dict[int, str]) -> Generator[None, None, bytes]:
        """Return the answer that could not be continued: what was released of it, and how its rule ends it."""
        kept = {
            place: texts.get(place, delta.text)
            for place, delta in enumerate(unit.deltas)
            if delta.channel.kind not in CALL
        }
        place = last_content(unit, 0)
        if place is not None:
            kept[place] += self._choices[0].last_words()
        return (yield from self._surface.writing_whole(unit, Edit(kept, frozenset({0})), {0: "content_filter"}))

    def _editing(self, now: float) -> Generator[None, None, Released]:
        """Return the unit that waits, edited, in steps."""
        waiting = self._outbox.take_whole()
        unit = waiting.unit
        halted = frozenset(number for number, choice in self._choices.items() if choice.halt is not None)
        dropped = (place for place, part in enumerate(waiting.parts) if self._writer.is_dropped(part))
        gone = frozenset(place for place in dropped if unit.deltas[place].channel.choice not in halted)
        behind = frozenset(self._behind_end(waiting))
        texts = dict.fromkeys(behind, "") | (yield from self._texts(waiting, gone | behind))
        self._keep_of_stopped(waiting, halted, texts)
        self._take_back_signed(waiting, texts)
        contents = {d.channel.choice: at for at, d in enumerate(unit.deltas) if d.channel.kind == "content"}
        yield
        for number, choice in self._choices.items():
            place = contents.get(number)
            if place is None:
                continue
            tail = choice.last_words()
            if tail:
                texts[place] = texts.get(place, unit.deltas[place].text) + tail
        held_s = now - waiting.arrived
        finish = dict.fromkeys(halted, "content_filter")
        finish |= {number: "stop" for number, choice in self._choices.items() if choice.calls_nothing}
        if not texts and not finish and not gone:
            return Released(unit.raw, held_s)
        data = yield from self._surface.writing_whole(unit, Edit(texts, halted, gone), finish)
        return Released(data, held_s)

    def _texts(self, waiting: Waiting, gone: frozenset[int] = _NOTHING) -> Generator[None, None, dict[int, str]]:
        """Return, in steps, the texts of a unit that leave otherwise than they came, but for those that are `gone`."""
        while not self._writer.rendering.is_done(waiting):
            yield
        texts: dict[int, str] = {}
        for at in range(0, len(waiting.parts), _PARTS_A_STEP):
            texts |= self._writer.texts(waiting, set(), gone, range(at, at + _PARTS_A_STEP))
            yield
        self._writer.rendering.clear()
        while self._writer.forgets():
            yield
        return texts

    def _behind_end(self, waiting: Waiting) -> Iterable[int]:
        """Return the places of blocks, or items, that stand behind the call in which a rule has ended the answer."""
        deltas = waiting.unit.deltas
        if not deltas or deltas[0].path[:1] not in _IN_ORDER:
            return ()  # only messages of blocks and of items have an order of texts and calls
        ended = next((choice.ended_in for choice in self._choices.values() if choice.ended_in is not None), None)
        return [place for place, delta in enumerate(deltas) if ended is not None and _is_behind(delta.path, ended)]

    def _take_back_signed(self, waiting: Waiting, texts: Mapping[int, str]) -> None:
        """Count as not sent what stands in blocks that the model has signed, and in which anything is edited."""
        if not self._surface.signed or not texts:
            return
        deltas = waiting.unit.deltas
        edited = {deltas[place].path[:2] for place, text in texts.items() if text != deltas[place].text}
        gone = {delta.path[:2] for delta in deltas if delta.channel.kind in self._surface.signed} & edited
        for place, part in enumerate(waiting.parts if gone else ()):
            if deltas[place].path[:2] in gone:
                self._writer.take_back(part)

    def _keep_of_stopped(self, waiting: Waiting, halted: frozenset[int], texts: dict[int, str]) -> None:
        """Put into `texts` what stays of stopped choices: text up to the cut, and tool calls of which nothing is cut.

        Writing a whole answer takes out of a stopped choice all that is not named.
        """
        deltas, is_dropped = waiting.unit.deltas, self._writer.is_dropped
        gone = {_call_of(deltas[place].path) for place, part in enumerate(waiting.parts) if is_dropped(part)}
        for place, part in enumerate(waiting.parts):
            if part.judge is None or part.judge.channel.choice not in halted:
                continue
            if is_dropped(part):
                texts.pop(place, None)
                self._writer.take_back(part)
            elif _call_of(deltas[place].path) in gone:
                texts.pop(place, None)
            else:
                texts.setdefault(place, deltas[place].text)


def _is_behind(path: Path, block: int) -> bool:
    """Tell whether a path leads into a block or an item behind the one of this number."""
    return path[:1] in _IN_ORDER and isinstance(path[1], int) and path[1] > block


def _call_of(path: Path) -> Path | None:
    """Return where the tool call stands that a path leads into, or the block or item; None for any other."""
    if path[:1] in _IN_ORDER:
        return path[:2]
    place = next((i for i, name in enumerate(path) if name in ("tool_calls", "function_call")), None)
    return None if place is None else path[: place + 2] if path[place] == "tool_calls" else path[: place + 1]
