"""What OpenAI's two surfaces that write text have in common: choices, streamed and whole."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Mapping

import msgspec

from checkstream.core.steps import done
from checkstream.core.terms import Unit
from checkstream.core.wire.answers.answer import Answer, read_bare, reading_object_event, reading_whole
from checkstream.core.wire.frame import Frame
from checkstream.core.wire.json_text import strings
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.openai import edits
from checkstream.core.wire.openai import envelope as envelopes
from checkstream.core.wire.openai.surface import OpenAISurface
from checkstream.core.wire.requests.shaping import Shaped, writing_shaped
from checkstream.core.wire.surface import Edit, Request, Shaping


class OpenAIChoices(OpenAISurface):
    """The common part of `openai.chat` and `openai.completions`."""

    events = frozenset({"error"})
    form: str
    """What its events call themselves (`object`)."""
    id: str
    """Of an answer whose upstream gives none."""
    holder: str | None
    """The member of a choice of a whole answer that holds its texts; None: the choice itself."""
    streamed: str
    """The member of a choice of an event that holds its texts."""

    @staticmethod
    @abstractmethod
    def shape(shaped: Shaped, shaping: Shaping) -> None:
        """Carry a shaping into a request.

        Raises:
            WireError: the surface has no place for something of it.
        """

    @staticmethod
    @abstractmethod
    def read_streamed(answer: Answer, number: int, choice: dict[str, object], path: Path) -> None:
        """Read a choice of an event.

        Raises:
            WireError: it is not what the surface allows.
        """

    @staticmethod
    @abstractmethod
    def read_choice(answer: Answer, number: int, choice: dict[str, object], path: Path) -> None:
        """Read a choice of a whole answer, which has a content delta, empty when it has no content.

        Raises:
            WireError: it is not what the surface allows.
        """

    @staticmethod
    @abstractmethod
    def saying(text: str | None, *, first: bool) -> Mapping[str, object]:
        """Return the member of a choice that says a text, in the first event of a stream or in a later one."""

    def writing_request(
        self, request: Request, texts: Mapping[int, str], shaping: Shaping | None = None
    ) -> Generator[None, None, bytes]:
        """Return, in steps, the body with texts replaced, shaped as policies want, without the `checkstream` field.

        Raises:
            WireError: the request was not read by this surface, or can't be shaped so.
        """
        return writing_shaped(request, texts, shaping, self.shape)

    def read_event(self, frame: Frame) -> Unit:
        """Read one event of the answer.

        Raises:
            WireError: the event is not what the surface allows.
        """
        return done(self._reading_event(frame, steps=False))

    def reading_event(self, frame: Frame) -> Generator[None, None, Unit]:
        """Read a long event, in steps.

        Raises:
            WireError: as `read_event`.
        """
        return self._reading_event(frame, steps=True)

    def _reading_event(self, frame: Frame, *, steps: bool) -> Generator[None, None, Unit]:
        bare = read_bare(frame)
        if bare is not None:
            return bare
        own = frozenset({self.streamed})
        return (yield from reading_object_event(frame, self.read_streamed, own, steps=steps))

    def reading_whole(self, body: bytes) -> Generator[None, None, Unit]:
        """Read a whole answer, in steps; each choice has a content delta, empty when it has no content.

        Raises:
            WireError: not JSON of the surface's form.
        """
        return (yield from reading_whole(body, self.read_choice, frozenset({self.holder or self.streamed})))

    def writing_whole(self, unit: Unit, edit: Edit, finish: Mapping[int, str]) -> Generator[None, None, bytes]:
        """Return, in steps, the body with the edit applied; stopped choices stay, emptied.

        Raises:
            WireError: the body's JSON has two members of one name where it is edited.
        """
        return edits.editing_whole(unit, edit, finish, self.holder)

    def joining_whole(self, first: Unit, texts: Mapping[int, str], second: Unit) -> Generator[None, None, bytes]:
        """Return, in steps, the body of an answer that was begun in one whole answer and continued in another.

        Raises:
            WireError: the second has no content, or its JSON has two members of one name where it is edited.
        """
        return edits.joining_whole(first, texts, second, self.holder)

    def text_event(self, like: Unit, choice: int, text: str) -> bytes:
        """Return an event that adds `text` to a choice's content."""
        return self._event(like, choice, strings.clean(text), None)

    def finish_event(self, like: Unit, choice: int) -> bytes:
        """Return an event that ends a choice as stopped by policy."""
        return self._event(like, choice, None, "content_filter")

    def usage_event(self, like: Unit, prompt_tokens: int, completion_tokens: int) -> bytes:
        """Return a usage event with an estimate, marked as one (G16)."""
        usage = envelopes.estimated_usage(prompt_tokens, completion_tokens)
        return envelopes.event(envelopes.envelope_of(like), self.form, self.id, [], {"usage": usage})

    def result_event(self, like: Unit, members: Mapping[str, msgspec.Raw]) -> bytes:
        """Return an event that adds nothing to the answer and carries `members` beside the ids and model of `like`.

        It has an empty choice: much code reads `choices[0]` of every event.
        """
        empty = self._choice(0, "", None, first=False)
        return envelopes.event(envelopes.envelope_of(like), self.form, self.id, [empty], members)

    def _event(self, like: Unit, choice: int, text: str | None, reason: str | None) -> bytes:
        envelope = envelopes.envelope_of(like)
        said = self._choice(choice, text, reason, first=envelope.id is None)
        return envelopes.event(envelope, self.form, self.id, [said], {})

    def _choice(self, index: int, text: str | None, reason: str | None, *, first: bool) -> dict[str, object]:
        return {"index": index, **self.saying(text, first=first), "logprobs": None, "finish_reason": reason}
