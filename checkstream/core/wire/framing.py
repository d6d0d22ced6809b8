"""How the events of a stream stand between the bytes: one framing for each form that APIs have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import Protocol

import msgspec

from checkstream.core.wire import ndjson, sse
from checkstream.core.wire.frame import Frame
from checkstream.errors import EventTooLarge

_FEW_LINES = 512
"""Of what is decoded in one step."""
_PIECE_BYTES = 2048
"""Of what has more lines."""
PIECE_WORK = 500
"""Of that, if nothing else is in it (see `match.work`)."""


def pieces(data: bytes) -> Iterable[bytes]:
    """Return bytes as they are decoded: all at once, unless they could be thousands of events."""
    if len(data) <= _FEW_LINES or data.count(b"\n") + data.count(b"\r") <= _FEW_LINES:
        return (data,)
    return [data[at : at + _PIECE_BYTES] for at in range(0, len(data), _PIECE_BYTES)]


class Decoder(Protocol):
    """Cuts a stream of bytes into frames, the same ones however the network has cut them (G3)."""

    fault: EventTooLarge | None
    """Why no more can be decoded."""

    @property
    def held_bytes(self) -> int:
        """Bytes of the unfinished event."""

    @property
    def gives_back(self) -> bool:
        """What has come of an unfinished event, if anything, says all of it: events may be cut out as they are."""

    def give_back(self) -> bytes:
        """Return what has come of the unfinished event, and forget it: somebody else goes on with it, or decodes it."""

    def next_of(self, data: bytes, at: int) -> tuple[bytes, int] | None:
        """Return what may be the event of the one form that begins at a place of some bytes, and where it ends there.

        None: it is not all there, or another. Whether it has the one form is not looked at.
        """

    def is_part(self, data: bytes) -> bool:
        """Tell whether bytes that begin an event are a part of it alone, which nobody has to look at twice."""

    def decode(self, data: bytes) -> list[Frame]:
        """Return the frames that `data` completes.

        Raises:
            EventTooLarge: one passed the cap.
        """

    def flush(self) -> list[Frame]:
        """Return what is left when the stream ends.

        Raises:
            EventTooLarge: one had passed the cap.
        """


class Framing(msgspec.Struct, frozen=True):
    """One form of streams."""

    media: str
    """Type of the body, without parameters."""
    decoder: Callable[[int, AbstractSet[str]], Decoder]
    """Make a decoder: the most bytes of an event, and the types of events that callers may be told."""
    written: Callable[[bytes], bytes] | None = None
    """Turn events in the one form of `sse` into this one; None: it is this one."""

    def out(self, events: bytes) -> bytes:
        """Return events of the one form as they leave."""
        return events if self.written is None else self.written(events)


EVENTS = Framing("text/event-stream", sse.Decoder)
MESSAGES = Framing("text/event-stream", lambda most, events: sse.Decoder(most, events, ids=True))
"""Events of a stream that can be resumed: those who read it know them by their ids."""
LINES = Framing(ndjson.MEDIA, lambda most, _: ndjson.Decoder(most), ndjson.lines)
