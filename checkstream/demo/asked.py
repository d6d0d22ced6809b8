"""What a caller asked of the scripted LLM: the fields of each API that a scenario depends on."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from checkstream.errors import RequestInvalid

Api = Literal["chat", "completions", "openai.responses", "anthropic.messages", "ollama.chat", "ollama.generate"]
IN_LINES = frozenset({"ollama.chat", "ollama.generate"})
"""Whose streams are a line of JSON each."""

_Positive = Annotated[int, msgspec.Meta(ge=1)]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One request, as far as the script looks at it."""

    api: Api
    model: str
    streaming: bool
    usage_wanted: bool
    choices: int
    max_tokens: int | None
    """The most tokens of one choice; the rest is cut off."""
    logprobs: bool
    top_logprobs: int
    last_user: str
    """The last user message's text, or the prompt."""
    continues: bool
    """The model is to go on with the answer that the request ends with."""
    prompt_tokens: int
    """Words of the prompt: the script's own figure for usage."""


class _StreamOptions(msgspec.Struct):
    include_usage: bool = False


class _Common(msgspec.Struct, kw_only=True):
    model: str
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    n: Annotated[int, msgspec.Meta(ge=1, le=128)] | None = None
    max_tokens: _Positive | None = None


class _Part(msgspec.Struct):
    type: str = "text"
    text: str = ""


class _Message(msgspec.Struct):
    role: str
    content: str | list[_Part] | None = None

    def said(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.text)
        return self.content or ""


class _Chat(_Common, kw_only=True):
    messages: Annotated[list[_Message], msgspec.Meta(min_length=1)]
    max_completion_tokens: _Positive | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None
    continue_final_message: bool | None = None


class _Messages(msgspec.Struct, kw_only=True):
    model: str
    messages: Annotated[list[_Message], msgspec.Meta(min_length=1)]
    max_tokens: _Positive
    system: str | list[_Part] | None = None
    stream: bool | None = None


class _Item(msgspec.Struct):
    role: str = ""
    content: str | list[_Part] | None = None
    output: Any = None
    status: str = ""

    def said(self) -> str:
        return self.output if isinstance(self.output, str) else _Message(self.role, self.content).said()


class _Responses(msgspec.Struct, kw_only=True):
    model: str
    input: str | Annotated[list[_Item], msgspec.Meta(min_length=1)]
    instructions: str | None = None
    max_output_tokens: _Positive | None = None
    stream: bool | None = None


class _Options(msgspec.Struct):
    num_predict: int | None = None


class _Ollama(msgspec.Struct, kw_only=True):
    model: str
    stream: bool | None = None
    messages: list[_Message] = []
    prompt: str = ""
    options: _Options | None = None


class _Completion(_Common, kw_only=True):
    prompt: str | Annotated[list[str], msgspec.Meta(min_length=1)] = ""
    logprobs: Annotated[int, msgspec.Meta(ge=0, le=5)] | None = None


def read_asked(api: Api, body: bytes) -> Asked:
    """Read a request body.

    Raises:
        RequestInvalid: not JSON, or not of the API's form.
    """
    try:
        if api == "chat":
            return _chat(msgspec.json.decode(body, type=_Chat))
        if api == "openai.responses":
            return _response(msgspec.json.decode(body, type=_Responses))
        if api == "anthropic.messages":
            return _message(msgspec.json.decode(body, type=_Messages))
        if api in ("ollama.chat", "ollama.generate"):
            return _ollama(api, msgspec.json.decode(body, type=_Ollama))
        return _completion(msgspec.json.decode(body, type=_Completion))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RequestInvalid(f"the body is not a request of this API: {error}") from error


def _chat(request: _Chat) -> Asked:
    users = [message.said() for message in request.messages if message.role == "user"]
    return Asked(
        api="chat",
        max_tokens=request.max_completion_tokens or request.max_tokens,
        logprobs=bool(request.logprobs),
        top_logprobs=request.top_logprobs or 0,
        last_user=users[-1] if users else "",
        continues=bool(request.continue_final_message),
        prompt_tokens=sum(len(message.said().split()) for message in request.messages),
        choices=request.n or 1,
        **_common(request),
    )


def _message(request: _Messages) -> Asked:
    users = [message.said() for message in request.messages if message.role == "user"]
    said = [_Message("system", request.system), *request.messages]
    return Asked(
        api="anthropic.messages",
        model=request.model,
        streaming=bool(request.stream),
        usage_wanted=True,
        choices=1,
        max_tokens=request.max_tokens,
        logprobs=False,
        top_logprobs=0,
        last_user=users[-1] if users else "",
        continues=request.messages[-1].role == "assistant",
        prompt_tokens=sum(len(message.said().split()) for message in said),
    )


def _response(request: _Responses) -> Asked:
    items = request.input if isinstance(request.input, list) else [_Item("user", request.input)]
    users = [item.said() for item in items if item.role == "user"]
    said = [_Item("system", request.instructions), *items]
    return Asked(
        api="openai.responses",
        model=request.model,
        streaming=bool(request.stream),
        usage_wanted=True,
        choices=1,
        max_tokens=request.max_output_tokens,
        logprobs=False,
        top_logprobs=0,
        last_user=users[-1] if users else "",
        continues=items[-1].role == "assistant" and items[-1].status in ("in_progress", "incomplete"),  # as vLLM does
        prompt_tokens=sum(len(item.said().split()) for item in said),
    )


def _ollama(api: Api, request: _Ollama) -> Asked:
    messages = request.messages or [_Message("user", request.prompt)]
    users = [message.said() for message in messages if message.role == "user"]
    most = request.options.num_predict if request.options is not None else None
    return Asked(
        api=api,
        model=request.model,
        streaming=request.stream is not False,
        usage_wanted=True,
        choices=1,
        max_tokens=most if most is not None and most > 0 else None,
        logprobs=False,
        top_logprobs=0,
        last_user=users[-1] if users else "",
        continues=messages[-1].role == "assistant",
        prompt_tokens=sum(len(message.said().split()) for message in messages),
    )


def _completion(request: _Completion) -> Asked:
    prompts = request.prompt if isinstance(request.prompt, list) else [request.prompt]
    return Asked(
        api="completions",
        max_tokens=request.max_tokens,
        logprobs=request.logprobs is not None,
        top_logprobs=request.logprobs or 0,
        last_user=prompts[-1],
        continues=False,
        prompt_tokens=sum(len(prompt.split()) for prompt in prompts),
        choices=(request.n or 1) * len(prompts),
        **_common(request),
    )


def _common(request: _Common) -> dict[str, Any]:
    wanted = request.stream_options is not None and request.stream_options.include_usage
    return {"model": request.model, "streaming": bool(request.stream), "usage_wanted": wanted}
