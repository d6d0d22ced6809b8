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
from checkstream.api.alerts import AlertsApi
from checkstream.api.control import ABOUT, NodesApi
from checkstream.api.drafts import DraftsApi
from checkstream.api.evidence import EvidenceApi
from checkstream.api.face import Face
from checkstream.api.gate_runs import GateRunsApi
from checkstream.api.nodes import Nodes
from checkstream.api.repository import BUNDLES, RepositoryFiles
from checkstream.api.reviews import ReviewsApi
from checkstream.api.rollouts import RolloutsApi
from checkstream.api.telemetry import TelemetryApi
from checkstream.app.alerting import look, open_alerting, send
from checkstream.app.drafting import open_drafting
from checkstream.app.keeping import keep
from checkstream.app.measuring import serve_metrics
from checkstream.app.parts import open_journal
from checkstream.app.people import callers_of, provided_by
from checkstream.audit.journal import Journal
from checkstream.audit.keys import PublicKey, load_public_key
from checkstream.config import ControlConfig, parse_address, reveal
from checkstream.console import Console
from checkstream.console.control import control_shell, open_control_console
from checkstream.control.server.acts import Acts
from checkstream.control.server.database import Database, open_database
from checkstream.control.server.evidence import Evidence
from checkstream.control.server.fleets import Fleets
from checkstream.control.server.gate_runs import GateRuns
from checkstream.control.server.measured import measured
from checkstream.control.server.metrics import ControlMetrics
from checkstream.control.server.people import People
from checkstream.control.server.reviewing import Reviewing
from checkstream.control.server.telemetry import Telemetry
from checkstream.errors import AuditError, ConfigError, ControlUnusable, Fault
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
        nodes = Nodes(await asyncio.to_thread(_node_keys, config))
        roles = People({name: person.role for name, person in config.people.items()})
        provided = await asyncio.to_thread(provided_by, config, roles, log)
        if provided is not None:
            stack.push_async_callback(provided.issuer.close)
        people = await asyncio.to_thread(callers_of, config, provided)
        metrics = ControlMetrics()
        database = await asyncio.to_thread(_open_store, config, metrics.store.observe)
        stack.push_async_callback(database.close)
        await stack.enter_async_context(_measured(config, database, metrics, log))
        _, journal = await asyncio.to_thread(open_journal, config.audit, "control")
        stack.push_async_callback(_close, journal)
        fleets = Fleets(config.fleets, database, wall_ms)
        acts = Acts(config.fleets, database, journal, wall_ms)
        alerting = await asyncio.to_thread(open_alerting, config, database, acts, wall_ms)
        telemetry = Telemetry(
            database,
            {node: name for name, fleet in config.fleets.items() for node in fleet.nodes},
            wall_ms,
            keep_days=config.retention_days,
            silent_s=config.silent_s,
        )
        evidence = Evidence(
            database,
            acts.record,
            wall_ms,
            keep_ms=config.retention_days * _DAY_MS,
            most_bytes=config.evidence_bytes,
        )
        reviewing = Reviewing(database, wall_ms, per_day=config.review_per_day, keep_days=config.retention_days)
        gate_runs = GateRuns(database, config.fleets, wall_ms)
        admission = Admission(streams=_REQUESTS, held_bytes=_HELD_BYTES)
        drafting = await asyncio.to_thread(open_drafting, config, database, acts, wall_ms)
        if drafting is not None:
            stack.push_async_callback(drafting.trials.close)
        topics = (
            NodesApi(fleets, roles),
            RolloutsApi(fleets, acts, roles),
            AlertsApi(alerting, roles),
            TelemetryApi(telemetry, roles),
            EvidenceApi(evidence, roles),
            ReviewsApi(reviewing, roles),
            GateRunsApi(gate_runs, roles),
            DraftsApi(drafting, roles),
        )
        tls = await asyncio.to_thread(open_tls, config.tls, "control", log, metrics)
        face = Face(
            tuple(operation for topic in topics for operation in topic.operations),
            callers=people,
            admission=admission,
            times=_TIMES,
            body_bytes=_BODY_BYTES,
            metrics=metrics,
            log=log,
            version=checkstream.__version__,
            nodes=nodes,
            about=ABOUT,
        )
        files = None if config.repository is None else RepositoryFiles(Path(config.repository), nodes, fleets.admit)

        shell = control_shell(
            people,
            {name: person.role for name, person in config.people.items()},
            log,
            secure=config.behind_gateway or tls is not None,
            gateway=config.behind_gateway,
            provided=config.oidc is not None and config.oidc.client_id is not None,
        )
        console = open_control_console(
            shell,
            fleets=fleets,
            acts=acts,
            alerting=alerting,
            audit=Path(config.audit.dir),
            telemetry=telemetry,
            reviewing=reviewing,
            gate_runs=gate_runs,
            now_ms=wall_ms,
            drafting=drafting,
            provided=provided,
        )
        await console.open()
        stack.push_async_callback(console.close)
        listener = await _listening(config.listen, _respond(face, files, console), tls)
        try:
            async with _beside(
                keep(acts.tick, _TICK_S, "rollouts", log),
                keep(partial(look, alerting, log), config.alerts.every_s, "alerts", log),
                keep(partial(send, alerting), _TICK_S, "notices", log),
                keep(telemetry.look, _LOOK_S, "telemetry", log),
                keep(evidence.forget, _LOOK_S, "evidence", log),
                keep(reviewing.draw, _LOOK_S, "reviews", log),
            ):
                yield str(listener.address)
        finally:
            face.draining = True
            listener.stop_accepting()
            await admission.wait_idle(_DRAIN_S)
            await listener.close()


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


async def _close(journal: Journal) -> None:
    with contextlib.suppress(AuditError):  # it has failed before, and said so
        await journal.aclose()


def _open_store(config: ControlConfig, took: Callable[[float], object]) -> Database:
    """Open the store; `took` hears of its transactions. Blocks."""
    password = None if config.password is None else reveal(config.password)
    return open_database(config.store, password=password, took=took)


@contextlib.asynccontextmanager
async def _measured(
    config: ControlConfig, database: Database, metrics: ControlMetrics, log: Log
) -> AsyncIterator[None]:
    """Serve metrics meanwhile, if somebody wants them, and say where.

    Raises:
        ConfigError: the address can't be bound, or the token can't be read.
    """
    if config.admin is None:
        yield
        return
    token = None if config.admin_token is None else await asyncio.to_thread(reveal, config.admin_token)

    async def render() -> bytes:
        standing = None
        with contextlib.suppress(ControlUnusable, TimeoutError):
            async with asyncio.timeout(_SCRAPE_S):
                standing = await database.transact(
                    lambda session: measured(config.fleets, config.silent_s, session, wall_ms())
                )
        return await asyncio.to_thread(metrics.render, standing)

    async with contextlib.AsyncExitStack() as stack:
        try:
            where = await stack.enter_async_context(serve_metrics(parse_address(config.admin), render, token=token))
        except OSError as error:
            raise _not_bound("admin", config.admin, error) from error
        log.info("measured", admin=where)
        yield


def _not_bound(name: str, address: str, error: OSError) -> ConfigError:
    return _wrong(f"can't listen on `{address}`: {cause(error) or error}", f"give another `{name}`")


def _node_keys(config: ControlConfig) -> dict[str, PublicKey]:
    """Return the public key of each node. Blocks on files.

    Raises:
        ConfigError: one can't be read, or two nodes have the same.
    """
    found: dict[str, PublicKey] = {}
    whose: dict[str, str] = {}
    for name, fleet in config.fleets.items():
        for node, file in fleet.nodes.items():
            try:
                key = load_public_key(Path(file))
            except AuditError as error:
                advice = "`checkstream bundle key NODE` makes a pair"
                raise _wrong(f"node `{node}` of fleet `{name}`: {str(error).partition(';')[0]}", advice) from error
            if whose.setdefault(key.name, node) != node:
                raise _wrong(f"nodes `{whose[key.name]}` and `{node}` have one key", "give each node its own")
            found[node] = key
    return found


def _wrong(reason: str, advice: str) -> ConfigError:
    return ConfigError((Fault(file="control", reason=reason, advice=advice),))
