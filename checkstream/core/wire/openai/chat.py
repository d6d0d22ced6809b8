"""OpenAI chat completions (`POST /v1/chat/completions`), streamed and whole.

Source: OpenAI API reference, "Chat Completions" and "Streaming"; what vLLM, SGLang, llama.cpp, Ollama and
Azure add to it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

from checkstream.core.wire.answers.answer import Answer
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.openai.choices import OpenAIChoices
from checkstream.core.wire.openai.message import read_message
from checkstream.core.wire.openai.messages import read_messages
from checkstream.core.wire.requests.fields import CHAT_FIELDS
from checkstream.core.wire.requests.prompt import Prompt
from checkstream.core.wire.requests.reading import finish_request, reading_fields
from checkstream.core.wire.requests.shaping import Shaped, continue_chat, instruct, shape
from checkstream.core.wire.surface import Request, Shaping
from checkstream.errors import WireError


class OpenAIChat(OpenAIChoices):
    """The surface `openai.chat`."""

    name = "openai.chat"
    form = "chat.completion.chunk"
    id = "chatcmpl-checkstream"
    holder = "message"
    streamed = "delta"

    def reading_request(self, body: bytes) -> Generator[None, None, Request]:
        """Read a caller's body, in steps.

        Raises:
            RequestInvalid: not JSON of the surface's form, duplicate or case-variant keys, wrong types.
        """

        def read(found: dict[str, object], prompt: Prompt) -> Generator[None, None, Request]:
            position = yield from read_messages(prompt, found.get("messages"))
            return (yield from finish_request(prompt, body, found, position, apart={"messages"}))

        return reading_fields(body, CHAT_FIELDS, read)

    @staticmethod
    def shape(shaped: Shaped, shaping: Shaping) -> None:
        """Carry a shaping into a request."""
        if shaping.instructions:
            instruct(shaped, shaping.instructions)
        shape(shaped, shaping, continue_chat)

    @staticmethod
    def read_streamed(answer: Answer, number: int, choice: dict[str, object], path: Path) -> None:
        """Read the `delta` of a choice.

        Raises:
            WireError: it is no object.
        """
        answer.leave_out_calls(number, choice, "message", path)
        delta = choice.get("delta")
        if delta is None:
            return
        if not isinstance(delta, dict):
            raise WireError("`delta` is not an object; check the upstream")
        read_message(answer, number, delta, (*path, "delta"))

    @staticmethod
    def read_choice(answer: Answer, number: int, choice: dict[str, object], path: Path) -> None:
        """Read the `message` of a choice.

        Raises:
            WireError: it is no object.
        """
        answer.leave_out_calls(number, choice, "delta", path)
        message = choice.get("message")
        if not isinstance(message, dict):
            raise WireError("`message` is not an object; check the upstream")
        at = (*path, "message")
        known = len(answer.deltas)
        read_message(answer, number, message, at)
        if all(delta.channel.kind != "content" for delta in answer.deltas[known:]):
            # A place for what a stop or a disclaimer has to say, though the model said nothing.
            answer.begin_text(number, (*at, "content"))

    @staticmethod
    def saying(text: str | None, *, first: bool) -> Mapping[str, object]:
        """Return the member of a choice that says a text; the first event of a stream says who speaks."""
        said: dict[str, object] = {} if text is None else {"content": text}
        return {"delta": {"role": "assistant"} | said if first and text is not None else said}
