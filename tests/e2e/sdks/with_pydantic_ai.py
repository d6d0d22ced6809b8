"""pydantic-ai: its agent, with tools, with an output type, whole and streamed."""

from __future__ import annotations

from typing import Any

from openai import AsyncOpenAI
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.e2e.sdks import loop, tools
from tests.e2e.sdks.client import Asked

WAYS: dict[str, Any] = {"tool": ToolOutput, "native": NativeOutput, "prompted": PromptedOutput}


def _agent(asked: Asked, **more: Any) -> Any:
    client = AsyncOpenAI(
        base_url=asked["url"], api_key="k", max_retries=asked.get("retries", 0), default_headers=asked["headers"]
    )
    form: Any = OpenAIResponsesModel if asked["sdk"].endswith("_responses") else OpenAIChatModel
    model = form(asked["model"], provider=OpenAIProvider(openai_client=client))
    fields = asked.get("fields")
    settings = OpenAIChatModelSettings(extra_body=fields) if fields else None
    return Agent(model, model_settings=settings, retries=0, **more)


def _history(asked: Asked) -> list[ModelMessage]:
    return [
        ModelRequest(parts=[UserPromptPart(content=message["content"])])
        if message["role"] == "user"
        else ModelResponse(parts=[TextPart(content=message["content"])])
        for message in asked["messages"][:-1]
    ]


def _run(agent: Any, asked: Asked) -> Any:
    """Return the result of a run by threads or by coroutines, and what came of one that is streamed."""
    given = {"message_history": _history(asked)} if len(asked["messages"]) > 1 else {}
    prompt = asked["messages"][-1]["content"]
    if not asked.get("asynchronous"):
        if not asked["stream"]:
            return agent.run_sync(prompt, **given), []
        with agent.run_stream_sync(prompt, **given) as result:
            return result, list(result.stream_output(debounce_by=None))

    async def run() -> Any:
        if not asked["stream"]:
            return (await agent.run(prompt, **given)), []
        async with agent.run_stream(prompt, **given) as result:
            pieces = [piece async for piece in result.stream_output(debounce_by=None)]
            return result, pieces

    return loop.run(run())


def chat(asked: Asked) -> Any:
    """Text, thoughts and usage of a run."""
    result, pieces = _run(_agent(asked), asked)
    text = pieces[-1] if asked["stream"] else result.output
    response = result.all_messages()[-1]
    parts = [[part.part_kind, part.content] for part in response.parts]
    usage = response.usage
    return {"text": text, "raw": [pieces, parts, response.finish_reason, usage.input_tokens, usage.output_tokens]}


def shape(asked: Asked) -> Any:
    """An output type, asked for in the way that `how` names."""
    built = _agent(asked, output_type=WAYS[asked.get("how") or "tool"](tools.Person))
    result, pieces = _run(built, asked)
    return (pieces[-1] if asked["stream"] else result.output).model_dump()


def agent(asked: Asked) -> Any:
    """The agent, which runs tools by itself; streamed, each event of the run is read.

    That is by coroutines: by threads, with or without a guard, a text that stands before calls is taken for the end.
    """
    built = _agent(asked, tools=[tools.pay, tools.look_up])
    if not asked["stream"]:
        return {"text": _run(built, asked)[0].output}

    async def run() -> Any:
        async with built.run_stream_events(asked["messages"][-1]["content"]) as events:
            return [event async for event in events][-1].result.output

    return {"text": loop.run(run())}
