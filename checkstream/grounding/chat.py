"""A language model behind any OpenAI-compatible endpoint: a question in, one text out, with the odds of its first word.

Calls are bounded: so many at once, so long each with all its repeats, so many bytes of an answer. A server that knows
no log probabilities or no structured output says so once, and is then asked without; so is one that wants the longest
answer under its newer name, or takes no temperature. INVARIANT: what a model says is a
text; nothing of it is run, followed or trusted to have a form.
"""

from __future__ import annotations

import asyncio
import io
import math
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal, Protocol, Self

import aiohttp
import msgspec

from checkstream.errors import ChatError

_KEEP_S = 15.0
"""A connection that was idle for longer is not used again: its other end may have given it up."""
_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 5.0
"""Between repeats: doubled each time, or what the server asks for, up to the longest."""
_REPEATED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_UNKNOWN_OPTION = frozenset({400, 415, 422, 501})
"""What servers answer to an option that they don't know."""
_INSTEAD = MappingProxyType({"max_tokens": "max_completion_tokens", "temperature": ""})
"""What a server that refuses a setting by its name is sent in place of it; empty: nothing."""
_REFUSAL_BYTES = 16_384
_TOP_WORDS = 20


class ChatSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which model, where, and how patiently it is asked."""

    url: str
    """Root of the API, as SDKs take it: `https://api.openai.com/v1`, `http://localhost:11434/v1`."""
    model: str
    timeout_ms: Annotated[int, msgspec.Meta(ge=1, le=600_000)] = 30_000
    """For a question with all its repeats."""
    retries: Annotated[int, msgspec.Meta(ge=0, le=10)] = 2
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] = 0.0
    connections: Annotated[int, msgspec.Meta(ge=1, le=256)] = 8
    """Questions that run at once; the others wait, and their time runs from their turn."""
    answer_bytes: Annotated[int, msgspec.Meta(ge=1024, le=1 << 26)] = 1 << 20
    """A longer answer is not read."""


class ChatReply(msgspec.Struct, frozen=True, kw_only=True):
    """What a model said."""

    text: str
    first_words: tuple[tuple[str, float], ...] = ()
    """Likeliest first words with their log probabilities; empty when the server shows none that can be believed."""


class Chat(Protocol):
    """A model that can be asked. Implementations: `ChatModel`, `gate.bedrock.BedrockChat`."""

    @property
    def model(self) -> str:
        """Its name."""

    async def ask(
        self,
        user: str,
        *,
        system: str = "",
        max_tokens: int,
        odds: bool = False,
        schema: Mapping[str, object] | None = None,
    ) -> ChatReply:
        """Ask once; `ChatModel.ask` says what each argument is.

        Raises:
            ChatError: no usable answer came in time.
        """
        ...


class ChatModel:
    """Asks one model. Use `async with`, or `close` it."""

    def __init__(self, settings: ChatSettings, key: str | None = None) -> None:
        """Prepare; connections are opened when the first question is asked.

        Args:
            settings: which model, and where.
            key: sent as a bearer token.
        """
        self.settings = settings
        self._url = settings.url.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"
        self._headers = {"content-type": "application/json", "accept-encoding": "identity"}
        if key is not None:
            self._headers["authorization"] = f"Bearer {key}"
        self._turns = asyncio.Semaphore(settings.connections)
        self._client: aiohttp.ClientSession | None = None
        self._unknown: set[str] = set()
        """Options that the server does not take."""
        self._instead: dict[str, str] = {}
        """Settings that it wants under another name, or not at all."""

    @property
    def model(self) -> str:
        """The name that the server knows it by."""
        return self.settings.model

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()

    async def ask(
        self,
        user: str,
        *,
        system: str = "",
        max_tokens: int,
        odds: bool = False,
        schema: Mapping[str, object] | None = None,
    ) -> ChatReply:
        """Ask once, repeating what failed on the way.

        Args:
            user: the question.
            system: what the model is told first.
            max_tokens: the longest answer.
            odds: ask for the likeliest first words.
            schema: JSON Schema of the answer; a server that can't hold a model to it is asked without.

        Raises:
            ChatError: no usable answer came in time.
        """
        options: dict[str, object] = {}
        if odds:
            options |= {"logprobs": True, "top_logprobs": _TOP_WORDS}
        if schema is not None:
            described = {"name": "answer", "strict": True, "schema": schema}
            options["response_format"] = {"type": "json_schema", "json_schema": described}
        asked = {
            "model": self.settings.model,
            "messages": [
                {"role": role, "content": _encodable(content)}
                for role, content in (("system", system), ("user", user))
                if content
            ],
            "temperature": self.settings.temperature,
            "max_tokens": max_tokens,
        }
        async with self._turns:
            try:
                async with asyncio.timeout(self.settings.timeout_ms / 1000):
                    return _reply(await self._patiently(asked, options), odds=odds)
            except TimeoutError as error:
                message = f"model `{self.settings.model}` gave no answer within {self.settings.timeout_ms} ms"
                raise ChatError(f"{message}; raise `timeout_ms`", reason="deadline") from error

    async def _patiently(self, asked: Mapping[str, object], options: Mapping[str, object]) -> _Answer:
        repeats = 0
        known = {name: value for name, value in options.items() if name not in self._unknown}
        refused: set[str] = set()
        while True:
            try:
                answer = await self._once(self._worded(asked) | known)
            except _FailedError as failed:
                if failed.refused in _INSTEAD and failed.refused not in self._instead:
                    self._instead[failed.refused] = _INSTEAD[failed.refused]
                    continue
                if failed.status in _UNKNOWN_OPTION and known:
                    refused, known = set(known), {}
                    continue
                repeats += 1
                if not failed.again or repeats > self.settings.retries:
                    raise ChatError(failed.message, reason=failed.reason) from failed
                await asyncio.sleep(min(_LONGEST_PAUSE_S, failed.pause_s or _PAUSE_S * 2 ** (repeats - 1)))
            else:
                self._unknown |= refused  # it answers without them: they were the reason
                return answer

    def _worded(self, asked: Mapping[str, object]) -> dict[str, object]:
        """Return a question in the words that the server has asked for."""
        named = ((self._instead.get(name, name), value) for name, value in asked.items())
        return {name: value for name, value in named if name}

    async def _once(self, body: Mapping[str, object]) -> _Answer:
        if self._client is None:
            connector = aiohttp.TCPConnector(limit=self.settings.connections, keepalive_timeout=_KEEP_S)
            self._client = aiohttp.ClientSession(connector=connector, headers=self._headers, auto_decompress=False)
        shown = f"model `{self.settings.model}`"
        try:
            data = io.BytesIO(msgspec.json.encode(body))
            async with self._client.post(self._url, data=data, allow_redirects=False) as response:
                if response.status != 200:
                    raise _FailedError(
                        f"{shown} answered with status {response.status}; check `url`, `model` and the key",
                        status=response.status,
                        pause_s=_seconds(response.headers.get("retry-after", "")),
                        refused=_refused(await _read(response, _REFUSAL_BYTES)) if response.status == 400 else "",
                    )
                content = await _read(response, self.settings.answer_bytes)
                if len(content) > self.settings.answer_bytes:
                    raise _FailedError(
                        f"{shown} answered with more than {self.settings.answer_bytes} bytes; raise `answer_bytes`"
                    )
        except (aiohttp.ClientError, OSError) as error:
            raise _FailedError(f"{shown} can't be reached: {_why(error)}; check `url`", status=503) from error
        try:
            return msgspec.json.decode(content, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _FailedError(f"{shown} gave an answer of another form; check that `url` is OpenAI's API") from error


def _why(error: Exception) -> str:
    """Return what went wrong without the address that it went wrong at: callers read it too."""
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if number is not None and number > 0 else type(error).__name__


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return the body; of one that has more than `limit` bytes only the beginning, which is longer than that."""
    content = bytearray()
    async for piece in response.content.iter_any():
        content += piece
        if len(content) > limit:
            break
    return bytes(content)


class _FailedError(Exception):
    """One call failed."""

    def __init__(self, message: str, *, status: int = 0, pause_s: float = 0.0, refused: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.pause_s = pause_s
        self.refused = refused
        self.again = status in _REPEATED

    @property
    def reason(self) -> Literal["unreachable", "refused", "garbage"]:
        if self.status == 0:
            return "garbage"
        return "unreachable" if self.again else "refused"


class _Problem(msgspec.Struct, frozen=True):
    message: str = ""
    param: str | None = None


class _Refusal(msgspec.Struct, frozen=True):
    error: _Problem


class _Word(msgspec.Struct, frozen=True):
    token: str
    logprob: float


class _Token(msgspec.Struct, frozen=True):
    token: str
    top_logprobs: tuple[_Word, ...] = ()


class _Odds(msgspec.Struct, frozen=True):
    content: tuple[_Token, ...] | None = None


class _Message(msgspec.Struct, frozen=True):
    content: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Message
    logprobs: msgspec.Raw = msgspec.Raw(b"null")
    """Read apart: an answer is an answer though its odds are garbage."""


class _Answer(msgspec.Struct, frozen=True):
    choices: Annotated[tuple[_Choice, ...], msgspec.Meta(min_length=1)]


def _refused(body: bytes) -> str:
    """Return the setting that a refusal is about; empty where it tells of none."""
    try:
        problem = msgspec.json.decode(body, type=_Refusal).error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    return "max_tokens" if _INSTEAD["max_tokens"] in problem.message else problem.param or ""


def _reply(answer: _Answer, *, odds: bool) -> ChatReply:
    choice = answer.choices[0]
    text = choice.message.content or ""
    return ChatReply(text=text, first_words=_first_words(choice.logprobs, text) if odds else ())


def _first_words(raw: msgspec.Raw, text: str) -> tuple[tuple[str, float], ...]:
    """Return the odds of the first word of an answer; nothing when they can't be those of this answer."""
    try:
        told = msgspec.json.decode(raw, type=_Odds | None) or _Odds()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    first = next((token for token in told.content or () if token.token.strip()), None)
    if first is None or not text.strip().startswith(first.token.strip()):
        return ()
    words = tuple((word.token, word.logprob) for word in first.top_logprobs)
    believable = all(math.isfinite(odds) and odds <= 0.001 for _, odds in words)
    shares = math.fsum(math.exp(odds) for _, odds in words) if believable else 2.0
    known = any(token.strip() == first.token.strip() for token, _ in words)
    return words if known and shares <= 1.01 else ()


def _seconds(header: str) -> float:
    return float(header) if header.isascii() and header.isdecimal() and len(header) < 4 else 0.0


def _encodable(text: str) -> str:
    """Return the text with every lone surrogate replaced, which no UTF-8 can carry."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
