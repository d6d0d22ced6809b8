"""Server-sent events: bytes to `Frame`s and back, at byte level.

Two things are kept apart: what an upstream may write, which is all that the standard allows, and what leaves, which is
one form alone: a line for the type if the surface knows it, one `data: ` line, a blank line. Clients differ in what
ends a line. Many split as Python's `str.splitlines` does, at ten characters where the standard knows two, or strip what
JavaScript's `trim` strips; a comment or a field that nobody reads would be an event to them. In the one form, all of
them read the events that were scanned and no others (G36).

INVARIANT: the frames are a function of the bytes that were fed, never of how the network cut them (G3, G19), and an
event that came in the one form leaves as the bytes it came in (G5).
Knows nothing of any API; of JSON it knows that white space between tokens is free, and escapes.

Source: WHATWG HTML 9.2.5 (parsing) and 9.2.6 (interpreting an event stream).
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from checkstream.core.wire.frame import Frame
from checkstream.errors import EventTooLarge, WireError

_BOM = b"\xef\xbb\xbf"
_CR = 0x0D
_LF = 0x0A
_FIELDS = (b"data", b"event", b"id", b"retry")
_NO_EVENTS: frozenset[str] = frozenset()
_IN_LINE = {end: f"\\u{ord(end):04x}" for end in "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"} | {"\n": " ", "\r": " "}
"""All that some client takes for the end of a line, and what stands in its place. Source: Python, `str.splitlines`,
which has all of Java's and .NET's."""
_IN_ENDS = bytes({end.encode()[-1] for end in _IN_LINE})
"""The last byte of each."""
_LONG = 4096
"""Bytes of an event above which lines are not counted by making them."""
_MOST_LINES = 4096
"""Of one event: servers write one, or a few."""
_MOST_REPAIRED = 16_384
"""Bytes that are no UTF-8 and are mended character by character; of more the ASCII is kept."""
_ASCII = bytes(byte if byte < 0x80 else ord("?") for byte in range(256))
OF_IDS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/+=~-")
MOST_OF_AN_ID = 256
"""Of the id of an event, or of a session: characters that say nothing by themselves."""
_MOST_OF_A_WAIT = 7
"""Digits of milliseconds."""
MOST_GIVEN_BACK = 4096
"""Bytes of an unfinished event that are put before what comes: more would be copied with each piece."""
KEEP_ALIVE = b": keep-alive\n"
"""Our comment. It keeps a connection open, and without a blank line ends no event."""


class Decoder:
    """Cuts a stream of bytes into frames; holds at most one unfinished event.

    A carriage return that ends a read is not decided until the next byte shows whether it begins a CRLF.
    One exception: the blank line of an event whose lines end in lone carriage returns closes the event
    at once, and a line feed after it opens the next frame; else a CR-only stream would lag one event.
    """

    def __init__(
        self, max_event_bytes: int = 1_048_576, events: AbstractSet[str] = _NO_EVENTS, *, ids: bool = False
    ) -> None:
        """Refuse events of more than `max_event_bytes` bytes, comments and line ends included.

        Args:
            max_event_bytes: As they come.
            events: The types of events that callers may be told.
            ids: The ids of events and the time to wait before a stream is resumed leave, too, where they look so.
        """
        self._ids = ids
        self._max = max_event_bytes
        self._events = events
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

    @property
    def gives_back(self) -> bool:
        """Nothing but the bytes of the unfinished event is known; of many nobody wants to know twice."""
        is_known = self._swallow or self._first or self._mixed or self.fault is not None
        return not is_known and len(self._held) <= MOST_GIVEN_BACK

    def give_back(self) -> bytes:
        """Return what has come of the unfinished event, and forget it."""
        if not self._held:
            return b""
        held = bytes(self._held)
        self._held.clear()
        self._scanned = self._line = 0
        return held

    @staticmethod
    def next_of(data: bytes, at: int) -> tuple[bytes, int] | None:
        """Return the event that begins at a place, if lines end in line feeds, and where it ends; None: not all of it.

        Not all of these have the one form.
        """
        end = data.find(b"\n\n", at) + 2
        return (data[at:end], end) if end > at + 2 else None

    def is_part(self, data: bytes) -> bool:
        """Tell whether bytes that begin an event are a part of it alone."""
        return len(data) <= MOST_GIVEN_BACK and b"\n\n" not in data and b"\r" not in data

    def decode(self, data: bytes) -> list[Frame]:
        """Return the frames that `data` completes; blank lines that end no event are none.

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
            if data.find(b"\n") == size - 2 and size <= self._max and _is_plain(data):
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
        if not raw.strip(b"\r\n"):
            return []
        closed = body != raw and (not body or body.endswith((b"\n", b"\r")))
        return [self._frame(raw, complete=closed)]

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
                self._first = False
                while start < size and held[start] == _LF:
                    start += 1
                search = start
                continue
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
            frames += self._unless_blank(bytes(held[start:at]))
            start, self._lone = at, False
            if lone_blank:
                self._swallow = at == size
                if at < size and held[at] == _LF:
                    line = at = at + 1
        self._scanned, self._line = at - start, line - start
        return frames, start

    def _unless_blank(self, raw: bytes) -> list[Frame]:
        if raw.strip(b"\r\n"):
            return [self._frame(raw)]
        self._first = False
        return []

    def _frame(self, raw: bytes, *, complete: bool = True) -> Frame:
        if self._first:
            self._first = False
            raw = raw.removeprefix(_BOM)
        if _is_plain(raw):
            return Frame(raw, raw[6:-2])
        if len(raw) > _MOST_LINES and _ends(raw) > _MOST_LINES:
            return Frame(b"", None, complete=complete, strange=True)
        data, event, strange = _fields(raw)
        resuming = _resuming(raw) if self._ids else b""
        head = _head(event if event in self._events else "") + resuming
        if data is None:
            # Its comments keep a connection alive by ours; what they say reaches nobody.
            own = KEEP_ALIVE if raw.startswith(b":") or b"\n:" in raw or b"\r:" in raw else b""
            return Frame(resuming + b"\n" if resuming else own, None, event, complete=complete, strange=strange)
        line = one_line(data)
        sent = head + b"data: " + line + b"\n\n"
        # What is no UTF-8 is shown to its reader as it came, who refuses it.
        return Frame(sent, line if is_utf8(data) else data, event, complete=complete, strange=strange)

    def _fail(self) -> None:
        self.fault = EventTooLarge(
            f"an event is larger than `{self._max}` bytes; raise `event_bytes` if the upstream's events are that large"
        )


def plain(raw: bytes, event: str) -> Frame | None:
    """Return the frame of an event of this type that came in the one form; None: it did not."""
    head = _head(event)
    line = raw[len(head) :] if head else raw
    return Frame(raw, line[6:-2], event) if raw.startswith(head) and _is_plain(line) else None


def _is_plain(raw: bytes) -> bool:
    """Say whether an event is one `data: ` line and its blank line, for every client that there is."""
    if not raw.startswith(b"data: ") or not raw.endswith(b"\n\n") or raw[-3] == _CR:
        return False
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return False
    if len(raw) > _LONG:  # a character is found at once; its bytes may nearly stand there a million times
        return text.find("\n") == len(text) - 2 and not any(end in text for end in _IN_LINE if end != "\n")
    return len(text.splitlines()) == 2


def _ends(raw: bytes) -> int:
    """Return how many ends of lines an event has; of one that is no UTF-8, at most."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return len(raw) - len(raw.translate(None, _IN_ENDS))
    return sum(map(text.count, _IN_LINE))


def is_utf8(data: bytes) -> bool:
    """Tell whether bytes are text in UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _fields(raw: bytes) -> tuple[bytes | None, str, bool]:
    """Interpret an event's lines.

    Returns:
        The joined data (None when there is no `data` field), the event's type, and whether there are fields that the
        standard doesn't know.
    """
    data: list[bytes] = []
    event = b""
    strange = False
    for line in raw.splitlines():  # of bytes: splits at LF, CR and CRLF only
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
        elif name == b"event":
            event = value.removeprefix(b" ")
        elif name and name not in _FIELDS:
            strange = True
    return b"\n".join(data) if data else None, event.decode("utf-8", "replace"), strange


def _resuming(raw: bytes) -> bytes:
    """Return the lines by which a stream is resumed behind an event, as far as they look like such."""
    found: dict[bytes, bytes] = {}
    for line in raw.splitlines():
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        is_id = name == b"id" and len(value) <= MOST_OF_AN_ID and OF_IDS.issuperset(value.decode("latin-1"))
        if is_id or (name == b"retry" and value.isdigit() and len(value) <= _MOST_OF_A_WAIT):
            found[name] = value
    return b"".join(b"%s: %s\n" % pair for pair in found.items())


def parse(raw: bytes) -> Frame:
    """Read a frame's event again from its `raw`."""
    if raw.startswith(b"data: "):
        return Frame(raw, raw[6:-2])
    data, event, _ = _fields(raw)
    return Frame(raw, data, event)


def one_line(data: bytes) -> bytes:
    """Return data as one line for every client: JSON, or what has no line ends, says the same then.

    Line ends of the standard can only be white space in JSON and become spaces; what else some client takes for one can
    only stand in a string and is escaped there. Bytes that are no UTF-8 become U+FFFD, as clients read them.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        if len(data) > _MOST_REPAIRED:
            data = data.translate(_ASCII)
        text = data.decode("utf-8", "replace")
    return _inline(text).encode()


def _inline(text: str) -> str:
    for end, instead in _IN_LINE.items():
        if end in text:
            text = text.replace(end, instead)
    return text


def reframe(raw: bytes, data: str | bytes) -> bytes:
    """Return the event `raw`, which is a frame's, with other data."""
    head = raw[: max(raw.find(b"data: "), 0)]  # its lines have fixed alphabets, none of which has `data: `
    line = one_line(data) if isinstance(data, bytes) else _inline(data).encode()
    return b"".join((head, b"data: ", line, b"\n\n"))


def encode(data: bytes, event: str = "") -> bytes:
    """Return an event of this type with this data, which is JSON or has no line ends.

    Raises:
        WireError: the type contains a line end, which no event can carry.
    """
    return _head(event) + b"data: " + one_line(data) + b"\n\n"


def _head(event: str) -> bytes:
    if _inline(event) != event:
        raise WireError("an event type can't contain a line end; take it out")
    return f"event: {event}\n".encode() if event else b""
