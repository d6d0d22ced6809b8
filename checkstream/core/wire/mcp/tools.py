"""What a server says of its tools, as one can tell whether it says something else later."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from checkstream.core.wire.json_text.strings import clean

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_PIECES_A_STEP = 1024
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
    return [found for found in defining(members) if found is not None]


def defining(members: Mapping[str, object]) -> Iterator[Definition | None]:
    """Yield the same, and None wherever a turn may end."""
    result = members.get("result")
    tools = result.get("tools") if isinstance(result, dict) else None
    for i, tool in enumerate(tools if isinstance(tools, list) else ()):
        name = tool.get("name") if isinstance(tool, dict) else None
        if isinstance(name, str):
            said = {key: tool[key] for key in _SAYS if key in tool}
            pieces = list[str]()
            for piece in (_ENCODER.encode(said),) if _is_short(said) else _ENCODER.iterencode(said):
                pieces.append(piece)
                if len(pieces) % _PIECES_A_STEP == 0:
                    yield None
            text = "".join(pieces)
            yield Definition(i, clean(name), hashlib.sha256(text.encode()).hexdigest(), text)


def _is_short(said: dict[str, object]) -> bool:
    """Tell whether a description has so few values that it is written in one call, which is three times as quick."""
    pending: list[object] = [said]
    left = _PIECES_A_STEP
    while pending and left > 0:
        found = pending.pop()
        if isinstance(found, dict | list):
            left -= 1 + len(found)
            pending += (found.values() if isinstance(found, dict) else found) if left > 0 else ()
    return left > 0
