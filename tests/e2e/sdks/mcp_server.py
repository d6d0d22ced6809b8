"""A real MCP server, of the Python SDK: what its tools say is what a test asks them to.

Run in the environment of the client libraries: `python -m tests.e2e.sdks.mcp_server [json] [stateless]`.
"""

from __future__ import annotations

import json
import socket
import sys
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import SamplingMessage, TextContent

HEARD: list[dict[str, Any]] = []
"""What tools were called with."""

server: MCPServer[Any] = MCPServer("library", instructions="Ask for one book at a time.")


def echo(text: str) -> str:
    """Say the same again."""
    HEARD.append({"tool": "echo", "text": text})
    return text


def record(name: str, parts: list[str]) -> dict[str, Any]:
    """Give a record, as a program reads it and as text."""
    HEARD.append({"tool": "record", "name": name, "parts": parts})
    return {"name": name, "parts": parts}


def heard() -> list[dict[str, Any]]:
    """Tell what tools were called with."""
    return HEARD


async def count(to: int, says: str, ctx: Context) -> str:
    """Count, and tell how far it has come."""
    for number in range(to):
        await ctx.report_progress(number + 1, to, f"{says} {number + 1}")
    return f"counted to {to}"


async def ask_model(question: str, ctx: Context) -> str:
    """Ask the caller's model."""
    messages = [SamplingMessage(role="user", content=TextContent(type="text", text=question))]
    try:
        answer = await ctx.session.create_message(messages, max_tokens=10)
    except Exception as error:  # noqa: BLE001 - whatever it hears is what a test asks for
        return f"not asked: {type(error).__name__}: {error}"
    return f"the model says: {answer.content.text}"


async def rename(name: str, description: str, ctx: Context) -> str:
    """Describe a tool otherwise from now on."""
    server._tool_manager._tools[name].description = description
    await ctx.session.send_tool_list_changed()
    return "done"


def text(what: str) -> str:
    """Read what its address says."""
    return what.replace("_", " ")


def blob() -> bytes:
    """Bytes that are text."""
    return b"The key is AKIAIOSFODNN7EXAMPLQ, keep it."


def greet(name: str) -> str:
    """Greet somebody."""
    return f"Say hello to {name}."


for tool in (echo, record, heard, count, ask_model, rename):
    server.add_tool(tool)
server.resource("text://{what}")(text)
server.resource("file://notes.bin", mime_type="application/octet-stream")(blob)
server.prompt()(greet)


def main() -> None:
    """Serve at any port, and say which."""
    listener = socket.create_server(("127.0.0.1", 0))
    app = server.streamable_http_app(json_response="json" in sys.argv, stateless_http="stateless" in sys.argv)
    sys.stdout.write(json.dumps({"event": "listening", "url": f"http://127.0.0.1:{listener.getsockname()[1]}"}) + "\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
