"""Loads the configuration once, reports all faults of the file at once, and reads secrets. Nothing else does.

Relative paths are made absolute from the configuration file's folder, so that nothing depends on where a process
was started.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from checkstream.config.background import GroundingSettings, JobsSettings, PseudonymSettings, VerifierSettings
from checkstream.config.files import BUILTIN, advice_for, policy_file, read_file
from checkstream.config.parts import Secret
from checkstream.config.reader import Node, build, read_tree
from checkstream.config.settings import (
    AuditSettings,
    Config,
    Match,
    RouteSettings,
    Server,
    Upstream,
)
from checkstream.config.trusted import EvidenceSettings
from checkstream.core.policy import nodes
from checkstream.core.policy.capabilities import MCP, PROMPT_ONLY
from checkstream.core.wire.places import NAMES, PLACES, covers, takes_model
from checkstream.errors import ConfigError, Fault

_T = TypeVar("_T")

DEFAULT_POLICIES = (BUILTIN + "default",)
PASSED_PATHS: Mapping[str, tuple[str, Literal["GET", "POST"]]] = {
    "models": ("/v1/models", "GET"),
    "model": ("/v1/models/*", "GET"),
    "ollama-tags": ("/api/tags", "GET"),
    "ollama-ps": ("/api/ps", "GET"),
    "ollama-version": ("/api/version", "GET"),
    "ollama-show": ("/api/show", "POST"),
}
"""Of the default configuration, by the name of the route: what goes through unguarded, since no prompt is in it."""
_UNSOUND = Upstream(url="http://unsound")
"""Stands in for an upstream with faults, so that its routes don't miss it."""
_SWITCH = "ENABLE_VERIFICATION"
NOT_YET = {
    "server.tls": "end TLS in front of it",
    "server.callers.jwt": "list callers with keys",
    "telemetry.otlp": "collect the Prometheus metrics of the admin listener",
}
"""Settings of the documented format that this version can't carry out -> what to do."""


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
            config = _absolute(config, base)
            _cross_check(config, range(len(config.routes)), tree, source)
        else:
            sound, positions = _sound_parts(tree, name, content)
            _cross_check(_absolute(sound, base), positions, tree, source)
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
) -> Config:
    """Return what `checkstream serve --upstream URL` runs: policies in front of one model server.

    Args:
        upstream: The server's root.
        policies: In place of the default ones, if there are any; files are relative to the working directory.
        listen: As `override`.
        admin: As `override`.
        log: As `override`.

    Raises:
        ConfigError: the url or an address is not one.
    """
    try:
        config = override(unplaced(upstream, policies), listen=listen, admin=admin, log=log)
    except ValueError as error:
        raise _broken("command line", str(error)) from error
    return _absolute(config, Path.cwd())


def unplaced(upstream: str, policies: Sequence[str] = ()) -> Config:
    """Return the configuration for one model server, with paths that are still relative.

    Raises:
        ValueError: the url is none.
    """
    guarding = tuple(policies) or DEFAULT_POLICIES
    guarded = [
        RouteSettings(
            name=_name_at(path),
            match=Match(path=path),
            upstream="default",
            policies=guarding,
        )
        for path in PLACES
    ]
    passed = [
        RouteSettings(name=name, match=Match(path=path, method=method), upstream="default", pass_=True)
        for name, (path, method) in PASSED_PATHS.items()
    ]
    return Config(upstreams={"default": Upstream(url=upstream)}, routes=(*guarded, *passed))


def override(config: Config, *, listen: str | None = None, admin: str | None = None, log: str | None = None) -> Config:
    """Return the configuration with other listeners and another form of logs, as the command line asks.

    Raises:
        ConfigError: an address is not one, or is not allowed without callers or a token.
    """
    replace = msgspec.structs.replace
    changes = {name: value for name, value in (("listen", listen), ("admin", admin)) if value is not None}
    try:
        if changes:
            config = replace(config, server=replace(config.server, **changes))
    except ValueError as error:
        raise _broken("command line", str(error)) from error
    return config if log is None else replace(config, telemetry=replace(config.telemetry, log=log))


def reveal(secret: Secret) -> str:
    """Return the value of a secret, with its prefix.

    Raises:
        ConfigError: the environment variable or the file is not there, or is empty.
    """
    if secret.env is not None:
        value, origin = os.environ.get(secret.env, ""), f"environment variable `{secret.env}`"
    else:
        origin = f"file `{secret.file}`"
        try:
            value = Path(secret.file or "").read_text("utf-8").strip()
        except (OSError, UnicodeError) as error:
            raise _broken("secret", f"{origin} can't be read: {error}", "check the path and its rights") from error
    if not value:
        raise _broken("secret", f"{origin} is not set", "set it before the start")
    if not value.isprintable():
        raise _broken("secret", f"{origin} holds line breaks or control characters", "put one line into it")
    return secret.prefix + value


def warnings(config: Config) -> list[str]:
    """Return what is allowed but should be known."""
    found = []
    if config.server.callers == "none":
        found.append("server.callers is none: every caller counts as authenticated")
    found += [
        f"route `{route.name}` passes requests on unguarded"
        for route in config.routes
        if route.pass_ and (route.match.path, route.match.method) not in PASSED_PATHS.values()
    ]
    found += [
        f"route `{later.name}` is never taken: `{earlier.name}` stands before it and takes all that it would"
        for position, later in enumerate(config.routes)
        for earlier in [
            next((route for route in config.routes[:position] if _takes_all(route.match, later.match)), None)
        ]
        if earlier is not None
    ]
    found += [
        f"route `{route.name}` has fail_mode open: what a failed detector would have checked passes"
        for route in config.routes
        if route.fail_mode == "open"
    ]
    found += [
        f"route `{route.name}` blocks whole answers of high risk only: text of a stream has gone out by then"
        for route in config.routes
        if route.grounding is not None and route.grounding.block is not None
    ]
    found += [
        f"route `{route.name}` blocks whole answers and has fail_mode open: one that can't be assessed in time goes out"
        for route in config.routes
        if route.grounding is not None and route.grounding.block is not None and route.fail_mode == "open"
    ]
    record = config.record
    if record.dir is not None and record.text == "plain":
        found.append("record.text is plain: prompts and answers are kept as they are, with all personal data in them")
    if record.dir is not None and not record.sample:
        found.append("record.dir is given and record.sample is 0: nothing is recorded")
    return found


def _name_at(path: str) -> str:
    """Return the name of a route at one of the paths that servers have in common."""
    parts = (part for part in path.removeprefix("/v1").split("/") if part != "{model}")
    return "-".join(filter(None, (part.strip("{}") for part in parts)))


def _takes_all(wide: Match, narrow: Match) -> bool:
    """Tell whether one match takes every request that the other would."""
    beginning = wide.path.endswith("*") and narrow.path.startswith(wide.path[:-1])
    places = wide.method == narrow.method and (wide.path == narrow.path or beginning)
    return places and takes_model(wide.model, narrow.model)


def _absolute(config: Config, base: Path) -> Config:
    """Return the configuration with every relative path made absolute from `base`."""
    replace = msgspec.structs.replace

    def secret(given: Secret) -> Secret:
        return given if given.file is None else replace(given, file=str(base / given.file))

    server = config.server
    if server.admin_token is not None:
        server = replace(server, admin_token=secret(server.admin_token))
    if isinstance(server.callers, list):
        server = replace(server, callers=[replace(caller, key=secret(caller.key)) for caller in server.callers])
    audit = replace(config.audit, dir=str(base / config.audit.dir))
    if audit.key is not None:
        audit = replace(audit, key=secret(audit.key))
    record = config.record
    if record.dir is not None:
        record = replace(record, dir=str(base / record.dir))
    upstreams = {
        name: replace(
            upstream,
            headers={
                header: secret(value) if isinstance(value, Secret) else value
                for header, value in upstream.headers.items()
            },
        )
        for name, upstream in config.upstreams.items()
    }

    def grounding(given: GroundingSettings | None) -> GroundingSettings | None:
        if given is None or given.webhook is None:
            return given
        return replace(given, webhook=replace(given.webhook, secret=secret(given.webhook.secret)))

    routes = tuple(
        replace(
            route,
            policies=tuple(
                reference if reference.startswith(BUILTIN) else str(base / reference) for reference in route.policies
            ),
            grounding=grounding(route.grounding),
        )
        for route in config.routes
    )
    models = None if config.models is None else str(base / config.models)
    verifier = config.verifier
    if verifier.key is not None:
        verifier = replace(verifier, key=secret(verifier.key))
    return replace(
        config,
        server=server,
        audit=audit,
        record=record,
        upstreams=upstreams,
        routes=routes,
        models=models,
        pseudonyms=_absolute_pseudonyms(config.pseudonyms, base),
        jobs=_absolute_jobs(config.jobs, base),
        evidence=_absolute_evidence(config.evidence, base),
        verifier=verifier,
    )


def _absolute_evidence(evidence: EvidenceSettings, base: Path) -> EvidenceSettings:
    changes: dict[str, object] = {}
    if evidence.file is not None:
        changes["store"] = f"sqlite:{base / evidence.file}"
    if evidence.authority is not None:
        changes["authority"] = str(base / evidence.authority)
    if evidence.secret is not None and evidence.secret.file is not None:
        changes["secret"] = msgspec.structs.replace(evidence.secret, file=str(base / evidence.secret.file))
    changes["sources"] = tuple(source if "://" in source else (base / source).as_posix() for source in evidence.sources)
    return msgspec.structs.replace(evidence, **changes)


def _absolute_pseudonyms(given: PseudonymSettings | None, base: Path) -> PseudonymSettings | None:
    if given is None:
        return None
    changes: dict[str, object] = {} if given.file is None else {"store": f"sqlite:{base / given.file}"}
    for name, value in (("secret", given.secret), ("password", given.password)):
        if value is not None and value.file is not None:
            changes[name] = msgspec.structs.replace(value, file=str(base / value.file))
    return msgspec.structs.replace(given, **changes)


def _absolute_jobs(jobs: JobsSettings, base: Path) -> JobsSettings:
    if jobs.file is not None:
        return msgspec.structs.replace(jobs, store=f"sqlite:{base / jobs.file}")
    if jobs.password is not None and jobs.password.file is not None:
        password = msgspec.structs.replace(jobs.password, file=str(base / jobs.password.file))
        return msgspec.structs.replace(jobs, password=password)
    return jobs


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
        jobs=(sound(parts["jobs"], JobsSettings) if "jobs" in parts else None) or JobsSettings(),
        evidence=(sound(parts["evidence"], EvidenceSettings) if "evidence" in parts else None) or EvidenceSettings(),
        verifier=(sound(parts["verifier"], VerifierSettings) if "verifier" in parts else None) or VerifierSettings(),
    )
    return config, [position for position, route in enumerate(found) if route is not None]


def _cross_check(config: Config, positions: Sequence[int], tree: Node, source: nodes.Source) -> None:
    """Report what is wrong between the parts: unknown upstreams, names used twice, files and secrets not there.

    Args:
        config: The settings, or those of them that are sound.
        positions: Where each of its routes stands in the file's list.
        tree: The file's values and their places.
        source: The file, where faults go.
    """
    if not config.routes and not tree.at("routes").value:
        source.fault(tree.at("routes").place, "there are no routes, so every request would get a 404", "add one")
    names: set[str] = set()
    own = [route.match.path for route in config.routes if not route.pass_]
    for position, route in zip(positions, config.routes, strict=True):
        node = tree.at("routes", position)
        if route.name in names:
            source.fault(node.at("name").place, f"the route `{route.name}` stands twice", "give each its own name")
        names.add(route.name)
        if route.upstream not in config.upstreams:
            known = ", ".join(config.upstreams) or "none"
            source.fault(
                node.at("upstream").place, f"the upstream `{route.upstream}` is not defined", f"defined: {known}"
            )
        _check_match(route, node, source, (*PLACES, *own))
        for index, reference in enumerate(route.policies):
            if not _is_file(policy_file(reference)):
                source.fault(
                    node.at("policies", index).place,
                    f"`{reference}` is no policy file",
                    advice_for(
                        reference,
                        "paths are relative to the configuration file; what is shipped begins with `builtin:`",
                    ),
                )
    _check_secrets(config, positions, tree, source)


def _check_secrets(config: Config, positions: Sequence[int], tree: Node, source: nodes.Source) -> None:
    """Report secrets that are not there, and callers who could not be told apart."""
    callers = config.server.callers if isinstance(config.server.callers, list) else []
    keys: set[str] = set()
    for secret, node in _secrets(config, positions, tree):
        try:
            value = reveal(secret)
        except ConfigError as error:
            source.fault(node.place, error.faults[0].reason, error.faults[0].advice)
            continue
        if any(secret is caller.key for caller in callers):
            if value in keys:
                source.fault(node.place, "another caller has the same key", "give each its own, to tell them apart")
            keys.add(value)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False


def _check_match(route: RouteSettings, node: Node, source: nodes.Source, guarded: Sequence[str]) -> None:
    """Report what this route can't match; `guarded` are the paths that are read."""
    match = node.at("match")
    if route.pass_:
        if route.match.model != "*":
            source.fault(match.at("model").place, "a route with `pass: true` can't match by model", "remove `model`")
        covered = [path for path in guarded if route.match.path[-1] == "*" and covers(route.match.path, path)]
        if covered and route.match.method == "POST":
            source.fault(
                match.at("path").place,
                f"`{route.match.path}` would also pass `{covered[0]}` on unguarded",
                "name the paths that are meant",
            )
        return
    if route.match.path[-1] == "*":
        source.fault(
            match.at("path").place,
            f"`{route.match.path}` takes paths of many APIs, and a guarded route speaks one",
            "write the whole path, with `{name}` for a part that varies; `pass: true` sends all on unguarded",
        )
    elif route.api is None:
        source.fault(
            match.at("path").place,
            f"nobody knows which API is spoken at `{route.match.path}`",
            f"add `surface:` with one of {', '.join(NAMES)}; `pass: true` sends it on unguarded",
        )
    if route.api in PROMPT_ONLY and route.grounding is not None:
        reason = f"the answers of `{route.match.path}` are figures, so there is nothing to score"
        source.fault(node.at("grounding").place, reason, "remove `grounding`")
    if route.match.method != "POST":
        source.fault(match.at("method").place, "a guarded route takes `POST`", "remove `method`")
    _check_tools(route, node, source)


def _check_tools(route: RouteSettings, node: Node, source: nodes.Source) -> None:
    """Report what only a route of tools can have, and what it can't."""
    if route.api != MCP:
        given = {"pins": bool(route.pins), "tools_changed": route.tools_changed != "alert"}
        for name in (name for name, is_given in given.items() if is_given):
            source.fault(node.at(name).place, f"`{name}` is for routes of `mcp`", f"remove `{name}`")
        return
    if route.match.model != "*":
        source.fault(node.at("match", "model").place, "messages of `mcp` name no model", "remove `model`")
    if route.grounding is not None:
        reason = "what tools say is evidence, and there is no answer to hold against it"
        source.fault(node.at("grounding").place, reason, "remove `grounding`")


def _secrets(config: Config, positions: Sequence[int], tree: Node) -> list[tuple[Secret, Node]]:
    found: list[tuple[Secret, Node]] = []
    if config.server.admin_token is not None:
        found.append((config.server.admin_token, tree.at("server", "admin_token")))
    if isinstance(config.server.callers, list):
        found += [
            (caller.key, tree.at("server", "callers", position, "key"))
            for position, caller in enumerate(config.server.callers)
        ]
    found += [
        (value, tree.at("upstreams", name, "headers", header))
        for name, upstream in config.upstreams.items()
        for header, value in upstream.headers.items()
        if isinstance(value, Secret)
    ]
    found += [
        (route.grounding.webhook.secret, tree.at("routes", position, "grounding", "webhook", "secret"))
        for position, route in zip(positions, config.routes, strict=True)
        if route.grounding is not None and route.grounding.webhook is not None
    ]
    if config.pseudonyms is not None:
        found.append((config.pseudonyms.secret, tree.at("pseudonyms", "secret")))
        if config.pseudonyms.password is not None:
            found.append((config.pseudonyms.password, tree.at("pseudonyms", "password")))
    if config.jobs.password is not None:
        found.append((config.jobs.password, tree.at("jobs", "password")))
    if config.evidence.secret is not None:
        found.append((config.evidence.secret, tree.at("evidence", "secret")))
    if config.verifier.key is not None:
        found.append((config.verifier.key, tree.at("verifier", "key")))
    if config.audit.key is not None and config.audit.key.env is not None:  # a key file is made at the first start
        found.append((config.audit.key, tree.at("audit", "key")))
    return found


def _broken(file: str, reason: str, advice: str = "") -> ConfigError:
    return ConfigError((Fault(file=file, reason=reason, advice=advice),))
