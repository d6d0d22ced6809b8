"""What a caller hears of one streamed answer: its text, its events, and when they came."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType

import aiohttp
import msgspec

from checkstream.core.wire.framing import EVENTS, LINES, Framing
from checkstream.demo.spoken import Json, choices, failure
from checkstream.errors import EventTooLarge

_MAX_BYTES = 16 * 1024 * 1024
_TEXTS = ("reasoning_content", "reasoning", "content", "refusal")


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
        return [claim for event in self.events for claim in _claims(event)]

    @property
    def everything(self) -> str:
        """All text that came: of the choices, and whatever else the events hold."""
        return "\n".join((*self.choices, self.failure, msgspec.json.encode(self.events).decode()))


class Surface(msgspec.Struct, frozen=True):
    """An API, as the demo speaks it."""

    path: str
    """Where a chat is asked for."""
    reason: str
    """The member that says why an answer has ended."""
    framing: Framing = EVENTS
    base: str = "/v1"
    """What clients of this API are given behind the server's address."""


SURFACES: Mapping[str, Surface] = MappingProxyType(
    {
        "openai": Surface("/v1/chat/completions", "finish_reason"),
        "responses": Surface("/v1/responses", "status"),
        "anthropic": Surface("/v1/messages", "stop_reason", base=""),
        "ollama": Surface("/api/chat", "done_reason", LINES, base=""),
    }
)


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
    path, framing = SURFACES[surface].path, SURFACES[surface].framing
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
        self.judged = self.judged or bool(_claims(event))
        self.speaks = False
        self.failure = failure(event) or self.failure
        for choice in choices(event):
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

    def choices(self) -> tuple[str, ...]:
        """Return the text of each choice, with its tool calls."""
        for (index, _), (name, arguments) in sorted(self._calls.items()):
            self._texts[index] += f"{name}({arguments})"
        self._calls.clear()
        return tuple(self._texts[index] for index in sorted(self._texts))


def _claims(event: Json) -> list[Json]:
    """Return what evidence says of each claim: in an event of its own, or in the answer that a stream ends with."""
    told = event.get("checkstream") or (event.get("response") or {}).get("checkstream") or {}
    return list(told.get("claims", ()))


__all__ = ["EventTooLarge", "Heard", "hear"]
