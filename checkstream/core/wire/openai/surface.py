"""What all surfaces of OpenAI's have in common: how their JSON is edited, how a stream ends, and what errors look like.

What a request holds and how a choice of the answer is written is each surface's own, in the file that has its name.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Mapping
from typing import ClassVar

import msgspec

from checkstream.core.steps import done
from checkstream.core.terms import Unit
from checkstream.core.wire.framing import EVENTS
from checkstream.core.wire.json_surface import JsonSurface
from checkstream.core.wire.json_text import splices
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.openai import edits, envelope
from checkstream.core.wire.requests import undoing
from checkstream.core.wire.surface import Edit, Request, Sending, Shaping


class OpenAISurface(JsonSurface):
    """The common part of a `Surface`. Its events say nothing of those before them, so that it is its own `Sending`."""

    alters = False
    framing = EVENTS
    counts: ClassVar = {
        ("usage", "prompt_tokens"): (True, False),
        ("usage", "completion_tokens"): (False, True),
        ("usage", "total_tokens"): (True, True),
    }

    def undone(self, request: Request, shaping: Shaping) -> tuple[Path, ...]:
        """Return what goes out of a request when it is shaped so, since it could undo that."""
        return undoing.undone(request, shaping)

    def sending(self, most_held: int = 0) -> Sending:
        """Return what writes the events of any stream as they leave."""
        del most_held  # nothing is signed
        return self

    def as_it_came(self, unit: Unit) -> bytes:
        """Return an event that nobody has edited."""
        return unit.raw

    def write_event(self, unit: Unit, edit: Edit) -> bytes:
        """Return the event with the edit applied, or `b""` when nothing of it remains.

        Raises:
            WireError: the event's JSON has two members of one name where it is edited.
        """
        return done(edits.editing_event(unit, edit))

    def writing_event(self, unit: Unit, edit: Edit | None) -> Generator[None, None, bytes]:
        """Return, in steps, a long event as it leaves.

        Raises:
            WireError: as `write_event`.
        """
        return self.as_it_came(unit) if edit is None else (yield from edits.editing_event(unit, edit))

    def rename_event(self, unit: Unit, like: Unit) -> Unit:
        """Return the event under the id of `like`, as a part of the same answer; where one has no id, as it came.

        Raises:
            WireError: the event's JSON has two ids.
        """
        name = envelope.envelope_of(like).id
        return unit if name is None else done(splices.putting(unit, {("id",): name}))

    @abstractmethod
    def text_event(self, like: Unit, choice: int, text: str) -> bytes:
        """Return an event that adds `text` to a choice's content."""

    @abstractmethod
    def finish_event(self, like: Unit, choice: int) -> bytes:
        """Return an event that ends a choice as stopped by policy."""

    @abstractmethod
    def usage_event(self, like: Unit, prompt_tokens: int, completion_tokens: int) -> bytes:
        """Return a usage event with an estimate, marked as one (G16)."""

    @abstractmethod
    def result_event(self, like: Unit, members: Mapping[str, msgspec.Raw]) -> bytes:
        """Return an event that adds no text and carries `members` beside the ids and model of `like`."""

    def terminator(self) -> bytes:
        """Return `data: [DONE]` and a blank line."""
        return envelope.DONE

    def error_event(self, kind: str, message: str, rule_id: str | None = None) -> bytes:
        """Return the error event for a stream that can't go on."""
        return envelope.error_event(kind, message, rule_id)

    def error_body(self, kind: str, message: str, rule_id: str | None = None, param: str | None = None) -> bytes:
        """Return OpenAI's error object."""
        return envelope.error_body(kind, message, rule_id, param)
