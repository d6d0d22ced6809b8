"""A model server for tests of the gate: one real HTTP server that plays target and judge by their model names."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from checkstream.config import EmbedderKind
from checkstream.evidence.opening import open_store
from checkstream.evidence.records import Chunk, Document, chunk_id
from checkstream.gate.config_file import settings_of
from checkstream.gate.settings import GateSettings
from checkstream.scoring.embedding import Embedder, HashingEmbedder

DOCUMENTS = {
    "returns": "Goods can be returned within 30 days of delivery. Refunds are paid within 5 working days.",
    "shipping": "Shipping is free for orders over 50 euros. Parcels arrive within 3 working days.",
}
EMBEDDER = HashingEmbedder()


def embedders(kind: EmbedderKind) -> Embedder:
    """Return the embedder of tests, whichever is asked for."""
    assert kind == "model"
    return EMBEDDER


Say = Callable[[str, str, str], Any]
"""(model, system prompt, question) -> text, a status to fail with, or None for no answer ever."""


@asynccontextmanager
async def serving(say: Say) -> AsyncIterator[str]:
    """Yield the address of a server whose models say what `say` returns."""

    async def completions(request: web.Request) -> web.Response:
        body = await request.json()
        told = {message["role"]: message["content"] for message in body["messages"]}
        said = say(body["model"], told.get("system", ""), told["user"])
        if said is None:
            await asyncio.Event().wait()
        if isinstance(said, int):
            return web.json_response({"error": {"message": "scripted"}}, status=said)
        return web.json_response({"choices": [{"index": 0, "message": {"role": "assistant", "content": said}}]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", completions)
    runner = web.AppRunner(app, shutdown_timeout=0.1)  # one that never answers is waited for
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


async def fill(path: str, embedder: Embedder = EMBEDDER) -> None:
    """Put the documents into a store."""
    store = await open_store(f"sqlite:{path}", embedder)
    for source, text in DOCUMENTS.items():
        chunk = Chunk(id=chunk_id(text, source), source=source, text=text, headings=(source,), start=0, end=len(text))
        vectors = await embedder.embed([chunk.searched])
        await store.put(Document(source=source, digest=chunk.id), [chunk], vectors)
    await store.close()


def settings(url: str, **more: object) -> GateSettings:
    """Return a configuration with target and judge at `url`."""
    return settings_of(
        {
            "use_case": "support chatbot",
            "risk_tolerance": {"deploy_threshold": 0.1, "warn_threshold": 0.25},
            "model": {"provider": "openai", "model_id": "target", "url": url},
            "judge": {"provider": "openai", "model_id": "judge", "url": url},
            "evaluation": {"num_prompts": 4},
            "evidence": {"store": "sqlite:evidence.db"},
            **more,
        }
    )


def prompts_of(question: str) -> str:
    """Answer as a judge that is asked to write prompts."""
    asked = json.loads(question)
    category, before = asked["category"], len(asked["already_written"])
    return json.dumps({"prompts": [f"{category} question {before + n}" for n in range(asked["number"])]})
