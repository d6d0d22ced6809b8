"""mcp: one session with a server, step by step, as an agent's host has it."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.client.client import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp_types import CreateMessageResult, TextContent

from tests.e2e.sdks.client import Asked


def session(asked: Asked) -> Any:
    """What comes of each step; what a server asks and tells meanwhile stands beside it."""
    return asyncio.run(_session(asked))


async def _session(asked: Asked) -> Any:
    came: list[dict[str, Any]] = []
    told: list[Any] = []

    async def progress(done: float, of: float | None, message: str | None) -> None:
        told.append(["progress", done, of, message])

    async def sample(_: Any, params: Any) -> CreateMessageResult:
        told.append(["sampled", params.messages[0].content.text])
        return CreateMessageResult(role="assistant", content=TextContent(type="text", text="blue"), model="m")

    headers = {"authorization": f"Bearer {asked['key']}"} if "key" in asked else {}
    calls = streamable_http_client(asked["url"], http_client=create_mcp_http_client(headers))
    async with Client(calls, mode=asked.get("mode", "legacy"), sampling_callback=sample) as client:
        for do, *given in asked["steps"]:
            told.clear()
            try:
                value = await _step(client, do, given, progress)
                one: dict[str, Any] = {"value": value.model_dump(mode="json", by_alias=True)}
            except Exception as error:  # noqa: BLE001 - what an application would have to catch is what is asked about
                raised = getattr(error, "error", None)
                one = {
                    "error": None if raised is None else raised.model_dump(mode="json"),
                    "kind": type(error).__name__,
                }
                one["text"] = str(error)
            came.append({**one, "told": list(told)})
    return came


async def _step(client: Client, do: str, given: list[Any], progress: Any) -> Any:
    match do:
        case "call":
            return await client.call_tool(given[0], given[1], progress_callback=progress)
        case "tools":
            return await client.list_tools(cache_mode="bypass")
        case "resources":
            return await client.list_resource_templates()
        case "read":
            return await client.read_resource(given[0])
        case "prompt":
            return await client.get_prompt(given[0], given[1])
        case _:
            raise AssertionError(do)
