"""LangChain: `ChatOpenAI` and `ChatAnthropic`, structured output in its three ways, and the agent of `create_agent`."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

from tests.e2e.sdks import loop, tools
from tests.e2e.sdks.client import Asked


def _model(asked: Asked, **more: Any) -> BaseChatModel:
    if asked["sdk"].endswith("_messages"):
        return ChatAnthropic(
            model_name=asked["model"],
            base_url=asked["url"].removesuffix("/v1"),
            api_key="k",
            max_tokens_to_sample=64,
            max_retries=asked.get("retries", 0),
            default_headers=asked["headers"],
            model_kwargs=asked.get("fields") or {},
            **more,
        )
    return ChatOpenAI(
        model=asked["model"],
        base_url=asked["url"],
        api_key="k",
        max_retries=asked.get("retries", 0),
        default_headers=asked["headers"],
        use_responses_api=asked["sdk"].endswith("_responses"),
        stream_usage=True,
        extra_body=asked.get("fields"),
        **more,
    )


def _called(target: Any, verb: str, asked: Asked) -> Any:
    """Return what a method of threads gives, or its twin for coroutines."""
    return getattr(target, f"a{verb}" if asked.get("asynchronous") else verb)


def chat(asked: Asked) -> Any:
    """`stream` or `invoke`, or their twins for coroutines."""

    async def told() -> Any:
        model = _model(asked)
        if asked["stream"]:
            chunks = await loop.every(_called(model, "stream", asked)(asked["messages"]))
            return {"text": "".join(chunk.text for chunk in chunks), "raw": [chunk.model_dump() for chunk in chunks]}
        message = await loop.settled(_called(model, "invoke", asked)(asked["messages"]))
        return {"text": message.text, "raw": message.model_dump()}

    return loop.run(told())


def helper(asked: Asked) -> Any:
    """`astream`, added up."""

    async def run() -> Any:
        whole: Any = None
        async for chunk in _model(asked).astream(asked["messages"]):
            whole = chunk if whole is None else whole + chunk
        return whole

    whole = loop.run(run())
    return {"text": whole.text, "raw": whole.model_dump()}


def shape(asked: Asked) -> Any:
    """`with_structured_output` in the way that `how` names."""

    async def told() -> Any:
        model = _model(asked).with_structured_output(tools.Person, method=asked.get("how") or "json_schema")
        if asked["stream"]:
            return (await loop.every(_called(model, "stream", asked)(asked["messages"])))[-1].model_dump()
        found = await loop.settled(_called(model, "invoke", asked)(asked["messages"]))
        return found and found.model_dump()

    return loop.run(told())


def agent(asked: Asked) -> Any:
    """The agent, which runs tools by itself."""
    return loop.run(_agent(asked))


async def _agent(asked: Asked) -> Any:
    built: Any = create_agent(_model(asked, streaming=asked["stream"]), [tools.pay, tools.look_up])
    given = {"messages": asked["messages"]}
    if not asked["stream"]:
        last = (await loop.settled(_called(built, "invoke", asked)(given)))["messages"][-1]
        return {"text": last.text, "finish": last.response_metadata.get("finish_reason")}
    text, step = "", None
    for chunk, about in await loop.every(_called(built, "stream", asked)(given, stream_mode="messages")):
        if about["langgraph_node"] != "model":
            continue
        if about["langgraph_step"] != step:
            text, step = "", about["langgraph_step"]
        text += chunk.text
    return {"text": text}


def embed(asked: Asked) -> Any:
    """Vectors of two texts."""
    model = OpenAIEmbeddings(
        model="text-embedding-3-small",
        base_url=asked["url"],
        api_key="k",
        default_headers=asked["headers"],
        check_embedding_ctx_length=False,
        max_retries=0,
    )
    return model.embed_documents(asked["input"])
