"""Builds the scoring API with what this machine has."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import checkstream
from checkstream.api.evaluation import Evaluation, Runs
from checkstream.api.face import Face
from checkstream.api.scoring import Scoring
from checkstream.app.gate import gate_of
from checkstream.app.verifiers import Verifiers
from checkstream.config import Address, Config, Server
from checkstream.errors import ConfigError, Fault, StoreUnusable
from checkstream.gate.ledger import Ledger
from checkstream.gate.past import Past
from checkstream.gate.shared_past import DEFAULT_INDEX, HISTORY_SECRET, SharedPast
from checkstream.listen import Admission, Callers, Hosts, Listener, Times
from checkstream.listen.issuer import Issuer
from checkstream.listen.opening import callers_of, issuer_of
from checkstream.listen.tls import open_tls
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
    """File that this process keeps its runs in; those of a caller with a name are in one of its own beside it."""
    inline: bool = False
    """Configurations that callers send are evaluated too, without any key."""
    history: str = ""
    """Elasticsearch that runs are told from, and kept in too where their configuration names no other; empty: none.
    What callers send is not kept there, and of callers with names each has an index of its own."""

    def of(self, caller: str | None) -> GateFolder:
        """Return where the runs of one caller are."""
        if caller is None:
            return self
        mark = _mark(caller)
        runs = self.runs.with_name(f"{self.runs.stem}-{mark}{self.runs.suffix}")
        return replace(self, runs=runs, history=_index_of(self.history, mark) if self.history else "")


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
        issuer = issuer_of(config.server, log)
        if issuer is not None:
            stack.push_async_callback(issuer.close)
        callers = _callers(config.server, address, issuer, evaluates=gate is not None)
        tls = open_tls(config.server.tls, "api", log, metrics)
        operations = list(Scoring(verifiers.verifier, verifiers.judge, threads).operations)
        if gate is not None:
            operations += (await _evaluation(stack, gate, callers.names, environment)).operations
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
        listener = Listener(face.respond, times, None if callers.known else Hosts(config.server.hosts), tls=tls)
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


async def _evaluation(
    stack: contextlib.AsyncExitStack,
    gate: GateFolder,
    callers: Sequence[str | None],
    environment: Mapping[str, str],
) -> Evaluation:
    """Return the gate's operations, over the runs of each caller.

    Raises:
        ConfigError: there is no such folder, or as `_past`.
        GateError: a file of runs can't be used.
    """
    if not gate.root.is_dir():
        raise _wrong(f"there is no folder `{gate.root}`", "name the one that holds `.llm-reliability.yaml`")
    runs: dict[str | None, Runs] = {}
    for caller in callers:
        own = gate.of(caller)
        past = await stack.enter_async_context(_past(own, environment))
        ledger = Ledger(own.runs)
        runs[caller] = Runs(
            gate_of(ledger, own.root, environment, own.history).evaluate,
            ledger,
            past,
            gate_of(ledger, own.root, {}).evaluate if own.inline else None,
        )
    return Evaluation(runs, root=gate.root)


def _mark(caller: str) -> str:
    """Return what tells a caller's files and indexes from others', whatever letters its name has."""
    digest = hashlib.sha256(caller.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    readable = "".join(letter for letter in caller.lower() if letter.isascii() and letter.isalnum())[:32]
    return f"{readable}-{digest}" if readable else digest


def _index_of(history: str, mark: str) -> str:
    """Return the address of a caller's index: the operator's index, or the usual one, with the caller's mark."""
    address = history.rstrip("/")
    named = "/" in address.partition("://")[2]
    return f"{address}-{mark}" if named else f"{address}/{DEFAULT_INDEX}-{mark}"


def _callers(server: Server, address: Address, issuer: Issuer | None, *, evaluates: bool) -> Callers:
    """Return who may call: those who may call the proxy.

    Raises:
        ConfigError: others could reach the address without a key, or a key can't be read.
    """
    if server.callers != "none":
        if evaluates and issuer is not None:
            raise _wrong(
                "evaluations are kept by caller, and callers with tokens are not known beforehand",
                "list `callers` with keys or certificates, or serve no evaluations (`--gate`)",
            )
        return callers_of(server, issuer)
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
