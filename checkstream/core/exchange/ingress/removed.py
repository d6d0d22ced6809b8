"""What policies take out of a request: messages, entries, files, each as a whole, with a note in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from checkstream.core.exchange.ingress.refusal import Refusal
from checkstream.core.policy.action import Reject
from checkstream.core.terms import Delta
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.json_text.strict import place_of
from checkstream.core.wire.requests.shaping import ITEM_FRAME, MESSAGE_FRAME
from checkstream.errors import Unremovable, WireError


class Gone(NamedTuple):
    """Why a unit is taken out."""

    rule_id: str
    note: str
    """What stands in its place."""


class Removed:
    """The units of a request that are taken out of it."""

    def __init__(self, unit_of: Callable[[str, Path], Path], is_frame: Callable[[Path], bool]) -> None:
        """Begin with none.

        Args:
            unit_of: Returns the path of what a caller would take out as one, of a kind of channel and a text's path.
            is_frame: Tells whether a text stands in what a unit keeps when all that it says is taken out.
        """
        self.unit_of = unit_of
        self.is_frame = is_frame
        self._units: dict[Path, Gone] = {}

    def __bool__(self) -> bool:
        """Tell whether anything is taken out."""
        return bool(self._units)

    def add(self, unit: Path, rule_id: str, note: str = "") -> None:
        """Take a unit out; the first rule that wants it counts."""
        self._units.setdefault(unit, Gone(rule_id, note))

    def rule_at(self, unit: Path) -> str | None:
        """Return the rule by which a unit is taken out; None: it stays."""
        gone = self._units.get(unit)
        return None if gone is None else gone.rule_id

    def unit(self, delta: Delta) -> Path:
        """Return the path of the message, file, document or field that a text belongs to."""
        return self.unit_of(delta.channel.kind, delta.path)

    def takes(self, delta: Delta) -> bool:
        """Tell whether a text goes with what is taken out; the frame of a message stays."""
        return self.unit(delta) in self._units and not self.is_frame(delta.path)

    def instead(self, delta: Delta) -> tuple[Path, str]:
        """Return the unit of a text that is taken out, and the note in its place."""
        unit = self.unit(delta)
        return unit, self._units[unit].note

    @property
    def notes(self) -> tuple[tuple[Path, str], ...]:
        """Each unit, and the note in its place."""
        return tuple((unit, gone.note) for unit, gone in self._units.items())

    def unwritable(self, error: WireError) -> Refusal:
        """Return why a request is refused that can't be edited as policy wants."""
        if isinstance(error, Unremovable) and error.path in self._units:
            message, rule_id = f"{Reject().message}: {error}", self._units[error.path].rule_id
            return Refusal(400, "request_blocked", message, rule_id, param=place_of(error.path))
        return Refusal(400, "invalid_request_error", f"the body can't be edited as policy wants: {error}")


def is_frame(path: Path) -> bool:
    """Tell whether a text stands in what a message keeps when all that it says is taken out."""
    if path[0] not in ("messages", "input") or len(path) < 3:
        return False
    if path[0] == "input":
        return path[2] in ITEM_FRAME
    return path[2] in MESSAGE_FRAME and (path[2] != "content" or path[4:5] == ("tool_use_id",))
