"""Characters that the upstream has cut in two: the halves, which stand in two texts, are read as what they make.

Servers cut JSON strings between the two escapes of one character. JavaScript joins such texts to the character; so
do rules, or a number written in letters like digits would be none for them.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from checkstream.core.channel.judge import Judge
from checkstream.core.exchange.midstream.extras import key_of
from checkstream.core.terms import Channel, Unit
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.json_text.strings import whole_of

_Place = Channel | tuple[int, Path, int]
_NONE = "", ""


class Halves:
    """The first halves that wait, of one answer."""

    __slots__ = ("_first", "_judges")

    def __init__(self, judges: Mapping[Channel, Judge]) -> None:
        """Begin with none.

        Args:
            judges: The answer's own table of channels.
        """
        self._judges = judges
        self._first: dict[_Place, tuple[str, int]] = {}
        """Where a text ended with the first half of a character -> this half, and how much had been said there."""

    def joined(self, unit: Unit) -> Unit:
        """Return a unit in which the whole character stands for each second half that goes on with a first one."""
        if not unit.halves and not self._first:
            return unit
        said: dict[_Place, int] = {}
        deltas, extras = list(unit.deltas), list(unit.extras)
        for number, delta in enumerate(deltas):
            if delta.text:
                begun = said.get(delta.channel, self._said(delta.channel))
                text = self._join(delta.channel, begun, delta.text, unit.halves.get(delta.path, _NONE))
                said[delta.channel] = begun + len(text)
                if text != delta.text:
                    deltas[number] = msgspec.structs.replace(delta, text=text)
        for number, extra in enumerate(extras):
            if extra.joins:
                text = self._join(key_of(extra), 0, extra.text, unit.halves.get(extra.path, _NONE))
                if text != extra.text:
                    extras[number] = msgspec.structs.replace(extra, text=text)
        return msgspec.structs.replace(unit, deltas=tuple(deltas), extras=tuple(extras))

    def _said(self, channel: Channel) -> int:
        judge = self._judges.get(channel)
        return 0 if judge is None else judge.holdback.received - judge.prelude

    def _join(self, place: _Place, begun: int, text: str, halves: tuple[str, str]) -> str:
        """Return a text with what its first half makes with the last of the text before it, which ended at `begun`."""
        second, first = halves
        before, end = self._first.pop(place, ("", 0))
        if second and before and (begun == end or not isinstance(place, Channel)):
            text = whole_of(before, second) + text[1:]
        if first:
            self._first[place] = first, begun + len(text)
        return text
