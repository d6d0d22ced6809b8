"""How the scripted LLM's answer becomes bytes and writes: line ends, comments, cuts and faults, without a socket.

`steps` says what to do in order; the server does it. The same script and events always give the same steps.
Source: WHATWG HTML 9.2.6, "Interpreting an event stream".
"""

from __future__ import annotations

import bisect
import json
import random
from collections.abc import Iterator, Sequence

import msgspec

from checkstream.demo.answer import Event, Json
from checkstream.demo.script import Breakage, Cut, Script, Wire

BOM = b"\xef\xbb\xbf"
_ENDS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}


class Wait(msgspec.Struct, frozen=True):
    """Say nothing for this long."""

    ms: float


class Write(msgspec.Struct, frozen=True):
    """Send these bytes as one write."""

    data: bytes
    events: int
    """Events whose last byte has been sent once this is."""


class Break(msgspec.Struct, frozen=True):
    """Let the script's fault happen here."""

    breakage: Breakage


Step = Wait | Write | Break


class Sent(msgspec.Struct, frozen=True):
    """One event as bytes."""

    data: bytes
    delay_ms: float = 0.0
    """How long the script waits before it."""


def stream(events: Sequence[Event], script: Script) -> list[Sent]:
    """Return the events of a stream as bytes, with what the script inserts, comments and the terminator."""
    wire, timing = script.wire, script.timing
    found: list[Sent] = []
    lines = [(_json(event.payload, wire), event.name, timing.token_ms if event.token else 0.0) for event in events]
    for earlier, insert in enumerate(sorted(script.insert, key=lambda insert: insert.after_events)):
        lines.insert(insert.after_events + earlier, (insert.data, insert.event, 0.0))
    if wire.done and not any(event.name for event in events):
        lines.append(("[DONE]", "", 0.0))
    end = _ENDS[wire.line_end]
    for at, (data, name, delay_ms) in enumerate(lines):
        text = _event(data, name, wire)
        if wire.comments is not None and at % wire.comments.every == wire.comments.every - 1:
            text = f": {wire.comments.text}{end}{end}{text}"
        if at == len(lines) - 1:
            text = text.removesuffix({"full": "", "no_blank_line": end, "no_newline": end + end}[wire.tail])
        first_ms = timing.first_byte_ms if at == 0 else 0.0
        found.append(Sent((BOM if wire.bom and at == 0 else b"") + text.encode(), delay_ms + first_ms))
    return found


def lines(events: Sequence[Event], script: Script) -> list[Sent]:
    """Return the events of a stream as lines of JSON, which have no line ends within; nothing marks the last."""
    timing = script.timing
    return [
        Sent(
            json.dumps(event.payload, ensure_ascii=script.wire.json == "ascii").encode() + b"\n",
            (timing.token_ms if event.token else 0.0) + (timing.first_byte_ms if at == 0 else 0.0),
        )
        for at, event in enumerate(events)
    ]


def whole(body: Json, script: Script) -> list[Sent]:
    """Return a whole body as the one thing to send."""
    return [Sent(_json(body, script.wire).encode(), script.timing.first_byte_ms)]


def _json(payload: Json, wire: Wire) -> str:
    match wire.json:
        case "compact":
            return json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
        case "spaced":
            return json.dumps(payload, ensure_ascii=False)
        case "ascii":
            return json.dumps(payload, separators=(",", ":"))
        case "pretty":
            return json.dumps(payload, ensure_ascii=False, indent=2)


def _event(data: str, name: str, wire: Wire) -> str:
    colon = ": " if wire.space_after_colon else ":"
    lines = [f"event{colon}{name}"] if name else []
    lines += [f"data{colon}{line}" for line in data.split("\n")]
    end = _ENDS[wire.line_end]
    return end.join(lines) + end + end


def steps(sent: Sequence[Sent], script: Script) -> Iterator[Step]:
    """Yield what to do, in order, from the body's first byte to its end or its fault."""
    fault = script.fault
    out = _Out(sent, script.wire.cut)
    for at, piece in enumerate(sent):
        if fault is not None and fault.after_events == at:
            yield from out.flush()
            yield Break(fault)
        if piece.delay_ms:
            yield from out.flush()
            yield Wait(piece.delay_ms)
        data = piece.data
        if fault is not None and fault.after_bytes is not None:
            room = fault.after_bytes - out.taken
            if 0 <= room < len(data):
                yield from out.take(data[:room])
                yield from out.flush()
                yield Break(fault)
                data = data[room:]
        yield from out.take(data)
    yield from out.flush()
    if fault is not None and (fault.after_events or fault.after_bytes or 0) >= _extent(sent, fault):
        yield Break(fault)


def _extent(sent: Sequence[Sent], fault: Breakage) -> int:
    return len(sent) if fault.after_bytes is None else sum(len(piece.data) for piece in sent)


class _Out:
    """Cuts what it is given into writes, and counts the events that they complete."""

    def __init__(self, sent: Sequence[Sent], cut: Cut) -> None:
        self._ends: list[int] = []
        for piece in sent:
            self._ends.append((self._ends[-1] if self._ends else 0) + len(piece.data))
        self._cut = cut
        self._chance = random.Random(cut.seed)  # noqa: S311 - repeatable cuts, not a secret
        self._kept = b""
        self._size = self._next_size()
        self._written = 0
        self.taken = 0

    def take(self, data: bytes) -> Iterator[Step]:
        """Yield the writes that are full once `data` is there."""
        self.taken += len(data)
        self._kept += data
        if self._cut.by == "event":
            yield from self.flush()
        at = 0
        while self._size and len(self._kept) - at >= self._size:
            full = self._kept[at : at + self._size]
            at += self._size
            self._size = self._next_size()
            yield from self._write(full)
        self._kept = self._kept[at:]

    def flush(self) -> Iterator[Step]:
        """Yield a write of what is left, if anything is."""
        left, self._kept = self._kept, b""
        if left:
            yield from self._write(left)

    def _write(self, data: bytes) -> Iterator[Step]:
        if self._cut.gap_ms and self._written:
            yield Wait(self._cut.gap_ms)
        self._written += len(data)
        yield Write(data, bisect.bisect_right(self._ends, self._written))

    def _next_size(self) -> int:
        """Return the bytes of the next write; 0: as much as there is."""
        match self._cut.by:
            case "fixed":
                return self._cut.size
            case "random":
                return self._chance.randint(1, self._cut.size)
            case "event" | "whole":
                return 0
