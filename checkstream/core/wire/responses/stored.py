"""Answers that the provider keeps: `GET` and `DELETE /v1/responses/{id}`, what they were asked with, and cancelling.

What is kept there is what the model has said, which no rule has edited: it is read, edited and stopped when it is asked
for as it was when it was said, whole or streamed. What it repeats of its request is the caller's own where the digest
of that is known (see `echo`), and read as the rest where it isn't.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

from checkstream.core.terms import Unit
from checkstream.core.wire.frame import Frame
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.requests.reading import reading_body
from checkstream.core.wire.responses.receiving import ResponseReceiving
from checkstream.core.wire.responses.surface import OpenAIResponses
from checkstream.core.wire.surface import Receiving, Request, Shaping
from checkstream.errors import RequestInvalid


class StoredResponses(OpenAIResponses):
    """The surfaces `openai.responses.stored` and `openai.responses.cancel`, whose requests say nothing."""

    parts_of_answers = frozenset({"starting_after"})

    def __init__(self, name: str, methods: frozenset[str]) -> None:
        """Be one of them, which takes these methods of HTTP."""
        self.name = name
        self.methods = methods

    def reading_request(self, body: bytes) -> Generator[None, None, Request]:
        """Read a request without a body, or with an empty object.

        Raises:
            RequestInvalid: it says something, which nobody would read.
        """
        if body.strip() and (yield from reading_body(body)):
            raise RequestInvalid("what is asked here takes no body; leave it out")
        return Request(unit=Unit(raw=body), members={}, streaming=False, usage_wanted=True, model="")

    def writing_request(
        self, request: Request, texts: Mapping[int, str], shaping: Shaping | None = None
    ) -> Generator[None, None, bytes]:
        """Return the body as it came: it says nothing."""
        del texts, shaping
        yield from ()
        return request.unit.raw

    def undone(self, request: Request, shaping: Shaping) -> tuple[Path, ...]:
        """Return nothing: there is nothing to shape."""
        del request, shaping
        return ()

    def receiving(self, request: Request | None) -> Receiving:
        """Return what reads what comes: an answer, a list of items, or that an answer was deleted."""
        return ResponseReceiving(request, stored=True)

    def read_event(self, frame: Frame) -> Unit:
        """Read one event of an answer of which nothing else is known.

        Raises:
            WireError: the event is not what the surface allows.
        """
        return ResponseReceiving(None, stored=True).read_event(frame)

    def reading_whole(self, body: bytes) -> Generator[None, None, Unit]:
        """Read what comes whole, in steps.

        Raises:
            WireError: not JSON of the surface's form.
        """
        return ResponseReceiving(None, stored=True).reading_whole(body)


STORED = StoredResponses("openai.responses.stored", frozenset({"GET", "DELETE"}))
CANCEL = StoredResponses("openai.responses.cancel", frozenset({"POST"}))
