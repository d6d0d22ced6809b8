"""The OpenAI Agents SDK: agents over chat and Responses, with tools, hand-overs, forms and a server of tools."""

from __future__ import annotations

from typing import Any

from agents import Agent, ItemHelpers, ModelSettings, Runner, function_tool, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.models.openai_responses import OpenAIResponsesModel
from openai import AsyncOpenAI

from tests.e2e.sdks import loop, tools
from tests.e2e.sdks.client import Asked

set_tracing_disabled(disabled=True)  # it would tell its maker of each run

_TOOLS = [function_tool(tools.pay, strict_mode=False), function_tool(tools.look_up, strict_mode=False)]


def _agent(asked: Asked, name: str = "first", **more: Any) -> Agent[Any]:
    client = AsyncOpenAI(
        base_url=asked["url"], api_key="k", max_retries=asked.get("retries", 0), default_headers=asked["headers"]
    )
    form: Any = OpenAIResponsesModel if asked["sdk"].endswith("_responses") else OpenAIChatCompletionsModel
    settings = ModelSettings(extra_body=asked.get("fields"), include_usage=True)
    model = form(model=asked["model"], openai_client=client)
    return Agent(name=name, model=model, model_settings=settings, **more)


async def _streamed(agent: Agent[Any], asked: Asked) -> tuple[Any, list[Any]]:
    result = Runner.run_streamed(agent, list(asked["messages"]))
    return result, [event async for event in result.stream_events()]


def _run(agent: Agent[Any], asked: Asked) -> tuple[Any, list[Any]]:
    """Return the result of a run by threads, by coroutines or streamed, and the events of one that is."""
    if asked["stream"]:
        return loop.run(_streamed(agent, asked))
    if asked.get("asynchronous"):
        return loop.run(Runner.run(agent, list(asked["messages"]))), []
    return Runner.run_sync(agent, list(asked["messages"])), []


def _said(result: Any, events: list[Any]) -> dict[str, Any]:
    """Return what an application reads of a run: the last text, what was streamed, each answer and its usage."""
    heard = [event.data for event in events if event.type == "raw_response_event"]
    text = "".join(event.delta for event in heard if event.type == "response.output_text.delta")
    answers = [[item.model_dump(exclude={"id"}) for item in each.output] for each in result.raw_responses]
    usage = result.context_wrapper.usage
    return {
        "text": text if events else ItemHelpers.text_message_outputs(result.new_items),
        "raw": [answers, usage.input_tokens, usage.output_tokens, [event.type for event in heard]],
        "agent": result.last_agent.name,
    }


def chat(asked: Asked) -> Any:
    """One answer of an agent that has nothing but its model."""
    return _said(*_run(_agent(asked), asked))


def shape(asked: Asked) -> Any:
    """An output type."""
    result, _ = _run(_agent(asked, output_type=tools.Person), asked)
    return result.final_output.model_dump()


def agent(asked: Asked) -> Any:
    """The agent, which runs tools by itself; what it says last is its text."""
    result, _ = _run(_agent(asked, tools=_TOOLS), asked)
    return {"text": result.final_output}


def hands_over(asked: Asked) -> Any:
    """Two agents, of which the first may hand the conversation to the second, which has the tools."""
    second = _agent(asked, "cashier", tools=_TOOLS, handoff_description="Pays.")
    result, _ = _run(_agent(asked, handoffs=[second]), asked)
    return {"text": result.final_output, "agent": result.last_agent.name}


def with_server(asked: Asked) -> Any:
    """An agent whose tools are those of a server, which is asked through a proxy, too."""

    async def run() -> Any:
        async with MCPServerStreamableHttp({"url": asked["tools"], "timeout": 20}) as server:
            agent = _agent(asked, mcp_servers=[server])
            if asked["stream"]:
                return (await _streamed(agent, asked))[0].final_output
            return (await Runner.run(agent, list(asked["messages"]))).final_output

    return {"text": loop.run(run())}
