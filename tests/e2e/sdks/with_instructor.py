"""instructor: structured output in its modes, whole and in parts."""

from __future__ import annotations

from typing import Any

import instructor
from anthropic import Anthropic
from openai import OpenAI

from tests.e2e.sdks import tools
from tests.e2e.sdks.client import Asked


def _client(asked: Asked) -> Any:
    mode = instructor.Mode[asked.get("how") or "TOOLS"]
    common: dict[str, Any] = {
        "api_key": "k", "max_retries": asked.get("retries", 0), "default_headers": asked["headers"],
    }  # fmt: skip
    if asked["sdk"].endswith("_messages"):
        return instructor.from_anthropic(Anthropic(base_url=asked["url"].removesuffix("/v1"), **common), mode=mode)
    return instructor.from_openai(OpenAI(base_url=asked["url"], **common), mode=mode)


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
    client = _client(asked)
    if asked["stream"]:
        parts = list(client.chat.completions.create_partial(**_fields(asked)))
        return parts[-1].model_dump() if parts else None
    return client.chat.completions.create(**_fields(asked)).model_dump()


def many(asked: Asked) -> Any:
    """A list of objects, one by one as they are complete."""
    return [each.model_dump() for each in _client(asked).chat.completions.create_iterable(**_fields(asked))]


def chat(asked: Asked) -> Any:
    """The object and the completion behind it."""
    found, completion = _client(asked).chat.completions.create_with_completion(**_fields(asked))
    return {"text": found.model_dump_json(), "raw": completion.model_dump()}
