"""Every SDK's own parser, given bytes instead of a server: what it reads of an answer, and what it raises.

Asked with `answers`: each has its `surface`, `status`, `media` and `pieces` (of its bytes, as Latin-1). Of each is told
`error` (the names of its classes, none if it was read), and `wrong`: what the SDK's own types don't allow.
"""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import httpx2
import ollama
import openai
from anthropic.types import Message, RawMessageStreamEvent
from mcp_types import JSONRPCMessage
from openai._streaming import SSEDecoder
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter, ValidationError

from tests.e2e.sdks.client import Asked

_ASK: Any = [{"role": "user", "content": "hi"}]
_FORMS: list[tuple[str, Any, Any]] = [
    ("openai.chat", ChatCompletion, ChatCompletionChunk),
    ("openai.completions", Completion, Completion),
    ("openai.responses", Response, ResponseStreamEvent),
    ("anthropic.messages", Message, RawMessageStreamEvent),
    ("ollama.chat", ollama.ChatResponse, ollama.ChatResponse),
    ("ollama.generate", ollama.GenerateResponse, ollama.GenerateResponse),
    ("mcp", JSONRPCMessage, JSONRPCMessage),
]
_TYPES: dict[str, tuple[Any, Any]] = {name: (TypeAdapter(whole), TypeAdapter(event)) for name, whole, event in _FORMS}
"""Surface -> what a whole answer is, and what an event is."""


def read(asked: Asked) -> Any:
    """Read all answers."""
    warnings.simplefilter("ignore")
    return [_read(answer) for answer in asked["answers"]]


def _read(answer: Any) -> dict[str, Any]:
    pieces = [piece.encode("latin-1") for piece in answer["pieces"]]
    streamed = answer["media"] != "application/json"
    found: dict[str, Any] = {"error": None, "text": "", "wrong": []}
    try:
        for use in _USES[answer["surface"]]:
            use(answer, pieces, streamed)
    except Exception as error:  # noqa: BLE001 - what it is, is what is asked about
        found |= {"error": [kind.__name__ for kind in type(error).__mro__], "text": str(error)[:500]}
    if answer["status"] == 200:
        found["wrong"] = _wrong(answer["surface"], pieces, answer["media"])
    return found


def _bodies(pieces: list[bytes], media: str) -> Iterator[Any]:
    """Yield the JSON of each event, as the SDKs' own decoders cut them.

    Raises:
        ValueError: no UTF-8, or no JSON.
    """
    if media == "text/event-stream":
        texts = [event.data for event in SSEDecoder().iter_bytes(iter(pieces))]
    else:
        whole = b"".join(pieces).decode()
        texts = whole.split("\n") if media == "application/x-ndjson" else [whole]
    yield from (json.loads(text) for text in texts if text and text != "[DONE]")


def _wrong(surface: str, pieces: list[bytes], media: str) -> list[str]:
    """Return what the SDK's types don't allow; an error is no answer, and the SDK raises it."""
    kind: TypeAdapter[Any] = _TYPES[surface][media != "application/json"]
    found = []
    try:
        for body in _bodies(pieces, media):
            if (
                surface != "mcp"
                and ("error" in body or body.get("type") == "ping")
                and body.get("object") != "response"
            ):
                continue
            if surface == "openai.completions" and media == "text/event-stream":
                for choice in body["choices"]:
                    choice["finish_reason"] = choice.get("finish_reason") or "stop"  # streamed null: the type forgot it
            kind.validate_python(body)
    except (ValidationError, ValueError, TypeError, AttributeError, KeyError) as error:  # what came may be anything
        found.append(str(error)[:300])
    return found


def _headers(answer: Any) -> dict[str, str]:
    return {"content-type": answer["media"]}


def _openai(answer: Any, pieces: list[bytes]) -> openai.OpenAI:
    def respond(_: httpx.Request) -> httpx.Response:
        return httpx.Response(answer["status"], headers=_headers(answer), content=iter(pieces))

    client = httpx.Client(transport=httpx.MockTransport(respond))
    return openai.OpenAI(api_key="k", base_url="http://localhost/v1", max_retries=0, http_client=client)


def _chat(answer: Any, pieces: list[bytes], streamed: bool) -> None:
    with _openai(answer, pieces) as client:
        if streamed:
            list(client.chat.completions.create(model="m", messages=_ASK, stream=True))
        else:
            client.chat.completions.create(model="m", messages=_ASK)


def _chat_added_up(answer: Any, pieces: list[bytes], streamed: bool) -> None:
    if streamed:
        # The helper raises by itself at ends like these, once all has been read.
        ends = (openai.ContentFilterFinishReasonError, openai.LengthFinishReasonError)
        with (
            contextlib.suppress(*ends),
            _openai(answer, pieces) as client,
            client.chat.completions.stream(model="m", messages=_ASK) as stream,
        ):
            list(stream)
            stream.get_final_completion()


def _completions(answer: Any, pieces: list[bytes], streamed: bool) -> None:
    with _openai(answer, pieces) as client:
        if streamed:
            list(client.completions.create(model="m", prompt="hi", stream=True))
        else:
            client.completions.create(model="m", prompt="hi")


def _responses(answer: Any, pieces: list[bytes], streamed: bool) -> None:
    with _openai(answer, pieces) as client:
        if streamed:
            list(client.responses.create(model="m", input="hi", stream=True))
        else:
            assert client.responses.create(model="m", input="hi").output_text is not None


def _responses_added_up(answer: Any, pieces: list[bytes], streamed: bool) -> None:
    if streamed:
        with _openai(answer, pieces) as client, client.responses.stream(model="m", input="hi") as stream:
            list(stream)


def _anthropic(answer: Any, pieces: list[bytes]) -> anthropic.Anthropic:
    def respond(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(answer["status"], headers=_headers(answer), content=iter(pieces))

    client = httpx2.Client(transport=httpx2.MockTransport(respond))
    return anthropic.Anthropic(api_key="k", base_url="http://localhost", max_retries=0, http_client=client)


def _messages(answer: Any, pieces: list[bytes], streamed: bool) -> None:
    with _anthropic(answer, pieces) as client:
        if streamed:
            list(client.messages.create(model="m", messages=_ASK, max_tokens=9, stream=True))
        else:
            assert client.messages.create(model="m", messages=_ASK, max_tokens=9).content is not None


def _messages_added_up(answer: Any, pieces: list[bytes], streamed: bool) -> None:
    if streamed:
        with (
            _anthropic(answer, pieces) as client,
            client.messages.stream(model="m", messages=_ASK, max_tokens=9) as stream,
        ):
            stream.get_final_message()


def _ollama(answer: Any, pieces: list[bytes]) -> ollama.Client:
    def respond(_: httpx.Request) -> httpx.Response:
        return httpx.Response(answer["status"], headers=_headers(answer), content=iter(pieces))

    return ollama.Client(transport=httpx.MockTransport(respond))


def _ollama_chat(answer: Any, pieces: list[bytes], streamed: bool) -> None:
    found = _ollama(answer, pieces).chat(model="m", messages=_ASK, stream=streamed)
    if streamed:
        list(found)


def _ollama_generate(answer: Any, pieces: list[bytes], streamed: bool) -> None:
    found = _ollama(answer, pieces).generate(model="m", prompt="hi", stream=streamed)
    if streamed:
        list(found)


_USES: dict[str, list[Any]] = {
    "openai.chat": [_chat, _chat_added_up],
    "openai.completions": [_completions],
    "openai.responses": [_responses, _responses_added_up],
    "anthropic.messages": [_messages, _messages_added_up],
    "ollama.chat": [_ollama_chat],
    "ollama.generate": [_ollama_generate],
    "mcp": [],
}
"""Surface -> the ways to read an answer of it; MCP's messages are held to their types alone."""
