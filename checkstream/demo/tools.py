"""The scripted server of tools: the Model Context Protocol over HTTP, each answer a JSON object, no sessions.

`echo` says what it is given; `page` gives what the scenario of the name that it is given says, so that a test or a demo
writes what a tool brings in: a key, somebody's address, orders to the model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from checkstream.errors import RequestInvalid

_VERSION = "2025-06-18"
_UNKNOWN_METHOD, _WRONG = -32601, -32602


class _Message(msgspec.Struct, kw_only=True):
    method: str = ""
    id: int | str | None = None
    params: dict[str, Any] = {}


def _tool(name: str, about: str, given: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {given: {"type": "string"}}, "required": [given]}
    return {"name": name, "description": about, "inputSchema": schema}


TOOLS = [_tool("echo", "Say the same again.", "text"), _tool("page", "Read a page.", "name")]


def answered(body: bytes, page: Callable[[str], str | None]) -> dict[str, Any] | None:
    """Return the answer to a message; None: it wants none.

    Args:
        body: The message.
        page: Returns what a page says, None where there is none.

    Raises:
        RequestInvalid: the body is not one message.
    """
    try:
        message = msgspec.json.decode(body, type=_Message)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RequestInvalid(f"the body is not a message of the protocol: {error}") from error
    if message.id is None or not message.method:
        return None
    about: dict[str, Any] = {"jsonrpc": "2.0", "id": message.id}
    match message.method:
        case "initialize":
            version = message.params.get("protocolVersion", _VERSION)
            server = {"name": "scripted", "version": "1.0.0"}
            return about | {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}}
        case "ping":
            return about | {"result": {}}
        case "tools/list":
            return about | {"result": {"tools": TOOLS}}
        case "tools/call":
            said = _called(message.params.get("name"), message.params.get("arguments"), page)
            if said is None:
                return about | {"error": {"code": _WRONG, "message": "there is no such tool or page"}}
            return about | {"result": {"content": [{"type": "text", "text": said}], "isError": False}}
    return about | {"error": {"code": _UNKNOWN_METHOD, "message": f"no method is named `{message.method}`"}}


def _called(name: object, given: object, page: Callable[[str], str | None]) -> str | None:
    arguments = given if isinstance(given, dict) else {}
    if name == "echo":
        return str(arguments.get("text", ""))
    return page(str(arguments.get("name", ""))) if name == "page" else None
