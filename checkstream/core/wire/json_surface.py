"""What surfaces whose requests and answers are JSON have in common: what is done in steps can be done at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

import msgspec

from checkstream.core.steps import done
from checkstream.core.terms import Unit
from checkstream.core.wire.json_text import splices
from checkstream.core.wire.json_text.counts import Counts, adding
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.surface import Edit, Frame, Receiving, Request, Shaping


class JsonSurface(ABC):
    """The common part of a `Surface`."""

    methods: frozenset[str] = frozenset({"POST"})
    id_headers: tuple[str, ...] = ("x-request-id",)
    calls_at_once = False
    has_last_word = False
    parts_of_answers: frozenset[str] = frozenset()
    trims_beginning = False
    signed: frozenset[str] = frozenset()
    tells_rest = False
    gave_up = False
    holding = withheld = 0
    memory: Sequence[object] = ()
    """Of most, no event says anything of those before it."""
    counts: ClassVar[Counts] = MappingProxyType({})
    """Where its events tell how many tokens were spent."""

    @abstractmethod
    def reading_request(self, body: bytes) -> Generator[None, None, Request]:
        """Read a caller's body, in steps.

        Raises:
            RequestInvalid: not JSON of the surface's form, duplicate or case-variant keys, wrong types.
        """

    @abstractmethod
    def writing_request(
        self, request: Request, texts: Mapping[int, str], shaping: Shaping | None = None
    ) -> Generator[None, None, bytes]:
        """Return, in steps, the body with texts replaced, shaped as policies want, without the `checkstream` field.

        Raises:
            WireError: the request was not read by this surface, or can't be shaped so.
        """

    @abstractmethod
    def reading_whole(self, body: bytes) -> Generator[None, None, Unit]:
        """Read a whole (not streamed) answer, in steps.

        Raises:
            WireError: not JSON of the surface's form.
        """

    @abstractmethod
    def writing_whole(self, unit: Unit, edit: Edit, finish: Mapping[int, str]) -> Generator[None, None, bytes]:
        """Return, in steps, a whole answer with the edit applied.

        Raises:
            WireError: the body's JSON has two members of one name where it is edited.
        """

    def read_request(self, body: bytes) -> Request:
        """Read a caller's body at once; see `reading_request`.

        Raises:
            RequestInvalid: as `reading_request`.
        """
        return done(self.reading_request(body))

    def write_request(self, request: Request, texts: Mapping[int, str], shaping: Shaping | None = None) -> bytes:
        """Return the body as `writing_request` does, at once.

        Raises:
            WireError: as `writing_request`.
        """
        return done(self.writing_request(request, texts, shaping))

    def read_whole(self, body: bytes) -> Unit:
        """Read a whole answer at once; see `reading_whole`.

        Raises:
            WireError: as `reading_whole`.
        """
        return done(self.reading_whole(body))

    def write_whole(self, unit: Unit, edit: Edit, finish: Mapping[int, str]) -> bytes:
        """Return a whole answer as `writing_whole` does, at once.

        Raises:
            WireError: as `writing_whole`.
        """
        return done(self.writing_whole(unit, edit, finish))

    def add_usage(self, unit: Unit, prompt_tokens: int, completion_tokens: int) -> Unit:
        """Return an event that tells usage with more tokens in it, marked as an estimate.

        Raises:
            WireError: the event's JSON has two members of one name there.
        """
        return adding(unit, self.counts, prompt_tokens, completion_tokens)

    def reading_event(self, frame: Frame) -> Generator[None, None, Unit]:
        """Read a long event: its bounds keep that short (see `json_text.size`).

        Raises:
            WireError: as `read_event`.
        """
        yield
        return self.read_event(frame)

    @abstractmethod
    def read_event(self, frame: Frame) -> Unit:
        """Read one event of the answer.

        Raises:
            WireError: the event is not what the surface allows.
        """

    def go_on(self) -> None:  # noqa: B027 - there is nothing to do on most
        """Do nothing: what comes of the rest of an answer leaves as events of the first."""

    def receiving(self, request: Request | None) -> Receiving:
        """Return what reads the answer to a request: here each event says all that is to be known of it."""
        del request
        return self

    def putting(self, unit: Unit, values: Mapping[Path, str | None]) -> Generator[None, None, Unit]:
        """Return, in steps, an event or a whole answer with these texts, or null, at these places.

        Raises:
            WireError: the JSON has two members of one name on the way to one.
        """
        return splices.putting(unit, values)

    def writing_results(self, body: bytes, members: Mapping[str, msgspec.Raw]) -> Generator[None, None, bytes]:
        """Return, in steps, a whole answer with these members, in place of any that the upstream has called so.

        Raises:
            WireError: the body is no JSON object, or has two members of one name.
        """
        return splices.putting_members(body, members)
