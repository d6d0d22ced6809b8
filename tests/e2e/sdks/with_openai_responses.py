"""openai, by its Responses API: plain calls, the helper that adds a stream up, `parse`, and a loop over tools."""

from __future__ import annotations

import json
from typing import Any

from openai import AsyncOpenAI, AzureOpenAI, OpenAI

from tests.e2e.sdks import loop, tools
from tests.e2e.sdks.client import Asked

_TOOLS: list[Any] = [{"type": "function", "strict": False, **each["function"]} for each in tools.AS_JSON]


def _settings(asked: Asked) -> dict[str, Any]:
    return {
        "api_key": "k", "base_url": asked["url"], "max_retries": asked.get("retries", 0),
        "default_headers": asked["headers"],
    }  # fmt: skip


def _fields(asked: Asked) -> dict[str, Any]:
    return {"model": asked["model"], "input": list(asked["messages"]), "extra_body": asked.get("fields")}


def _said(response: Any) -> dict[str, Any]:
    details = response.incomplete_details
    reason = details.reason if details is not None else None
    return {"text": response.output_text, "reason": reason, "status": response.status, "raw": response.model_dump()}


def _end(events: list[Any]) -> Any:
    """Return the answer of the last event; an error event raises by itself."""
    return events[-1].response


def _either(asked: Asked) -> Any:
    """Return the client for threads, or the one for coroutines, or the one for Azure's paths."""
    if asked.get("azure"):
        settings = _settings(asked)
        endpoint = settings.pop("base_url").removesuffix("/v1")
        return AzureOpenAI(azure_endpoint=endpoint, api_version="2025-04-01-preview", **settings)
    return (AsyncOpenAI if asked.get("asynchronous") else OpenAI)(**_settings(asked))


def chat(asked: Asked) -> Any:
    """Every event, or the whole answer, as the SDK reads it."""

    async def told() -> Any:
        async with loop.entered(_either(asked)) as client:
            if not asked["stream"]:
                return _said(await loop.settled(client.responses.create(**_fields(asked))))
            events = await loop.every(await loop.settled(client.responses.create(stream=True, **_fields(asked))))
        text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        said = {**_said(_end(events)), "text": text}
        return {**said, "events": [event.model_dump(exclude_unset=True) for event in events]}

    return loop.run(told())


def helper(asked: Asked) -> Any:
    """The helper that adds up: the kinds of its events, and what it has made of the texts at the end of each."""
    with OpenAI(**_settings(asked)) as client, client.responses.stream(**_fields(asked)) as stream:
        events = list(stream)
    texts = [event.text for event in events if event.type == "response.output_text.done"]
    return {**_said(_end(events)), "text": "".join(texts), "kinds": [event.type for event in events]}


def shape(asked: Asked) -> Any:
    """Structured output by `parse`, or by the helper for streams."""

    async def told() -> Any:
        async with loop.entered(_either(asked)) as client:
            fields = {**_fields(asked), "text_format": tools.Person}
            parsed = (await _answered(client, asked, fields, client.responses.parse)).output_parsed
        return parsed and parsed.model_dump()

    return loop.run(told())


async def _answered(client: Any, asked: Asked, fields: dict[str, Any], call: Any) -> Any:
    """Return an answer by a call, or what the helper for streams makes of one."""
    if not asked["stream"]:
        return await loop.settled(call(**fields))
    async with loop.entered(client.responses.stream(**fields)) as stream:
        return _end(await loop.every(stream))


def agent(asked: Asked) -> Any:
    """Ask, run what is called, tell what came of it beside the objects of the answer, and ask again."""
    return loop.run(_agent(asked))


async def _agent(asked: Asked) -> Any:
    said: list[Any] = list(asked["messages"])
    async with loop.entered(_either(asked)) as client:
        for _ in range(4):
            fields = {**_fields(asked), "input": said, "tools": _TOOLS}
            response = await _answered(client, asked, fields, client.responses.create)
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                return _said(response)
            said += response.output
            for call in calls:
                found = tools.BY_NAME[call.name](**json.loads(call.arguments))
                said.append({"type": "function_call_output", "call_id": call.call_id, "output": found})
    raise AssertionError("the model goes on calling")


def kept(asked: Asked) -> Any:
    """What becomes of an answer that the provider keeps: it is asked for, and deleted."""
    with OpenAI(**_settings(asked)) as client:
        if asked["stream"]:
            with client.responses.retrieve("resp_1", stream=True) as stream:
                return _said(_end(list(stream)))
        found = _said(client.responses.retrieve("resp_1"))
        client.responses.delete("resp_1")
        return found


def items(asked: Asked) -> Any:
    """What an answer was asked with."""
    with OpenAI(**_settings(asked)) as client:
        found: Any = list(client.responses.input_items.list("resp_1"))
        return [part.text for item in found for part in item.content]


def cancelled(asked: Asked) -> Any:
    """The end of an answer that runs in the background."""
    with OpenAI(**_settings(asked)) as client:
        return client.responses.cancel("resp_1").status


def piece(asked: Asked) -> Any:
    """A stream that is told from its middle."""
    with OpenAI(**_settings(asked)) as client:
        return list(client.responses.retrieve("resp_1", stream=True, starting_after=3))
