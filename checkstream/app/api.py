"""Builds the scoring API with what this machine has."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import checkstream
from checkstream.api.evaluation import Evaluation
from checkstream.api.face import Face
from checkstream.api.scoring import Scoring
from checkstream.app.gate import gate_of
from checkstream.app.verifiers import Verifiers
from checkstream.config import Address, Config, Server, reveal
from checkstream.errors import ConfigError, Fault, StoreUnusable
from checkstream.gate.ledger import Ledger
from checkstream.gate.past import Past
from checkstream.gate.shared_past import HISTORY_SECRET, SharedPast
from checkstream.listen import Admission, Callers, Hosts, Listener, Times
from checkstream.telemetry.logs import Log
from checkstream.telemetry.metrics import Metrics

_THREADS = 2
_DRAIN_S = 10.0


@dataclass(frozen=True, slots=True)
class GateFolder:
    """Where the API's evaluations are configured and kept."""

    root: Path
    """Configurations are read below it, and so is what they name."""
    runs: Path
    """File that this process keeps its runs in."""
    inline: bool = False
    """Configurations that callers send are evaluated too, without any key."""
    history: str = ""
    """Elasticsearch that runs are told from, and kept in too where their configuration names no other; empty: none.
    What callers send is not kept there."""


@contextlib.asynccontextmanager
async def serve_api(
    config: Config,
    address: Address,
    verifiers: Verifiers,
    gate: GateFolder | None,
    environment: Mapping[str, str],
    *,
    metrics: Metrics,
    log: Log,
) -> AsyncIterator[str]:
    """Serve the scoring API meanwhile, and yield the address where it listens.

    Args:
        config: callers and limits.
        address: where.
        verifiers: what judges claims.
        gate: what `/evaluate` evaluates; None: nothing, and there is no such path.
        environment: holds the keys that gate configurations name.
        metrics: requests are counted in them.
        log: is told why a store failed, which callers are not.

    Raises:
        ConfigError: others could reach the address without a key, a key is missing, or it can't be bound.
        GateError: the file of runs can't be used.
    """
    limits = config.server.limits
    times = Times(header_s=limits.header_timeout_ms / 1000, write_s=limits.write_timeout_ms / 1000)
    admission = Admission(streams=limits.streams, held_bytes=limits.held_bytes)
    threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="score")
    stack = contextlib.AsyncExitStack()
    stack.callback(threads.shutdown, wait=False, cancel_futures=True)
    async with stack:
        operations = list(Scoring(verifiers.verifier, verifiers.judge, threads).operations)
        if gate is not None:
            past = await stack.enter_async_context(_past(gate, environment))
            operations += _evaluation(gate, past, environment).operations
        callers = _callers(config.server, address)
        face = Face(
            operations,
            callers=callers,
            admission=admission,
            times=times,
            body_bytes=min(limits.body_bytes, config.jobs.job_bytes),
            metrics=metrics,
            log=log,
            version=checkstream.__version__,
        )
        listener = Listener(face.respond, times, None if callers.known else Hosts(config.server.hosts))
        await _open(listener, address)
        try:
            yield str(listener.address)
        finally:
            face.draining = True
            listener.stop_accepting()
            await admission.wait_idle(_DRAIN_S)
            await listener.close()


@contextlib.asynccontextmanager
async def _past(gate: GateFolder, environment: Mapping[str, str]) -> AsyncIterator[Past | None]:
    """Give the history of many machines, if there is one; it is asked nothing before a caller asks.

    Raises:
        ConfigError: its address is none, or the extra is not installed.
    """
    if not gate.history:
        yield None
        return
    try:
        shared = SharedPast.of(gate.history, api_key=environment.get(HISTORY_SECRET))
    except StoreUnusable as error:
        raise _wrong("`--gate-history` can't be used", str(error)) from error
    try:
        yield shared
    finally:
        await shared.close()


def _evaluation(gate: GateFolder, past: Past | None, environment: Mapping[str, str]) -> Evaluation:
    if not gate.root.is_dir():
        raise _wrong(f"there is no folder `{gate.root}`", "name the one that holds `.llm-reliability.yaml`")
    ledger = Ledger(gate.runs)
    return Evaluation(
        gate_of(ledger, gate.root, environment, gate.history).evaluate,
        ledger,
        root=gate.root,
        past=past,
        inline=gate_of(ledger, gate.root, {}).evaluate if gate.inline else None,
    )


def _callers(server: Server, address: Address) -> Callers:
    """Return who may call: those who may call the proxy.

    Raises:
        ConfigError: others could reach the address without a key, or a key can't be read.
    """
    if isinstance(server.callers, list):
        return Callers({caller.name: reveal(caller.key) for caller in server.callers})
    if not address.loopback and not server.behind_gateway:
        raise _wrong(
            f"others can reach `{address}` without a key",
            "list `callers` in the configuration, or listen on 127.0.0.1",
        )
    return Callers(None)


async def _open(listener: Listener, address: Address) -> None:
    try:
        await listener.open(address)
    except OSError as error:
        raise _wrong(
            f"can't listen on `{address}`: {(error.strerror or str(error)).lower()}", "give another address"
        ) from error


def _wrong(reason: str, advice: str) -> ConfigError:
    return ConfigError((Fault(file="command line", reason=reason, advice=advice),))
