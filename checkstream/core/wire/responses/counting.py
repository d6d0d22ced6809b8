"""What counts the tokens of a request: `POST /v1/responses/input_tokens`.

A request is edited and shaped as it would be for an answer, so that what is counted is what would be sent.
"""

from __future__ import annotations

from checkstream.core.wire.answers.counting import Counting
from checkstream.core.wire.json_surface import JsonSurface
from checkstream.core.wire.responses.surface import OpenAIResponses
from checkstream.core.wire.surface import Receiving, Request


class ResponseCounting(Counting, OpenAIResponses):
    """The surface `openai.responses.input_tokens`: the requests of the API, and an answer that is a figure."""

    name = "openai.responses.input_tokens"
    figures = frozenset({"object", "error", "input_tokens"})

    def receiving(self, request: Request | None) -> Receiving:
        """Return what reads the figure."""
        return JsonSurface.receiving(self, request)


COUNTING = ResponseCounting()
