"""What is known of the tools of one server: how each was described when it was first seen, and which may not be called.

An agent agrees to a tool by its description, once; a server that describes it otherwise later has it do something else
under the same name. What was seen outlives the exchange, and the process where a store keeps it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from checkstream.errors import ToolsUnreadable

CHANGED = "mcp:tool_changed"
"""In place of a rule's id: the tool is not what it was."""
NOT_PINNED = "mcp:tool_not_pinned"
"""In the same way: its server has so many tools that nobody could tell whether it is."""
_MOST_TOOLS = 4096
_MOST_NAME = 256
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

    first: Seen | None = None
    """How it was described when it was first seen, or as an operator has accepted it: this counts. None: it has been
    seen as it may not be called alone."""
    now: Seen | None = None
    """How it was described last, where that is something else."""
    refused: str = ""
    """The rule by which it may not be called, as it was described last; empty: it may."""


class Pins:
    """How the tools of one server were described, by name. It is the one thing that exchanges share."""

    def __init__(self) -> None:
        """Begin with none."""
        self.tools: dict[str, Pin] = {}
        self.others = ""
        """The rule by which no other tool may be called: one that may not be could not be remembered; empty: they may.
        """
        self.changed = False
        """Something is known that was not when it was begun with, or since it was kept."""
        self._texts = 0

    def begin_with(self, state: bytes | None) -> None:
        """Know what is kept, in place of what was seen here.

        Raises:
            ToolsUnreadable: nobody here has kept it.
        """
        try:
            known = {} if state is None else _STATE.decode(state)
            self.tools, self.others = (known, "") if isinstance(known, dict) else known
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ToolsUnreadable("what is kept of a server's tools can't be read") from error
        seen = (each for pin in self.tools.values() for each in (pin.first, pin.now) if each is not None)
        self._texts = sum(len(each.text or "") for each in seen)
        self.changed = False

    def state(self) -> bytes:
        """Return all that is known, to be kept."""
        return msgspec.json.encode((self.tools, self.others) if self.others else self.tools)

    def look(self, name: str, seen: Seen, *, keeps: bool) -> bool:
        """Tell whether a tool is described otherwise than it was.

        Args:
            name: Of the tool.
            seen: How it is described now.
            keeps: Than when it was first seen; else than last time, so that each change is told once.
        """
        pin = self.of(name)
        if pin is None or pin.first is None:
            if pin is not None or len(self.tools) < _MOST_TOOLS:
                self._put(name, Pin(self._bounded(seen), None, "" if pin is None else pin.refused))
            return False
        last = (pin.now or pin.first).said
        if seen.said != last:
            now = None if seen.said == pin.first.said else self._bounded(seen)
            self._put(name, Pin(pin.first, now, pin.refused))
        return seen.said != (pin.first.said if keeps else last)

    def condemn(self, name: str, why: str) -> None:
        """Note that a tool may not be called as it is described now, and by which rule; empty: it may."""
        pin = self.of(name)
        if pin is None and why and len(self.tools) >= _MOST_TOOLS:
            self.changed = self.changed or not self.others
            self.others = self.others or why
        elif (pin.refused if pin is not None else "") != why:
            self._put(name, msgspec.structs.replace(pin or Pin(), refused=why))

    def refusing(self, name: str) -> str:
        """Return the rule by which a tool may not be called; empty: it may."""
        pin = self.of(name)
        return self.others if pin is None else pin.refused

    def of(self, name: str) -> Pin | None:
        """Return what is known of a tool; None: nothing."""
        return self.tools.get(_known_as(name))

    def accept(self, name: str) -> bool:
        """Let a tool be described as it was last; tell whether that is something else than what counted."""
        pin = self.of(name)
        if pin is None or pin.now is None:
            return False
        self._put(name, Pin(pin.now, None, pin.refused))
        return True

    def forget(self, name: str) -> None:
        """Know nothing of a tool: what is seen next counts."""
        if self.tools.pop(_known_as(name), None) is not None:
            self.others, self.changed = "", True  # there is room now for what is listed next

    def is_changed(self, name: str) -> bool:
        """Tell whether a tool was described otherwise, when it was last seen."""
        pin = self.of(name)
        return pin is not None and pin.now is not None

    def _put(self, name: str, pin: Pin) -> None:
        self.tools[_known_as(name)] = pin
        self.changed = True

    def _bounded(self, seen: Seen) -> Seen:
        size = len(seen.text or "")
        if size > _MOST_TEXT or self._texts + size > _MOST_TEXTS:
            return Seen(seen.said)
        self._texts += size
        return seen


_STATE = msgspec.json.Decoder(dict[str, Pin] | tuple[dict[str, Pin], str])


def _known_as(name: str) -> str:
    """Return a name as it is remembered: of a long one its beginning and what tells it from all others."""
    if len(name) <= _MOST_NAME:
        return name
    return f"{name[:_MOST_NAME]}...{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"


def is_pinned(name: str, said: str, pins: Mapping[str, str]) -> bool | None:
    """Tell whether a tool is described as the operator's configuration wants it; None: it doesn't say."""
    pinned = pins.get(name)
    return None if pinned is None else pinned.lower() == said
