"""What a server says of its tools, as one can tell whether it says something else later."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

_SAYS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


def definitions(members: Mapping[str, object]) -> list[tuple[int, str, str]]:
    """Return the place in its list, the name and the hash of each tool that a result lists.

    The hash is SHA-256, in hex, over what models and clients act on of it: these members that it has, as JSON with
    sorted names and no white space.
    """
    result = members.get("result")
    tools = result.get("tools") if isinstance(result, dict) else None
    found: list[tuple[int, str, str]] = []
    for i, tool in enumerate(tools if isinstance(tools, list) else ()):
        name = tool.get("name") if isinstance(tool, dict) else None
        if isinstance(name, str):
            said = {key: tool[key] for key in _SAYS if key in tool}
            data = json.dumps(said, sort_keys=True, separators=(",", ":")).encode()
            found.append((i, name, hashlib.sha256(data).hexdigest()))
    return found
