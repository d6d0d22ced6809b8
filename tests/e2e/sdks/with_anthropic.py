"""anthropic: plain calls, the helper that adds a stream up, a loop over tools as its pages show it, and counting."""

from __future__ import annotations

from typing import Any

from anthropic import Anthropic, AsyncAnthropic

from tests.e2e.sdks import loop, tools
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


def _either(asked: Asked) -> Any:
    """Return the client for threads, or the one for coroutines."""
    return (AsyncAnthropic if asked.get("asynchronous") else Anthropic)(**_settings(asked))


def chat(asked: Asked) -> Any:
    """Every event, or the whole answer, as the SDK reads it."""

    async def told() -> Any:
        async with loop.entered(_either(asked)) as client:
            if not asked["stream"]:
                return _said(await loop.settled(client.messages.create(**_fields(asked))))
            events = await loop.every(await loop.settled(client.messages.create(stream=True, **_fields(asked))))
        deltas = [event.delta for event in events if event.type == "content_block_delta"]
        text = "".join(delta.text for delta in deltas if delta.type == "text_delta")
        return {"text": text, "raw": [event.model_dump(exclude_unset=True) for event in events]}

    return loop.run(told())


def helper(asked: Asked) -> Any:
    """The helper that adds up: the kinds of its events, and what it makes of them in the end."""
    with (
        Anthropic(**_settings(asked)) as client,
        client.messages.stream(**_fields(asked)) as stream,
    ):
        kinds = [event.type for event in stream]
        return {**_said(stream.get_final_message()), "kinds": kinds}


async def _answered(client: Any, asked: Asked, fields: dict[str, Any], call: Any) -> Any:
    """Return an answer by a call, or what the helper for streams makes of one."""
    if not asked["stream"]:
        return await loop.settled(call(**fields))
    async with loop.entered(client.messages.stream(**fields)) as stream:
        return await loop.settled(stream.get_final_message())


def shape(asked: Asked) -> Any:
    """Structured output by `parse`, or by the helper for streams."""

    async def told() -> Any:
        async with loop.entered(_either(asked)) as client:
            fields = {**_fields(asked), "output_format": tools.Person}
            parsed = (await _answered(client, asked, fields, client.messages.parse)).parsed_output
        return parsed and parsed.model_dump()

    return loop.run(told())


def agent(asked: Asked) -> Any:
    """Ask, run what is called, tell what came of it with the SDK's own objects before it, and ask again."""
    return loop.run(_agent(asked))


async def _agent(asked: Asked) -> Any:
    messages = list(asked["messages"])
    async with loop.entered(_either(asked)) as client:
        for _ in range(4):
            fields = {**_fields(asked), "messages": messages, "tools": _TOOLS}
            message = await _answered(client, asked, fields, client.messages.create)
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
