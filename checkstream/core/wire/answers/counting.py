"""Answers that are a figure: how many tokens a request has."""

from __future__ import annotations

from collections.abc import Generator

from checkstream.core.steps import freeing
from checkstream.core.terms import COMMON, Unit
from checkstream.core.wire.answers.answer import Answer
from checkstream.core.wire.answers.failure import failure_of
from checkstream.core.wire.frame import Frame
from checkstream.core.wire.json_text.objects import reading_object
from checkstream.errors import WireError


class Counting:
    """How such answers are read, on any surface: whole, without choices."""

    events = frozenset[str]()
    figures: frozenset[str]
    """Members of its answers that are words of the protocol."""

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
        return (yield from freeing(found, self._reading(found, body), len(body)))

    def _reading(self, found: dict[str, object], body: bytes) -> Generator[None, None, Unit]:
        answer, failure = Answer(body, whole=True), failure_of(found)
        if failure is None and "input_tokens" not in found:
            raise WireError("the answer has neither `input_tokens` nor `error`; check the upstream")
        answer.rest(COMMON, found, self.figures, frozenset(), ())
        yield from answer.taking()
        return answer.unit(body, usage=failure is None, failure=failure)
