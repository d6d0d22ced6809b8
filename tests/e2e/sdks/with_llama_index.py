"""LlamaIndex: its `OpenAI` model, structured output, and the agent of its workflows."""

from __future__ import annotations

from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai import OpenAI

from tests.e2e.sdks import loop, tools
from tests.e2e.sdks.client import Asked


def _model(asked: Asked) -> OpenAI:
    fields = asked.get("fields")
    return OpenAI(
        model=asked["model"],
        api_base=asked["url"],
        api_key="k",
        max_retries=asked.get("retries", 0),
        default_headers=asked["headers"],
        additional_kwargs={"extra_body": fields} if fields else {},
    )


def _messages(asked: Asked) -> list[ChatMessage]:
    return [ChatMessage(role=message["role"], content=message["content"]) for message in asked["messages"]]


async def _chatted(model: Any, asked: Asked) -> list[Any]:
    """Return every response of `stream_chat`, or the one of `chat`; or of their twins for coroutines."""
    verb = f"{'a' * bool(asked.get('asynchronous'))}{'stream_' * asked['stream']}chat"
    given = await loop.settled(getattr(model, verb)(_messages(asked)))
    return await loop.every(given) if asked["stream"] else [given]


def chat(asked: Asked) -> Any:
    """Every response of the stream, or the one of a whole answer."""
    found = loop.run(_chatted(_model(asked), asked))
    told = [_dump(each) for each in found]
    return {"text": found[-1].message.content, "raw": told if asked["stream"] else told[0]}


def helper(asked: Asked) -> Any:
    """`astream_chat`, whose last response has everything."""

    async def run() -> Any:
        return [each async for each in await _model(asked).astream_chat(_messages(asked))][-1]

    last = loop.run(run())
    return {"text": last.message.content, "raw": _dump(last)}


def _dump(response: Any) -> Any:
    told = response.model_dump(exclude={"raw"})
    raw = response.raw
    return [told, raw if raw is None or isinstance(raw, dict) else raw.model_dump()]


def shape(asked: Asked) -> Any:
    """A structured LLM."""
    return loop.run(_chatted(_model(asked).as_structured_llm(tools.Person), asked))[-1].raw.model_dump()


def agent(asked: Asked) -> Any:
    """The agent, which runs tools by itself."""

    async def run() -> Any:
        built = FunctionAgent(tools=[tools.pay, tools.look_up], llm=_model(asked), streaming=asked["stream"])
        return await built.run(chat_history=_messages(asked)[:-1], user_msg=_messages(asked)[-1])

    return {"text": loop.run(run()).response.content}


def calls(asked: Asked) -> Any:
    """`predict_and_call`, the short way to tools without an agent."""
    made = [FunctionTool.from_defaults(fn=tools.pay), FunctionTool.from_defaults(fn=tools.look_up)]
    found = _model(asked).predict_and_call(made, chat_history=_messages(asked), allow_parallel_tool_calls=True)
    return {"text": str(found.response)}
