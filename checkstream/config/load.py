"""Loads the configuration once, and reports all faults of the file at once. Nothing else does."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from checkstream.config.background import (
    BundleSettings,
    ControlSettings,
    FleetSettings,
    JobsSettings,
    PseudonymSettings,
    ToolSettings,
    VerifierSettings,
)
from checkstream.config.checks import alone, cross_check
from checkstream.config.default import unplaced
from checkstream.config.files import read_file
from checkstream.config.paths import absolute
from checkstream.config.reader import Node, build, read_tree
from checkstream.config.servers import Server, Upstream
from checkstream.config.settings import AuditSettings, Config, RouteSettings
from checkstream.config.telemetry import TelemetrySettings
from checkstream.config.trusted import EvidenceSettings
from checkstream.core.policy import nodes
from checkstream.errors import ConfigError, Fault

_T = TypeVar("_T")

_UNSOUND = Upstream(url="http://unsound")
"""Stands in for an upstream with faults, so that its routes don't miss it."""
_SWITCH = "ENABLE_VERIFICATION"
NOT_YET = {
    "verifier.kind=meaning": "write `reader`, which reads claim and evidence together, quicker and with fewer mistakes",
}
"""Settings of the documented format that this version can't carry out, and values that are gone -> what to do."""


def load_config(file: str | Path) -> Config:
    """Return the configuration in `file`, with absolute paths.

    Raises:
        ConfigError: the file can't be read, or holds faults; carries all of them.
    """
    path = Path(file)
    try:
        content = read_file(path)
    except OSError as error:
        raise _broken(str(file), f"can't be read: {error.strerror or error}", "check the path") from error
    return _switched(read_config(str(file), content, path.resolve().parent), os.environ.get(_SWITCH))


def _switched(config: Config, said: str | None) -> Config:
    """Let the environment decide, before the file, whether replies carry RAG verification; requests decide before both.

    Raises:
        ConfigError: it says neither yes nor no, or no to a route that blocks by what the verification says.
    """
    if said is None:
        return config
    inline = {"true": True, "1": True, "false": False, "0": False}.get(said.strip().casefold())
    if inline is None:
        raise _broken("environment", f"`{_SWITCH}` is `{said}`", "write `true` or `false`, or unset it")
    replace = msgspec.structs.replace
    try:
        routes = tuple(
            replace(route, grounding=replace(route.grounding, inline=inline))
            if route.grounding is not None and "rag" in route.grounding.profiles
            else route
            for route in config.routes
        )
    except ValueError as error:
        raise _broken("environment", f"`{_SWITCH}` is `{said}`: {error}", "unset it, or remove `block`") from error
    return replace(config, routes=routes)


def read_config(name: str, content: str | bytes, base: Path) -> Config:
    """Return the configuration that `content` holds; `name` is for messages, relative paths start from `base`.

    Raises:
        ConfigError: `content` holds faults; carries all of them.
    """
    source = nodes.open_source(name, content)
    tree = None if source.faults else read_tree(source)
    config = None
    if tree is not None:
        config = build(tree, Config, source, later=NOT_YET)
        if config is not None:
            config = absolute(config, base)
            cross_check(config, range(len(config.routes)), tree, source)
        else:
            sound, positions = _sound_parts(tree, name, content)
            cross_check(absolute(sound, base), positions, tree, source)
    if source.faults or config is None:
        raise ConfigError(tuple(sorted(source.faults, key=lambda fault: (fault.line, fault.column))))
    return config


def default_config(
    upstream: str,
    *,
    policies: Sequence[str] = (),
    listen: str | None = None,
    admin: str | None = None,
    log: str | None = None,
    workers: int | Literal["auto"] | None = None,
) -> Config:
    """Return what `checkstream serve --upstream URL` runs: policies in front of one model server.

    Args:
        upstream: The server's root.
        policies: In place of the default ones, if there are any; files are relative to the working directory.
        listen: As `override`.
        admin: As `override`.
        log: As `override`.
        workers: As `override`.

    Raises:
        ConfigError: the url or an address is not one.
    """
    try:
        config = override(unplaced(upstream, policies), listen=listen, admin=admin, log=log, workers=workers)
    except ValueError as error:
        raise _broken("command line", str(error)) from error
    return absolute(config, Path.cwd())


def override(
    config: Config,
    *,
    listen: str | None = None,
    admin: str | None = None,
    log: str | None = None,
    workers: int | Literal["auto"] | None = None,
) -> Config:
    """Return the configuration with other listeners, workers and another form of logs, as the command line asks.

    Raises:
        ConfigError: an address is not one, or is not allowed without callers or a token; or a route is one process's.
    """
    replace = msgspec.structs.replace
    given = {"listen": listen, "admin": admin, "workers": workers}
    changes = {name: value for name, value in given.items() if value is not None}
    try:
        if changes:
            config = replace(config, server=replace(config.server, **changes))
    except ValueError as error:
        raise _broken("command line", str(error)) from error
    unshared = None if workers is None else alone(config)
    if unshared is not None:
        raise _broken("command line", unshared[1])
    return config if log is None else replace(config, telemetry=replace(config.telemetry, log=log))


def _sound_parts(tree: Node, name: str, content: str | bytes) -> tuple[Config, list[int]]:
    """Return what is sound of a file with faults, and the positions of its routes: their faults are looked for too."""
    scratch = nodes.open_source(name, content)  # the faults are known already

    def sound(node: Node, type_: type[_T]) -> _T | None:
        return None if node.broken else build(node, type_, scratch, later=NOT_YET)

    parts = tree.value if isinstance(tree.value, Mapping) else {}
    upstreams = parts["upstreams"].value if "upstreams" in parts else {}
    routes = parts["routes"].value if "routes" in parts else ()
    found = [sound(node, RouteSettings) for node in routes] if isinstance(routes, tuple) else []
    config = Config(
        server=(sound(parts["server"], Server) if "server" in parts else None) or Server(),
        upstreams={
            key: sound(node, Upstream) or _UNSOUND
            for key, node in (upstreams.items() if isinstance(upstreams, Mapping) else ())
        },
        routes=tuple(route for route in found if route is not None),
        audit=(sound(parts["audit"], AuditSettings) if "audit" in parts else None) or AuditSettings(),
        pseudonyms=sound(parts["pseudonyms"], PseudonymSettings) if "pseudonyms" in parts else None,
        tools=sound(parts["tools"], ToolSettings) if "tools" in parts else None,
        bundles=sound(parts["bundles"], BundleSettings) if "bundles" in parts else None,
        control=sound(parts["control"], ControlSettings) if "control" in parts else None,
        fleet=sound(parts["fleet"], FleetSettings) if "fleet" in parts else None,
        jobs=(sound(parts["jobs"], JobsSettings) if "jobs" in parts else None) or JobsSettings(),
        evidence=(sound(parts["evidence"], EvidenceSettings) if "evidence" in parts else None) or EvidenceSettings(),
        telemetry=(sound(parts["telemetry"], TelemetrySettings) if "telemetry" in parts else None)
        or TelemetrySettings(),
        verifier=(sound(parts["verifier"], VerifierSettings) if "verifier" in parts else None) or VerifierSettings(),
    )
    return config, [position for position, route in enumerate(found) if route is not None]


def _broken(file: str, reason: str, advice: str = "") -> ConfigError:
    return ConfigError((Fault(file=file, reason=reason, advice=advice),))
