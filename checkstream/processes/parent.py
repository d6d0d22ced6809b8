"""The parent: keeps the sockets, starts workers and watches them, and speaks for all of them. It serves no caller.

INVARIANT: as long as it lives, no listening socket closes, so no connection that waits in one is lost; and as long as
one worker serves, each socket is served.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from checkstream.config import Config, parse_address, reveal
from checkstream.console import open_console
from checkstream.control.attestation import Running
from checkstream.errors import ConfigError, NotReady
from checkstream.listen import Hosts, Listener, Times, board
from checkstream.listen.binding import cause, not_bound
from checkstream.listen.tls import open_tls
from checkstream.processes import memory, sockets
from checkstream.processes.child import Child, program
from checkstream.processes.fleet import open_fleet
from checkstream.processes.folder import Folder
from checkstream.processes.following import follow
from checkstream.processes.frames import Welcome
from checkstream.processes.handing import START_S, HandOver
from checkstream.processes.judged import SinceBundle, counted_in, digests_of
from checkstream.processes.manager import Manager, Passed
from checkstream.processes.places import Places
from checkstream.processes.restarts import Cause, Restarts
from checkstream.processes.rolling import Rolling
from checkstream.processes.succession import Elder, Estate
from checkstream.processes.whole import Whole
from checkstream.proxy.health import Admin, console_at
from checkstream.telemetry.logs import Log, open_log

_POLL_S = 1.0
_SETTLE_S = 30.0
"""How long the others may take behind the first until it is said that all serve: the first serves, and they follow."""
_LAST_S = 20.0
"""How long a worker may take to end behind its last word."""
_COUNT_EVERY = 5
"""Looks after a worker until its figures are asked for: what it counts after that is lost if it crashes."""
_ADMIN_SOCKETS = 64
_SAID = 2
"""Exit code of a process that has said what is wrong: configuration, policies, models."""
_KILL_S = 5.0
"""Beyond the time to drain, until a worker is ended."""


class Parent:
    """One life of the parent."""

    def __init__(
        self,
        config: Config,
        count: int,
        arguments: Sequence[str],
        config_file: Path | None,
        *,
        elder: Elder | None = None,
        manager: Manager | None = None,
        passed: Passed | None = None,
    ) -> None:
        """Start nothing yet. Blocks on the secrets of the fleet.

        Args:
            config: What all begin with.
            count: How many workers there are.
            arguments: Of the command line, without the program's name: workers are started with the same.
            config_file: Watched for changes, if there is one.
            elder: The parent whose sockets these are to serve; None: there is none.
            manager: The service manager that wants to know when this process serves.
            passed: Sockets that it has opened, by the name of the listener; the others are opened here.

        Raises:
            ConfigError: a secret can't be read.
            VaultFailed: the secret of the fleet is too short, or the client of its store is not installed.
        """
        self._elder = elder
        self._manager = manager or Manager()
        self._passed = passed or {}
        self._config = config
        self._count = count
        self._arguments = arguments
        telemetry = config.telemetry.log
        self._log: Log = open_log(telemetry, sys.stderr.buffer, terminal=sys.stderr.isatty())
        self._places = Places()
        self._config_file = config_file
        self._rolling = Rolling(self._places.able, self._give_up, config_file, self._log)
        self._whole = Whole(self._load)
        self._rolling.reload = self._whole.reload
        self._shared = memory.Shared()
        self._secret = os.urandom(32) if elder is None else elder.estate.secret
        self._since = SinceBundle(os.urandom(8).hex(), heir=elder is not None)
        self._began = time.monotonic() if elder is None else elder.estate.began
        self._board = board.make() if elder is None else elder.board
        self._half = 0 if elder is None else 1 - elder.estate.half
        self._graphs = ""
        self._pages = board.Pages(self._board, self._half)
        self._fleet = open_fleet(config.fleet, "" if elder is None else elder.estate.machine)
        self._board_secret = b"" if self._fleet is None else self._fleet.secret_of("board")
        self._joined: asyncio.Task[Any] | None = None
        """Speaks with other machines."""
        self._group: sockets.Group = []
        self._starting = asyncio.Lock()
        self._first = True
        self._stopping = False
        self._failed = 1
        """The exit code where no worker could start."""
        self._settling = {slot: asyncio.Event() for slot in range(count)}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self) -> int:
        """Serve until SIGTERM or SIGINT; return the exit code.

        Raises:
            ConfigError: an address can't be bound, or a secret can't be read.
        """
        stop, hup, usr2 = asyncio.Event(), asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        loop.add_signal_handler(signal.SIGHUP, hup.set)
        loop.add_signal_handler(signal.SIGUSR2, usr2.set)
        async with contextlib.AsyncExitStack() as opening:
            if self._fleet is not None:
                opening.push_async_callback(asyncio.to_thread, self._fleet.close)
            opening.callback(self._cancel)
            await self._open_admin(opening)
            self._bind()
            self._hear_elder()
            opening.callback(os.close, self._board)
            self._places.count = len(self._group)
            self._make_folder(opening)
            opening.callback(sockets.close, self._group)
            opening.push_async_callback(self._stop)
            stopped = self._begin(stop.wait())
            first = await self._start_first(stopped)
            if first is None or stop.is_set():
                return 0 if stop.is_set() else self._failed
            self._begin(self._keep(0, first))
            for slot in range(1, self._count):
                self._begin(self._keep(slot))
            settled = self._begin(self._settled())
            await asyncio.wait((stopped, settled), timeout=_SETTLE_S, return_when=asyncio.FIRST_COMPLETED)
            if not stop.is_set():
                self._say_listening(first)
                self._begin(self._rolling.watch(hup))
                if self._config.bundles is not None and self._config_file is not None:
                    telling = None if self._config.control is None else self._told_of_all
                    self._begin(follow(self._config_file, self._log, self._whole.own, telling))
                self._begin(self._hand_over(usr2, stop))
            await stop.wait()
        return 0

    async def _load(self) -> None:
        """Load anew in all workers, and count from there on for a bundle that is new.

        Raises:
            FaultyFile: a file is wrong; what was in force stays.
            NotReady: a worker has ended meanwhile; what was in force stays.
        """
        await self._rolling.load()
        if self._config.control is not None:
            await self._told_of_all()

    async def _told_of_all(self) -> Running | None:
        """Return what all workers have in force, and what a rollout is judged by; None: no worker says anything."""
        status = await self._whole.shown()
        if not status.configuration:  # all have ended, or are late: that is no other bundle, nor a count from 0
            return None
        is_new = digests_of(status) != self._since.digests  # else what they have told last is new enough
        return self._since.running(status, counted_in(await self._whole.counted() if is_new else self._whole.known()))

    def _begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    # --- the start

    def _make_folder(self, opening: contextlib.AsyncExitStack) -> None:
        try:
            folder = Folder()
        except OSError as error:
            advice = "each process has its models to itself; TMPDIR names another folder"
            self._log.warning("models.not_shared", reason=cause(error), advice=advice)
            return
        opening.callback(folder.close)
        self._graphs = str(folder.path)

    def _bind(self) -> None:
        listen = self._config.server.listen
        try:
            if self._elder is not None and self._elder.estate.listen == listen:
                self._group = self._elder.group
                sockets.widen(self._group, self._count)
                return
            if given := self._passed.get("listen"):
                self._group = [list(given)]
                sockets.widen(self._group, self._count)
                return
            self._group = sockets.bind(parse_address(listen), self._count)
        except OSError as error:
            raise ConfigError((not_bound("listen", listen, error),)) from error

    async def _open_admin(self, opening: contextlib.AsyncExitStack) -> None:
        server, limits = self._config.server, self._config.server.limits
        token = None if server.admin_token is None else await asyncio.to_thread(reveal, server.admin_token)
        times = Times(header_s=limits.header_timeout_ms / 1000, write_s=limits.write_timeout_ms / 1000)
        hosts = Hosts(server.hosts) if token is None else None
        console = open_console(self._whole, self._config, token, tuple(await asyncio.to_thread(program)))
        tls = await asyncio.to_thread(open_tls, server.admin_tls, "admin", self._log)
        respond = Admin(self._whole, token, console).respond
        self._admin = Listener(respond, times, hosts, sockets=_ADMIN_SOCKETS, tls=tls)
        try:
            taken = self._passed.get("admin", ())
            if self._elder is not None and self._elder.estate.admin == server.admin:
                taken = self._elder.admin
            await self._admin.open(parse_address(server.admin), taken)
        except OSError as error:
            raise ConfigError((not_bound("admin", server.admin, error),)) from error
        opening.push_async_callback(self._admin.close)
        opening.push_async_callback(console.close)
        await console.open()

    async def _start_first(self, stopped: asyncio.Task[Any]) -> Child | None:
        """Start one worker before the others, and return it when it serves: what is wrong is said once."""
        child = await self._start(0)
        waiting = self._begin(self._wait_ready(child))
        await asyncio.wait((waiting, stopped), return_when=asyncio.FIRST_COMPLETED)
        if child.ready is not None:
            await self._enter(child)
            return child
        if not stopped.done():
            code = await child.wait_ended()
            self._over(child)
            self._failed = code if code > 0 else 1
            if code != _SAID:
                self._log.error("worker.failed", slot=0, code=code, advice="`--workers 1` starts without others")
        return None

    def _say_listening(self, first: Child) -> None:
        """Say what the first worker has said of itself, and how many there are."""
        if first.ready is None:
            return
        for warning in first.ready.warnings:
            self._log.warning("config.warning", detail=warning)
        admin = self._admin.address
        own = {"admin": str(admin), "console": console_at(admin, self._config.server), "workers": self._count}
        said = first.ready.introduction | own
        self._log.info("listening", **said)
        self._manager.say_ready()
        if self._elder is not None:
            self._elder.take()

    def _hear_elder(self) -> None:
        """Begin to hear the elder, if there is one; and to speak with other machines, unless it still does."""
        elder = self._elder
        if elder is None or not elder.estate.machine:
            self._join_fleet()
        elif self._fleet is not None:
            self._fleet.warn_if_unknown(self._board, self._log)
        if elder is None:
            return
        self._whole.elder = elder

        async def hear() -> None:
            if not await elder.hear(self._shared):
                self._log.warning("upgrade.elder_lost", reason="it ended without its last word", advice="see its log")
            self._whole.inherit(elder)
            if elder.estate.machine:
                self._join_fleet()

        self._begin(hear())

    def _join_fleet(self) -> None:
        if self._fleet is not None:
            page, show = self._fleet.board(self._board), self._whole.own.fleet_machines.set
            self._joined = self._begin(self._fleet.serve(page, self._log, show))

    async def _settled(self) -> None:
        """Wait until each place has a worker that serves, or that could not start."""
        for slot in range(1, self._count):
            await self._settling[slot].wait()

    # --- workers

    async def _start(self, slot: int) -> Child:
        """Start a process.

        Raises:
            OSError: the system lets nothing be started.
            NotReady: no more are to be started.
        """
        async with self._starting:  # who ends all then finds this one among them
            if self._stopping:
                raise NotReady("all are to end")
            child = await self._started(slot)
            self._whole.children.append(child)
            self._first = False
        self._begin(child.hear())
        return child

    async def _started(self, slot: int) -> Child:
        """Start it, with what there is for it, and answer what it asks.

        Raises:
            OSError: as `_start`.
        """
        ours, theirs = socket.socketpair()
        page = self._pages.take()
        try:
            welcome = Welcome(
                slot, len(self._group), self._first, self._secret, self._began, page, self._graphs, self._board_secret
            )
            listening = [each.fileno() for own in self._group for each in own]
            child = await Child.start(self._arguments, welcome, [theirs.fileno(), self._board, *listening])
        except BaseException:
            ours.close()
            self._pages.give(page)
            raise
        finally:
            theirs.close()
        self._begin(memory.serve(ours, self._remembered))
        return child

    async def _remembered(self, question: memory.Question) -> memory.Answer:
        elder = self._whole.elder
        answer = None if elder is None else await elder.answer(question)
        return answer or self._shared.answer(question)

    async def _wait_ready(self, child: Child) -> bool:
        """Wait until a worker serves; tell whether it does. One that takes for ever is ended."""
        try:
            return await asyncio.wait_for(child.wait_ready(), START_S)
        except TimeoutError:
            child.kill()
            return False

    async def _keep(self, slot: int, child: Child | None = None) -> None:
        """Have a worker in a place, and another when it ends, until all are to stop."""
        restarts = self._whole.restarts.setdefault(slot, Restarts())
        while not self._stopping:
            try:
                child = child or await self._start(slot)
            except NotReady:
                return
            except OSError as error:
                self._log.error("worker.not_started", slot=slot, reason=cause(error))
                await asyncio.sleep(restarts.after("start", 0.0, random.random()))  # noqa: S311 - no secret
                continue
            if child.ready is None and await self._wait_ready(child):
                await self._enter(child)
            self._settling[slot].set()
            self._begin(self._beat(child))
            await child.moved.wait()
            await self._places.leave(child)
            burying = self._begin(self._bury(child))
            wait_s = 0.0
            if not child.stopping:
                await burying
                wait_s = restarts.after(_why(child), child.served_s, random.random())  # noqa: S311 - no secret
                self._say_ended(child, wait_s)
            await asyncio.sleep(wait_s)
            child = None

    async def _bury(self, child: Child) -> None:
        """Wait for the end of a worker that takes nothing new."""
        await child.wait_ended()
        self._over(child)

    def _over(self, child: Child) -> None:
        """Keep what a worker that has ended has counted, and give up what it had taken."""
        if child in self._whole.children:
            self._whole.bury(child)
            self._pages.give(child.page)

    def _say_ended(self, child: Child, wait_s: float) -> None:
        why = _why(child)
        self._whole.own.worker_exits.of(why).inc()
        pid, code = child.process.pid, child.process.returncode
        self._log.error("worker.ended", slot=child.slot, pid=pid, cause=why, code=code, next_in_s=round(wait_s, 1))

    async def _enter(self, child: Child) -> None:
        """Let a worker serve that is ready: its place, and those that nobody serves."""
        async with self._rolling.lock:
            ready = child.ready
            if ready is None:
                return
            self._places.take(child)
            stale = await self._rolling.is_stale(ready)
        await self._places.share_out(child)
        if stale:  # the files have changed since the others have read them
            self._begin(self._rolling.load_or_say())

    def _give_up(self, child: Child) -> None:
        """Have another worker in the place of one, which ends behind its last answer."""
        self._retire(child)
        child.moved.set()

    async def _beat(self, child: Child) -> None:
        """Look after a worker until it has ended: who answers nothing for too long is ended, whatever it does."""
        for count in itertools.count(1):
            await asyncio.sleep(_POLL_S)
            try:
                await child.ask("ping", timeout_s=self._config.server.hang_ms / 1000)
            except NotReady:
                break
            if count % _COUNT_EVERY == 0:
                await child.count()
        if await child.is_left(_LAST_S if child.silent else 0.0):
            child.hung = True
            self._log.error("worker.hangs", slot=child.slot, pid=child.process.pid)
            child.kill()

    # --- another parent

    async def _hand_over(self, asked: asyncio.Event, stop: asyncio.Event) -> None:
        """End behind the last answer, once this program serves anew."""
        hand_over = HandOver(
            self._arguments,
            self._estate,
            whole=self._whole,
            shared=self._shared,
            log=self._log,
            reloading=self._rolling.lock,
            retire=self._retire_all,
            begin=self._begin,
        )
        await hand_over.serve(asked)
        stop.set()

    def _estate(self) -> tuple[Estate, list[int]]:
        server, admins = self._config.server, self._admin.sockets
        listening = [each.fileno() for own in self._group for each in own]
        machine = "" if self._fleet is None else self._fleet.machine
        estate = Estate(
            self._secret, self._began, self._half, server.listen, len(self._group), server.admin, len(admins), machine
        )
        return estate, [self._board, *listening, *admins]

    async def _retire_all(self) -> None:
        """Have all workers take nothing new, and return when the last of them has ended."""
        self._manager.hand_on()
        children = await self._last_children()
        self._admin.stop_accepting()
        for child in children:
            self._retire(child)
        await asyncio.gather(*(child.wait_ended() for child in children))
        for child in children:
            self._over(child)
        if self._joined is not None:  # from here on the next one speaks for this machine
            self._joined.cancel()

    def _retire(self, child: Child) -> None:
        """Have a worker take nothing new and end behind its last answer."""
        child.stopping = True
        self._begin(child.retire())

    async def _last_children(self) -> list[Child]:
        """Start no more workers, and return those that there are: also one that is being started now."""
        async with self._starting:
            self._stopping = self._whole.draining = True
            self._places.close()
            return list(self._whole.children)

    # --- the end

    async def _stop(self) -> None:
        """Let all workers drain, and end those that don't."""
        children = await self._last_children()
        if not children:
            return
        self._manager.say_stopping()
        self._log.info("draining", workers=len(children))
        await asyncio.gather(*(child.drain() for child in children))
        ends = [asyncio.ensure_future(child.wait_ended()) for child in children]
        _, late = await asyncio.wait(ends, timeout=self._config.server.drain_ms / 1000 + _KILL_S)
        if late:
            self._log.warning("drain.over", workers=len(late))
            for child in children:
                child.kill()
            await asyncio.wait(late)


def _why(child: Child) -> Cause:
    if child.hung:
        return "hang"
    return "start" if child.ready is None else "crash"
