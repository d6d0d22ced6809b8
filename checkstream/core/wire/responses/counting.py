"""What counts the tokens of a request: `POST /v1/responses/input_tokens`.

A request is edited and shaped as it would be for an answer, so that what is counted is what would be sent.
"""

from __future__ import annotations

from collections.abc import Generator

from checkstream.core.terms import COMMON, Unit
from checkstream.core.wire.answers.answer import Answer
from checkstream.core.wire.answers.failure import failure_of
from checkstream.core.wire.frame import Frame
from checkstream.core.wire.json_surface import JsonSurface
from checkstream.core.wire.json_text.objects import reading_object
from checkstream.core.wire.json_text.strict import dropping
from checkstream.core.wire.responses.surface import OpenAIResponses
from checkstream.core.wire.surface import Receiving, Request
from checkstream.errors import WireError


class ResponseCounting(OpenAIResponses):
    """The surface `openai.responses.input_tokens`: the requests of the API, and an answer that is a figure."""

    name = "openai.responses.input_tokens"
    events = frozenset[str]()

    def receiving(self, request: Request | None) -> Receiving:
        """Return what reads the figure."""
        return JsonSurface.receiving(self, request)

    def read_event(self, frame: Frame) -> Unit:
        """Refuse an event.

        Raises:
            WireError: always.
        """
        del frame
        raise WireError("this API has no streams; check the upstream")

    def reading_whole(self, body: bytes) -> Generator[None, None, Unit]:
        """Read an answer, in steps: figures, without choices.

        Raises:
            WireError: not a JSON object with a count or an error.
        """
        found = yield from reading_object(body)
        try:
            answer, failure = Answer(body, whole=True), failure_of(found)
            if failure is None and "input_tokens" not in found:
                raise WireError("the answer has neither `input_tokens` nor `error`; check the upstream")
            answer.rest(COMMON, found, frozenset({"object", "error", "input_tokens"}), frozenset(), ())
            yield from answer.taking()
            return answer.unit(body, usage=failure is None, failure=failure)
        finally:
            yield from dropping(found)


COUNTING = ResponseCounting()
