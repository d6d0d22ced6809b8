"""Which tools a request of the Messages API offers the model, and which are allowed."""

from __future__ import annotations

from collections.abc import Sequence

from checkstream.core.wire.requests.tools import allowed

_EVERY = "*"


def name_of(tool: object) -> str | None:
    """Return the name by which an offered tool is called; a set of tools has none but its type."""
    if not isinstance(tool, dict):
        return None
    name = tool.get("name", tool.get("type"))
    return name if isinstance(name, str) else None


def tool_allowed(tool: object, allow: Sequence[str]) -> bool:
    """Tell whether an offered tool may stay: its name is on the list."""
    name = name_of(tool)
    return name is not None and allowed(name, allow)


def choice_allowed(choice: object, allow: Sequence[str]) -> bool:
    """Tell whether a `tool_choice` names only a tool on the list; a mode word names none."""
    name = choice.get("name") if isinstance(choice, dict) else None
    return name is None or (isinstance(name, str) and allowed(name, allow))


def servers_allowed(allow: Sequence[str]) -> bool:
    """Tell whether servers of tools may stay: the provider calls what they offer, and nobody here knows its names."""
    return _EVERY in allow
