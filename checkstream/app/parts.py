"""The parts of the process: what there is, what each is made of, and how it is closed.

`open_parts` is a table to be read from top to bottom: a part stands below those that it is made of. What must be closed
says so right below; it is closed from the bottom up, also where a later part can't be made.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple, ParamSpec, Protocol, TypeVar

from checkstream.app.background import QueueFeed
from checkstream.app.console import OwnFacts
from checkstream.app.current import Current, enforced
from checkstream.app.force import Loaded
from checkstream.app.inline import Inline
from checkstream.app.models import OpenModel
from checkstream.app.telling import Telling
from checkstream.app.turns import collect_due
from checkstream.app.witnessing import open_witness
from checkstream.audit.journal import Journal, JournalSettings
from checkstream.audit.keys import AuditKey, key_from_text, load_key
from checkstream.config import AuditSettings, Config, ConversationSettings, RecordSettings, Server, reveal
from checkstream.config.secrets import audit_key
from checkstream.console import Console, open_console
from checkstream.errors import AuditError
from checkstream.jobs import Watching
from checkstream.listen import Admission, Callers, Hosts, Listener, Times
from checkstream.listen.board import Board
from checkstream.listen.issuer import Issuer
from checkstream.listen.opening import callers_of, issuer_of
from checkstream.listen.tls import ServerTls, open_tls
from checkstream.processes.child import program
from checkstream.processes.fleet import Fleet, open_fleet
from checkstream.processes.member import Member
from checkstream.proxy.capacity import Capacity
from checkstream.proxy.confirm import Confirmations, Together
from checkstream.proxy.conversations import Memory
from checkstream.proxy.cors import origins_of
from checkstream.proxy.counts import Counted, Now
from checkstream.proxy.health import Admin, Inside
from checkstream.proxy.meter import Meter
from checkstream.proxy.recorder import Recorder, RecorderSettings
from checkstream.proxy.request import Intake, Proxy
from checkstream.proxy.trail import Trail
from checkstream.sealed import open_conversations, open_tools, open_vault
from checkstream.sealed.opening import long_secret
from checkstream.telemetry.logs import LibraryLogs, Log, open_log
from checkstream.telemetry.metrics import Metrics

_ADMIN_SOCKETS = 64
"""Connections of the admin listener that may be idle: probes and scrapers keep few."""


class Parts(NamedTuple):
    """What the process is made of, as far as anybody asks for it once it is built."""

    log: Log
    trail: Trail
    """The way to the audit chain."""
    counts: Counted
    current: Current
    """Configuration, policies, models and upstreams in force."""
    admission: Admission
    background: QueueFeed
    proxy: Proxy
    listener: Listener
    """Where callers connect. It doesn't listen yet, nor does the next."""
    admin: Listener
    console: Console
    """The operator's pages. It doesn't count yet."""
    metrics: Metrics
    observe: Callable[[], None]
    """Sets the gauges to what they are now."""


async def open_parts(
    loaded: Loaded,
    models: tuple[OpenModel, ...],
    inside: Inside,
    opening: contextlib.AsyncExitStack,
    member: Member | None = None,
) -> Parts:
    """Make every part once, and hand each its neighbours.

    Args:
        loaded: Configuration and policies.
        models: Those that the policies ask for, open.
        inside: What the admin listener shows.
        opening: Closes what has been made.
        member: What ties this process to others that serve with it as one; None: it is alone.

    Raises:
        ConfigError: a secret can't be read, or the queue can't be used.
        AuditError: the audit chain can't be written.
        JobError: the queue of answers to be scored can't be used.
        VaultFailed: the store of sealed conversations, or of tools, or of the fleet, can't be used.
    """
    closed, thread = opening.push_async_callback, asyncio.to_thread
    config, server, limits = loaded.config, loaded.config.server, loaded.config.server.limits

    # what is told, and what is remembered
    log = _opened_log(config, member, opening)
    key, journal = await thread(open_journal, config.audit, "serve")
    digests = await thread(_digests, key, config)
    closed(_close_journal, journal)
    metrics = Metrics()
    telling = None if config.telemetry.otlp is None else await Telling.open(config.telemetry.otlp, metrics, log)
    if telling is not None:
        closed(telling.close)
    counts = Counted(metrics, log, None if telling is None else telling.tracer)
    trail = Trail(journal, counts.recorded)

    # what decides
    current = Current(await enforced(loaded, models, None, counts))
    closed(current.close)

    # what may come in
    issuer = issuer_of(server, log)
    if issuer is not None:
        closed(issuer.close)
    callers, token = await thread(_reveal_keys, server, issuer)
    tls, admin_tls = await thread(_open_tls, server, log, metrics)
    times = Times(header_s=limits.header_timeout_ms / 1000, write_s=limits.write_timeout_ms / 1000)
    fleet = await _kept(opening, open_fleet, config.fleet)
    page = None if member is None else member.board
    if fleet is not None:
        page = page or await opening.enter_async_context(fleet.joined(log, metrics.fleet_machines.set))
    admission = _admission(server, page)
    main = threading.get_native_id()
    meter = await thread(Meter, Capacity(limits.load), lambda: current.force.scorer.answering_s, main)
    opening.callback(meter.close)
    intake = Intake(callers, admission, times, limits.body_bytes, meter)

    # what happens beside an answer, and after it
    background = QueueFeed(Watching(metrics, log, {}))
    closed(thread, background.close)
    await thread(background.open, config)
    assessor = Inline(config, metrics, log)
    closed(assessor.close)
    conversations = await _kept(opening, _open_conversations, config.conversations, member)
    vault = await _kept(opening, open_vault, config.pseudonyms)
    tools = await _kept(opening, open_tools, config.tools)
    recorder = await _kept(opening, _open_recorder, config.record, counts)
    witness = await _kept(opening, open_witness, config, counts)

    # what answers
    proxy = Proxy(
        intake=intake,
        routes=lambda: current.force.routes,
        candidate=lambda: current.force.candidate,
        trail=trail,
        digests=digests,
        counts=counts,
        conversations=conversations,
        vault=vault,
        tools=tools,
        recorder=recorder,
        witness=witness,
        background=background,
        assessor=assessor,
        confirmations=Confirmations(together=_together(member, fleet, page)),
    )
    listener = Listener(proxy.respond, times, _hosts(server, current), refused=counts.unheard, tls=tls)
    facts = OwnFacts(inside, metrics, lambda: current.force, lambda: listener.address)
    console = open_console(facts, config, token, tuple(await thread(program)))
    admin_listener = _admin_listener(Admin(inside, token, console), server, times, admin_tls)
    observe = _observing(
        counts, current, background=background, admission=admission, trail=trail, conversations=conversations
    )
    if telling is not None:
        telling.begin(observe)
    return Parts(
        log, trail, counts, current, admission, background, proxy, listener, admin_listener, console, metrics, observe
    )


def _opened_log(config: Config, member: Member | None, opening: contextlib.AsyncExitStack) -> Log:
    """Return the log, which hears of libraries until `opening` closes."""
    log = open_log(config.telemetry.log, sys.stderr.buffer, terminal=sys.stderr.isatty())
    if member is not None:
        log = log.bind(worker=member.welcome.slot)
    opening.callback(_heard_of_libraries(log))
    return log


def _admission(server: Server, page: Board | None) -> Admission:
    """Return the room for callers; what would stop streams is done when none runs."""
    tidying, limits = _Tidying(), server.limits
    tidying.admission = Admission(
        streams=limits.streams,
        held_bytes=limits.held_bytes,
        quota=server.quota,
        when_idle=tidying.soon,
        board=page,
    )
    return tidying.admission


def _open_tls(server: Server, log: Log, metrics: Metrics) -> tuple[ServerTls | None, ServerTls | None]:
    """Return TLS of both listeners. Blocks on files."""
    return open_tls(server.tls, "proxy", log, metrics), open_tls(server.admin_tls, "admin", log, metrics)


def _admin_listener(admin: Admin, server: Server, times: Times, tls: ServerTls | None) -> Listener:
    hosts = Hosts(server.hosts) if server.admin_token is None else None
    return Listener(admin.respond, times, hosts, sockets=_ADMIN_SOCKETS, tls=tls)


class _Closable(Protocol):
    """What takes its time to be opened and closed."""

    def close(self) -> None:
        """Let go of what it holds."""


_Part = TypeVar("_Part", bound=_Closable)
_Given = ParamSpec("_Given")


async def _kept(
    opening: contextlib.AsyncExitStack,
    opens: Callable[_Given, _Part | None],
    *args: _Given.args,
    **options: _Given.kwargs,
) -> _Part | None:
    """Open a part that may not be asked for, beside the loop; `opening` closes it."""
    part = await asyncio.to_thread(opens, *args, **options)
    if part is not None:
        opening.push_async_callback(asyncio.to_thread, part.close)
    return part


class _Tidying:
    """Does what would stop streams, as soon as none runs."""

    admission: Admission

    def soon(self) -> None:
        """Do it behind the end of the last answer."""
        asyncio.get_running_loop().call_soon(self._tidy)

    def _tidy(self) -> None:
        if not self.admission.streams:
            collect_due()


def _heard_of_libraries(log: Log) -> Callable[[], None]:
    """Write what libraries log to ours; return what ends that."""
    library = LibraryLogs(log)
    logging.getLogger().addHandler(library)
    return lambda: logging.getLogger().removeHandler(library)


def _observing(
    counts: Counted,
    current: Current,
    *,
    background: QueueFeed,
    admission: Admission,
    trail: Trail,
    conversations: Memory | None,
) -> Callable[[], None]:
    """Set the gauges, say what is in force, and return what does so again."""

    def observe() -> None:
        background.observe()
        force, limits = current.force, current.force.loaded.config.server.limits
        counts.expect(force.reference, force.models_named, learns=force.loaded.config.telemetry.models == "answered")
        counts.observe(
            Now(
                streams=admission.streams,
                most_streams=limits.streams,
                held_bytes=admission.held_bytes,
                most_held_bytes=limits.held_bytes,
                conversations=0 if conversations is None else conversations.number,
                audit_failed=bool(trail.failure),
                policies=force.policies,
            )
        )

    observe()
    return observe


def _together(member: Member | None, fleet: Fleet | None, page: Board | None) -> Together | None:
    """Return what makes a confirmation of one process good in all of them, here and on other machines."""
    if fleet is not None and page is not None:
        return fleet.together(page)
    return None if member is None else Together(member.secret_of("confirmations"), member.store, member.now_ms)


def _hosts(server: Server, current: Current) -> Hosts | None:
    """Return whose requests are taken on loopback where no key is asked for."""
    if server.callers != "none" or server.behind_gateway:
        return None
    return Hosts(server.hosts, lambda path: origins_of(current.force.routes, path))


def _reveal_keys(server: Server, issuer: Issuer | None) -> tuple[Callers, str | None]:
    """Return the callers and the admin token. Blocks on files."""
    return callers_of(server, issuer), None if server.admin_token is None else reveal(server.admin_token)


def open_journal(settings: AuditSettings, process: str) -> tuple[AuditKey, Journal]:
    """Return the key and the open journal; `process` is what its records say has written them. Blocks.

    Raises:
        ConfigError: the key can't be read.
        AuditError: the key is none, or the chain can't be written.
    """
    place = audit_key(settings)
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
        process=f"{process}-{os.getpid()}",
    )
    return key, journal


def _digests(key: AuditKey, config: Config) -> Callable[[str | None], Callable[[str], str]]:
    """Return, by caller, what makes digests of texts: where they leave this node, each caller's are its own. Blocks.

    Raises:
        ConfigError: the salt can't be read.
        VaultFailed: it is too short.
    """
    if config.control is None:
        return lambda _: key.digest
    salt = config.telemetry.salt
    return key.by_tenant(None if salt is None else long_secret(salt, "telemetry.salt"))


def _open_conversations(settings: ConversationSettings | None, member: Member | None) -> Memory | None:
    """Return what asks for what is known of conversations; None: nothing is. Blocks on the store."""
    shared = None if member is None else (member.store, member.secret_of("conversations"))
    known = open_conversations(settings, shared)
    if settings is None or known is None:
        return None
    at_once = settings.store is None and member is None
    return Memory(known, timeout_s=None if at_once else settings.timeout_ms / 1000)


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
