"""Newline-delimited JSON: an answer as one JSON object a line. Bytes to `Frame`s and back.

Inside, an event has one form, that of `sse`, whatever the bytes between two programs look like: what reads and edits
events has to know no other. So a line becomes such an event when it comes, and is a line again when it leaves; lines
that nobody edits are the bytes that came. Clients differ in what ends a line here too, so that is escaped as there.

Source: Ollama's API reference, "Streaming responses"; the "ndjson" specification, 1.0.0.
"""

from __future__ import annotations

from checkstream.core.wire import sse
from checkstream.core.wire.frame import Frame
from checkstream.errors import EventTooLarge

MEDIA = "application/x-ndjson"
_BOM = b"\xef\xbb\xbf"
_SPACE = b" \t\r"
_DATA = b"data: "
_BRACE = 0x7B


class Decoder:
    """Cuts a stream of bytes into frames, a line each; holds at most one unfinished line. Fulfils `framing.Decoder`."""

    def __init__(self, max_event_bytes: int) -> None:
        """Refuse lines of more than `max_event_bytes` bytes."""
        self._max = max_event_bytes
        self._held = bytearray()
        self._first = True
        self.fault: EventTooLarge | None = None
        """Why no more can be decoded."""

    @property
    def held_bytes(self) -> int:
        """Bytes of the unfinished line."""
        return len(self._held)

    @property
    def gives_back(self) -> bool:
        """Nothing but the bytes of the unfinished line is known; of many nobody wants to know twice."""
        return not self._first and self.fault is None and len(self._held) <= sse.MOST_GIVEN_BACK

    def give_back(self) -> bytes:
        """Return what has come of the unfinished line, and forget it."""
        held = bytes(self._held)
        self._held.clear()
        return held

    def is_part(self, data: bytes) -> bool:
        """Tell whether bytes that begin a line are a part of it alone."""
        return len(data) <= sse.MOST_GIVEN_BACK and b"\n" not in data

    @staticmethod
    def next_of(data: bytes, at: int) -> tuple[bytes, int] | None:
        """Return the line that begins at a place as an event, and where it ends; None: it is not all there, or empty.

        Not all of these are lines for every client.
        """
        end = data.find(b"\n", at)
        if end <= at or data[at] != _BRACE:
            return None
        return _DATA + data[at:end] + b"\n\n", end + 1

    def decode(self, data: bytes) -> list[Frame]:
        """Return the frames that `data` completes; empty lines are none.

        Raises:
            EventTooLarge: a line passed the cap, whether or not its end came; what was whole before it was returned.
        """
        if self.fault is not None:
            raise self.fault
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = bytes(self._held) + lines[0]
            self._held.clear()
        self._held += rest
        frames: list[Frame] = []
        for line in lines:
            if len(line) > self._max:
                self._fail()
                break
            frames += self._frames(line)
        if len(self._held) > self._max:
            self._fail()
        if self.fault is not None and not frames:
            raise self.fault
        return frames

    def flush(self) -> list[Frame]:
        """Return what is left when the stream ends: many servers leave the last line without its end.

        Raises:
            EventTooLarge: a line had passed the cap.
        """
        if self.fault is not None:
            raise self.fault
        line = bytes(self._held)
        self._held.clear()
        return self._frames(line)

    def _frames(self, line: bytes) -> list[Frame]:
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        line = line.strip(_SPACE)
        if not line:
            return []
        written = sse.one_line(line)
        # What is no UTF-8 is shown to its reader as it came, who refuses it.
        return [Frame(_DATA + written + b"\n\n", written if sse.is_utf8(line) else line)]

    def _fail(self) -> None:
        self._held.clear()
        self.fault = EventTooLarge(
            f"a line is larger than `{self._max}` bytes; raise `event_bytes` if the upstream's lines are that large"
        )


def lines(events: bytes) -> bytes:
    """Return events in the one form as lines; comments, which no line can be, are left out."""
    found = (event.partition(_DATA)[2] for event in events.split(b"\n\n"))
    return b"".join(data + b"\n" for data in found if data)
