"""ollama: chat and generate, plain and streamed, with tools, a form for the answer, and vectors."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from ollama import AsyncClient, Client

from tests.e2e.sdks import tools
from tests.e2e.sdks.client import Asked


def _client(asked: Asked) -> Client:
    return Client(host=asked["url"].removesuffix("/v1"), headers=asked["headers"])


def chat(asked: Asked) -> Any:
    """Every object of the stream, or the whole answer."""
    client = _client(asked)
    if not asked["stream"]:
        whole = client.chat(model=asked["model"], messages=asked["messages"])
        return {"text": whole.message.content, "raw": whole.model_dump()}
    parts = list(client.chat(model=asked["model"], messages=asked["messages"], stream=True))
    text = "".join(part.message.content or "" for part in parts)
    return {"text": text, "raw": [part.model_dump() for part in parts]}


def later(asked: Asked) -> Any:
    """The same with the client for coroutines."""

    async def ask() -> Any:
        client = AsyncClient(host=asked["url"].removesuffix("/v1"), headers=asked["headers"])
        if not asked["stream"]:
            return (await client.chat(model=asked["model"], messages=asked["messages"])).message.content
        stream = await client.chat(model=asked["model"], messages=asked["messages"], stream=True)
        return "".join([part.message.content or "" async for part in stream])

    return {"text": asyncio.run(ask())}


def generate(asked: Asked) -> Any:
    """One prompt, without messages."""
    client, prompt = _client(asked), asked["messages"][-1]["content"]
    if not asked["stream"]:
        return {"text": client.generate(model=asked["model"], prompt=prompt).response}
    parts = client.generate(model=asked["model"], prompt=prompt, stream=True)
    return {"text": "".join(part.response for part in parts)}


def agent(asked: Asked) -> Any:
    """Ask, run what is called, tell what came of it, and ask again, with the messages of the SDK itself."""
    client, messages = _client(asked), list(asked["messages"])
    for _ in range(4):
        fields: dict[str, Any] = {"model": asked["model"], "messages": messages, "tools": [tools.pay, tools.look_up]}
        if asked["stream"]:
            parts = list(client.chat(**fields, stream=True))
            message = parts[-1].message
            message.content = "".join(part.message.content or "" for part in parts)
            message.tool_calls = [call for part in parts for call in part.message.tool_calls or []] or None
        else:
            message = client.chat(**fields).message
        if not message.tool_calls:
            return {"text": message.content}
        messages.append(message)
        for call in message.tool_calls:
            found = tools.BY_NAME[call.function.name](**call.function.arguments)
            messages.append({"role": "tool", "content": found, "tool_name": call.function.name})
    raise AssertionError("the model goes on calling")


def shape(asked: Asked) -> Any:
    """An answer of a fixed form."""
    fields = {"model": asked["model"], "messages": asked["messages"], "format": tools.Person.model_json_schema()}
    if asked["stream"]:
        said = "".join(part.message.content or "" for part in _client(asked).chat(**fields, stream=True))
    else:
        said = _client(asked).chat(**fields).message.content or ""
    return json.loads(said)


def embed(asked: Asked) -> Any:
    """Vectors of texts."""
    return _client(asked).embed(model=asked["model"], input=asked["input"]).model_dump()["embeddings"]
