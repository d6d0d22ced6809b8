"""The rest of an answer that was cut off: it comes as an answer of its own, and leaves as the end of the first.

Its message goes on with the text that is open, so nothing tells it again. Its other items are further ones.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

import msgspec

from checkstream.core.terms import Unit
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.responses import events
from checkstream.core.wire.responses.objects import Members, entries, is_object, members

_BEHIND = 500_000
"""Items of the rest are numbered from here: of those of the beginning there are fewer."""
_SPOKEN = frozenset({"content", "refusal"})


class Rest:
    """Which events of the rest are told, and as what."""

    def __init__(self) -> None:
        """Begin before its first event."""
        self._messages: set[int] = set()
        """Its items that are messages."""

    @staticmethod
    def number(number: int) -> int:
        """Return the number of an item of the rest among those of the answer."""
        return number + _BEHIND

    @staticmethod
    def said(unit: Unit, texts: Mapping[int, str]) -> str:
        """Return what an event says first of the texts of messages, as it was edited."""
        return "".join(
            texts.get(place, delta.text)
            for place, delta in enumerate(unit.deltas)
            if delta.part and delta.channel.kind in _SPOKEN
        )

    def is_of_message(self, kind: str, top: Members) -> bool:
        """Tell whether an event is about a message, whose texts are said in the one that was begun."""
        if not top.get("output_index", b"").isdigit():
            return False
        number, name = int(top["output_index"]), kind.rpartition(".")[0]
        form = events.FORMS.get(name)
        of_item = name == events.ITEM and _type_of(top.get("item", b"")) == "message"
        of_part = name in events.PARTS and _type_of(top.get("part", b"")) in {"output_text", "refusal"}
        if of_item or of_part or kind == events.ANNOTATION or (form is not None and form.channel in _SPOKEN):
            self._messages.add(number)
        return number in self._messages

    def apart(self, unit: Unit, top: Members) -> Unit:
        """Return an event about another item under the number that it has in the answer."""
        if top.get("output_index", b"").isdigit():
            top["output_index"] = str(self.number(int(top["output_index"]))).encode()
        deltas = tuple(
            msgspec.structs.replace(delta, part=_behind(delta.part)) if delta.part else delta for delta in unit.deltas
        )
        again = {path: _behind(part) for path, part in unit.again.items()}
        return msgspec.structs.replace(unit, deltas=deltas, again=again)

    @staticmethod
    def untold(output: bytes, known: Collection[int]) -> list[bytes]:
        """Return the items of the last word that no event has told before.

        Args:
            output: What the last word lists.
            known: Positions there of items that were told, or taken out.
        """
        there = entries(output) if output[:1] == b"[" else []
        return [each for at, each in enumerate(there) if at not in known and _type_of(each) != "message"]


def _behind(part: Path) -> Path:
    return (Rest.number(int(part[0])), *part[1:])


def _type_of(value: bytes) -> str:
    found = members(value).get("type", b'""') if is_object(value) else b'""'
    return str(json.loads(found))
