"""The surface of OpenAI's Responses API: `POST /v1/responses`, streamed and whole.

Source: OpenAI API reference, "Responses" and "Streaming events"; the types of its Python SDK.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import ClassVar

from checkstream.core.terms import Unit
from checkstream.core.wire.frame import Frame
from checkstream.core.wire.framing import EVENTS
from checkstream.core.wire.json_surface import JsonSurface
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.openai import envelope
from checkstream.core.wire.responses import edits, errors, events, requests
from checkstream.core.wire.responses.receiving import ResponseReceiving
from checkstream.core.wire.responses.sending import ResponseSending
from checkstream.core.wire.responses.shaping import undone, writing_request
from checkstream.core.wire.surface import Edit, Receiving, Request, Sending, Shaping


class OpenAIResponses(JsonSurface):
    """The surface `openai.responses`."""

    name = "openai.responses"
    events = events.EVENTS
    framing = EVENTS
    has_last_word = True
    counts: ClassVar = {
        ("response", "usage", "input_tokens"): (True, False), ("response", "usage", "output_tokens"): (False, True),
        ("response", "usage", "total_tokens"): (True, True),
    }  # fmt: skip

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

    def receiving(self, request: Request | None) -> Receiving:
        """Return what reads the answer to a request, which says most of its texts more than once."""
        return ResponseReceiving(request)

    def read_event(self, frame: Frame) -> Unit:
        """Read one event of an answer of which nothing else is known.

        Raises:
            WireError: the event is not what the surface allows.
        """
        return ResponseReceiving(None).read_event(frame)

    def sending(self, most_held: int = 0) -> Sending:
        """Return what writes the events of one stream as they leave, as a sequence that clients take."""
        del most_held  # nothing is signed
        return ResponseSending()

    def putting(self, unit: Unit, values: Mapping[Path, str | None]) -> Generator[None, None, Unit]:
        """Return, in steps, an event or a whole answer with these texts, or null, at these places.

        Raises:
            WireError: the JSON has two members of one name on the way to one.
        """
        return edits.putting(unit, values)

    def rename_event(self, unit: Unit, like: Unit) -> Unit:
        """Return the event as it came: what leaves of the rest of an answer has the id of its beginning (`sending`)."""
        del like
        return unit

    def reading_whole(self, body: bytes) -> Generator[None, None, Unit]:
        """Read a whole answer to a request of which nothing is known, in steps.

        Raises:
            WireError: not JSON of the surface's form.
        """
        return ResponseReceiving(None).reading_whole(body)

    def writing_whole(self, unit: Unit, edit: Edit, finish: Mapping[int, str]) -> Generator[None, None, bytes]:
        """Return, in steps, the body with the edit applied; see `edits.editing_whole`.

        Raises:
            WireError: the body's JSON has two members of one name where it is edited.
        """
        return edits.editing_whole(unit, edit, finish)

    def joining_whole(self, first: Unit, texts: Mapping[int, str], second: Unit) -> Generator[None, None, bytes]:
        """Return, in steps, the body of an answer that was begun in one whole answer and continued in another.

        Raises:
            WireError: the second has no content, or its JSON has two members of one name there.
        """
        return edits.joining_whole(first, texts, second)

    def error_event(self, kind: str, message: str, rule_id: str | None = None) -> bytes:
        """Return the error event for a stream that can't go on."""
        return errors.error_event(kind, message, rule_id)

    def error_body(self, kind: str, message: str, rule_id: str | None = None, param: str | None = None) -> bytes:
        """Return OpenAI's error object."""
        return envelope.error_body(kind, message, rule_id, param)


RESPONSES = OpenAIResponses()
