"""The surfaces of Anthropic's Messages API: `POST /v1/messages`, streamed and whole, and what counts its tokens.

Source: Anthropic API reference, "Create a Message", "Streaming messages", "Count tokens" and "Errors".
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import ClassVar

from checkstream.core.steps import done
from checkstream.core.terms import Unit
from checkstream.core.wire.answers.counting import Counting
from checkstream.core.wire.anthropic import answers, edits, errors, requests
from checkstream.core.wire.anthropic.sending import MessageSending
from checkstream.core.wire.anthropic.shaping import undone, writing_request
from checkstream.core.wire.frame import Frame
from checkstream.core.wire.framing import EVENTS
from checkstream.core.wire.json_surface import JsonSurface
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.openai import edits as openai_edits
from checkstream.core.wire.surface import Edit, Request, Sending, Shaping
from checkstream.errors import WireError

_ID_HEADERS: tuple[str, ...] = ("x-request-id", "request-id")


class AnthropicMessages(JsonSurface):
    """The surface `anthropic.messages`."""

    name = "anthropic.messages"
    id_headers = _ID_HEADERS
    events = answers.EVENTS
    framing = EVENTS
    has_last_word = True
    trims_beginning = True
    signed = frozenset({"reasoning"})
    counts: ClassVar = {("usage", "input_tokens"): (True, False), ("usage", "output_tokens"): (False, True)}

    def reading_request(self, body: bytes) -> Generator[None, None, Request]:
        """Read a caller's body, in steps.

        Raises:
            RequestInvalid: not JSON of the surface's form, duplicate or case-variant keys, wrong types.
        """
        return requests.reading_request(body)

    def writing_request(
        self, request: Request, texts: Mapping[int, str], shaping: Shaping | None = None
    ) -> Generator[None, None, bytes]:
        """Return, in steps, the body with texts replaced, shaped as policies want, without what is ours.

        Raises:
            WireError: the request was not read by this surface, or can't be shaped so.
        """
        return writing_request(request, texts, shaping)

    def undone(self, request: Request, shaping: Shaping) -> tuple[Path, ...]:
        """Return what goes out of a request when it is shaped so, since it could undo that."""
        return undone(request, shaping)

    def read_event(self, frame: Frame) -> Unit:
        """Read one event of the answer.

        Raises:
            WireError: the event is not what the surface allows.
        """
        return done(answers.reading_event(frame, steps=False))

    def reading_event(self, frame: Frame) -> Generator[None, None, Unit]:
        """Read a long event, in steps.

        Raises:
            WireError: as `read_event`.
        """
        return answers.reading_event(frame, steps=True)

    def sending(self, most_held: int = 0) -> Sending:
        """Return what writes the events of one stream as they leave, as a sequence that clients take.

        Args:
            most_held: Bytes of a thinking block that may wait until it is known whether rules edit it; 0: none does.
        """
        return MessageSending(most_held)

    def rename_event(self, unit: Unit, like: Unit) -> Unit:
        """Return the event as it came: only the first of a stream has an id, and it leaves once."""
        del like
        return unit

    def reading_whole(self, body: bytes) -> Generator[None, None, Unit]:
        """Read a whole answer, in steps; its last delta may be a place that is not there yet.

        Raises:
            WireError: not JSON of the surface's form.
        """
        return answers.reading_whole(body)

    def writing_whole(self, unit: Unit, edit: Edit, finish: Mapping[int, str]) -> Generator[None, None, bytes]:
        """Return, in steps, the body with the edit applied; see `edits.editing_whole`.

        Raises:
            WireError: the body's JSON has two members of one name where it is edited.
        """
        return edits.editing_whole(unit, edit, finish)

    def joining_whole(self, first: Unit, texts: Mapping[int, str], second: Unit) -> Generator[None, None, bytes]:
        """Return, in steps, the body of an answer that was begun in one whole answer and continued in another.

        Raises:
            WireError: the second has no content, or its JSON has two members of one name where it is edited.
        """
        return edits.joining_whole(first, texts, second)

    def error_event(self, kind: str, message: str, rule_id: str | None = None) -> bytes:
        """Return the error event for a stream that can't go on."""
        return errors.error_event(kind, message, rule_id)

    def error_body(self, kind: str, message: str, rule_id: str | None = None, param: str | None = None) -> bytes:
        """Return Anthropic's error object."""
        return errors.error_body(kind, message, rule_id, param)


class AnthropicCounting(Counting, AnthropicMessages):
    """The surface `anthropic.count_tokens`: the requests of the Messages API, and an answer that is a figure.

    A request is edited and shaped as it would be for an answer, so that what is counted is what would be sent.
    """

    name = "anthropic.count_tokens"
    id_headers = _ID_HEADERS
    figures = frozenset({"type", "error", "input_tokens", "request_id"})

    def writing_whole(self, unit: Unit, edit: Edit, finish: Mapping[int, str]) -> Generator[None, None, bytes]:
        """Return, in steps, the answer with the edit applied; it has no choices."""
        return openai_edits.editing_whole(unit, edit, finish, None)

    def joining_whole(self, first: Unit, texts: Mapping[int, str], second: Unit) -> Generator[None, None, bytes]:
        """Refuse to join: nothing is continued here.

        Raises:
            WireError: always.
        """
        del first, texts, second
        raise WireError("an answer without text can't be continued")
