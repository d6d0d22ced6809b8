"""OpenAI's legacy completions (`POST /v1/completions`), streamed and whole.

Source: OpenAI API reference, "Completions" (legacy); what vLLM, SGLang and llama.cpp add to it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

import msgspec

from checkstream.core.terms import Channel, Delta, Unit
from checkstream.core.wire.answers.answer import Answer, read_bare, read_object_event, reading_whole
from checkstream.core.wire.json_text import strings
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.openai import edits
from checkstream.core.wire.openai import envelope as envelopes
from checkstream.core.wire.openai.surface import OpenAISurface
from checkstream.core.wire.requests.fields import COMPLETION_FIELDS
from checkstream.core.wire.requests.prompt import Prompt
from checkstream.core.wire.requests.reading import finish_request, start_request
from checkstream.core.wire.requests.shaping import Shaped, continue_text, shape, writing_shaped
from checkstream.core.wire.surface import Edit, Frame, Request, Shaping
from checkstream.errors import RequestInvalid, WireError

_FORM = "text_completion"
_ID = "cmpl-checkstream"
_OWN = frozenset({"text"})


class OpenAICompletions(OpenAISurface):
    """The surface `openai.completions`. Its one answer channel per choice is `content`."""

    name = "openai.completions"
    events = frozenset({"error"})

    def reading_request(self, body: bytes) -> Generator[None, None, Request]:
        """Read a caller's body, in steps.

        Raises:
            RequestInvalid: not JSON of the surface's form, duplicate or case-variant keys, wrong types.
        """
        found, prompt = yield from start_request(body, COMPLETION_FIELDS)
        position, prompts = yield from _read_prompt(prompt, found.get("prompt"))
        return (yield from finish_request(prompt, body, found, position, apart={"prompt"}, prompts=prompts))

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
        return read_bare(frame) or read_object_event(frame, _read_text, _OWN)

    def reading_whole(self, body: bytes) -> Generator[None, None, Unit]:
        """Read a whole answer, in steps; each choice has a content delta, empty when it has no text.

        Raises:
            WireError: not JSON of the surface's form.
        """
        return (yield from reading_whole(body, _read_whole_text, _OWN))

    def writing_whole(self, unit: Unit, edit: Edit, finish: Mapping[int, str]) -> Generator[None, None, bytes]:
        """Return, in steps, the body with the edit applied; stopped choices stay, emptied.

        Raises:
            WireError: the body's JSON has two members of one name where it is edited.
        """
        return edits.editing_whole(unit, edit, finish, None)

    def joining_whole(self, first: Unit, texts: Mapping[int, str], second: Unit) -> Generator[None, None, bytes]:
        """Return, in steps, the body of an answer that was begun in one whole answer and continued in another.

        Raises:
            WireError: the second has no content, or its JSON has two members of one name where it is edited.
        """
        return edits.joining_whole(first, texts, second, None)

    def text_event(self, like: Unit, choice: int, text: str) -> bytes:
        """Return an event that adds `text` to a choice."""
        return self._event(like, choice, strings.clean(text), None)

    def finish_event(self, like: Unit, choice: int) -> bytes:
        """Return an event that ends a choice as stopped by policy."""
        return self._event(like, choice, "", "content_filter")

    def usage_event(self, like: Unit, prompt_tokens: int, completion_tokens: int) -> bytes:
        """Return a usage event with an estimate, marked as one (G16)."""
        usage = envelopes.estimated_usage(prompt_tokens, completion_tokens)
        return envelopes.event(envelopes.envelope_of(like), _FORM, _ID, [], {"usage": usage})

    def result_event(self, like: Unit, members: Mapping[str, msgspec.Raw]) -> bytes:
        """Return an event that adds nothing to the answer and carries `members` beside the ids and model of `like`.

        It has an empty choice: much code reads `choices[0]` of every event.
        """
        empty: dict[str, object] = {"index": 0, "text": "", "logprobs": None, "finish_reason": None}
        return envelopes.event(envelopes.envelope_of(like), _FORM, _ID, [empty], members)

    @staticmethod
    def _event(like: Unit, choice: int, text: str, reason: str | None) -> bytes:
        body: dict[str, object] = {"index": choice, "text": text, "logprobs": None, "finish_reason": reason}
        return envelopes.event(envelopes.envelope_of(like), _FORM, _ID, [body], {})


def _shape(shaped: Shaped, shaping: Shaping) -> None:
    if shaping.instructions or shaping.tools is not None:
        raise WireError("a completion has no system messages and no tools; use them on chat routes")
    shape(shaped, shaping, continue_text)


def _read_text(answer: Answer, number: int, choice: dict[str, object], path: Path) -> None:
    if choice.get("text") is not None:
        answer.text("content", number, 0, choice["text"], (*path, "text"))


def _read_whole_text(answer: Answer, number: int, choice: dict[str, object], path: Path) -> None:
    if choice.get("text"):
        _read_text(answer, number, choice, path)
    else:
        answer.deltas.append(Delta(Channel("content", number), "", (*path, "text")))


def _read_prompt(prompt: Prompt, value: object) -> Generator[None, None, tuple[int, int]]:
    """Read `prompt`: a string, strings, or token ids, which have no text to scan.

    Returns:
        How many entries it has, and how many prompts that is: an array of numbers is one, of strings or arrays so many.
    """
    parts = value if isinstance(value, list) else [value]
    if isinstance(value, list) and (yield from prompt.are_tokens(value)):
        if value:
            prompt.unscanned["prompt tokens"] = None
        return len(value), 1
    for i, part in enumerate(parts):
        at: Path = ("prompt", i) if isinstance(value, list) else ("prompt",)
        if prompt.spends():
            yield
        if isinstance(part, str):
            prompt.add("user", i, part, at)
        elif isinstance(value, list) and (yield from prompt.are_tokens(part if isinstance(part, list) else [part])):
            prompt.unscanned["prompt tokens"] = None
        else:
            raise RequestInvalid("`prompt` must be a string, an array of strings, or token ids")
    return len(parts), len(parts) if isinstance(value, list) else 1
