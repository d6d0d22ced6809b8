"""This machine among others that serve as one, all behind the same load balancer.

No request waits for the others: some ten times a second this machine says in a store what its processes have, and
writes what the others have said on a page of the board, where each process sees it as it sees its neighbours. So what
counts is older by a tenth of a second and the way there and back: two machines may both give the last place meanwhile.
Where the store can't be asked, what the others have said is given up after some seconds, and each goes on by itself.

Only confirmations wait for the store: whether one is spent can't be told by halves.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from checkstream.config import FleetSettings, reveal
from checkstream.errors import VaultFailed
from checkstream.listen.board import ELSEWHERE, PLACES, Board, Pages, make
from checkstream.processes.frames import derived
from checkstream.proxy.confirm import Together
from checkstream.sealed.opening import long_secret
from checkstream.sealed.sealing import Owner, Seal
from checkstream.telemetry.logs import Log

if TYPE_CHECKING:
    from checkstream.processes.fleet_store import FleetStore

_PULSE_S: Final = 0.1
_KEEP_S: Final = 3.0
"""A machine of which nobody has heard for so long is forgotten; so are all others, where the store is away so long."""
_MOST: Final = PLACES - 2
"""Keys that a machine says, and hears of all others together: beside them stand the two of the store."""
_KIND: Final = "what callers have"

_Key = Annotated[int, Meta(ge=-(2**63) + 1, le=2**63 - 1)]
_Value = Annotated[int, Meta(ge=0, le=2**48)]
_PAGE = msgspec.msgpack.Decoder(dict[_Key, _Value])


def told(totals: Mapping[int, int], now_ms: int) -> dict[int, int]:
    """Return what a machine says of what stands on its board: amounts, and how far moments are ahead (milliseconds).

    Clocks of machines differ. What is nothing, or over, is not said; nor what is too much for a page.
    """
    ahead = ((key, value if key > 0 else value - now_ms) for key, value in totals.items())
    return dict(itertools.islice(((key, value) for key, value in ahead if value > 0), _MOST))


def heard(machines: Iterable[Mapping[int, int]], now_ms: int) -> dict[int, int]:
    """Return what machines have said as one page of a board: sums of amounts, and of moments the last."""
    found: dict[int, int] = {}
    for said in machines:
        for key, value in said.items():
            before = found.get(key, 0)
            found[key] = before + value if key > 0 else max(before, now_ms + value)
    found.pop(0, None)  # that a place is empty
    return dict(itertools.islice(found.items(), _MOST))


class Fleet:
    """What this machine has in common with the others."""

    def __init__(self, store: FleetStore, secret: bytes, machine: str = "") -> None:
        """Say and hear nothing yet.

        Args:
            store: Where they meet.
            secret: The same on all of them.
            machine: Names this machine; empty: nobody has spoken for it yet.
        """
        self.machine = machine or secrets.token_hex(16)
        self._store = store
        self._secret = secret
        self._seal = Seal(self.secret_of("pages"))
        self._was_full = False

    def secret_of(self, what: str) -> bytes:
        """Return a secret for one use, the same on all machines."""
        return derived(self._secret, what)

    def together(self, board: Board) -> Together:
        """Return what makes a confirmation of one machine good on all of them: what only the store remembers.

        Args:
            board: Of this process.
        """
        memory, clock = _of_store(self._store, board)
        return Together(
            key=self.secret_of("confirmations"),
            spending=self._store,
            now_ms=lambda: board.highest_elsewhere(clock) + _now_ms(),
            mark=lambda: board.highest_elsewhere(memory).to_bytes(8, "big"),
            is_known=lambda: board.highest_elsewhere(memory) > 0,
        )

    def warn_if_unknown(self, descriptor: int, log: Log) -> None:
        """Say so where a parent that still speaks for this machine has another fleet, or has never heard of its store.

        Args:
            descriptor: Of the board.
            log: Hears of it.
        """
        if not self.together(self.board(descriptor, -1)).is_known():
            reason = "the processes before this have another fleet, or its store is away"
            advice = "until they have ended, confirmations get 503 and this machine counts by itself"
            log.warning("fleet.waits", reason=reason, advice=advice)

    def board(self, descriptor: int, page: int = ELSEWHERE) -> Board:
        """Return a page of a board on which what counts has the same keys on all machines."""
        return Board(descriptor, page, self.secret_of("board"))

    @contextlib.asynccontextmanager
    async def joined(self, log: Log, show: Callable[[int], None]) -> AsyncIterator[Board]:
        """Speak for a process that is alone on its machine, and yield its page of a board.

        Args:
            log: As `serve`.
            show: As `serve`.

        Raises:
            OSError: there is no room for a board.
        """
        descriptor = make()
        try:
            own, elsewhere = self.board(descriptor, Pages(descriptor, 0).take()), self.board(descriptor)
        finally:
            os.close(descriptor)
        serving = asyncio.ensure_future(self.serve(elsewhere, log, show))
        try:
            yield own
        finally:
            serving.cancel()

    async def serve(self, elsewhere: Board, log: Log, show: Callable[[int], None]) -> None:
        """Say and hear until cancelled.

        Args:
            elsewhere: The page of what other machines have.
            log: Hears of it when the store can't be asked any more, and when it can again.
            show: Gets how many machines there are, this one too; 0: nobody knows.
        """
        thread = ThreadPoolExecutor(1, "fleet")  # its own: what else waits for a store has the others
        try:
            await self._serve(thread, elsewhere, log, show)
        finally:
            thread.shutdown(wait=False)

    async def _serve(self, thread: Executor, elsewhere: Board, log: Log, show: Callable[[int], None]) -> None:
        exchange = _Exchange(self.machine, self._store, self._seal, elsewhere)
        loop, is_there = asyncio.get_running_loop(), None
        while True:
            reason = ""
            giving_up = loop.call_later(exchange.good_for_s, exchange.forget)
            weakness = ""
            try:
                machines = await loop.run_in_executor(thread, exchange.turn)
                if not is_there:
                    weakness = await loop.run_in_executor(thread, lambda: self._store.weakness)
            except VaultFailed as error:
                machines, reason = 0, str(error)
            except Exception as error:  # noqa: BLE001 - whatever it is: what stands on the board must not stay there
                machines, reason = 0, type(error).__name__
            finally:
                giving_up.cancel()
            if machines:
                show(machines)
                if not is_there:
                    is_there = True
                    log.info("fleet.joined", machines=machines)
                self._warn(log, weakness, is_full=exchange.is_full)
            elif not exchange.good_for_s:
                show(0)
                if is_there is not False:
                    is_there = False
                    advice = "until it can be asked, each machine counts by itself and takes no confirmations"
                    log.warning("fleet.away", reason=reason, advice=advice)
            await asyncio.sleep(_PULSE_S)

    def _warn(self, log: Log, weakness: str, *, is_full: bool) -> None:
        if weakness:
            log.warning("fleet.store", reason=weakness, advice="set maxmemory-policy noeviction")
        if is_full and not self._was_full:
            self._was_full = True
            reason = "callers have more at once than machines can tell each other"
            log.warning("fleet.full", reason=reason, advice="what is left out counts on its own machine alone")

    def close(self) -> None:
        """Close the connections."""
        self._store.close()


class _Exchange:
    """One machine's page in the store, and what the others' come to."""

    def __init__(self, machine: str, store: FleetStore, seal: Seal, board: Board) -> None:
        self._machine = machine
        self._store = store
        self._seal = seal
        self._board = board
        self._good_until = time.monotonic() + _KEEP_S  # what another parent has left there, too
        self._of_store: dict[int, int] = {}
        """What the store has said of itself: that stays when it is away."""
        self.is_full = False
        """More was there in the last turn than could be said or written down."""

    @property
    def good_for_s(self) -> float:
        """How long what was heard last counts."""
        return max(self._good_until - time.monotonic(), 0.0)

    def turn(self) -> int:
        """Say what this machine has, and write down what the others have said; return how many there are. Blocks.

        Raises:
            VaultFailed: the store can't be asked.
        """
        began = time.monotonic()
        own = told(self._board.totals(), _now_ms())
        sealed = self._seal.sealed(_owner(self._machine), msgspec.msgpack.encode(own))
        said = self._store.exchange(self._machine, sealed, _KEEP_S)
        machines = list(self._opened(said.others))
        now_ms = _now_ms()
        memory, clock = _of_store(self._store, self._board)
        self._of_store = {memory: said.memory, clock: max(said.now_ms - now_ms, 0)}
        others = heard(machines, now_ms)
        has_room = self._board.replace(self._of_store | others)
        self.is_full = not has_room or max(len(own), len(others)) == _MOST
        self._good_until = began + _KEEP_S
        return 1 + len(machines)

    def _opened(self, others: Mapping[str, bytes]) -> Iterator[dict[int, int]]:
        """Yield what others have said; nothing of what is not from one of us."""
        for machine, sealed in others.items():
            with contextlib.suppress(VaultFailed, msgspec.DecodeError):
                yield _PAGE.decode(self._seal.opened(_owner(machine), sealed))

    def forget(self) -> None:
        """Give up what the others have said: it is too old to count. Where a turn ends meanwhile, the next mends it."""
        if self._good_until:
            self._good_until = 0.0
            self._board.replace(self._of_store)


def open_fleet(settings: FleetSettings | None, machine: str = "") -> Fleet | None:
    """Return what this machine has in common with others; None: it is alone. Blocks on files; the store is not asked.

    Args:
        settings: Where they meet.
        machine: As `Fleet`.

    Raises:
        ConfigError: a secret can't be read.
        VaultFailed: the secret is too short, or the store's client is not installed.
    """
    if settings is None:
        return None
    from checkstream.processes.fleet_store import FleetStore  # noqa: PLC0415 - its client is large, and needed here alone

    secret = derived(long_secret(settings.secret, "fleet"), "checkstream fleet v1")
    password = None if settings.password is None else reveal(settings.password)
    return Fleet(FleetStore(settings.store, derived(secret, "name").hex()[:16], password), secret, machine)


def _of_store(store: FleetStore, board: Board) -> tuple[int, int]:
    """Return the keys of the number of a store's memory, and of how far its clock is ahead of this machine's."""
    return board.key("store", "memory", store.url), board.key("store", "clock", store.url)


def _owner(machine: str) -> Owner:
    return Owner(machine, "", _KIND)


def _now_ms() -> int:
    return int(time.monotonic() * 1000)
