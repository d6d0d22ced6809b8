"""What a control server is made of: keys, people, its store, and what is done over it by topic."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from checkstream.api.alerts import AlertsApi
from checkstream.api.control import NodesApi
from checkstream.api.drafts import DraftsApi
from checkstream.api.evidence import EvidenceApi
from checkstream.api.gate_runs import GateRunsApi
from checkstream.api.nodes import Nodes
from checkstream.api.operation import Operation
from checkstream.api.reviews import ReviewsApi
from checkstream.api.rollouts import RolloutsApi
from checkstream.api.telemetry import TelemetryApi
from checkstream.app.alerting import open_alerting
from checkstream.app.drafting import open_drafting
from checkstream.app.parts import open_journal
from checkstream.app.people import callers_of, provided_by
from checkstream.audit.journal import Journal
from checkstream.audit.keys import PublicKey, load_public_key
from checkstream.config import ControlConfig, reveal
from checkstream.console import Console
from checkstream.console.control import control_shell, open_control_console
from checkstream.control.server.acts import Acts
from checkstream.control.server.alerting import Alerting
from checkstream.control.server.database import Database, open_database
from checkstream.control.server.drafting import Drafting
from checkstream.control.server.evidence import Evidence
from checkstream.control.server.fleets import Fleets
from checkstream.control.server.gate_runs import GateRuns
from checkstream.control.server.metrics import ControlMetrics
from checkstream.control.server.people import People
from checkstream.control.server.provided import Provided
from checkstream.control.server.reviewing import Reviewing
from checkstream.control.server.telemetry import Telemetry
from checkstream.errors import AuditError, ConfigError, Fault
from checkstream.jobs.clock import wall_ms
from checkstream.listen import Callers
from checkstream.listen.tls import ServerTls, open_tls
from checkstream.telemetry.logs import Log

_DAY_MS = 86_400_000


class ControlParts(NamedTuple):
    """All of it, but for what listens."""

    nodes: Nodes
    people: Callers
    """Whose key, token or certificate it is."""
    roles: People
    """What they may do."""
    provided: Provided | None
    tls: ServerTls | None
    metrics: ControlMetrics
    database: Database
    fleets: Fleets
    acts: Acts
    alerting: Alerting
    telemetry: Telemetry
    evidence: Evidence
    reviewing: Reviewing
    gate_runs: GateRuns
    drafting: Drafting | None


async def open_control_parts(config: ControlConfig, log: Log, stack: contextlib.AsyncExitStack) -> ControlParts:
    """Open them; `stack` closes them.

    Raises:
        ConfigError: a key or a certificate can't be read.
        ControlUnusable: the store can't be used.
        NoticeUnsent: the secret of a webhook holds no key.
    """
    nodes = Nodes(await asyncio.to_thread(_node_keys, config))
    roles = People({name: person.role for name, person in config.people.items()})
    provided = await asyncio.to_thread(provided_by, config, roles, log)
    if provided is not None:
        stack.push_async_callback(provided.issuer.close)
    people = await asyncio.to_thread(callers_of, config, provided)
    metrics = ControlMetrics()
    tls = await asyncio.to_thread(open_tls, config.tls, "control", log, metrics)
    database = await asyncio.to_thread(_open_store, config, metrics.store.observe)
    stack.push_async_callback(database.close)
    _, journal = await asyncio.to_thread(open_journal, config.audit, "control")
    stack.push_async_callback(_close, journal)
    acts = Acts(config.fleets, database, journal, wall_ms)
    drafting = await asyncio.to_thread(open_drafting, config, database, acts, wall_ms)
    if drafting is not None:
        stack.push_async_callback(drafting.trials.close)
    keep_days = config.retention_days
    return ControlParts(
        nodes=nodes,
        people=people,
        roles=roles,
        provided=provided,
        tls=tls,
        metrics=metrics,
        database=database,
        fleets=Fleets(config.fleets, database, wall_ms),
        acts=acts,
        alerting=await asyncio.to_thread(open_alerting, config, database, acts, wall_ms),
        telemetry=Telemetry(
            database,
            {node: name for name, fleet in config.fleets.items() for node in fleet.nodes},
            wall_ms,
            keep_days=keep_days,
            silent_s=config.silent_s,
        ),
        evidence=Evidence(
            database, acts.record, wall_ms, keep_ms=keep_days * _DAY_MS, most_bytes=config.evidence_bytes
        ),
        reviewing=Reviewing(database, wall_ms, per_day=config.review_per_day, keep_days=keep_days),
        gate_runs=GateRuns(database, config.fleets, wall_ms),
        drafting=drafting,
    )


def operations_of(parts: ControlParts) -> tuple[Operation, ...]:
    """Return what the API can be asked, topic by topic."""
    topics = (
        NodesApi(parts.fleets, parts.roles),
        RolloutsApi(parts.fleets, parts.acts, parts.roles),
        AlertsApi(parts.alerting, parts.roles),
        TelemetryApi(parts.telemetry, parts.roles),
        EvidenceApi(parts.evidence, parts.roles),
        ReviewsApi(parts.reviewing, parts.roles),
        GateRunsApi(parts.gate_runs, parts.roles),
        DraftsApi(parts.drafting, parts.roles),
    )
    return tuple(operation for topic in topics for operation in topic.operations)


def console_of(config: ControlConfig, parts: ControlParts, log: Log) -> Console:
    """Return the pages, which show and do what the API does."""
    shell = control_shell(
        parts.people,
        {name: person.role for name, person in config.people.items()},
        log,
        secure=config.behind_gateway or parts.tls is not None,
        gateway=config.behind_gateway,
        provided=config.oidc is not None and config.oidc.client_id is not None,
    )
    return open_control_console(
        shell,
        fleets=parts.fleets,
        acts=parts.acts,
        alerting=parts.alerting,
        audit=Path(config.audit.dir),
        telemetry=parts.telemetry,
        reviewing=parts.reviewing,
        gate_runs=parts.gate_runs,
        now_ms=wall_ms,
        drafting=parts.drafting,
        provided=parts.provided,
    )


async def _close(journal: Journal) -> None:
    with contextlib.suppress(AuditError):  # it has failed before, and said so
        await journal.aclose()


def _open_store(config: ControlConfig, took: Callable[[float], object]) -> Database:
    """Open the store; `took` hears of its transactions. Blocks."""
    password = None if config.password is None else reveal(config.password)
    return open_database(config.store, password=password, took=took)


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
                raise wrong(f"node `{node}` of fleet `{name}`: {str(error).partition(';')[0]}", advice) from error
            if whose.setdefault(key.name, node) != node:
                raise wrong(f"nodes `{whose[key.name]}` and `{node}` have one key", "give each node its own")
            found[node] = key
    return found


def wrong(reason: str, advice: str) -> ConfigError:
    """Return what is told of a configuration."""
    return ConfigError((Fault(file="control", reason=reason, advice=advice),))
