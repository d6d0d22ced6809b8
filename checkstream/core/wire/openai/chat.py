"""OpenAI chat completions (`POST /v1/chat/completions`), streamed and whole.

Source: OpenAI API reference, "Chat Completions" and "Streaming"; what vLLM, SGLang, llama.cpp, Ollama and
Azure add to it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

import msgspec

from checkstream.core.terms import Unit
from checkstream.core.wire.answers.answer import Answer, read_bare, read_object_event, reading_whole
from checkstream.core.wire.json_text import strings
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.openai import edits
from checkstream.core.wire.openai import envelope as envelopes
from checkstream.core.wire.openai.message import read_message
from checkstream.core.wire.openai.messages import read_messages
from checkstream.core.wire.openai.surface import OpenAISurface
from checkstream.core.wire.requests.fields import CHAT_FIELDS
from checkstream.core.wire.requests.reading import finish_request, start_request
from checkstream.core.wire.requests.shaping import Shaped, continue_chat, instruct, shape, writing_shaped
from checkstream.core.wire.surface import Edit, Frame, Request, Shaping
from checkstream.errors import WireError

_FORM = "chat.completion.chunk"
_ID = "chatcmpl-checkstream"
_OWN = frozenset({"delta"})


class OpenAIChat(OpenAISurface):
    """The surface `openai.chat`."""

    name = "openai.chat"
    events = frozenset({"error"})

    def reading_request(self, body: bytes) -> Generator[None, None, Request]:
        """Read a caller's body, in steps.

        Raises:
            RequestInvalid: not JSON of the surface's form, duplicate or case-variant keys, wrong types.
        """
        found, prompt = yield from start_request(body, CHAT_FIELDS)
        position = yield from read_messages(prompt, found.get("messages"))
        return (yield from finish_request(prompt, body, found, position, apart={"messages"}))

    def writing_request(
        self, request: Request, texts: Mapping[int, str], shaping: Shaping | None = None
    ) -> Generator[None, None, bytes]:
        """Return, in steps, the body with texts replaced, shaped as policies want, without the `checkstream` field.

        Raises:
            WireError: the request was not read by this surface, or can't be shaped so.
        """
        return writing_shaped(request, texts, shaping, _shape)

    def read_event(self, frame: Frame) -> Unit:
        """Read one event of the answer.

        Raises:
            WireError: the event is not what the surface allows.
        """
        return read_bare(frame) or read_object_event(frame, _read_delta, _OWN)

    def reading_whole(self, body: bytes) -> Generator[None, None, Unit]:
        """Read a whole answer, in steps; each choice has a content delta, empty when it has no content.

        Raises:
            WireError: not JSON of the surface's form.
        """
        return (yield from reading_whole(body, _read_message, frozenset({"message"})))

    def writing_whole(self, unit: Unit, edit: Edit, finish: Mapping[int, str]) -> Generator[None, None, bytes]:
        """Return, in steps, the body with the edit applied; stopped choices stay, emptied.

        Raises:
            WireError: the body's JSON has two members of one name where it is edited.
        """
        return edits.editing_whole(unit, edit, finish, "message")

    def joining_whole(self, first: Unit, texts: Mapping[int, str], second: Unit) -> Generator[None, None, bytes]:
        """Return, in steps, the body of an answer that was begun in one whole answer and continued in another.

        Raises:
            WireError: the second has no content, or its JSON has two members of one name where it is edited.
        """
        return edits.joining_whole(first, texts, second, "message")

    def text_event(self, like: Unit, choice: int, text: str) -> bytes:
        """Return an event that adds `text` to a choice's content."""
        envelope = envelopes.envelope_of(like)
        delta = {"content": strings.clean(text)}
        if envelope.id is None:  # the first event of its stream: nothing has said who speaks
            delta = {"role": "assistant"} | delta
        body: dict[str, object] = {"index": choice, "delta": delta, "logprobs": None, "finish_reason": None}
        return envelopes.event(envelope, _FORM, _ID, [body], {})

    def finish_event(self, like: Unit, choice: int) -> bytes:
        """Return an event that ends a choice as stopped by policy."""
        body: dict[str, object] = {"index": choice, "delta": {}, "logprobs": None, "finish_reason": "content_filter"}
        return envelopes.event(envelopes.envelope_of(like), _FORM, _ID, [body], {})

    def usage_event(self, like: Unit, prompt_tokens: int, completion_tokens: int) -> bytes:
        """Return a usage event with an estimate, marked as one (G16)."""
        usage = envelopes.estimated_usage(prompt_tokens, completion_tokens)
        return envelopes.event(envelopes.envelope_of(like), _FORM, _ID, [], {"usage": usage})

    def result_event(self, like: Unit, members: Mapping[str, msgspec.Raw]) -> bytes:
        """Return an event that adds nothing to the answer and carries `members` beside the ids and model of `like`.

        It has an empty choice: much code reads `choices[0]` of every event.
        """
        empty: dict[str, object] = {"index": 0, "delta": {"content": ""}, "logprobs": None, "finish_reason": None}
        return envelopes.event(envelopes.envelope_of(like), _FORM, _ID, [empty], members)


def _shape(shaped: Shaped, shaping: Shaping) -> None:
    if shaping.instructions:
        instruct(shaped, shaping.instructions)
    shape(shaped, shaping, continue_chat)


def _read_delta(answer: Answer, number: int, choice: dict[str, object], path: Path) -> None:
    answer.leave_out_calls(number, choice, "message", path)
    delta = choice.get("delta")
    if delta is None:
        return
    if not isinstance(delta, dict):
        raise WireError("`delta` is not an object; check the upstream")
    read_message(answer, number, delta, (*path, "delta"))


def _read_message(answer: Answer, number: int, choice: dict[str, object], path: Path) -> None:
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
