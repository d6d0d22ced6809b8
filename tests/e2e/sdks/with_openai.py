"""openai: plain calls, the helper that adds a stream up, `parse`, and a loop over tools as its pages show it."""

from __future__ import annotations

import json
from typing import Any

from openai import AzureOpenAI, OpenAI, pydantic_function_tool
from pydantic import BaseModel

from tests.e2e.sdks import tools
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


def chat(asked: Asked) -> Any:
    """Every event, or the whole answer, as the SDK reads it."""
    with _client(asked) as client:
        if not asked["stream"]:
            completion = client.chat.completions.create(**_fields(asked))
            return {"text": completion.choices[0].message.content, "raw": completion.model_dump()}
        options = {"stream_options": {"include_usage": True}}
        with client.chat.completions.create(stream=True, **(options | _fields(asked))) as stream:
            chunks = list(stream)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        return {"text": text, "raw": [chunk.model_dump(exclude_unset=True) for chunk in chunks]}


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
    with _client(asked) as client:
        if asked["stream"]:
            with client.chat.completions.stream(**fields) as stream:
                completion = stream.until_done().get_final_completion()
        else:
            completion = client.chat.completions.parse(**fields)
        parsed = completion.choices[0].message.parsed
        return parsed and parsed.model_dump()


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


def agent(asked: Asked) -> Any:
    """Ask, run what is called, tell what came of it, and ask again."""
    messages = list(asked["messages"])
    with _client(asked) as client:
        for _ in range(4):
            fields = {"model": asked["model"], "messages": messages, "tools": tools.AS_JSON}
            if asked["stream"]:
                with client.chat.completions.stream(**fields) as stream:
                    completion: Any = stream.until_done().get_final_completion()
            else:
                completion = client.chat.completions.create(**fields)
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
