"""What a caller hears of one streamed answer: its text, its events, and when they came."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import aiohttp
import msgspec

from checkstream.core.wire.framing import EVENTS, LINES, Framing
from checkstream.errors import EventTooLarge

_MAX_BYTES = 16 * 1024 * 1024
_TEXTS = ("reasoning_content", "reasoning", "content", "refusal")
Json = dict[str, Any]


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """One answer, as it reached the caller."""

    status: int
    headers: Mapping[str, str]
    choices: tuple[str, ...] = ()
    """The text of each choice; a tool call is written as `name(arguments)`."""
    finishes: tuple[str, ...] = ()
    events: tuple[Json, ...] = ()
    """The events' JSON, in order."""
    failure: str = ""
    """Message of an error object, in place of an answer or inside one."""
    rule: str = ""
    """The rule that an error object names."""
    ttft_ms: float | None = None
    """From the request to the first text."""
    total_ms: float = 0.0
    judged_ms: float | None = None
    """From the last text to what evidence says of it."""

    @property
    def claims(self) -> list[Json]:
        """What evidence says of each claim of the answer."""
        return [claim for event in self.events for claim in (event.get("checkstream") or {}).get("claims", ())]

    @property
    def everything(self) -> str:
        """All text that came: of the choices, and whatever else the events hold."""
        return "\n".join((*self.choices, self.failure, msgspec.json.encode(self.events).decode()))


PATHS: Mapping[str, tuple[str, Framing]] = MappingProxyType(
    {
        "openai": ("/v1/chat/completions", EVENTS),
        "anthropic": ("/v1/messages", EVENTS),
        "ollama": ("/api/chat", LINES),
    }
)
"""API -> where a chat is asked for, and how its streams are framed."""


async def hear(session: aiohttp.ClientSession, url: str, body: Json, surface: str = "openai") -> Heard:
    """Ask for a streamed answer of a chat and listen to the end.

    Raises:
        aiohttp.ClientError, TimeoutError: the server could not be reached, or broke off.
        EventTooLarge: it sent an event beyond all measure.
    """
    begun = time.monotonic()
    first_ms: float | None = None
    text_at = judged_at = begun
    parts = _Parts()
    path, framing = PATHS[surface]
    async with session.post(url + path, json=body) as response:
        headers = {name.lower(): value for name, value in response.headers.items()}
        if response.content_type != framing.media:
            error = _error(await response.read())
            return Heard(
                status=response.status,
                headers=headers,
                failure=str(error.get("message", "")) or f"status {response.status}",
                rule=str(error.get("rule_id", "")),
                total_ms=(time.monotonic() - begun) * 1000,
            )
        decoder = framing.decoder(_MAX_BYTES, frozenset())
        async for data in response.content.iter_any():
            for frame in decoder.decode(data):
                if frame.data is not None:
                    parts.take(frame.data)
                    now = time.monotonic()
                    text_at, judged_at = now if parts.speaks else text_at, now if parts.judged else judged_at
            if first_ms is None and parts.begun:
                first_ms = (time.monotonic() - begun) * 1000
        for frame in decoder.flush():
            if frame.data is not None:
                parts.take(frame.data)
        return Heard(
            status=response.status,
            headers=headers,
            choices=parts.choices(),
            finishes=tuple(parts.finishes[index] for index in sorted(parts.finishes)),
            events=tuple(parts.events),
            failure=parts.failure,
            ttft_ms=first_ms,
            total_ms=(time.monotonic() - begun) * 1000,
            judged_ms=(judged_at - text_at) * 1000 if parts.judged else None,
        )


def _error(body: bytes) -> Json:
    """Return the error object of a body, or an empty one; Ollama's says its parts side by side."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    error = found.get("error") if isinstance(found, dict) else None
    if isinstance(error, str):
        return {**found, "message": error}
    return error if isinstance(error, dict) else {}


class _Parts:
    """Puts the pieces of a stream together."""

    def __init__(self) -> None:
        self.events: list[Json] = []
        self.finishes: dict[int, str] = {}
        self.failure = ""
        self.begun = False
        self.speaks = False
        """The latest event holds text."""
        self.judged = False
        """An event has said what evidence says of the answer."""
        self._texts: dict[int, str] = {}
        self._calls: dict[tuple[int, int], list[str]] = {}

    def take(self, data: bytes) -> None:
        """Take the data of one event."""
        if data.strip() == b"[DONE]":
            return
        try:
            event = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            event = None
        if not isinstance(event, dict):
            self.failure = self.failure or "an event was not JSON"
            return
        self.events.append(event)
        self.judged = self.judged or "checkstream" in event
        self.speaks = False
        if isinstance(event.get("error"), dict):
            self.failure = str(event["error"].get("message", "an error without words"))
        elif event.get("error"):
            self.failure = str(event["error"])
        if isinstance(event.get("type"), str):
            self._block(event)
        elif isinstance(event.get("message"), dict):
            self._choice(_as_choice(event))
        for choice in event.get("choices") or ():
            self._choice(choice)

    def _choice(self, choice: Json) -> None:
        index, delta = choice["index"], choice.get("delta") or {}
        said = "".join(delta.get(kind) or "" for kind in _TEXTS)
        self._texts[index] = self._texts.get(index, "") + said
        for call in delta.get("tool_calls") or ():
            function = call.get("function") or {}
            told = self._calls.setdefault((index, call["index"]), ["", ""])
            told[0] += function.get("name") or ""
            told[1] += function.get("arguments") or ""
            said += function.get("arguments") or ""
        self.speaks = self.speaks or bool(said)
        self.begun = self.begun or bool(said)
        if choice.get("finish_reason"):
            self.finishes[index] = choice["finish_reason"]

    def _block(self, event: Json) -> None:
        """Take an event of Anthropic's, which has one answer, of blocks."""
        delta, block, index = event.get("delta") or {}, event.get("content_block") or {}, event.get("index", 0)
        calls: list[Json] = []
        if block.get("type") == "tool_use" or "partial_json" in delta:
            function = {"name": block.get("name"), "arguments": delta.get("partial_json")}
            calls.append({"index": index, "function": function})
        said = {"reasoning": delta.get("thinking"), "content": delta.get("text"), "tool_calls": calls}
        self._choice({"index": 0, "delta": said, "finish_reason": delta.get("stop_reason")})

    def choices(self) -> tuple[str, ...]:
        """Return the text of each choice, with its tool calls."""
        for (index, _), (name, arguments) in sorted(self._calls.items()):
            self._texts[index] += f"{name}({arguments})"
        self._calls.clear()
        return tuple(self._texts[index] for index in sorted(self._texts))


def _as_choice(event: Json) -> Json:
    """Return an object of Ollama's as a choice of OpenAI's."""
    message = event["message"]
    calls = [
        {"index": at, "function": {**call["function"], "arguments": json.dumps(call["function"].get("arguments"))}}
        for at, call in enumerate(message.get("tool_calls") or ())
    ]
    delta = {"reasoning": message.get("thinking"), "content": message.get("content"), "tool_calls": calls}
    return {"index": 0, "delta": delta, "finish_reason": event.get("done_reason") if event.get("done") else None}


__all__ = ["EventTooLarge", "Heard", "hear"]
