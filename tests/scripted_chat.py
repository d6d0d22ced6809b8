"""A language model on a real port that says what a test tells it to: well-formed, hostile, late, or nothing at all."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

Asked = Mapping[str, Any]


def said(text: str | None, odds: Sequence[tuple[str, float]] | None = None, first: str | None = None) -> dict[str, Any]:
    """Return a whole answer of the API.

    Args:
        text: What the model says.
        odds: Of its likeliest first words.
        first: The first token, if it isn't the first word of `text`.
    """
    choice: dict[str, Any] = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    if odds is not None:
        top = [{"token": token, "logprob": logprob, "bytes": None} for token, logprob in odds]
        token = first if first is not None else (text or " ").split()[0]
        choice["logprobs"] = {"content": [{"token": token, "logprob": odds[0][1], "top_logprobs": top}]}
    return {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": {"total_tokens": 1}}


class ScriptedChat:
    """What was asked, and how it is answered."""

    def __init__(self, answer: Callable[[Asked, int], Any]) -> None:
        """Answer by a function of the question and how many came before.

        It returns the text that is said, a whole answer, bytes as they are, a status, a response, or None: then nothing
        comes.
        """
        self.asked: list[Asked] = []
        self.headers: list[Mapping[str, str]] = []
        self.at_once = 0
        self.most_at_once = 0
        self.url = ""
        self._answer = answer

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serve one request."""
        asked = json.loads(await request.read())
        number = len(self.asked)
        self.asked.append(asked)
        self.headers.append(dict(request.headers))
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        try:
            await asyncio.sleep(0)  # lets those that came with it be counted
            answer = self._answer(asked, number)
            if answer is None:
                await asyncio.Event().wait()
        finally:
            self.at_once -= 1
        match answer:
            case web.Response():
                return answer
            case int():
                return web.Response(status=answer, headers={"retry-after": "0"})
            case bytes():
                return web.Response(body=answer, content_type="application/json")
            case str():
                return web.json_response(said(answer))
            case _:
                return web.json_response(answer)


@asynccontextmanager
async def scripted(answer: Callable[[Asked, int], Any]) -> AsyncIterator[ScriptedChat]:
    """Serve on a free port."""
    chat = ScriptedChat(answer)
    runner = web.ServerRunner(web.Server(chat.respond), shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    chat.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/v1"  # type: ignore[attr-defined]
    try:
        yield chat
    finally:
        await runner.cleanup()
