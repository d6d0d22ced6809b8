"""What a process says of itself when it has started: where it listens, what it guards, whom it asks, what it keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import checkstream
from checkstream.app.force import InForce
from checkstream.config import Address, Upstream
from checkstream.config.secrets import audit_key
from checkstream.listen.binding import cause
from checkstream.proxy.accept import Route
from checkstream.proxy.health import console_at
from checkstream.telemetry.logs import MAX_ITEMS

_REACH_S = 3.0
"""How long an upstream may take to let itself be connected to, at the start."""


def introduction(force: InForce, listen: Address, admin: Address, config_file: Path | None) -> dict[str, object]:
    """Return the fields of the event `listening`: all that says whether this is the process that was meant."""
    config = force.loaded.config
    key = audit_key(config.audit)
    said: dict[str, object] = {
        "listen": str(listen),
        "admin": str(admin),
        "console": console_at(admin, config.server),
        "version": checkstream.__version__,
        "config": "command line" if config_file is None else str(config_file.absolute()),
        "upstreams": {name: upstream.root for name, upstream in config.upstreams.items()},
        "routes": _listed(route for route in force.routes if route.plan is not None),
        "unguarded": _listed(route for route in force.routes if route.plan is None),
        "audit": config.audit.dir,
        "audit_key": str(key) if isinstance(key, Path) else f"environment variable {key.env}",
    }
    if config.record.dir is not None and config.record.sample:
        said["record"] = config.record.dir
    if config.fleet is not None:
        said["fleet"] = config.fleet.store
    return said


def _listed(routes: Iterable[Route]) -> list[str]:
    """Return routes in words, as many as a line of the log holds, and how many there are besides."""
    told = [_in_words(route) for route in routes]
    left = len(told) - MAX_ITEMS
    return told if left <= 0 else [*told[: MAX_ITEMS - 1], f"and {left + 1} more"]


def _in_words(route: Route) -> str:
    model = "" if route.match.model == "*" else f" of {route.match.model}"
    guard = "passed on unguarded" if route.plan is None else f"guarded by {route.policies}"
    return f"{' '.join(sorted(route.methods))} {route.match.path}{model} -> {route.upstream.name}, {guard}"


async def unreachable(upstreams: Mapping[str, Upstream]) -> dict[str, str]:
    """Return the upstreams that can't be connected to just now, each with the reason.

    Only a connection is made; nothing is sent.
    """
    reasons = await asyncio.gather(*(_reach(upstream) for upstream in upstreams.values()))
    return {name: reason for name, reason in zip(upstreams, reasons, strict=True) if reason is not None}


async def _reach(upstream: Upstream) -> str | None:
    parts = urlsplit(upstream.root)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(_REACH_S):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except TimeoutError:
        return f"no connection within {_REACH_S:.0f} s"
    except OSError as error:
        return cause(error) or "none of its addresses lets itself be connected to"
    writer.close()
    return None
