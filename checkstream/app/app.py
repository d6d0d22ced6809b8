"""The process: runs its parts (`parts.py`) until it is told to stop, and loads anew what is in force (`current.py`)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

import checkstream
from checkstream.app.background import QueueFeed
from checkstream.app.current import enforced
from checkstream.app.force import InForce, Loaded, candidate_of, load, warm, with_models
from checkstream.app.one_of_many import OneOfMany, ready
from checkstream.app.parts import Parts, open_parts
from checkstream.app.start import introduction, unreachable
from checkstream.app.turns import beside_streams, give_back, large_apart, settle, short_turns
from checkstream.audit.entries import AnyEntry, ReloadEntry, StartEntry, StopEntry
from checkstream.config import Config, Server, parse_address
from checkstream.config.files import Signature, signature
from checkstream.control.attestation import Running
from checkstream.errors import AuditError, ConfigError, Fault, FaultyFile, JobError, ModelError
from checkstream.listen.binding import not_bound
from checkstream.processes.following import follow
from checkstream.processes.judged import SinceBundle, counted_by
from checkstream.processes.manager import Passed
from checkstream.processes.member import Member
from checkstream.proxy.health import ReloadStatus, RouteStatus, Status
from checkstream.proxy.trail import Latest
from checkstream.scoring.catalog import Model
from checkstream.telemetry.logs import Log
from checkstream.telemetry.totals import told

if TYPE_CHECKING:
    from checkstream.scoring.session import Session

_POLL_S = 1.0


class App:
    """One process of the proxy. Use as an async context manager; it serves from entry to exit."""

    def __init__(
        self,
        read: Callable[[], Config],
        *,
        config_file: Path | None = None,
        open_session: Callable[[Model], Session] | None = None,
        member: Member | None = None,
        passed: Passed | None = None,
    ) -> None:
        """Build nothing yet.

        Args:
            read: Returns the configuration; called again at each reload.
            config_file: Watched for changes, if there is one.
            open_session: Makes a verified model ready to run; None: by its kind.
            member: What ties this process to others that serve with it as one; None: it is alone.
            passed: Sockets that are open already, by the name of the listener; the others are opened here.
        """
        self._member = member
        self._passed = passed or {}
        self._read = read
        graphs = "" if member is None else member.welcome.graphs
        self._open_session = open_session or partial(_open_session, Path(graphs) if graphs else None)
        self._config_file = config_file
        self._reloading = asyncio.Lock()
        self._last_reload: ReloadStatus | None = None
        self._draining = False
        self._parts: Parts
        self._open = contextlib.AsyncExitStack()
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        self._since = SinceBundle(secrets.token_hex(8))

    async def __aenter__(self) -> Self:
        """Load everything and listen.

        Raises:
            ConfigError: the configuration can't be used, or an address of it can't be bound.
            PolicyError: a policy can't be used.
            ModelError: a model can't be used.
            AuditError: the audit chain can't be written.
            JobError: the queue of answers to be scored can't be used.
        """
        async with contextlib.AsyncExitStack() as opening:
            with large_apart():
                loaded = await asyncio.to_thread(load, self._read)
                await asyncio.to_thread(warm, loaded)
                self._signature = await self._look(loaded.files)
                loaded, models = await asyncio.to_thread(with_models, loaded, (), self._open_session)
            await asyncio.to_thread(give_back)
            self._config = loaded.config
            self._parts = parts = await open_parts(loaded, models, self, opening, self._member)
            self.proxy, self.listener, self.admin = parts.proxy, parts.listener, parts.admin
            await self._listen(opening)
            self._open = opening.pop_all()
        return self

    async def _listen(self, opening: contextlib.AsyncExitStack) -> None:
        """Open the listeners, and say so in audit and log."""
        loaded, server = self.force.loaded, self.force.loaded.config.server
        self._note(
            StartEntry(
                version=checkstream.__version__,
                pid=os.getpid(),
                config=loaded.digest,
                programs=loaded.hashes,
                policies=loaded.packs,
            )
        )
        await self._open_listeners(opening, server)
        opening.enter_context(short_turns())  # guards read long answers on a thread
        settle()
        started = introduction(self.force, self.listener.address, self.admin.address, self._config_file)
        if self._member is not None:
            await self._member.open(OneOfMany(self), ready(self.force, started))
            return
        for warning in self.force.warnings:
            self._log.warning("config.warning", detail=warning)
        self._log.info("listening", **started)

    async def _open_listeners(self, opening: contextlib.AsyncExitStack, server: Server) -> None:
        member = self._member
        faces = [(self.listener, "listen", server.listen)]
        if member is None:  # else the parent speaks for all
            faces.insert(0, (self.admin, "admin", server.admin))
        for listener, name, address in faces:
            try:
                given = self._passed.get(name, ()) if member is None else member.sockets[member.welcome.slot]
                await listener.open(parse_address(address), given)
            except OSError as error:
                self._note(StopEntry(reason="failed"))
                raise ConfigError((not_bound(name, address, error),)) from error
            opening.push_async_callback(listener.close)
        if member is None:
            opening.push_async_callback(self._parts.console.close)
            await self._parts.console.open()

    @property
    def force(self) -> InForce:
        """What is in force now."""
        return self._parts.current.force

    @property
    def member(self) -> Member:
        """What ties this process to others; only where there are some."""
        if self._member is None:
            raise RuntimeError("this process is alone")
        return self._member

    @property
    def _log(self) -> Log:
        return self._parts.log

    async def __aexit__(self, *failure: object) -> None:
        """Drain, record the end, close everything."""
        try:
            await self._drain()
            self._note(StopEntry(reason="failed" if failure[0] else "stopped"))
        finally:
            if self._member is not None:
                await self._member.leave(await self.figures())
            await self._open.aclose()

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT; SIGHUP, and a changed file, load anew. One of several does as it is told."""
        stop = asyncio.Event() if self._member is None else self._member.stop
        hup = asyncio.Event()
        self._loop.add_signal_handler(signal.SIGTERM, stop.set if self._member is None else self._member.give_up_place)
        if self._member is None:
            self._loop.add_signal_handler(signal.SIGINT, stop.set)
            self._loop.add_signal_handler(signal.SIGHUP, hup.set)
            self._loop.add_signal_handler(signal.SIGUSR2, self._not_many)
        else:  # a terminal sends these to all of its processes
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR2):
                self._loop.add_signal_handler(number, _nothing)
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self._watch(hup) if self._member is None else self._free())]
            if self._member is None or self._member.welcome.first:
                running.append(tasks.create_task(self._look_for_upstreams()))
            if self._member is None and self._config.bundles is not None and self._config_file is not None:
                tell = None if self._config.control is None else self._told_of_itself
                following = follow(self._config_file, self._log, self._parts.metrics, tell)
                running.append(tasks.create_task(following))
            await stop.wait()
            for task in running:
                task.cancel()

    async def _free(self) -> None:
        """Close what is not used any more, when it is not."""
        while True:
            await asyncio.sleep(_POLL_S)
            await self._parts.current.free(self.proxy.uses)

    def _not_many(self) -> None:
        self._log.warning("upgrade.refused", reason="one process alone can't hand over", advice="set `server.workers`")

    async def _look_for_upstreams(self) -> None:
        """Say which upstreams are not there yet: one that comes later is as good."""
        upstreams = self._config.upstreams
        for name, reason in (await unreachable(upstreams)).items():
            advice = "start it, or correct its url; until then its requests get 502"
            self._log.warning("upstream.unreachable", name=name, url=upstreams[name].root, reason=reason, advice=advice)

    # --- loading anew

    async def reload(self) -> None:
        """Load configuration and policies anew; what is in force stays unless all of it is sound (G25).

        Raises:
            FaultyFile: a file is wrong.
        """
        async with self._reloading:
            await self._load_again(await self._look(self.force.loaded.files))

    async def _load_again(self, found: Signature) -> None:
        """Do it; `found` is of the files before they are read: what changes meanwhile is loaded next."""
        self._signature = found  # a bad file is reported once, not every second
        await self.enforce(await self.prepare())

    async def prepare(self) -> InForce:
        """Load configuration and policies anew, and put nothing in force yet.

        Raises:
            FaultyFile: a file is wrong; that is recorded.
        """
        before = self.force
        try:
            with beside_streams():
                loaded = await asyncio.to_thread(_load_anew, self._read)
                await asyncio.to_thread(warm, loaded)
                loaded, models = await asyncio.to_thread(with_models, loaded, before.models, self._open_session)
            await asyncio.to_thread(_open_anew, self._parts.background, loaded.config)
            return await enforced(loaded, models, before, self._parts.counts)
        except FaultyFile as error:
            self._reloaded(before, error)
            raise

    async def enforce(self, force: InForce) -> None:
        """Put in force what was prepared."""
        before, counted = self.force, None
        if self._config.control is not None:
            counted = await asyncio.to_thread(counted_by, self._parts.metrics)
        self._parts.current.replace(force)
        if counted is not None:
            self._since.begin(self.status(), counted)
        if force.loaded.files != before.loaded.files:
            self._signature = await self._look(force.loaded.files)
        self._reloaded(force, None)

    async def forget(self, force: InForce) -> None:
        """Close what was prepared and is not wanted."""
        await self._parts.current.forget(force)

    async def _look(self, files: tuple[Path, ...]) -> Signature:
        """Return what policies and the configuration look like now."""
        watched = files if self._config_file is None else (self._config_file, *files)
        return await asyncio.to_thread(signature, watched)

    def _reloaded(self, force: InForce, error: FaultyFile | None) -> None:
        faults = () if error is None else tuple(fault.render() for fault in error.faults)
        self._last_reload = ReloadStatus.now(faults)
        self._parts.counts.reloaded(accepted=error is None)
        first = "" if error is None else f"{error.faults[0].file}: {error.faults[0].reason}"
        self._note(
            ReloadEntry(accepted=error is None, programs=force.loaded.hashes, policies=force.loaded.packs, reason=first)
        )
        if error is None:
            self._log.info(
                "reload.accepted", generation=force.generation, policies=force.loaded.packs, models=force.titles
            )
        else:
            self._log.error("reload.refused", faults=faults)

    async def _watch(self, hup: asyncio.Event) -> None:
        """Load anew when asked or when a file has changed; look once a second."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(hup.wait(), _POLL_S)
            async with self._reloading:  # a change that is being loaded is no news
                found = await self._look(self.force.loaded.files)
                if hup.is_set() or found != self._signature:
                    hup.clear()
                    try:
                        await self._load_again(found)
                    except FaultyFile:
                        pass  # logged, and shown by the admin listener
                    except Exception as error:  # noqa: BLE001 - what is in force goes on
                        self._log.error("reload.failed", exc_info=error)
            await self._parts.current.free(self.proxy.uses)

    # --- what the admin listener shows

    async def shown(self) -> Status:
        """Return what is in force."""
        return self.status()

    async def metrics(self) -> bytes:
        """Return what is counted, in the Prometheus text format."""
        self._parts.observe()
        return await asyncio.to_thread(self._parts.metrics.render)

    async def figures(self) -> bytes:
        """Return what is counted, for another process."""
        self._parts.observe()
        return await asyncio.to_thread(told, self._parts.metrics)

    async def _told_of_itself(self) -> Running:
        """Return what is in force, and what a rollout is judged by."""
        while True:
            digests = self._since.digests
            counted = await asyncio.to_thread(counted_by, self._parts.metrics)
            if digests == self._since.digests:  # else it is less than what there was when a newer bundle came
                return self._since.running(self.status(), counted)

    async def entries(self, count: int) -> Sequence[Latest]:
        """Return the latest entries of the audit chain, oldest first."""
        return self._parts.trail.latest(count)

    def status(self) -> Status:
        """Return what is in force."""
        force, parts = self.force, self._parts
        not_ready = []
        if self._draining:
            not_ready.append("draining")
        if parts.trail.failure:
            not_ready.append(parts.trail.failure)
        return Status(
            version=checkstream.__version__,
            uptime_s=round(self._loop.time() - self._started, 3),
            ready=not not_ready,
            not_ready=tuple(not_ready),
            streams=parts.admission.streams,
            held_bytes=parts.admission.held_bytes,
            generation=force.generation,
            bundle=force.loaded.bundle,
            bundle_digest=force.loaded.bundle_digest,
            candidate=candidate_of(force),
            left_out=force.loaded.left_out,
            configuration=force.loaded.configuration,
            model_hashes=force.model_hashes,
            routes=tuple(
                RouteStatus(
                    name=route.name,
                    path=route.match.path,
                    method=route.match.method,
                    upstream=route.upstream.name,
                    guarded=route.plan is not None,
                    policies=route.policies,
                    program=route.plan.program.hash if route.plan is not None else "",
                )
                for route in force.routes
            ),
            models=force.titles,
            unheard=force.scorer.unheard,
            reload=self._last_reload,
            audit_chain=parts.trail.chain,
            warnings=force.warnings,
        )

    # --- the end

    async def _drain(self) -> None:
        """Take nothing new; let running streams end by themselves, then by their guards, then by force."""
        self._draining = True
        self.listener.stop_accepting()
        self.proxy.refuse_new()
        self._log.info("draining", streams=self.proxy.streams)
        admission = self._parts.admission
        await admission.wait_idle(self._config.server.drain_ms / 1000)
        if self.proxy.streams:
            self._log.warning("drain.over", streams=self.proxy.streams)
            self.proxy.drain()
            await admission.wait_idle(1.0)

    def _note(self, entry: AnyEntry) -> None:
        try:
            self._parts.trail.append(entry)
        except AuditError as error:
            self._log.error("audit.failed", detail=str(error))


def _nothing() -> None:
    """Do as the parent says, and not as the terminal."""


def _open_session(shared: Path | None, model: Model) -> Session:
    """Make a verified model ready to run, by its kind; `shared`: where its graphs are kept for other processes too."""
    from checkstream.scoring.opening import open_session  # noqa: PLC0415 - large, and not for those who ask no model

    return open_session(msgspec.structs.replace(model, shared=shared))


def _load_anew(read: Callable[[], Config]) -> Loaded:
    """Load as `load` does, with every fault as one of a file.

    Raises:
        ConfigError: as there, or what says which models there are can't be used.
        PolicyError: as there.
    """
    try:
        return load(read)
    except ModelError as error:
        raise ConfigError((Fault(file="models", reason=str(error)),)) from error


def _open_anew(background: QueueFeed, config: Config) -> None:
    """Open the queue if it is needed now.

    Raises:
        ConfigError: it can't be used.
    """
    try:
        background.open(config)
    except JobError as error:
        raise ConfigError((Fault(file="jobs", reason=str(error)),)) from error
