"""The process: builds every object once, hands each its neighbours, runs until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Self

import checkstream
from checkstream import scoring
from checkstream.app.background import QueueFeed
from checkstream.app.force import InForce, Loaded, load, put_in_force
from checkstream.app.inline import Inline
from checkstream.app.models import OpenModel, open_models
from checkstream.app.start import cause, introduction, key_place, unreachable
from checkstream.app.turns import beside_streams, collect_due, settle, short_turns
from checkstream.audit.entries import AnyEntry, ReloadEntry, StartEntry, StopEntry
from checkstream.audit.journal import Journal, JournalSettings
from checkstream.audit.keys import AuditKey, key_from_text, load_key
from checkstream.config import AuditSettings, Config, RecordSettings, Server, parse_address, reveal
from checkstream.errors import AuditError, ConfigError, Fault, FaultyFile, JobError, ModelError
from checkstream.jobs import Watching
from checkstream.listen import Admission, Callers, Hosts, Listener, Times
from checkstream.proxy.capacity import Capacity
from checkstream.proxy.cors import origins_of
from checkstream.proxy.counts import Counted
from checkstream.proxy.health import Admin, ReloadStatus, RouteStatus, Status
from checkstream.proxy.meter import Meter
from checkstream.proxy.recorder import Recorder, RecorderSettings
from checkstream.proxy.request import Intake, Proxy
from checkstream.proxy.trail import Trail
from checkstream.proxy.upstream import UpstreamClient
from checkstream.scoring.catalog import Model
from checkstream.scoring.scorer import Scorer
from checkstream.telemetry.logs import LibraryLogs, open_log
from checkstream.telemetry.metrics import Metrics

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
    ) -> None:
        """Build nothing yet.

        Args:
            read: Returns the configuration; called again at each reload.
            config_file: Watched for changes, if there is one.
            open_session: Makes a verified model ready to run; None: by its kind.
        """
        self._read = read
        self._open_session = open_session or scoring.open_session
        self._config_file = config_file
        self._reloading = asyncio.Lock()
        self._last_reload: ReloadStatus | None = None
        self._retired: list[UpstreamClient] = []
        self._retired_scorers: list[Scorer] = []
        self._draining = False
        self._open = contextlib.AsyncExitStack()
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()

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
            await self._build(opening)
            self._open = opening.pop_all()
        return self

    async def _build(self, opening: contextlib.AsyncExitStack) -> None:
        loaded = await asyncio.to_thread(load, self._read)
        config = loaded.config
        self._signature = await asyncio.to_thread(_signature, self._watched(loaded.files))
        models = await asyncio.to_thread(open_models, loaded.models, (), self._open_session)
        self._log = open_log(config.telemetry.log, sys.stderr.buffer, terminal=sys.stderr.isatty())
        library = LibraryLogs(self._log)
        logging.getLogger().addHandler(library)
        opening.callback(logging.getLogger().removeHandler, library)
        key, journal = await asyncio.to_thread(_open_journal, config.audit)
        opening.push_async_callback(_close_journal, journal)
        metrics = Metrics()
        self._counts = Counted(metrics, self._log)
        self._trail = Trail(journal, self._counts.recorded)
        self._force = await self._put_in_force(loaded, models, None)
        opening.push_async_callback(self._close_upstreams)
        opening.push_async_callback(self._close_scorers)
        self._config = config
        callers, token = await asyncio.to_thread(_reveal_keys, config.server)
        limits = config.server.limits
        times = Times(header_s=limits.header_timeout_ms / 1000, write_s=limits.write_timeout_ms / 1000)
        self._admission = Admission(
            streams=limits.streams,
            held_bytes=limits.held_bytes,
            quota=config.server.quota,
            when_idle=self._idle,
        )
        self._background = QueueFeed(Watching(metrics, self._log, {}))
        opening.push_async_callback(asyncio.to_thread, self._background.close)
        await asyncio.to_thread(self._background.open, config)
        assessor = Inline(config, metrics, self._log)
        opening.push_async_callback(assessor.close)
        recorder = await asyncio.to_thread(_open_recorder, config.record, self._counts)
        if recorder is not None:
            opening.push_async_callback(asyncio.to_thread, recorder.close)
        capacity = Capacity(limits.load)
        meter = await asyncio.to_thread(
            Meter, capacity, lambda: self._force.scorer.answering_s, threading.get_native_id()
        )
        opening.callback(meter.close)
        self.proxy = Proxy(
            intake=Intake(callers, self._admission, times, limits.body_bytes, meter),
            routes=lambda: self._force.routes,
            trail=self._trail,
            digest=key.digest,
            counts=self._counts,
            recorder=recorder,
            background=self._background,
            assessor=assessor,
        )
        admin = Admin(self, self._trail, self._expose, token)
        hosts, of_admin = self._hosts(config.server)
        self.listener = Listener(self.proxy.respond, times, hosts)
        self.admin = Listener(admin.respond, times, of_admin)
        self._note(
            StartEntry(
                version=checkstream.__version__,
                pid=os.getpid(),
                config=loaded.digest,
                programs=loaded.hashes,
                policies=loaded.packs,
            )
        )
        for listener, name, address in (
            (self.admin, "admin", config.server.admin),
            (self.listener, "listen", config.server.listen),
        ):
            try:
                await listener.open(parse_address(address))
            except OSError as error:
                self._note(StopEntry(reason="failed"))
                raise ConfigError((_not_bound(name, address, error),)) from error
            opening.push_async_callback(listener.close)
        for warning in self._force.warnings:
            self._log.warning("config.warning", detail=warning)
        opening.enter_context(short_turns())  # guards read long bodies on a thread
        settle()
        started = introduction(self._force, self.listener.address, self.admin.address, self._config_file)
        self._log.info("listening", **started)

    async def __aexit__(self, *failure: object) -> None:
        """Drain, record the end, close everything."""
        try:
            await self._drain()
            self._note(StopEntry(reason="failed" if failure[0] else "stopped"))
        finally:
            await self._open.aclose()

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT; SIGHUP, and a change of a file, load anew."""
        stop = asyncio.Event()
        hup = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, stop.set)
        self._loop.add_signal_handler(signal.SIGHUP, hup.set)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(self._watch(hup)), tasks.create_task(self._look_for_upstreams())
            await stop.wait()
            for task in running:
                task.cancel()

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
            before = self._force
            signature = await asyncio.to_thread(_signature, self._watched(before.loaded.files))
            try:
                with beside_streams():
                    loaded = await asyncio.to_thread(_load_anew, self._read)
                    models = await asyncio.to_thread(open_models, loaded.models, before.models, self._open_session)
                await asyncio.to_thread(_open_anew, self._background, loaded.config)
                self._force = await self._put_in_force(loaded, models, before)
            except FaultyFile as error:
                self._signature = signature  # reported here, and not once more by the watch
                self._reloaded(before, error)
                raise
            kept = set(map(id, self._force.upstreams.values()))
            self._retired += [client for client in before.upstreams.values() if id(client) not in kept]
            if self._force.scorer is not before.scorer:
                self._retired_scorers.append(before.scorer)
            if loaded.files != before.loaded.files:
                signature = await asyncio.to_thread(_signature, self._watched(loaded.files))
            self._signature = signature  # of before they were read: what changed meanwhile is loaded next
            self._reloaded(self._force, None)

    async def _put_in_force(self, loaded: Loaded, models: tuple[OpenModel, ...], before: InForce | None) -> InForce:
        """Put what was loaded in force, with a scorer of its own unless the models are those of before.

        Raises:
            ConfigError: as `put_in_force`.
        """
        if before is not None and list(map(id, models)) == list(map(id, before.models)):
            return await asyncio.to_thread(put_in_force, loaded, models, before.scorer, before)
        sessions = {model.source.entry.name: model.session for model in models}
        scorer = Scorer([model.model for model in models], lambda model: sessions[model.name], observer=self._counts)
        try:
            return await asyncio.to_thread(put_in_force, loaded, models, scorer, before)
        except BaseException:
            await scorer.close()
            raise

    def _reloaded(self, force: InForce, error: FaultyFile | None) -> None:
        faults = () if error is None else tuple(fault.render() for fault in error.faults)
        self._last_reload = ReloadStatus(at=_now(), accepted=error is None, faults=faults)
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
            signature = await asyncio.to_thread(_signature, self._watched(self._force.loaded.files))
            if hup.is_set() or signature != self._signature:
                hup.clear()
                self._signature = signature  # a bad file is reported once, not every second
                try:
                    await self.reload()
                except FaultyFile:
                    pass  # logged, and shown by the admin listener
                except Exception as error:  # noqa: BLE001 - what is in force goes on
                    self._log.error("reload.failed", exc_info=error)
            await self._free_retired()

    async def _free_retired(self) -> None:
        """Close what was in force once and is not used any more: a stream keeps what it started with."""
        for client in [client for client in self._retired if not client.running]:
            self._retired.remove(client)
            await client.close()
        for scorer in [scorer for scorer in self._retired_scorers if not self.proxy.uses(scorer)]:
            self._retired_scorers.remove(scorer)
            await scorer.close()

    def _idle(self) -> None:
        self._loop.call_soon(self._tidy)  # behind the end of the last answer

    def _hosts(self, server: Server) -> tuple[Hosts | None, Hosts | None]:
        """Return whose requests each listener takes on loopback where it asks for no key."""
        hosts = None
        if server.callers == "none" and not server.behind_gateway:
            hosts = Hosts(server.hosts, lambda path: origins_of(self._force.routes, path))
        return hosts, Hosts(server.hosts) if server.admin_token is None else None

    def _tidy(self) -> None:
        """Do what would stop streams, if none has begun since."""
        if not self._admission.streams:
            collect_due()

    def _watched(self, files: tuple[Path, ...]) -> tuple[Path, ...]:
        return files if self._config_file is None else (self._config_file, *files)

    # --- what the admin listener shows

    def status(self) -> Status:
        """Return what is in force."""
        force = self._force
        not_ready = []
        if self._draining:
            not_ready.append("draining")
        if self._trail.failure:
            not_ready.append(self._trail.failure)
        return Status(
            version=checkstream.__version__,
            uptime_s=round(self._loop.time() - self._started, 3),
            ready=not not_ready,
            not_ready=tuple(not_ready),
            streams=self._admission.streams,
            held_bytes=self._admission.held_bytes,
            generation=force.generation,
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
            audit_chain=self._trail.chain,
            warnings=force.warnings,
        )

    def _expose(self) -> bytes:
        self._background.observe()
        return self._counts.expose(streams=self._admission.streams, held_bytes=self._admission.held_bytes)

    # --- the end

    async def _drain(self) -> None:
        """Take nothing new; let running streams end by themselves, then by their guards, then by force."""
        self._draining = True
        self.listener.stop_accepting()
        self.proxy.refuse_new()
        self._log.info("draining", streams=self.proxy.streams)
        await self._admission.wait_idle(self._config.server.drain_ms / 1000)
        if self.proxy.streams:
            self._log.warning("drain.over", streams=self.proxy.streams)
            self.proxy.drain()
            await self._admission.wait_idle(1.0)

    async def _close_upstreams(self) -> None:
        for client in (*self._force.upstreams.values(), *self._retired):
            await client.close()

    async def _close_scorers(self) -> None:
        for scorer in (self._force.scorer, *self._retired_scorers):
            await scorer.close()

    def _note(self, entry: AnyEntry) -> None:
        try:
            self._trail.append(entry)
        except AuditError as error:
            self._log.error("audit.failed", detail=str(error))


def _not_bound(name: str, address: str, error: OSError) -> Fault:
    advice = f"stop what listens there, or give another address (`--{name}`, or `server.{name}` of the file)"
    return Fault(
        file="configuration",
        reason=f"can't listen on `{address}` (`{name}`): {cause(error) or error}",
        advice=advice if error.errno == errno.EADDRINUSE else f"give another address (`--{name}`)",
    )


def _reveal_keys(server: Server) -> tuple[Callers, str | None]:
    """Return the callers and the admin token. Blocks on files."""
    token = None if server.admin_token is None else reveal(server.admin_token)
    if not isinstance(server.callers, list):
        return Callers(None), token
    return Callers({caller.name: reveal(caller.key) for caller in server.callers}), token


def _open_journal(settings: AuditSettings) -> tuple[AuditKey, Journal]:
    """Return the key and the open journal. Blocks."""
    place = key_place(settings)
    key = (
        load_key(place)
        if isinstance(place, Path)
        else key_from_text(reveal(place), f"environment variable {place.env}")
    )
    journal = Journal(
        JournalSettings(
            directory=Path(settings.dir),
            durability=settings.durability,
            fsync_ms=settings.fsync_ms,
            segment_bytes=settings.segment_bytes,
        ),
        key,
        process=f"serve-{os.getpid()}",
    )
    return key, journal


def _open_recorder(settings: RecordSettings, told: Counted) -> Recorder | None:
    """Return what records exchanges, None when nothing is to be recorded. Blocks."""
    if settings.dir is None or not settings.sample:
        return None
    return Recorder(
        RecorderSettings(
            directory=Path(settings.dir),
            sample=settings.sample,
            masked=settings.text == "masked",
            keep=timedelta(days=settings.retention_days),
            max_bytes=settings.max_bytes,
        ),
        told,
    )


async def _close_journal(journal: Journal) -> None:
    with contextlib.suppress(AuditError):  # it has failed before, and said so
        await journal.aclose()


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


def _signature(files: tuple[Path, ...]) -> tuple[tuple[int, int, int] | None, ...]:
    """Return what changes when one of the files does. Blocks."""
    found: list[tuple[int, int, int] | None] = []
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            found.append(None)
        else:
            found.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
    return tuple(found)


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
