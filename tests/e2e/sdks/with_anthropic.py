"""anthropic: plain calls, the helper that adds a stream up, a loop over tools as its pages show it, and counting."""

from __future__ import annotations

import asyncio
from typing import Any

from anthropic import Anthropic, AsyncAnthropic

from tests.e2e.sdks import tools
from tests.e2e.sdks.client import Asked

_TOOLS = [{"name": each["function"]["name"], "input_schema": each["function"]["parameters"]} for each in tools.AS_JSON]


def _settings(asked: Asked) -> dict[str, Any]:
    return {
        "api_key": "k", "base_url": asked["url"].removesuffix("/v1"), "max_retries": asked.get("retries", 0),
        "default_headers": asked["headers"],
    }  # fmt: skip


def _fields(asked: Asked) -> dict[str, Any]:
    return {
        "model": asked["model"], "messages": list(asked["messages"]), "max_tokens": 64, **(asked.get("fields") or {}),
    }  # fmt: skip


def _said(message: Any) -> dict[str, Any]:
    text = "".join(block.text for block in message.content if block.type == "text")
    return {"text": text, "reason": message.stop_reason, "raw": message.model_dump()}


def chat(asked: Asked) -> Any:
    """Every event, or the whole answer, as the SDK reads it."""
    with Anthropic(**_settings(asked)) as client:
        if not asked["stream"]:
            return _said(client.messages.create(**_fields(asked)))
        with client.messages.create(stream=True, **_fields(asked)) as stream:
            return {"raw": [event.model_dump(exclude_unset=True) for event in stream]}


def helper(asked: Asked) -> Any:
    """The helper that adds up: the kinds of its events, and what it makes of them in the end."""
    with (
        Anthropic(**_settings(asked)) as client,
        client.messages.stream(**_fields(asked)) as stream,
    ):
        kinds = [event.type for event in stream]
        return {**_said(stream.get_final_message()), "kinds": kinds}


def beside(asked: Asked) -> Any:
    """The same with the client for asyncio."""

    async def told() -> Any:
        async with AsyncAnthropic(**_settings(asked)) as client:
            if not asked["stream"]:
                return _said(await client.messages.create(**_fields(asked)))
            async with client.messages.stream(**_fields(asked)) as stream:
                return _said(await stream.get_final_message())

    return asyncio.run(told())


def agent(asked: Asked) -> Any:
    """Ask, run what is called, tell what came of it with the SDK's own objects before it, and ask again."""
    messages = list(asked["messages"])
    with Anthropic(**_settings(asked)) as client:
        for _ in range(4):
            fields = {**_fields(asked), "messages": messages, "tools": _TOOLS}
            if asked["stream"]:
                with client.messages.stream(**fields) as stream:
                    message: Any = stream.get_final_message()
            else:
                message = client.messages.create(**fields)
            calls = [block for block in message.content if block.type == "tool_use"]
            if not calls:
                return _said(message)
            results = [
                {"type": "tool_result", "tool_use_id": each.id, "content": tools.BY_NAME[each.name](**each.input)}
                for each in calls
            ]
            messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
    raise AssertionError("the model goes on calling")


def count(asked: Asked) -> Any:
    """How many tokens a question has."""
    with Anthropic(**_settings(asked)) as client:
        fields = _fields(asked)
        del fields["max_tokens"]
        return client.messages.count_tokens(**fields).model_dump()


def batch(asked: Asked) -> Any:
    """A batch of one question."""
    with Anthropic(**_settings(asked)) as client:
        return client.messages.batches.create(requests=[{"custom_id": "a", "params": _fields(asked)}]).id
