"""LiteLLM as a client, over OpenAI's API and Anthropic's: its own form of answer, whichever of them it speaks."""

from __future__ import annotations

import json
import os
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would fetch prices when it is imported
os.environ["LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS"] = "True"  # it would fetch names of headers at the first message

import litellm

from tests.e2e.sdks import loop, tools
from tests.e2e.sdks.client import Asked


def _fields(asked: Asked) -> dict[str, Any]:
    messages = asked["sdk"].endswith("_messages")
    return {
        "model": f"{'anthropic' if messages else 'openai'}/{asked['model']}",
        "messages": list(asked["messages"]),
        "api_base": asked["url"].removesuffix("/v1") if messages else asked["url"],
        "api_key": "k",
        "extra_headers": asked["headers"],
        "max_retries": asked.get("retries", 0),
        "num_retries": asked.get("retries", 0),
        **({"max_tokens": 64} if messages else {}),
        **({"extra_body": asked["fields"]} if asked.get("fields") else {}),
    }


_USAGE = {"stream": True, "stream_options": {"include_usage": True}}


async def _asked(asked: Asked, **more: Any) -> Any:
    """Return an answer, or the chunks of one, of `completion` or `acompletion`."""
    call: Any = litellm.acompletion if asked.get("asynchronous") else litellm.completion
    given = await loop.settled(call(**{**_fields(asked), **more}, **(_USAGE if asked["stream"] else {})))
    if not asked["stream"]:
        return given
    return [each async for each in given] if asked.get("asynchronous") else list(given)  # one object is both


async def _joined(asked: Asked, **more: Any) -> Any:
    """Return an answer, a stream added up by the library's own helper."""
    given = await _asked(asked, **more)
    return litellm.stream_chunk_builder(given) if asked["stream"] else given


def _plain(response: Any) -> dict[str, Any]:
    """Return a response without what the library makes up where the API has none of it."""
    return {name: value for name, value in response.model_dump().items() if name not in {"id", "created"}}


def chat(asked: Asked) -> Any:
    """Every chunk, or the whole answer."""
    found = loop.run(_asked(asked))
    if not asked["stream"]:
        texts = [choice.message.content for choice in found.choices]
        return {"text": texts[0], "texts": texts, "raw": _plain(found)}
    parts = [(choice.index, choice.delta.content or "") for chunk in found for choice in chunk.choices]
    texts = ["".join(text for at, text in parts if at == index) for index in sorted({index for index, _ in parts})]
    return {"text": texts[0], "texts": texts, "raw": [_plain(chunk) for chunk in found]}


def helper(asked: Asked) -> Any:
    """`acompletion`, streamed and added up."""

    async def run() -> Any:
        found: Any = await litellm.acompletion(**_fields(asked), **_USAGE)
        return litellm.stream_chunk_builder([chunk async for chunk in found])

    found = loop.run(run())
    return {"text": found.choices[0].message.content, "raw": _plain(found)}


def shape(asked: Asked) -> Any:
    """`response_format` with a type, whose text is read as one."""
    text = loop.run(_joined(asked, response_format=tools.Person)).choices[0].message.content
    return tools.Person.model_validate_json(text).model_dump()


def agent(asked: Asked) -> Any:
    """Ask, run what is called, tell what came of it behind the library's own message, and ask again."""
    messages = list(asked["messages"])
    for _ in range(4):
        found = loop.run(_joined({**asked, "messages": messages}, tools=tools.AS_JSON))
        message = found.choices[0].message
        if not message.tool_calls:
            return {"text": message.content, "finish": found.choices[0].finish_reason}
        messages.append(message)
        for call in message.tool_calls:
            told = tools.BY_NAME[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": told})
    raise AssertionError("the model goes on calling")
