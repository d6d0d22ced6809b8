"""instructor: structured output in its modes, whole and in parts."""

from __future__ import annotations

from typing import Any

import instructor
from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI

from tests.e2e.sdks import loop, tools
from tests.e2e.sdks.client import Asked


def _client(asked: Asked) -> Any:
    mode = instructor.Mode[asked.get("how") or "TOOLS"]
    common: dict[str, Any] = {
        "api_key": "k", "max_retries": asked.get("retries", 0), "default_headers": asked["headers"],
    }  # fmt: skip
    if asked["sdk"].endswith("_messages"):
        made: Any = AsyncAnthropic if asked.get("asynchronous") else Anthropic
        return instructor.from_anthropic(made(base_url=asked["url"].removesuffix("/v1"), **common), mode=mode)
    made = AsyncOpenAI if asked.get("asynchronous") else OpenAI
    return instructor.from_openai(made(base_url=asked["url"], **common), mode=mode)


def _fields(asked: Asked) -> dict[str, Any]:
    return {
        "model": asked["model"],
        "messages": list(asked["messages"]),
        "response_model": tools.Person,
        "max_retries": 1,
        "extra_body": asked.get("fields"),
        **({"max_tokens": 64} if asked["sdk"].endswith("_messages") else {}),
    }


def shape(asked: Asked) -> Any:
    """`create`, or the last of `create_partial`."""
    return loop.run(_shape(asked))


async def _shape(asked: Asked) -> Any:
    completions = _client(asked).chat.completions
    if asked["stream"]:
        parts = await loop.every(await loop.settled(completions.create_partial(**_fields(asked))))
        return parts[-1].model_dump() if parts else None
    return (await loop.settled(completions.create(**_fields(asked)))).model_dump()


def goes_on(asked: Asked) -> Any:
    """The message behind an object is appended, and another object asked for; only a whole answer has one."""
    return loop.run(_goes_on(asked))


async def _goes_on(asked: Asked) -> Any:
    given = _client(asked).chat.completions.create_with_completion(**_fields(asked))
    _, completion = await loop.settled(given)
    said = completion if asked["sdk"].endswith("_messages") else completion.choices[0].message
    messages = [*asked["messages"], {"role": "assistant", "content": said.content}]
    return await _shape({**asked, "messages": [*messages, {"role": "user", "content": "And in other words?"}]})


def many(asked: Asked) -> Any:
    """A list of objects, one by one as they are complete."""
    return [each.model_dump() for each in _client(asked).chat.completions.create_iterable(**_fields(asked))]


def chat(asked: Asked) -> Any:
    """The object and the completion behind it."""
    found, completion = _client(asked).chat.completions.create_with_completion(**_fields(asked))
    return {"text": found.model_dump_json(), "raw": completion.model_dump()}
