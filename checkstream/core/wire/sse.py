"""Server-sent events: bytes to `Frame`s and back, at byte level.

INVARIANT: the `raw`s of all frames, `flush` included, concatenate to the bytes that were fed, and the
frames are a function of those bytes alone, never of how the network cut them (G3, G19).
Knows nothing of JSON or of any API.

Source: WHATWG HTML 9.2.5 (parsing) and 9.2.6 (interpreting an event stream).
"""

from __future__ import annotations

from checkstream.core.wire.surface import Frame
from checkstream.errors import EventTooLarge, WireError

_BOM = b"\xef\xbb\xbf"
_CR = 0x0D
_LF = 0x0A
_FIELDS = (b"data", b"event", b"id", b"retry")


class Decoder:
    """Cuts a stream of bytes into frames; holds at most one unfinished event.

    A carriage return that ends a read is not decided until the next byte shows whether it begins a CRLF.
    One exception: the blank line of an event whose lines end in lone carriage returns closes the event
    at once, and a line feed after it opens the next frame; else a CR-only stream would lag one event.
    """

    def __init__(self, max_event_bytes: int = 1_048_576) -> None:
        """Refuse events of more than `max_event_bytes` bytes, comments and line ends included."""
        self._max = max_event_bytes
        self._held = bytearray()  # the unfinished event
        self._scanned = 0  # how far `_held` has been searched for line ends
        self._line = 0  # where the current line starts in `_held`; kept up only by `_cut_mixed`
        self._mixed = False  # `_held` contains a CR: line ends must be told apart one by one
        self._lone = False  # the unfinished event's last line ended in a lone CR
        self._swallow = False  # the last event was closed by a CR: a LF now still belongs to it
        self._first = True  # no frame yet: a byte order mark may stand here
        self.fault: EventTooLarge | None = None
        """Why no more can be decoded; set as soon as an event passes the cap."""

    @property
    def held_bytes(self) -> int:
        """Bytes of the unfinished event."""
        return len(self._held)

    def decode(self, data: bytes) -> list[Frame]:
        """Return the frames that `data` completes.

        Events that were complete before an oversized one are returned first; the error comes with the
        next call then.

        Raises:
            EventTooLarge: an event passed the cap, whether or not a line end ever came. The decoder
                stays failed.
        """
        if self.fault is not None:
            raise self.fault
        if not self._held and not self._swallow and b"\r" not in data:
            size = len(data)
            if data.find(b"\n") == size - 2 and data.startswith(b"data: ") and data[-1] == _LF and size <= self._max:
                self._first = False
                return [Frame(data, data[6:-2])]  # the common case: one event of one line, whole in one read
            frames, start = self._cut_lf(data, 0)
            if start < len(data):
                self._held += data[start:] if start else data
                self._scanned = len(self._held)
        else:
            frames = self._decode_held(data)
        if len(self._held) > self._max:
            self._fail()
        if self.fault is not None:
            self._held.clear()
            if not frames:
                raise self.fault
        return frames

    def flush(self) -> list[Frame]:
        """Return what is left when the stream ends: an unfinished event comes with `complete=False`.

        Raises:
            EventTooLarge: the event that is left had passed the cap.
        """
        if self.fault is not None:
            raise self.fault
        raw = bytes(self._held)
        self._held.clear()
        self._scanned = self._line = 0
        self._mixed = self._lone = self._swallow = False
        if not raw:
            return []
        # A CR at the very end that waited for its LF closes the event after all.
        body = raw.removesuffix(b"\r")
        closed = body != raw and (not body or body.endswith((b"\n", b"\r")))
        return [self._frame(raw, complete=closed or not raw.strip(b"\r\n"))]

    def _decode_held(self, data: bytes) -> list[Frame]:
        """Append `data` to the unfinished event and cut from there."""
        held = self._held
        held += data
        if self._swallow and held:
            self._swallow = False
            if held[0] == _LF:  # rest of the CRLF that closed the last event: opens the next frame's raw
                self._scanned = self._line = 1
                self._mixed = True
        if not self._mixed and b"\r" in data:
            self._mixed = True
            self._line = held.rfind(b"\n", 0, self._scanned) + 1
        if self._mixed:
            frames, start = self._cut_mixed()
        else:
            # One byte back: a LF already searched may be the first half of a blank line.
            frames, start = self._cut_lf(held, max(self._scanned - 1, 0))
            self._scanned = len(held) - start
        if start:
            del held[:start]
        if not held:
            self._mixed = self._lone = False
            self._scanned = self._line = 0
        return frames

    def _cut_lf(self, held: bytes | bytearray, search: int) -> tuple[list[Frame], int]:
        """Cut `held`, which has no CR; return the frames and where the unfinished event starts."""
        frames: list[Frame] = []
        start = 0
        size = len(held)
        while start < size:
            if held[start] == _LF:
                end = start + 1
            else:
                end = held.find(b"\n\n", search) + 2
                if end == 1:
                    break
            if end - start > self._max:
                self._fail()
                break
            frames.append(self._frame(bytes(held[start:end])))
            start = search = end
        return frames, start

    def _cut_mixed(self) -> tuple[list[Frame], int]:
        """Cut `_held` line by line, each ended by LF, CR or CRLF; leaves the cursors at the rest."""
        held = self._held
        frames: list[Frame] = []
        start, line, at, size = 0, self._line, self._scanned, len(held)
        lf = cr = -1
        while at < size:
            if lf < at:
                lf = held.find(b"\n", at)
                lf = size if lf < 0 else lf
            if cr < at:
                cr = held.find(b"\r", at)
                cr = size if cr < 0 else cr
            at = min(lf, cr)
            if at == size:
                break
            blank = at == line
            lone_blank = blank and at == cr and self._lone
            if at == cr and not lone_blank and at + 1 == size:
                break
            crlf = at == cr and not lone_blank and lf == at + 1
            self._lone = at == cr and not crlf
            line = at = at + (2 if crlf else 1)
            if not blank:
                continue
            if at - start > self._max:
                self._fail()
                break
            frames.append(self._frame(bytes(held[start:at])))
            start, self._lone = at, False
            if lone_blank:
                self._swallow = at == size
                if at < size and held[at] == _LF:
                    line = at = at + 1
        self._scanned, self._line = at - start, line - start
        return frames, start

    def _frame(self, raw: bytes, *, complete: bool = True) -> Frame:
        if self._first:
            self._first = False
            if raw.startswith(_BOM):
                data, event = _fields(raw[3:])
                return Frame(raw=raw, data=data, event=event, complete=complete)
        if _is_plain(raw):
            return Frame(raw, raw[6:-2])
        data, event = _fields(raw)
        return Frame(raw=raw, data=data, event=event, complete=complete)

    def _fail(self) -> None:
        self.fault = EventTooLarge(
            f"an event is larger than `{self._max}` bytes; raise `event_bytes` if the upstream's events are that large"
        )


def _is_plain(raw: bytes) -> bool:
    """Say whether an event is one `data: ` line and its blank line, both ended by LF."""
    return raw.find(b"\n") == len(raw) - 2 and raw.startswith(b"data: ") and raw.endswith(b"\n\n") and b"\r" not in raw


def _fields(raw: bytes) -> tuple[bytes | None, str]:
    """Interpret an event's lines: the joined data (None when there is no `data` field) and its type."""
    data: list[bytes] = []
    event = b""
    for line in raw.splitlines():  # of bytes: splits at LF, CR and CRLF only
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
        elif name == b"event":
            event = value.removeprefix(b" ")
    return b"\n".join(data) if data else None, event.decode("utf-8", "replace")


def parse(raw: bytes) -> Frame:
    """Read one event again from its bytes, e.g. a released unit's; a byte order mark may stand first."""
    if _is_plain(raw):
        return Frame(raw, raw[6:-2])
    data, event = _fields(raw.removeprefix(_BOM))
    return Frame(raw=raw, data=data, event=event)


def ignorable(raw: bytes) -> bool:
    """Say whether an event without data holds nothing but comments and the fields of the standard."""
    for line in raw.removeprefix(_BOM).splitlines():
        name, _, _ = line.partition(b":")
        if name and name not in _FIELDS:
            return False
    return True


def reframe(raw: bytes, data: bytes) -> bytes:
    """Return the event `raw` with `data` as its one data line; comments and other fields stay as they came.

    `data` must have no line end (JSON without white space between tokens, or one whose line ends were
    replaced). An event that `raw` leaves unfinished is finished, so that what follows stays apart from it.
    """
    if _is_plain(raw):
        return b"data: " + data + b"\n\n"
    head = _BOM if raw.startswith(_BOM) else b""
    out = [head]
    placed = False
    for line in raw.removeprefix(_BOM).splitlines(keepends=True):
        if line.rstrip(b"\r\n").partition(b":")[0] != b"data":
            out.append(line)
        elif not placed:
            placed = True
            ending = line[len(line.rstrip(b"\r\n")) :] or b"\n"
            out.append(b"data: " + data + ending)
    if not placed:
        return head + encode(data)
    last = out[-1].rstrip(b"\r\n")
    if last:
        ending = out[-1][len(last) :]
        out.append(b"\n" if ending else b"\n\n")
    return b"".join(out)


def encode(data: bytes, event: str = "") -> bytes:
    """Return an event of this type with this data, one `data:` line for each line of it.

    Raises:
        WireError: the type contains a line end, which no event can carry.
    """
    if "\n" in event or "\r" in event:
        raise WireError("an event type can't contain a line end; take it out")
    head = f"event: {event}\n".encode() if event else b""
    if b"\n" not in data and b"\r" not in data:
        return head + b"data: " + data + b"\n\n"
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return head + b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"


def comment(text: str) -> bytes:
    """Return `text` as comment lines, without a blank line: keeps a connection open and ends no event."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return b"".join(f": {line}\n".encode() for line in lines)
