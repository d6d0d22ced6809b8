"""Which clients are asked, and which of the cases each of them can't have, with the reason: rows of `test_matrix`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

OPENAI: Mapping[int, str] = MappingProxyType(
    {400: "BadRequestError", 429: "RateLimitError", 500: "InternalServerError"}
)
VERCEL = dict.fromkeys((400, 429, 500), "AI_APICallError")
BOTH, ONE = (False, True), (False,)

ONE_ANSWER = "its interface gives the first of several answers alone"
NO_LIST = "its API has one answer of one text"
NO_TOOLS = "its API knows no tools"
NO_TURNS = "its API takes one prompt, not messages"
NO_FORM = "its API can't be asked for an answer of a form"
NO_MESSAGE = "a streamed object comes without the message behind it"


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """One library with one API."""

    sdk: str
    library: str
    """The package that is tested, as `pyproject.toml` or `package.json` names it."""
    surface: str
    talk: str = "chat"
    """What asks for an answer: a function of the client's program, as are the next two."""
    agent: str = "agent"
    shape: str = "shape"
    how: str | None = None
    call: str = ""
    """The tool by whose arguments it takes an object; otherwise it is the text."""
    errors: Mapping[int, str] = OPENAI
    """Status -> the name of the library's own error."""
    asynchronous: tuple[bool, ...] = ONE
    """Whether it has a client for threads, one for coroutines, or both; a client of one kind is asked as it is."""
    tells_why: bool = True
    """Whether it tells its application why a streamed answer has ended."""
    reads_why: bool = True
    """Whether it tells that of a whole answer."""
    stops: str | None = None
    """Its error where a streamed answer is stopped; None: the application has the text up to there."""
    lacks: Mapping[str, str] = {}
    """Case, or case and mode (`structured-stream`) -> why it can't be had."""


CLIENTS: dict[str, Client] = {
    "openai-chat": Client(sdk="openai", library="openai", surface="openai.chat", asynchronous=BOTH),
    "openai-completions": Client(
        sdk="openai", library="openai", surface="openai.completions", talk="complete", asynchronous=BOTH,
        lacks={"arguments": NO_TOOLS, "turns": NO_TURNS, "structured": NO_FORM},
    ),
    "openai-responses": Client(
        sdk="openai_responses", library="openai", surface="openai.responses", asynchronous=BOTH
    ),
    "openai-node": Client(sdk="openai_node", library="npm:openai", surface="openai.chat"),
    "openai-node-responses": Client(
        sdk="openai_node_responses", library="npm:openai", surface="openai.responses"
    ),
    "anthropic": Client(sdk="anthropic", library="anthropic", surface="anthropic.messages", asynchronous=BOTH),
    "anthropic-node": Client(
        sdk="anthropic_node", library="npm:@anthropic-ai/sdk", surface="anthropic.messages"
    ),
    "ollama": Client(
        sdk="ollama", library="ollama", surface="ollama.chat", asynchronous=BOTH,
        errors=dict.fromkeys((400, 429, 500), "ResponseError"), lacks={"several": NO_LIST},
    ),
    "ollama-generate": Client(
        sdk="ollama", library="ollama", surface="ollama.generate", talk="generate", shape="shape_of_one",
        asynchronous=BOTH, errors=dict.fromkeys((400, 429, 500), "ResponseError"),
        lacks={"several": NO_LIST, "arguments": NO_TOOLS, "turns": NO_TURNS},
    ),
    "ollama-node": Client(
        sdk="ollama_node", library="npm:ollama", surface="ollama.chat",
        errors=dict.fromkeys((400, 429, 500), "ResponseError"), lacks={"several": NO_LIST},
    ),
    "langchain-chat": Client(
        sdk="langchain", library="langchain-openai", surface="openai.chat", asynchronous=BOTH, how="json_schema",
        lacks={"several": ONE_ANSWER},
    ),
    "langchain-responses": Client(
        sdk="langchain_responses", library="langchain-openai", surface="openai.responses", asynchronous=BOTH,
        how="json_schema",
        lacks={"structured-stream": "it finds no object in a streamed answer, with or without a guard"},
    ),
    "langchain-messages": Client(
        sdk="langchain_messages", library="langchain-anthropic", surface="anthropic.messages", asynchronous=BOTH,
        how="json_schema",
    ),
    "llama-index": Client(
        sdk="llama_index", library="llama-index-llms-openai", surface="openai.chat", asynchronous=BOTH,
        lacks={"several": ONE_ANSWER},
    ),
    "pydantic-ai-chat": Client(
        sdk="pydantic_ai", library="pydantic-ai-slim", surface="openai.chat", asynchronous=BOTH,
        how="native",
        errors=dict.fromkeys((400, 429, 500), "ModelHTTPError"), lacks={"several": ONE_ANSWER},
    ),
    "pydantic-ai-responses": Client(
        sdk="pydantic_ai_responses", library="pydantic-ai-slim", surface="openai.responses",
        asynchronous=BOTH, how="native", tells_why=False,
        errors=dict.fromkeys((400, 429, 500), "ModelHTTPError"),
    ),
    "agents-chat": Client(
        sdk="openai_agents", library="openai-agents", surface="openai.chat", asynchronous=BOTH, tells_why=False,
        reads_why=False, lacks={"several": ONE_ANSWER},
    ),
    "agents-responses": Client(
        sdk="openai_agents_responses", library="openai-agents", surface="openai.responses", asynchronous=BOTH,
        tells_why=False, reads_why=False, stops="ModelBehaviorError",
    ),
    "instructor-chat": Client(
        sdk="instructor", library="instructor", surface="openai.chat", talk="shape", asynchronous=BOTH, how="TOOLS",
        call="Person", errors=dict.fromkeys((400, 429, 500), "InstructorRetryException"),
        lacks={"several": ONE_ANSWER, "turns-stream": NO_MESSAGE},
    ),
    "instructor-messages": Client(
        sdk="instructor_messages", library="instructor", surface="anthropic.messages", talk="shape",
        asynchronous=BOTH, how="TOOLS", call="Person",
        errors=dict.fromkeys((400, 429, 500), "InstructorRetryException"),
        lacks={"several": ONE_ANSWER, "turns-stream": NO_MESSAGE},
    ),
    "litellm-chat": Client(sdk="litellm", library="litellm", surface="openai.chat", asynchronous=BOTH),
    "litellm-messages": Client(
        sdk="litellm_messages", library="litellm", surface="anthropic.messages", asynchronous=BOTH
    ),
    "vercel-compatible": Client(
        sdk="vercel", library="npm:@ai-sdk/openai-compatible", surface="openai.chat", errors=VERCEL,
        lacks={"several": ONE_ANSWER},
    ),
    "vercel-chat": Client(
        sdk="vercel", library="npm:@ai-sdk/openai", surface="openai.chat", how="openai", errors=VERCEL,
        lacks={"several": ONE_ANSWER},
    ),
    "vercel-responses": Client(
        sdk="vercel_responses", library="npm:@ai-sdk/openai", surface="openai.responses", errors=VERCEL
    ),
    "vercel-messages": Client(
        sdk="vercel_messages", library="npm:@ai-sdk/anthropic", surface="anthropic.messages", errors=VERCEL
    ),
}  # fmt: skip
