"""Keeps evidence of exchanges for those whose they are: what was asked and what was sent, sealed before it is written.

It follows an exchange as a recorder does. When the record of the exchange has its place in the audit chain, a thread
seals what was kept for that record and puts it on a shelf, from which another process sends it. Nothing that fails
there reaches an exchange; it is counted, and logged.

INVARIANT: what is not sealed is never written, nor logged.
"""

from __future__ import annotations

import datetime as dt
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import msgspec

from checkstream.audit.chain import Sealed
from checkstream.core import commands as do
from checkstream.core import events as on
from checkstream.core.exchange.plan import Plan
from checkstream.core.transcript import Header, Transcript, encode
from checkstream.core.wire.mcp.surface import Mcp
from checkstream.core.wire.surface import Surface
from checkstream.proxy.machine import Machine
from checkstream.proxy.recorder import Recording, header_of
from checkstream.proxy.shelf import Shelf
from checkstream.proxy.trail import ExchangeTrail

Outcome = Literal["sealed", "too_large", "overload", "dropped", "unwritable", "crashed"]
ENDING = ".sealed"
"""Of the files on the shelf."""
HELD_BYTES = 67_108_864
"""Of all exchanges that are followed, or wait for the thread; of more, none is kept."""


class Witnessed(msgspec.Struct, frozen=True, kw_only=True):
    """An exchange that has ended, to be sealed."""

    stream: str
    route: str
    caller: str | None
    began: dt.datetime
    transcript: bytes
    released: bytes
    chain: str
    seq: int
    hash: str
    """Of its record in the audit chain."""


Seal = Callable[[Witnessed], bytes | None]
"""Returns what may be written; None: it is too long. Takes CPU time."""


class Told(Protocol):
    """Who wants to know what became of evidence. Called on any thread."""

    def evidence(self, outcome: Outcome, stream: str, error: BaseException | None = None) -> None:
        """Hear what became of the evidence of one exchange."""


class Witness:
    """Follows the exchanges of which evidence is kept."""

    def __init__(
        self,
        directory: Path,
        most_bytes: int,
        keep: dt.timedelta,
        sealer: Callable[[str, str | None], Seal | None],
        told: Told,
        *,
        now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
    ) -> None:
        """Make the directory. Blocks.

        Args:
            directory: Where what is sealed waits to be sent.
            most_bytes: Of all that waits; the oldest goes first.
            keep: So long it waits at most.
            sealer: Returns what seals for a route and a caller; None: nothing of them is kept.
            told: Hears what became of each.
            now: The wall clock.

        Raises:
            OSError: it can't be made.
        """
        self._shelf = Shelf(directory, keep=keep, max_bytes=most_bytes, ending=ENDING)
        self._shelf.tidy(now())
        self._sealer = sealer
        self._told = told
        self._now = now
        self._lock = threading.Lock()
        self._held = 0
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="witness")

    def follow(self, guard: Machine, surface: Surface | Mcp, plan: Plan, *, ledger: ExchangeTrail) -> Machine:
        """Return the guard, or what keeps evidence of its exchange, whose record `ledger` will write."""
        seal = self._sealer(ledger.route, ledger.caller)
        if seal is None:
            return guard
        began = self._now()
        header = header_of(surface, plan, began, ledger.stream, ledger.route)
        kept = _Kept(guard, surface, began, header, self._room)

        def placed(chain: str, sealed: Sealed) -> None:
            try:
                self._thread.submit(self._put, _Due(kept, ledger.route, ledger.caller, chain, sealed, seal))
            except RuntimeError:  # the process ends, and this exchange is the last to hear of it
                self._told.evidence("dropped", ledger.stream)

        ledger.witness = placed
        return kept

    def close(self) -> None:
        """Seal what has ended. Blocks."""
        self._thread.shutdown(wait=True)

    def _room(self, grown: int) -> bool:
        """Take some bytes more, or give some back; tell whether there was room."""
        with self._lock:
            if grown > 0 and self._held + grown > HELD_BYTES:
                return False
            self._held += grown
        return True

    # --- the thread

    def _put(self, due: _Due) -> None:
        outcome, failure = self._kept(due)
        self._told.evidence(outcome, due.kept.header.stream, failure)
        for _ in range(self._shelf.dropped):
            self._told.evidence("dropped", "")
        self._shelf.dropped = 0

    def _kept(self, due: _Due) -> tuple[Outcome, BaseException | None]:
        kept = due.kept
        if kept.refused:
            return "overload", None
        if kept.too_large:
            return "too_large", None
        try:
            witnessed = Witnessed(
                stream=kept.header.stream,
                route=due.route,
                caller=due.caller,
                began=kept.began,
                transcript=encode(Transcript(header=kept.header, lines=tuple(kept.lines))),
                released=b"".join(kept.released),
                chain=due.chain,
                seq=due.record.seq,
                hash=due.record.hash,
            )
            content = due.seal(witnessed)
            if content is None:
                return "too_large", None
            self._shelf.put(kept.began, kept.header.stream, content)
        except OSError as error:
            return "unwritable", error
        except Exception as error:  # noqa: BLE001 - a bug here is never an exchange's
            return "crashed", error
        return "sealed", None


class _Due(NamedTuple):
    """What has ended, and the record that it belongs to."""

    kept: _Kept
    route: str
    caller: str | None
    chain: str
    record: Sealed
    seal: Seal


class _Kept(Recording):
    """A guard whose events are kept, and what it has released, within the room that there is for all."""

    def __init__(
        self,
        guard: Machine,
        surface: Surface | Mcp,
        began: dt.datetime,
        header: Header,
        room: Callable[[int], bool],
    ) -> None:
        super().__init__(guard, surface, began, header, lambda _: None)
        self.released: list[bytes] = []
        self.refused = False
        """There was no room."""
        self._room = room
        self._share = [0]
        weakref.finalize(self, _give_back, room, self._share)

    @property
    def too_large(self) -> bool:
        """Nothing of the exchange is kept."""
        return self.refused or super().too_large

    def receive(self, event: on.AnyEvent, now: float) -> list[do.AnyCommand]:
        """Tell the guard what has happened and return what is to be done."""
        commands = super().receive(event, now)
        for command in commands:
            if isinstance(command, do.SendDownstream):
                self._keep_released(command.data)
            elif isinstance(command, do.Reply):
                self._keep_released(command.body)
        grown = self.size - self._share[0]
        if grown and not self.too_large:
            if self._room(grown):
                self._share[0] = self.size
            else:
                self.refused = True
        if self.too_large:
            self.lines.clear()
            self.released.clear()
            _give_back(self._room, self._share)  # its stream may stay open for hours
        return commands

    def _keep_released(self, data: bytes) -> None:
        self.size += len(data)
        if not self.too_large:
            self.released.append(data)


def _give_back(room: Callable[[int], bool], share: list[int]) -> None:
    room(-share[0])
    share[0] = 0
