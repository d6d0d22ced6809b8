"""What is known of the tools of one server: how each was described when it was first seen, and which may not be called.

An agent agrees to a tool by its description, once; a server that describes it otherwise later has it do something else
under the same name. What was seen outlives the exchange, and the process where a store keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from checkstream.errors import ToolsUnreadable

CHANGED = "mcp:tool_changed"
"""In place of a rule's id: the tool is not what it was."""
NOT_PINNED = "mcp:tool_not_pinned"
"""In the same way: its server has so many tools that nobody could tell whether it is."""
_MOST_TOOLS = 4096
_MOST_TEXT, _MOST_TEXTS = 8192, 262_144
"""Characters of a description that is kept for who reviews it, and of all of one server's."""


class Seen(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a tool was described."""

    said: str
    """SHA-256, in hex (see `wire.mcp.tools`)."""
    text: str | None = None
    """The same for readers, as JSON; None: it is too long, or there are too many."""


class Pin(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of one tool."""

    first: Seen
    """How it was described when it was first seen, or as an operator has accepted it: this counts."""
    now: Seen | None = None
    """How it was described last, where that is something else."""


class Pins:
    """How the tools of one server were described, by name."""

    def __init__(self) -> None:
        """Begin with none."""
        self.tools: dict[str, Pin] = {}
        self.changed = False
        """Something is known that was not when it was begun with, or since it was kept."""
        self._texts = 0

    def begin_with(self, state: bytes | None) -> None:
        """Know what is kept, in place of what was seen here.

        Raises:
            ToolsUnreadable: nobody here has kept it.
        """
        try:
            self.tools = {} if state is None else _STATE.decode(state)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ToolsUnreadable("what is kept of a server's tools can't be read") from error
        seen = (each for pin in self.tools.values() for each in (pin.first, pin.now) if each is not None)
        self._texts = sum(len(each.text or "") for each in seen)
        self.changed = False

    def state(self) -> bytes:
        """Return all that is known, to be kept."""
        return msgspec.json.encode(self.tools)

    def look(self, name: str, seen: Seen, *, keeps: bool) -> bool:
        """Tell whether a tool is described otherwise than it was.

        Args:
            name: Of the tool.
            seen: How it is described now.
            keeps: Than when it was first seen; else than last time, so that each change is told once.
        """
        pin = self.tools.get(name)
        if pin is None:
            if len(self.tools) < _MOST_TOOLS:
                self._put(name, Pin(self._bounded(seen)))
            return False
        last = (pin.now or pin.first).said
        if seen.said != last:
            now = None if seen.said == pin.first.said else self._bounded(seen)
            self._put(name, Pin(pin.first, now))
        return seen.said != (pin.first.said if keeps else last)

    def accept(self, name: str) -> bool:
        """Let a tool be described as it was last; tell whether that is something else than what counted."""
        pin = self.tools.get(name)
        if pin is None or pin.now is None:
            return False
        self._put(name, Pin(pin.now))
        return True

    def forget(self, name: str) -> None:
        """Know nothing of a tool: what is seen next counts."""
        if self.tools.pop(name, None) is not None:
            self.changed = True

    def is_changed(self, name: str) -> bool:
        """Tell whether a tool was described otherwise, when it was last seen."""
        pin = self.tools.get(name)
        return pin is not None and pin.now is not None

    def _put(self, name: str, pin: Pin) -> None:
        self.tools[name] = pin
        self.changed = True

    def _bounded(self, seen: Seen) -> Seen:
        size = len(seen.text or "")
        if size > _MOST_TEXT or self._texts + size > _MOST_TEXTS:
            return Seen(seen.said)
        self._texts += size
        return seen


_STATE = msgspec.json.Decoder(dict[str, Pin])


class ToolBook:
    """The tools of one server, as one caller has seen them. It is the one thing that exchanges share."""

    def __init__(self) -> None:
        """Begin with none."""
        self.pins = Pins()
        """What was seen in this process, where no store keeps it."""
        self._refused: dict[str, str] = {}

    def refuse(self, name: str, why: str) -> None:
        """Note that a tool may not be called, and by which rule."""
        if len(self._refused) < _MOST_TOOLS or name in self._refused:
            self._refused[name] = why

    def allow(self, name: str) -> None:
        """Note that nothing is wrong with a tool, as it is described now."""
        self._refused.pop(name, None)

    def refusing(self, name: str) -> str | None:
        """Return the rule by which a tool may not be called; None: it may."""
        return self._refused.get(name)


def is_pinned(name: str, said: str, pins: Mapping[str, str]) -> bool | None:
    """Tell whether a tool is described as the operator's configuration wants it; None: it doesn't say."""
    pinned = pins.get(name)
    return None if pinned is None else pinned.lower() == said
