"""What of a unit of the answer is taken: all that rules must judge, and nothing that spells it once more."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping

import msgspec

from checkstream.core.channel.judge import Judge
from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.ingress.prompt import Prompt
from checkstream.core.exchange.midstream.choice import Choice
from checkstream.core.exchange.midstream.extras import Extras
from checkstream.core.exchange.midstream.halves import Halves
from checkstream.core.exchange.midstream.waiting import CALL
from checkstream.core.steps import Walk
from checkstream.core.terms import ANSWER_CHANNELS, REASONING_NAMES, Channel, Delta, Span, Stage, Unit
from checkstream.core.wire.json_text.size import MOST_TEXTS
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.surface import Surface
from checkstream.errors import WireError

_CONTENT = Channel("content")
_MAX_CHANNELS = 1024
"""Choices and tool calls of one stream that are judged apart: each costs some kilobytes, whatever its text."""
_MAX_CHANNELS_OF_WHOLE = 4096
"""The same of an answer that is not streamed."""
_DELTAS_A_STEP = 1024
_STEP_WORK = 300
"""Of taking something out, and of looking at so many texts (see `match.work`)."""
_MOST_DELTAS_OF_WHOLE = 8192
_MAX_CHOICES = 128
"""Of one stream that was asked for fewer: OpenAI gives no more."""


class Sieve:
    """Sifts the units of one answer before its channels get their texts."""

    def __init__(
        self,
        surface: Surface,
        prompt: Prompt,
        checking: Checking,
        *,
        choices: Mapping[int, Choice],
        judges: Mapping[Channel, Judge],
    ) -> None:
        """Start before the first unit.

        Args:
            surface: Writes units of which something is taken out.
            prompt: Says how many choices were asked for.
            checking: Knows the rules, and notes what was not read.
            choices: The answer's own table of choices.
            judges: The answer's own table of channels.
        """
        self._choices = choices
        self._judges = judges
        self.extras = Extras(checking.program, checking.meter, checking.register)
        self._halves = Halves(judges)
        self.doubled = ""
        """White space with which what comes next may begin, and which has been sent: it leaves once."""
        self._surface = surface
        self._prompt = prompt
        self._checking = checking

    def sift(self, unit: Unit, *, whole: bool = False) -> Generator[None, None, Unit]:
        """Return a unit as it can be taken: with what rules must judge as deltas, without what spells text ahead of it.

        Args:
            unit: As it was read.
            whole: It is all of the answer.

        Raises:
            WireError: it goes on with text which was taken to be complete (a tool's name, after its arguments have
                begun), or says more apart than anybody has asked for.
        """
        gone: list[Path] = []
        unit = self._halves.joined(unit)
        if self._surface.calls_at_once and not whole:
            unit = self._apart(unit)
        if unit.shadows and self._changes:
            for path in unit.shadows:
                self._checking.ledger.unscanned(f"midstream:{'choice.' if path[:1] == ('choices',) else ''}{path[-1]}")
            gone += unit.shadows
        if unit.binary and self._checking.refuses_parts:
            self._checking.degrade("part_dropped")
            gone += unit.binary
            unit = msgspec.structs.replace(unit, unscanned=())
        most = _MOST_DELTAS_OF_WHOLE if whole else MOST_TEXTS
        unit = yield from self.extras.sift(unit, whole=whole, most=most)
        if len(unit.deltas) > most:
            raise WireError(f"it has more than {most} texts; check the upstream")
        if unit.stray:
            self._checking.degrade("stray_call_dropped")
            gone += unit.stray
            self.extras.calm = False
        unit, told = self._told_again(unit)
        unit, once = self._said_once(unit) if self.doubled else (unit, {})
        if gone or told or once or self.extras.otherwise:
            values = {**self.extras.otherwise, **once, **dict.fromkeys((*gone, *told))}
            unit = yield from self._checking.meter.stepping(self._surface.putting(unit, values), _STEP_WORK)
        yield from self._checking.meter.stepping(self._looking_at_bounds(unit, whole=whole), _STEP_WORK)
        return unit

    def _apart(self, unit: Unit) -> Unit:
        """Return a unit whose calls have numbers of their own: some servers number those of each event anew."""
        called = {delta.channel.index for delta in unit.deltas if delta.channel.kind in CALL}
        taken = {channel.index for channel in self._judges if channel.kind in CALL} if called else called
        if called.isdisjoint(taken):
            return unit
        self.extras.calm = False
        first = max(taken) + 1
        numbers = {number: first + at for at, number in enumerate(sorted(called))}
        deltas = list(unit.deltas)
        for place, delta in enumerate(deltas):
            if delta.channel.kind in CALL:
                channel = msgspec.structs.replace(delta.channel, index=numbers[delta.channel.index])
                deltas[place] = msgspec.structs.replace(delta, channel=channel)
        return msgspec.structs.replace(unit, deltas=tuple(deltas))

    def _told_again(self, unit: Unit) -> tuple[Unit, list[Path]]:
        """Return a unit without the names of tool calls that it tells once more, and where those stand.

        Some servers tell a call's name in each of its pieces. Clients put pieces together, or take the last.
        """
        called = {(delta.channel.choice, delta.channel.call) for delta in unit.deltas if _is_arguments(delta)}
        told = {
            delta.path: None
            for delta in unit.deltas
            if delta.channel.kind == "tool_name" and self._is_told(delta, called)
        }
        if not told:
            return unit, []
        self.extras.calm = False
        kept = tuple(msgspec.structs.replace(delta, text="") if delta.path in told else delta for delta in unit.deltas)
        return msgspec.structs.replace(unit, deltas=kept), list(told)

    def _said_once(self, unit: Unit) -> tuple[Unit, dict[Path, str]]:
        """Return a unit without the white space that the answer has ended with before it turned, and what is left."""
        self.extras.calm = False
        deltas, left = list(unit.deltas), dict[Path, str]()
        for place, delta in enumerate(deltas):
            if not self.doubled or delta.channel != _CONTENT or not delta.text:
                continue
            pairs = enumerate(zip(delta.text, self.doubled, strict=False))
            shared = next((at for at, (one, other) in pairs if one != other), min(len(delta.text), len(self.doubled)))
            self.doubled = self.doubled[shared:] if shared == len(delta.text) else ""
            if shared:
                left[delta.path] = delta.text[shared:]
                deltas[place] = msgspec.structs.replace(delta, text=left[delta.path])
        return msgspec.structs.replace(unit, deltas=tuple(deltas)), left

    def _is_told(self, delta: Delta, called: Collection[tuple[int, int]]) -> bool:
        """Tell whether a tool's name has been told: all of it, and it stands beside arguments, or behind them.

        Args:
            delta: The name.
            called: Choice and number of the calls that the same unit has arguments of.
        """
        judge, channel = self._judges.get(delta.channel), delta.channel
        if judge is None or not delta.text or delta.text != judge.holdback.text(Span(0, judge.holdback.received)):
            return False
        return judge.holdback.ended or (channel.choice, channel.call) in called

    @property
    def _changes(self) -> bool:
        """Rules may change the answer."""
        program = self._checking.program
        return any(program.scope(Stage.MIDSTREAM, kind).held for kind in ANSWER_CHANNELS)

    def _looking_at_bounds(self, unit: Unit, *, whole: bool) -> Walk:
        """Refuse, in steps, a unit that goes on with what was complete, or opens more than anybody has asked for."""
        most = _MAX_CHANNELS_OF_WHOLE if whole else _MAX_CHANNELS
        if len(self._judges) + len(unit.deltas) > most:
            opened = {delta.channel for delta in unit.deltas if delta.channel not in self._judges}
            if opened and len(self._judges) + len(opened) > most:
                raise WireError(f"the answer has more than {most} texts apart; check the upstream")
        if not whole and len(self._choices) + len(unit.choices) > _MAX_CHOICES:
            request = self._prompt.request
            most = max(_MAX_CHOICES, request.choices if request is not None else 1)
            if len(self._choices.keys() | set(unit.choices)) > most:
                raise WireError(f"the answer has more than {most} choices; check the upstream")
        for place, delta in enumerate(unit.deltas):
            if place % _DELTAS_A_STEP == _DELTAS_A_STEP - 1:
                yield
            if delta.channel.kind == "tool_name" and delta.text and self._name_ended(delta.channel):
                raise WireError("the name of a tool call goes on after its arguments have begun; check the upstream")
            if delta.channel.kind == "reasoning" and delta.channel not in self._judges and not whole:
                self._check_reasoning(delta.channel, unit)

    def _check_reasoning(self, new: Channel, unit: Unit) -> None:
        """Refuse reasoning that goes on under another name: some clients join what comes under any of them."""
        names = (Channel("reasoning", new.choice, index) for index in range(REASONING_NAMES))
        begun = {name for name in names if name in self._judges} if new.index < REASONING_NAMES else set()
        if begun and begun.isdisjoint(delta.channel for delta in unit.deltas):
            raise WireError("the reasoning goes on under another name; check the upstream")

    def _name_ended(self, channel: Channel) -> bool:
        judge = self._judges.get(channel)
        choice = self._choices.get(channel.choice)
        return judge is not None and judge.holdback.ended and choice is not None and choice.running


def _is_arguments(delta: Delta) -> bool:
    return delta.channel.kind == "tool_arguments"
