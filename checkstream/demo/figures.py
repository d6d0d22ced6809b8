"""The scripted LLM's answers that are figures: vectors, ranks and labels, which follow from the text alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from checkstream.errors import RequestInvalid

_DIMENSIONS = 8


class _Texts(msgspec.Struct, kw_only=True):
    model: str = "scripted"
    input: str | list[str]


class _Ranked(msgspec.Struct, kw_only=True):
    model: str = "scripted"
    query: str
    documents: list[str | dict[str, str]]
    top_n: int | None = None


class _Prompt(msgspec.Struct, kw_only=True):
    model: str
    prompt: str


def vector(text: str) -> list[float]:
    """Return a text's vector: numbers from -1 to 1, the same for the same text."""
    digest = hashlib.sha256(text.encode(errors="replace")).digest()
    return [round(each / 127.5 - 1, 4) for each in digest[:_DIMENSIONS]]


def embeddings(body: bytes) -> dict[str, Any]:
    """Answer as OpenAI's `POST /v1/embeddings`."""
    asked = msgspec.json.decode(body, type=_Texts)
    texts = _listed(asked.input)
    data = [{"object": "embedding", "index": at, "embedding": vector(text)} for at, text in enumerate(texts)]
    words = _words(texts)
    usage = {"prompt_tokens": words, "total_tokens": words}
    return {"object": "list", "data": data, "model": asked.model, "usage": usage}


def moderations(body: bytes) -> dict[str, Any]:
    """Answer as OpenAI's `POST /v1/moderations`: nothing is flagged."""
    asked = msgspec.json.decode(body, type=_Texts)
    calm = {"flagged": False, "categories": {"harassment": False}, "category_scores": {"harassment": 0.01}}
    return {"id": "modr-scripted", "model": asked.model, "results": [calm for _ in _listed(asked.input)]}


def rerank(body: bytes) -> dict[str, Any]:
    """Answer as Cohere's `POST /v2/rerank`: those first that share most words with the question."""
    asked = msgspec.json.decode(body, type=_Ranked)
    wanted = set(asked.query.casefold().split())
    scores = [len(wanted & set(_text(each).casefold().split())) / max(len(wanted), 1) for each in asked.documents]
    order = sorted(range(len(scores)), key=lambda at: (-scores[at], at))[: asked.top_n]
    return {"id": "scripted", "results": [{"index": at, "relevance_score": round(scores[at], 4)} for at in order]}


def embed(body: bytes) -> dict[str, Any]:
    """Answer as Ollama's `POST /api/embed`."""
    asked = msgspec.json.decode(body, type=_Texts)
    texts = _listed(asked.input)
    return {"model": asked.model, "embeddings": [vector(text) for text in texts], "prompt_eval_count": _words(texts)}


def embedding(body: bytes) -> dict[str, Any]:
    """Answer as Ollama's older `POST /api/embeddings`."""
    return {"embedding": vector(msgspec.json.decode(body, type=_Prompt).prompt)}


PATHS: Mapping[str, Callable[[bytes], dict[str, Any]]] = MappingProxyType({
    "/v1/embeddings": embeddings, "/v1/moderations": moderations, "/v1/rerank": rerank, "/v2/rerank": rerank,
    "/api/embed": embed, "/api/embeddings": embedding,
})  # fmt: skip
"""Path -> what answers there."""


def answered(path: str, body: bytes) -> dict[str, Any]:
    """Return the answer of a path.

    Raises:
        RequestInvalid: the body is not JSON, or not of the API's form.
    """
    try:
        return PATHS[path](body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RequestInvalid(f"the body is not a request of this API: {error}") from error


def _listed(given: str | list[str]) -> list[str]:
    return [given] if isinstance(given, str) else given


def _text(document: str | dict[str, str]) -> str:
    return document if isinstance(document, str) else " ".join(document.values())


def _words(texts: list[str]) -> int:
    return sum(len(text.split()) for text in texts)
