"""openai: plain calls, the helper that adds a stream up, `parse`, and a loop over tools as its pages show it."""

from __future__ import annotations

import json
from typing import Any

from openai import AsyncOpenAI, AzureOpenAI, OpenAI, pydantic_function_tool
from pydantic import BaseModel

from tests.e2e.sdks import loop, tools
from tests.e2e.sdks.client import Asked


def _client(asked: Asked) -> OpenAI:
    settings: dict[str, Any] = {
        "api_key": "k", "max_retries": asked.get("retries", 0), "default_headers": asked["headers"],
    }  # fmt: skip
    if not asked.get("azure"):
        return OpenAI(base_url=asked["url"], **settings)
    return AzureOpenAI(azure_endpoint=asked["url"].removesuffix("/v1"), api_version="2024-10-21", **settings)


def _fields(asked: Asked) -> dict[str, Any]:
    return {"model": asked["model"], "messages": list(asked["messages"]), "extra_body": asked.get("fields")}


def _either(asked: Asked) -> Any:
    """Return the client for threads, or the one for coroutines."""
    if not asked.get("asynchronous"):
        return _client(asked)
    return AsyncOpenAI(
        base_url=asked["url"], api_key="k", max_retries=asked.get("retries", 0), default_headers=asked["headers"]
    )


def _by_choice(parts: list[tuple[int, str]]) -> list[str]:
    """Return the text of each choice."""
    return ["".join(text for at, text in parts if at == index) for index in sorted({index for index, _ in parts})]


def chat(asked: Asked) -> Any:
    """Every event, or the whole answer, as the SDK reads it."""

    async def told() -> Any:
        async with loop.entered(_either(asked)) as client:
            if not asked["stream"]:
                completion = await loop.settled(client.chat.completions.create(**_fields(asked)))
                texts = [choice.message.content for choice in completion.choices]
                return {"text": texts[0], "texts": texts, "raw": completion.model_dump()}
            options = {"stream": True, "stream_options": {"include_usage": True}}
            chunks = await loop.every(await loop.settled(client.chat.completions.create(**options, **_fields(asked))))
        parts = [(choice.index, choice.delta.content or "") for chunk in chunks for choice in chunk.choices]
        texts = _by_choice(parts)
        return {"text": texts[0], "texts": texts, "raw": [chunk.model_dump(exclude_unset=True) for chunk in chunks]}

    return loop.run(told())


def complete(asked: Asked) -> Any:
    """The older API, of one prompt: every event, or the whole answer."""
    fields = _fields(asked)
    fields["prompt"] = fields.pop("messages")[-1]["content"]

    async def told() -> Any:
        async with loop.entered(_either(asked)) as client:
            given = await loop.settled(client.completions.create(stream=asked["stream"], **fields))
            found = await loop.every(given) if asked["stream"] else [given]
        texts = _by_choice([(choice.index, choice.text) for each in found for choice in each.choices])
        return {"text": texts[0], "texts": texts, "raw": [each.model_dump() for each in found]}

    return loop.run(told())


def helper(asked: Asked) -> Any:
    """The accumulating helper: its events, and what it makes of them in the end."""
    with _client(asked) as client:
        options = {"stream_options": {"include_usage": True}}
        with client.chat.completions.stream(**(options | _fields(asked))) as stream:
            kinds = [event.type for event in stream]
            final = stream.get_final_completion()
        return {"text": final.choices[0].message.content, "raw": [kinds, final.model_dump()]}


def shape(asked: Asked) -> Any:
    """Structured output by `parse`, or by the helper for streams."""
    fields = _fields(asked) | {"response_format": tools.Person}

    async def told() -> Any:
        async with loop.entered(_either(asked)) as client:
            completion = await _completed(client, asked, fields, client.chat.completions.parse)
        parsed = completion.choices[0].message.parsed
        return parsed and parsed.model_dump()

    return loop.run(told())


async def _completed(client: Any, asked: Asked, fields: dict[str, Any], call: Any) -> Any:
    """Return an answer by a call, or what the helper for streams makes of one."""
    if not asked["stream"]:
        return await loop.settled(call(**fields))
    async with loop.entered(client.chat.completions.stream(**fields)) as stream:
        await loop.every(stream)
        return await loop.settled(stream.get_final_completion())


def goes_on(asked: Asked) -> Any:
    """`messages.append(completion.choices[0].message)` of `parse`, then the next question."""
    messages = list(asked["messages"])
    with _client(asked) as client:
        first = client.chat.completions.parse(model=asked["model"], messages=messages, response_format=tools.Person)
        messages.append(first.choices[0].message)
        messages.append({"role": "user", "content": "And in other words?"})
        return client.chat.completions.create(model=asked["model"], messages=messages).choices[0].message.content


class Pay(BaseModel):
    """Arguments of `pay`, as `parse` checks them."""

    amount: int
    card: str | None = None


def _tools(asked: Asked) -> list[Any]:
    """Return the tools; the helper for coroutines takes strict ones alone."""
    if not asked.get("asynchronous"):
        return tools.AS_JSON
    return [{"type": "function", "function": {**each["function"], "strict": True}} for each in tools.AS_JSON]


def agent(asked: Asked) -> Any:
    """Ask, run what is called, tell what came of it, and ask again."""
    return loop.run(_agent(asked))


async def _agent(asked: Asked) -> Any:
    messages = list(asked["messages"])
    async with loop.entered(_either(asked)) as client:
        for _ in range(4):
            fields = {"model": asked["model"], "messages": messages, "tools": _tools(asked)}
            completion = await _completed(client, asked, fields, client.chat.completions.create)
            message = completion.choices[0].message
            if not message.tool_calls:
                return {"text": message.content, "finish": completion.choices[0].finish_reason}
            messages.append(message)
            for call in message.tool_calls:
                found = tools.BY_NAME[call.function.name](**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": found})
    raise AssertionError("the model goes on calling")


def parsed_call(asked: Asked) -> Any:
    """Arguments of a call as `parse` reads them."""
    with _client(asked) as client:
        completion = client.chat.completions.parse(
            model=asked["model"], messages=asked["messages"], tools=[pydantic_function_tool(Pay, name="pay")]
        )
        calls: Any = completion.choices[0].message.tool_calls or []
        return [call.function.parsed_arguments.model_dump() for call in calls]


def compact(asked: Asked) -> Any:
    """What nobody guards: the provider sums a conversation up in a form that it alone can read."""
    with _client(asked) as client:
        return client.post("/responses/compact", cast_to=object, body={"model": asked["model"], "input": "hello"})


def embed(asked: Asked) -> Any:
    """Vectors of two texts."""
    with _client(asked) as client:
        found = client.embeddings.create(model="text-embedding-3-small", input=asked["input"], encoding_format="float")
        return found.model_dump()


def moderate(asked: Asked) -> Any:
    """What the upstream's moderation says."""
    with _client(asked) as client:
        return client.moderations.create(input=asked["input"]).model_dump()
