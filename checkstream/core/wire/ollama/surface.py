"""Ollama's chat (`POST /api/chat`) and generate (`POST /api/generate`), streamed as a line of JSON each, and whole.

The last object of a stream is also its last word. What a policy says in its place stands before it, or is it.
Source: Ollama's API reference; the types of its clients for Python and JavaScript.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import ClassVar

import msgspec

from checkstream.core.steps import done
from checkstream.core.terms import Unit
from checkstream.core.wire import sse
from checkstream.core.wire.frame import Frame
from checkstream.core.wire.framing import LINES
from checkstream.core.wire.json_surface import JsonSurface
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.json_text.strings import clean
from checkstream.core.wire.ollama import answers, edits, errors, requests
from checkstream.core.wire.openai.envelope import estimated_usage
from checkstream.core.wire.requests.shaping import writing_shaped
from checkstream.core.wire.surface import Edit, Request, Sending, Shaping

_Reading = Callable[[bytes], Generator[None, None, Request]]
_UNKNOWN_MOMENT = "1970-01-01T00:00:00Z"


class Ollama(JsonSurface):
    """The surfaces `ollama.chat` and `ollama.generate`. Fulfils `Surface`."""

    events: frozenset[str] = frozenset()
    framing = LINES
    has_last_word = True
    alters = False
    calls_at_once = True
    counts: ClassVar = {("prompt_eval_count",): (True, False), ("eval_count",): (False, True)}

    def __init__(self, name: str, reading: _Reading, read: answers.Read) -> None:
        """Be one of them.

        Args:
            name: Of the surface.
            reading: Reads its requests.
            read: Reads the texts of its answers.
        """
        self.name = name
        self._reading = reading
        self._read = read
        self._chats = name.endswith("chat")

    def reading_request(self, body: bytes) -> Generator[None, None, Request]:
        """Read a caller's body, in steps.

        Raises:
            RequestInvalid: not JSON of the surface's form, duplicate or case-variant keys, wrong types.
        """
        return self._reading(body)

    def writing_request(
        self, request: Request, texts: Mapping[int, str], shaping: Shaping | None = None
    ) -> Generator[None, None, bytes]:
        """Return, in steps, the body with texts replaced, shaped as policies want, without the `checkstream` field.

        Raises:
            WireError: the request was not read by this surface, or can't be shaped so.
        """
        return writing_shaped(request, texts, shaping, partial(requests.shape, chat=self._chats))

    def undone(self, request: Request, shaping: Shaping) -> tuple[Path, ...]:
        """Return what goes out of a request when it is shaped so, since it could undo that."""
        return tuple(requests.undoing(request, shaping))

    def read_event(self, frame: Frame) -> Unit:
        """Read one line of the answer.

        Raises:
            WireError: it is not what the surface allows.
        """
        return done(answers.reading_event(frame, self._read, steps=False))

    def reading_event(self, frame: Frame) -> Generator[None, None, Unit]:
        """Read a long line of the answer, in steps.

        Raises:
            WireError: as `read_event`.
        """
        return answers.reading_event(frame, self._read, steps=True)

    def reading_whole(self, body: bytes) -> Generator[None, None, Unit]:
        """Read a whole answer, in steps.

        Raises:
            WireError: not JSON of the surface's form.
        """
        return answers.reading_whole(body, self._read)

    def sending(self, most_held: int = 0) -> Sending:
        """Return what writes the events of any stream as they leave."""
        del most_held  # nothing is signed
        return self

    def as_it_came(self, unit: Unit) -> bytes:
        """Return an event that nobody has edited."""
        return unit.raw

    def write_event(self, unit: Unit, edit: Edit) -> bytes:
        """Return the line's event with the edit applied, or `b""` when nothing of it remains.

        Raises:
            WireError: its JSON has two members of one name where it is edited.
        """
        return done(edits.editing_event(unit, edit))

    def writing_event(self, unit: Unit, edit: Edit | None) -> Generator[None, None, bytes]:
        """Return, in steps, a long event as it leaves.

        Raises:
            WireError: as `write_event`.
        """
        return self.as_it_came(unit) if edit is None else (yield from edits.editing_event(unit, edit))

    def writing_whole(self, unit: Unit, edit: Edit, finish: Mapping[int, str]) -> Generator[None, None, bytes]:
        """Return, in steps, the body with the edit applied; of a stopped answer only what the edit keeps stays.

        Raises:
            WireError: the body's JSON has two members of one name where it is edited.
        """
        return edits.editing_answer(unit, edit, finish)

    def rename_event(self, unit: Unit, like: Unit) -> Unit:
        """Return the event as it came: answers have no ids here."""
        del like
        return unit

    def joining_whole(self, first: Unit, texts: Mapping[int, str], second: Unit) -> Generator[None, None, bytes]:
        """Return, in steps, the body of an answer that was begun in one whole answer and continued in another.

        Raises:
            WireError: the second has no content, or its JSON has two members of one name there.
        """
        return edits.joining_whole(first, texts, second)

    def text_event(self, like: Unit, choice: int, text: str) -> bytes:
        """Return an event that adds `text` to the answer."""
        del choice
        return self._event(like, text, {})

    def finish_event(self, like: Unit, choice: int) -> bytes:
        """Return nothing: the last word says why an answer has ended."""
        del like, choice
        return b""

    def usage_event(self, like: Unit, prompt_tokens: int, completion_tokens: int) -> bytes:
        """Return the last word of an answer that policy has stopped, with an estimate of its tokens, marked (G16)."""
        usage = estimated_usage(prompt_tokens, completion_tokens)
        return self._event(
            like,
            "",
            {
                "done": True,
                "done_reason": "content_filter",
                "prompt_eval_count": prompt_tokens,
                "eval_count": completion_tokens,
                "checkstream_estimated": usage["checkstream_estimated"],
            },
        )

    def result_event(self, like: Unit, members: Mapping[str, msgspec.Raw]) -> bytes:
        """Return an event that adds no text and carries `members` (name -> JSON)."""
        return self._event(like, "", members)

    def terminator(self) -> bytes:
        """Return nothing: the last object says that it is the last."""
        return b""

    def error_event(self, kind: str, message: str, rule_id: str | None = None) -> bytes:
        """Return the error object as an event; Ollama's clients raise on any line that has `error`."""
        return sse.encode(errors.error_body(kind, message, rule_id))

    def error_body(self, kind: str, message: str, rule_id: str | None = None, param: str | None = None) -> bytes:
        """Return Ollama's error object."""
        return errors.error_body(kind, message, rule_id, param)

    def _event(self, like: Unit, text: str, more: Mapping[str, object]) -> bytes:
        said = {"message": {"role": "assistant", "content": clean(text)}} if self._chats else {"response": clean(text)}
        body = {"model": "", "created_at": _UNKNOWN_MOMENT, **edits.members_of(like), **said, "done": False, **more}
        return sse.encode(msgspec.json.encode(body))


CHAT = Ollama("ollama.chat", requests.reading_chat, answers.read_chat_alone)
GENERATE = Ollama("ollama.generate", requests.reading_generate, answers.read_generate)
