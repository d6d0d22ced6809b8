"""Builds the control server of what its file says, and serves until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path

from aiohttp import hdrs
from aiohttp.web import BaseRequest, StreamResponse

import checkstream
from checkstream.api.control import ABOUT
from checkstream.api.face import Face
from checkstream.api.repository import BUNDLES, RepositoryFiles
from checkstream.app.alerting import look, send
from checkstream.app.control_parts import ControlParts, console_of, open_control_parts, operations_of, wrong
from checkstream.app.keeping import keep
from checkstream.app.measuring import serve_metrics
from checkstream.config import ControlConfig, parse_address, reveal
from checkstream.console import Console
from checkstream.control.server.measured import measured
from checkstream.errors import ConfigError, ControlUnusable, TookTooLong
from checkstream.jobs.clock import wall_ms
from checkstream.listen import Admission, Listener, Times
from checkstream.listen.binding import cause
from checkstream.listen.tls import ServerTls, open_tls
from checkstream.proxy.health import CONSOLE
from checkstream.telemetry.logs import LibraryLogs, Log, open_log

_TIMES = Times(header_s=10.0, write_s=30.0)
_REQUESTS, _HELD_BYTES, _BODY_BYTES = 1024, 1 << 28, 1 << 20
_DRAIN_S = 10.0
_SCRAPE_S = 5.0
"""So long metrics wait for the store; Prometheus gives up after ten seconds."""
_DAY_MS = 86_400_000
_TICK_S = 2.0
"""How often rollouts are looked at, and notices sent that are due."""
_LOOK_S = 15.0
"""How often it is looked who is silent, and what is old."""


async def run_control(config: ControlConfig) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        ConfigError: a key can't be read, or the address can't be bound.
        ControlUnusable: the store can't be used.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    log = open_log(config.telemetry.log, sys.stderr.buffer, terminal=sys.stderr.isatty())
    library = LibraryLogs(log)
    logging.getLogger().addHandler(library)
    try:
        async with serve_control(config, log) as address:
            log.info("listening", listen=address, store=config.store, fleets=sorted(config.fleets))
            await stop.wait()
            log.info("draining")
    finally:
        logging.getLogger().removeHandler(library)


@contextlib.asynccontextmanager
async def serve_control(config: ControlConfig, log: Log) -> AsyncIterator[str]:
    """Serve meanwhile, and yield the address where it listens.

    Raises:
        ConfigError: a key can't be read, or the address can't be bound.
        ControlUnusable: the store can't be used.
        NoticeUnsent: the secret of a webhook holds no key.
    """
    async with contextlib.AsyncExitStack() as stack:
        parts = await open_control_parts(config, log, stack)
        await stack.enter_async_context(_measured(config, parts, log))
        admission = Admission(streams=_REQUESTS, held_bytes=_HELD_BYTES)
        face = Face(
            operations_of(parts),
            callers=parts.people,
            admission=admission,
            times=_TIMES,
            body_bytes=_BODY_BYTES,
            metrics=parts.metrics,
            log=log,
            version=checkstream.__version__,
            nodes=parts.nodes,
            about=ABOUT,
        )
        files = _files(config, parts)
        console = console_of(config, parts, log)
        await console.open()
        stack.push_async_callback(console.close)
        listener = await _listening(config.listen, _respond(face, files, console), parts.tls)
        try:
            async with _beside(
                keep(parts.acts.tick, _TICK_S, "rollouts", log),
                keep(partial(look, parts.alerting, log), config.alerts.every_s, "alerts", log),
                keep(partial(send, parts.alerting), _TICK_S, "notices", log),
                keep(parts.telemetry.look, _LOOK_S, "telemetry", log),
                keep(parts.evidence.forget, _LOOK_S, "evidence", log),
                keep(parts.reviewing.draw, _LOOK_S, "reviews", log),
            ):
                yield str(listener.address)
        finally:
            face.draining = True
            listener.stop_accepting()
            await admission.wait_idle(_DRAIN_S)
            await listener.close()


def _files(config: ControlConfig, parts: ControlParts) -> RepositoryFiles | None:
    """Return what serves bundles to nodes; None: they have them from elsewhere."""
    if config.repository is None:
        return None
    return RepositoryFiles(Path(config.repository), parts.nodes, parts.fleets.admit)


def _respond(
    face: Face, files: RepositoryFiles | None, console: Console
) -> Callable[[BaseRequest], Awaitable[StreamResponse]]:
    """Return what answers by path: bundles for nodes, the console for people, and the API for whoever has a key."""

    async def respond(request: BaseRequest) -> StreamResponse:
        path = request.rel_url.raw_path
        if files is not None and path.startswith(BUNDLES):
            return await files.respond(request)
        if path in ("/", CONSOLE) or path.startswith(f"{CONSOLE}/"):
            response = await console.respond(request)
            response.headers[hdrs.SERVER] = "checkstream"
            return response
        return await face.respond(request)

    return respond


async def _listening(
    address: str, respond: Callable[[BaseRequest], Awaitable[StreamResponse]], tls: ServerTls | None
) -> Listener:
    """Return what listens.

    Raises:
        ConfigError: the address can't be bound.
    """
    listener = Listener(respond, _TIMES, tls=tls)
    try:
        await listener.open(parse_address(address))
    except OSError as error:
        raise _not_bound("listen", address, error) from error
    return listener


@contextlib.asynccontextmanager
async def _beside(*work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Have some work go on meanwhile; what ends it ends the whole."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in work]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


@contextlib.asynccontextmanager
async def _measured(config: ControlConfig, parts: ControlParts, log: Log) -> AsyncIterator[None]:
    """Serve metrics meanwhile, if somebody wants them, and say where.

    Raises:
        ConfigError: the address can't be bound, or the token or the certificate can't be read.
    """
    if config.admin is None:
        yield
        return
    token = None if config.admin_token is None else await asyncio.to_thread(reveal, config.admin_token)
    tls = await asyncio.to_thread(open_tls, config.admin_tls, "admin", log, parts.metrics)

    async def render() -> bytes:
        standing = None
        with contextlib.suppress(ControlUnusable, TookTooLong, TimeoutError):
            async with asyncio.timeout(_SCRAPE_S):
                standing = await parts.database.ask(
                    lambda session: measured(config.fleets, config.silent_s, session, wall_ms())
                )
        return await asyncio.to_thread(parts.metrics.render, standing)

    async with contextlib.AsyncExitStack() as stack:
        try:
            serving = serve_metrics(parse_address(config.admin), render, token=token, tls=tls)
            where = await stack.enter_async_context(serving)
        except OSError as error:
            raise _not_bound("admin", config.admin, error) from error
        log.info("measured", admin=where)
        yield


def _not_bound(name: str, address: str, error: OSError) -> ConfigError:
    return wrong(f"can't listen on `{address}`: {cause(error) or error}", f"give another `{name}`")
