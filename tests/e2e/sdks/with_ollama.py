"""ollama: chat and generate, plain and streamed, with tools, a form for the answer, and vectors."""

from __future__ import annotations

import json
from typing import Any

from ollama import AsyncClient, Client

from tests.e2e.sdks import loop, tools
from tests.e2e.sdks.client import Asked


def _client(asked: Asked) -> Any:
    """Return the client for threads, or the one for coroutines."""
    settings = {"host": asked["url"].removesuffix("/v1"), "headers": asked["headers"]}
    return AsyncClient(**settings) if asked.get("asynchronous") else Client(**settings)


async def _chatted(asked: Asked, **more: Any) -> list[Any]:
    """Return every object of the stream, or the whole answer."""
    fields = {"model": asked["model"], "messages": asked["messages"], **more}
    given = await loop.settled(_client(asked).chat(**fields, stream=asked["stream"]))
    return await loop.every(given) if asked["stream"] else [given]


def chat(asked: Asked) -> Any:
    """Every object of the stream, or the whole answer."""
    parts = loop.run(_chatted(asked))
    raw = [part.model_dump() for part in parts]
    return {"text": _text(parts), "raw": raw if asked["stream"] else raw[0]}


def _text(parts: list[Any]) -> str:
    return "".join(part.message.content or "" for part in parts)


def generate(asked: Asked) -> Any:
    """One prompt, without messages."""

    async def told() -> list[Any]:
        fields = {"model": asked["model"], "prompt": asked["messages"][-1]["content"], "stream": asked["stream"]}
        given = await loop.settled(_client(asked).generate(**fields, format=asked.get("format")))
        return await loop.every(given) if asked["stream"] else [given]

    parts = loop.run(told())
    return {"text": "".join(part.response for part in parts), "raw": [part.model_dump() for part in parts]}


def agent(asked: Asked) -> Any:
    """Ask, run what is called, tell what came of it, and ask again, with the messages of the SDK itself."""
    return loop.run(_agent(asked))


async def _agent(asked: Asked) -> Any:
    messages = list(asked["messages"])
    for _ in range(4):
        parts = await _chatted({**asked, "messages": messages}, tools=[tools.pay, tools.look_up])
        message = parts[-1].message
        message.content = _text(parts)
        message.tool_calls = [call for part in parts for call in part.message.tool_calls or []] or None
        if not message.tool_calls:
            return {"text": message.content}
        messages.append(message)
        for call in message.tool_calls:
            found = tools.BY_NAME[call.function.name](**call.function.arguments)
            messages.append({"role": "tool", "content": found, "tool_name": call.function.name})
    raise AssertionError("the model goes on calling")


def shape(asked: Asked) -> Any:
    """An answer of a fixed form."""
    return json.loads(_text(loop.run(_chatted(asked, format=tools.Person.model_json_schema()))))


def shape_of_one(asked: Asked) -> Any:
    """An answer of a fixed form to one prompt."""
    return json.loads(generate({**asked, "format": tools.Person.model_json_schema()})["text"])


def embed(asked: Asked) -> Any:
    """Vectors of texts."""
    return _client(asked).embed(model=asked["model"], input=asked["input"]).model_dump()["embeddings"]


def models(asked: Asked) -> Any:
    """The models that the server has, by name."""
    return [model.model_dump(mode="json") for model in _client(asked).list().models]


def show(asked: Asked) -> Any:
    """What the server knows of one model."""
    return _client(asked).show(asked["model"]).model_dump(mode="json")
