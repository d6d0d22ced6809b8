"""OpenAI's legacy completions (`POST /v1/completions`), streamed and whole.

Source: OpenAI API reference, "Completions" (legacy); what vLLM, SGLang and llama.cpp add to it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

import msgspec

from checkstream.core.steps import done
from checkstream.core.terms import Channel, Delta, Unit
from checkstream.core.wire import openai_edits, openai_json, openai_shaping
from checkstream.core.wire.json_spans import Path
from checkstream.core.wire.openai_answers import Answer, read_bare, read_object_event, reading_whole
from checkstream.core.wire.openai_fields import COMPLETION_FIELDS, OWN_FIELDS
from checkstream.core.wire.openai_join import join_whole
from checkstream.core.wire.openai_prompt import Prompt
from checkstream.core.wire.openai_requests import finish_request, start_request
from checkstream.core.wire.surface import Edit, Frame, Request, Shaping
from checkstream.errors import RequestInvalid, WireError

_FORM = "text_completion"
_ID = "cmpl-checkstream"
_OWN = frozenset({"text"})


class OpenAICompletions:
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
        return (yield from finish_request(prompt, body, found, position, apart="prompt", prompts=prompts))

    def read_request(self, body: bytes) -> Request:
        """Read a caller's body at once; see `reading_request`.

        Raises:
            RequestInvalid: as `reading_request`.
        """
        return done(self.reading_request(body))

    def writing_request(
        self, request: Request, texts: Mapping[int, str], shaping: Shaping | None = None
    ) -> Generator[None, None, bytes]:
        """Return, in steps, the body with texts replaced, shaped as policies want, without the `checkstream` field.

        Raises:
            WireError: the request was not read by this surface, or can't be shaped so.
        """
        if shaping is None:
            return (yield from openai_edits.editing_request(request, texts, OWN_FIELDS))
        if shaping.instructions or shaping.tools is not None:
            raise WireError("a completion has no system messages and no tools; use them on chat routes")
        document = yield from openai_edits.request_places(request)
        shaped = openai_shaping.Shaped(request, document, texts)
        openai_shaping.shape(shaped, shaping, openai_shaping.continue_text)
        return (yield from shaped.writing())

    def write_request(self, request: Request, texts: Mapping[int, str], shaping: Shaping | None = None) -> bytes:
        """Return the body as `writing_request` does, at once.

        Raises:
            WireError: as `writing_request`.
        """
        return done(self.writing_request(request, texts, shaping))

    def read_event(self, frame: Frame) -> Unit:
        """Read one event of the answer.

        Raises:
            WireError: the event is not what the surface allows.
        """
        return read_bare(frame) or read_object_event(frame, _read_text, _OWN)

    def write_event(self, unit: Unit, edit: Edit) -> bytes:
        """Return the event with the edit applied, or `b""` when nothing of it remains.

        Raises:
            WireError: the event's JSON has two members of one name where it is edited.
        """
        return openai_edits.edit_event(unit, edit)

    def put(self, unit: Unit, values: Mapping[Path, str | None]) -> Unit:
        """Return an event or a whole answer with these texts, or null, at these places.

        Raises:
            WireError: the JSON has two members of one name on the way to one.
        """
        return openai_edits.put(unit, values)

    def rename_event(self, unit: Unit, like: Unit) -> Unit:
        """Return the event under the id of `like`, as a part of the same answer; where one has no id, as it came.

        Raises:
            WireError: the event's JSON has two ids.
        """
        name = openai_json.envelope_of(like).id
        return unit if name is None else openai_edits.put(unit, {("id",): name})

    def reading_whole(self, body: bytes) -> Generator[None, None, Unit]:
        """Read a whole answer, in steps; each choice has a content delta, empty when it has no text.

        Raises:
            WireError: not JSON of the surface's form.
        """
        return (yield from reading_whole(body, _read_whole_text, _OWN))

    def read_whole(self, body: bytes) -> Unit:
        """Read a whole answer at once; see `reading_whole`.

        Raises:
            WireError: as `reading_whole`.
        """
        return done(self.reading_whole(body))

    def write_whole(self, unit: Unit, edit: Edit, finish: Mapping[int, str]) -> bytes:
        """Return the body with the edit applied; stopped choices stay, emptied.

        Raises:
            WireError: the body's JSON has two members of one name where it is edited.
        """
        return openai_edits.edit_whole(unit, edit, finish, None)

    def join_whole(self, first: Unit, texts: Mapping[int, str], second: Unit) -> bytes:
        """Return the body of an answer that was begun in one whole answer and continued in another.

        Raises:
            WireError: the second has no content, or its JSON has two members of one name where it is edited.
        """
        return join_whole(first, texts, second, None)

    def text_event(self, like: Unit, choice: int, text: str) -> bytes:
        """Return an event that adds `text` to a choice."""
        return self._event(like, choice, openai_json.clean(text), None)

    def finish_event(self, like: Unit, choice: int) -> bytes:
        """Return an event that ends a choice as stopped by policy."""
        return self._event(like, choice, "", "content_filter")

    def usage_event(self, like: Unit, prompt_tokens: int, completion_tokens: int) -> bytes:
        """Return a usage event with an estimate, marked as one (G16)."""
        usage = openai_json.estimated_usage(prompt_tokens, completion_tokens)
        return openai_json.event(openai_json.envelope_of(like), _FORM, _ID, [], {"usage": usage})

    def result_event(self, like: Unit, members: Mapping[str, msgspec.Raw]) -> bytes:
        """Return an event that adds nothing to the answer and carries `members` beside the ids and model of `like`.

        It has an empty choice: much code reads `choices[0]` of every event.
        """
        empty: dict[str, object] = {"index": 0, "text": "", "logprobs": None, "finish_reason": None}
        return openai_json.event(openai_json.envelope_of(like), _FORM, _ID, [empty], members)

    def write_results(self, body: bytes, members: Mapping[str, msgspec.Raw]) -> bytes:
        """Return a whole answer with these members, in place of any that the upstream has called so.

        Raises:
            WireError: the body is no JSON object, or has two members of one name.
        """
        return openai_edits.put_members(body, members)

    def terminator(self) -> bytes:
        """Return `data: [DONE]` and a blank line."""
        return openai_json.DONE

    def error_event(self, kind: str, message: str, rule_id: str | None = None) -> bytes:
        """Return the error event for a stream that can't go on."""
        return openai_json.error_event(kind, message, rule_id)

    def error_body(self, kind: str, message: str, rule_id: str | None = None, param: str | None = None) -> bytes:
        """Return OpenAI's error object."""
        return openai_json.error_body(kind, message, rule_id, param)

    @staticmethod
    def _event(like: Unit, choice: int, text: str, reason: str | None) -> bytes:
        body: dict[str, object] = {"index": choice, "text": text, "logprobs": None, "finish_reason": reason}
        return openai_json.event(openai_json.envelope_of(like), _FORM, _ID, [body], {})


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
