"""Records a sample of exchanges as transcripts, for `checkstream replay`. Off unless a directory is configured.

Everything after the last event of an exchange happens on a thread of its own: masking, writing, removing what is old.
Nothing that fails there reaches an exchange; it is counted, and logged.

INVARIANT: with `text: masked`, what can't be masked never reaches the disk.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import queue
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from checkstream.core import commands as do
from checkstream.core import events as on
from checkstream.core.conversation import Conversation
from checkstream.core.exchange.plan import Plan
from checkstream.core.transcript import Header, Line, Transcript, digest_of, encode
from checkstream.core.wire.mcp.surface import Mcp
from checkstream.core.wire.surface import Surface
from checkstream.errors import UnmaskableError
from checkstream.proxy.machine import Machine
from checkstream.proxy.masking import Masker
from checkstream.proxy.shelf import Shelf

Outcome = Literal["written", "unmaskable", "too_large", "overload", "unwritable", "crashed"]

_EXCHANGE_BYTES = 4_194_304
"""A longer exchange is not recorded: it stays in memory until it ends."""
_PENDING_BYTES = 33_554_432
"""Of exchanges that have ended and wait to be written; more are not recorded."""
_HOUR_S = 3600.0


class Told(Protocol):
    """Who wants to know what became of recordings. Called on any thread."""

    def recording(self, outcome: Outcome, stream: str, error: BaseException | None = None) -> None:
        """Hear what became of one recording, or (`stream` empty) of the directory."""


class RecorderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is recorded, and for how long."""

    directory: Path
    sample: float
    """Share of exchanges, 0..1."""
    masked: bool = True
    keep: dt.timedelta = dt.timedelta(days=7)
    max_bytes: int = 1_073_741_824
    """Of all files together; the oldest go first."""


def sampled(stream: str, share: float) -> bool:
    """Tell whether an exchange is of the sample: the same for the same stream, whoever asks."""
    number = int.from_bytes(hashlib.sha256(f"record\0{stream}".encode()).digest()[:8])
    return number < share * 2**64


def header_of(surface: Surface | Mcp, plan: Plan, began: dt.datetime, stream: str, route: str) -> Header:
    """Return the first line of an exchange's transcript."""
    return Header(
        surface=surface.name,
        fail_mode=plan.fail_mode,
        parts=plan.parts,
        unknown_fields=plan.unknown_fields,
        known_fields=tuple(sorted(plan.known_fields)),
        hold=plan.hold,
        route=route,
        recorded=began.isoformat(timespec="milliseconds"),
        stream=stream,
        policies=plan.program.packs,
    )


class Recorder:
    """Follows sampled exchanges and writes them down when they have ended."""

    def __init__(
        self,
        settings: RecorderSettings,
        told: Told,
        *,
        now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
    ) -> None:
        """Start the thread, which makes the directory and removes what is old. Takes CPU time: not for the event loop.

        Args:
            settings: What is recorded.
            told: Hears what became of each.
            now: The wall clock.
        """
        self._settings = settings
        self._told = told
        self._now = now
        self._masker = Masker() if settings.masked else None
        self._shelf = Shelf(settings.directory, keep=settings.keep, max_bytes=settings.max_bytes)
        self._queue: queue.SimpleQueue[Recording | None] = queue.SimpleQueue()
        self._pending = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
        self._thread.start()

    def follow(self, guard: Machine, surface: Surface | Mcp, plan: Plan, *, stream: str, route: str) -> Machine:
        """Return the guard, or what records it when its exchange is of the sample, and may be kept."""
        if self._masker is not None and isinstance(surface, Mcp):
            return guard  # see `Masker.mask`
        if not sampled(stream, self._settings.sample):
            return guard
        began = self._now()
        return Recording(guard, surface, began, header_of(surface, plan, began, stream, route), self._take)

    def close(self, timeout_s: float = 5.0) -> None:
        """Write what has ended, for so long at most; nothing is recorded after that. Blocks."""
        self._queue.put(None)
        self._thread.join(timeout_s)

    def _take(self, recording: Recording) -> None:
        """Take an exchange that has ended, on whatever thread it ended."""
        if recording.too_large:
            self._told.recording("too_large", recording.header.stream)
            return
        with self._lock:
            full = self._pending + recording.size > _PENDING_BYTES
            self._pending += 0 if full else recording.size
        if full:
            self._told.recording("overload", recording.header.stream)
        else:
            self._queue.put(recording)

    # --- the thread

    def _work(self) -> None:
        tidied = self._tidy()
        while True:
            try:
                recording = self._queue.get(timeout=_HOUR_S)
            except queue.Empty:
                tidied = self._tidy()
                continue
            if recording is None:
                return
            self._write_down(recording)
            with self._lock:
                self._pending -= recording.size
            if self._now() - tidied > dt.timedelta(seconds=_HOUR_S):
                tidied = self._tidy()

    def _tidy(self) -> dt.datetime:
        now = self._now()
        try:
            self._shelf.tidy(now)
        except OSError as error:
            self._told.recording("unwritable", "", error)
        return now

    def _write_down(self, recording: Recording) -> None:
        stream = recording.header.stream
        outcome: Outcome = "written"
        failure: BaseException | None = None
        try:
            transcript = Transcript(header=recording.header, lines=tuple(recording.lines))
            if self._masker is not None:
                transcript = self._masker.mask(recording.surface, transcript, recording.asked)
            self._shelf.put(recording.began, stream, encode(transcript))
        except UnmaskableError as error:
            outcome, failure = "unmaskable", error
        except OSError as error:
            outcome, failure = "unwritable", error
        except Exception as error:  # noqa: BLE001 - a bug here is never an exchange's
            outcome, failure = "crashed", error
        self._told.recording(outcome, stream, failure)


class Recording:
    """A guard whose events are kept until its exchange has ended."""

    def __init__(
        self,
        guard: Machine,
        surface: Surface | Mcp,
        began: dt.datetime,
        header: Header,
        take: Callable[[Recording], None],
    ) -> None:
        """Follow `guard` from its first event; `take` gets the recording when the exchange has ended."""
        self.surface = surface
        self.began = began
        self.header = header
        self.lines: list[Line] = []
        self.asked: dict[int, do.Score] = {}
        self.size = 0
        """Bytes of the exchange."""
        self._guard = guard
        self._take = take
        self._started: float | None = None
        self._ended = False

    @property
    def too_large(self) -> bool:
        """The exchange is more than may be kept."""
        return self.size > _EXCHANGE_BYTES

    def receive(self, event: on.AnyEvent, now: float) -> list[do.AnyCommand]:
        """Tell the guard what has happened and return what is to be done."""
        commands = self._guard.receive(event, now)
        if not self._ended:
            if not isinstance(event, on.Resumed):  # where turns end changes nothing
                self._keep(event, now)
            for command in commands:
                if isinstance(command, do.Score):
                    self.asked[command.ticket] = command
                    self.size += len(command.text)
                elif isinstance(command, do.Record):
                    self._end(command.record)
        return commands

    def _keep(self, event: on.AnyEvent, now: float) -> None:
        if self._started is None:
            self._started = now
        match event:
            case on.RequestReceived():
                self.size += len(event.body)
            case on.UpstreamBytes():
                self.size += len(event.data)
            case _:
                pass
        if self.too_large:
            self.lines.clear()
            self.asked.clear()
            return
        if isinstance(event, on.NamesKnown | on.NamesKept | on.NamesFailed):
            return  # what stands for whose data is nobody's to read; run again, names are of the request alone
        if isinstance(event, on.ToolsKnown | on.ToolsKept | on.ToolsFailed):
            return  # run again, a server's tools are what it says there
        if isinstance(event, on.Recalled) and event.conversation is not None:
            # Which texts have counted is told by digests with this process's key: they would count once more.
            # What was said in them is nobody's to read.
            known = event.conversation
            event = on.Recalled(Conversation(fired=known.fired, refused=known.refused, entities=known.entities))
        if isinstance(event, on.Assessed):
            event = on.Assessed(risks=event.risks, failed=event.failed)  # a reply is made anew from what is asked anew
        asked = self.asked.get(event.ticket) if isinstance(event, on.Scored | on.ScoringFailed) else None
        at = round(now - self._started, 6)
        self.lines.append(Line(at=at, event=event, asked=None if asked is None else digest_of(asked)))

    def _end(self, record: do.StreamRecord) -> None:
        self._ended = True
        fired = Counter(v.rule_id for v in record.verdicts if v.mode == "enforce" and v.excepted_by is None)
        self.header = msgspec.structs.replace(
            self.header, action=record.action, outcome=record.outcome, fired=dict(fired)
        )
        self._take(self)
