"""What is known of the tools of one server: how each was described when it was first seen, and which may not be called.

An agent agrees to a tool by its description, once; a server that describes it otherwise later has it do something else
under the same name. It is the one thing that exchanges share, and one caller's is not another's.
"""

from __future__ import annotations

from collections.abc import Mapping

CHANGED = "mcp:tool_changed"
"""In place of a rule's id: the tool is not what it was."""
_MOST_TOOLS = 4096


class ToolBook:
    """The tools of one server, as one caller has seen them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._seen: dict[str, str] = {}
        self._refused: dict[str, str] = {}

    def look(self, name: str, said: str, pins: Mapping[str, str], *, keeps: bool) -> bool:
        """Tell whether a tool is described otherwise than it was pinned, or first seen.

        Args:
            name: Of the tool.
            said: The hash of how it is described now.
            pins: Name -> hash, as the operator wants it.
            keeps: What was first seen stays what counts; else the new one does, once it was told of.
        """
        pinned = pins.get(name)
        if pinned is not None:
            return pinned.lower() != said
        if name not in self._seen and len(self._seen) >= _MOST_TOOLS:
            return False
        known = self._seen.setdefault(name, said)
        if not keeps:
            self._seen[name] = said
        return known != said

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
