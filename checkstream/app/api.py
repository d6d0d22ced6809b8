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
from checkstream.errors import ConfigError, Fault
from checkstream.gate.ledger import Ledger
from checkstream.listen import Admission, Callers, Listener, Times

_THREADS = 2
_DRAIN_S = 10.0


@dataclass(frozen=True, slots=True)
class GateFolder:
    """Where the API's evaluations are configured and kept."""

    root: Path
    """Configurations are read below it, and so is what they name."""
    history: Path
    """File of runs."""
    inline: bool = False
    """Configurations that callers send are evaluated too, without any key."""


@contextlib.asynccontextmanager
async def serve_api(
    config: Config, address: Address, verifiers: Verifiers, gate: GateFolder | None, environment: Mapping[str, str]
) -> AsyncIterator[str]:
    """Serve the scoring API meanwhile, and yield the address where it listens.

    Args:
        config: callers and limits.
        address: where.
        verifiers: what judges claims.
        gate: what `/evaluate` evaluates; None: nothing, and there is no such path.
        environment: holds the keys that gate configurations name.

    Raises:
        ConfigError: others could reach the address without a key, a key is missing, or it can't be bound.
        GateError: the file of runs can't be used.
    """
    limits = config.server.limits
    times = Times(header_s=limits.header_timeout_ms / 1000, write_s=limits.write_timeout_ms / 1000)
    admission = Admission(streams=limits.streams, held_bytes=limits.held_bytes)
    threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="score")
    try:
        operations = list(Scoring(verifiers.verifier, verifiers.judge, threads).operations)
        if gate is not None:
            operations += _evaluation(gate, environment).operations
        face = Face(
            operations,
            callers=_callers(config.server, address),
            admission=admission,
            times=times,
            body_bytes=min(limits.body_bytes, config.jobs.job_bytes),
            version=checkstream.__version__,
        )
        listener = Listener(face.respond, times)
        await _open(listener, address)
        try:
            yield str(listener.address)
        finally:
            face.draining = True
            listener.stop_accepting()
            await admission.wait_idle(_DRAIN_S)
            await listener.close()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _evaluation(gate: GateFolder, environment: Mapping[str, str]) -> Evaluation:
    if not gate.root.is_dir():
        raise _wrong(f"there is no folder `{gate.root}`", "name the one that holds `.llm-reliability.yaml`")
    ledger = Ledger(gate.history)
    return Evaluation(
        gate_of(ledger, gate.root, environment).evaluate,
        ledger,
        root=gate.root,
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
