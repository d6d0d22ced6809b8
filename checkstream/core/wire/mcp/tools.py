"""What a server says of its tools, as one can tell whether it says something else later."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import NamedTuple

from checkstream.core.wire.json_text.strings import clean

_SAYS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


class Definition(NamedTuple):
    """How a tool is described in a list."""

    place: int
    """In the list."""
    name: str
    said: str
    """SHA-256, in hex, over `text`."""
    text: str
    """What models and clients act on of it: those members that it has, as JSON with sorted names, in ASCII."""


def has_tools(members: Mapping[str, object]) -> bool:
    """Tell whether a message lists tools."""
    result = members.get("result")
    return isinstance(result, dict) and isinstance(result.get("tools"), list)


def definitions(members: Mapping[str, object]) -> list[Definition]:
    """Return how each tool that a result lists is described."""
    result = members.get("result")
    tools = result.get("tools") if isinstance(result, dict) else None
    found: list[Definition] = []
    for i, tool in enumerate(tools if isinstance(tools, list) else ()):
        name = tool.get("name") if isinstance(tool, dict) else None
        if isinstance(name, str):
            text = json.dumps({key: tool[key] for key in _SAYS if key in tool}, sort_keys=True, separators=(",", ":"))
            found.append(Definition(i, clean(name), hashlib.sha256(text.encode()).hexdigest(), text))
    return found
