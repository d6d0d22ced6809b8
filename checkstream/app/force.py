"""What may change while the process runs: configuration, compiled policies, routes. Built whole, or not at all."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from checkstream.app.following import Pointer, expanded, pointers
from checkstream.app.lists import lists_beside
from checkstream.app.models import OpenModel, asked, files_of, labels_of
from checkstream.config import (
    BUILTIN,
    Config,
    GroundingSettings,
    RouteSettings,
    Secret,
    Upstream,
    advice_for,
    policy_file,
    read_file,
    reveal,
    warnings,
)
from checkstream.core.channel.checks import HoldSettings
from checkstream.core.exchange.guard import Plan
from checkstream.core.exchange.plan import Assessing
from checkstream.core.match.warm import warming
from checkstream.core.policy.capabilities import Target
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.nodes import Given
from checkstream.core.policy.program import Program
from checkstream.core.wire.mcp.surface import Mcp
from checkstream.core.wire.surface import Surface
from checkstream.core.wire.surfaces import spoken
from checkstream.errors import ConfigError, Fault, PolicyError
from checkstream.proxy.accept import Route
from checkstream.proxy.upstream import UpstreamClient
from checkstream.scoring.provenance import Described, described_models
from checkstream.scoring.scorer import Scorer
from checkstream.telemetry.drift import Counts, Key


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """Files read, checked and compiled; nothing opened yet."""

    config: Config
    programs: Mapping[tuple[str, ...], Program]
    """A route's `policies` -> what they compile to."""
    files: tuple[Path, ...]
    """The files that were read: policies, and what says which models there are."""
    models: tuple[Described, ...]
    """The models that the programs ask."""
    bundle: str
    """What policies are of, as `name@version#hash`; empty: they are files."""
    sources: Mapping[str, bytes]
    """Policy files as they were read, by the names that routes have for them."""
    bundle_digest: str
    """The whole of that hash."""
    configuration: str
    """SHA-256 of the configuration as it is written, hex: the same whichever bundle there is."""

    @property
    def digest(self) -> str:
        """SHA-256 of the configuration, hex; it holds no secrets."""
        return configuration_hash(self.config)

    @property
    def hashes(self) -> tuple[str, ...]:
        """Hash of each program."""
        return tuple(program.hash for program in self.programs.values())

    @property
    def packs(self) -> tuple[str, ...]:
        """`name@version` of each pack."""
        return tuple(dict.fromkeys(pack for program in self.programs.values() for pack in program.packs))


def configuration_hash(config: Config) -> str:
    """Return SHA-256 of a configuration, hex; it holds no secrets."""
    return hashlib.sha256(msgspec.json.encode(config, order="deterministic")).hexdigest()


class InForce(msgspec.Struct, frozen=True, kw_only=True):
    """What requests that come now run under."""

    loaded: Loaded
    routes: tuple[Route, ...]
    upstreams: Mapping[str, UpstreamClient]
    generation: int
    models: tuple[OpenModel, ...]
    scorer: Scorer
    """Asks the models; the same as before where they are."""

    @property
    def titles(self) -> tuple[str, ...]:
        """`name@version` of each model that is open."""
        return tuple(map(title_of, self.models))

    @property
    def model_hashes(self) -> dict[str, str]:
        """`name@version` of each model that is open -> SHA-256 of the hashes of its files, hex."""
        files = ({file.path: file.sha256 for file in model.source.entry.files} for model in self.models)
        told = (hashlib.sha256(msgspec.json.encode(each, order="deterministic")).hexdigest() for each in files)
        return dict(zip(self.titles, told, strict=True))

    @property
    def reference(self) -> dict[Key, Counts]:
        """What the models say of calm texts."""
        return {key: counts for model in self.models for key, counts in model.reference.items()}

    @property
    def models_named(self) -> tuple[str, ...]:
        """The models that routes take, as they name them."""
        return tuple(route.match.model for route in self.routes)

    @property
    def policies(self) -> tuple[tuple[str, str], ...]:
        """Route and `name@version` of each policy that it has."""
        guarded = ((route.name, route.plan) for route in self.routes if route.plan is not None)
        return tuple((name, pack) for name, plan in guarded for pack in plan.program.packs)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is allowed but should be known."""
        return tuple(warnings(self.loaded.config))


def title_of(model: OpenModel) -> str:
    """Return `name@version` of a model."""
    return f"{model.source.entry.name}@{model.source.entry.version}"


def load(read: Callable[[], Config], pointer: Pointer | None = None) -> Loaded:
    """Read the configuration and compile its policies. Blocks on files and takes CPU time: not for the event loop.

    Args:
        read: Returns the configuration.
        pointer: To the bundle that policies are of; None: to the one that is current.

    Raises:
        ConfigError: the configuration, or a file that it names, can't be used.
        PolicyError: policies can't be used; carries every fault of every route.
        ModelError: what says which models there are can't be used.
    """
    written = read()
    config, bundle, digest = expanded(written, pointer)
    described = described_models(config.models)
    labels = labels_of(described.values())
    targets: dict[tuple[str, ...], list[Target]] = {}
    for route in config.routes:
        if not route.pass_:
            targets.setdefault(route.policies, []).append(_target(route, config))
    programs: dict[tuple[str, ...], Program] = {}
    files: dict[Path, None] = {}
    read_as: dict[str, bytes] = {}
    faults: dict[Fault, None] = {}
    for policies, reached in targets.items():
        sources: list[Given] = []
        for reference in policies:
            file = policy_file(reference)
            files[file] = None
            name, content = reference if reference.startswith(BUILTIN) else str(file), _content(reference, file)
            sources.append((name, content))
            read_as[reference] = content
            for list_name, path, given in lists_beside(name, file, content):
                files[path] = None
                sources.append((list_name, given))
        try:
            programs[policies] = compile_sources(sources, labels, reached)
        except PolicyError as error:
            faults.update(dict.fromkeys(error.faults))
    if faults:
        raise PolicyError(tuple(faults))
    models = asked(programs.values(), described)
    watched = (*files, *files_of(config), *pointers(config))
    return Loaded(
        config=config,
        programs=programs,
        files=watched,
        models=models,
        bundle=bundle,
        bundle_digest=digest,
        configuration=configuration_hash(written),
        sources=MappingProxyType(read_as),
    )


def warm(loaded: Loaded) -> None:
    """Let what policies search for read some text, in turn, so that the first caller's is not the first.

    Takes CPU time, but not more than so much of it: all packs together would read for a minute.
    """
    end = time.thread_time() + _WARM_S
    cold = [warming(patterns) for program in loaded.programs.values() for patterns in program.searched]
    while cold and time.thread_time() < end:
        cold = [each for each in cold if time.thread_time() >= end or next(each, each) is None]


def _target(route: RouteSettings, config: Config) -> Target:
    """Return what a route's policies can count on.

    Raises:
        ConfigError: nobody knows what is spoken there.
    """
    can = frozenset[str](config.upstreams[route.upstream].can)
    return Target(route.name, _surface(route).name, route.upstream, can)


def _surface(route: RouteSettings) -> Surface | Mcp:
    if route.api is None:
        raise ConfigError((Fault(file="configuration", reason=f"`{route.match.path}` needs a `surface`"),))
    return spoken(route.api)


def _content(reference: str, file: Path) -> bytes:
    try:
        return read_file(file)
    except OSError as error:
        advice = advice_for(reference, "check the path")
        fault = Fault(file=reference, reason=f"can't be read: {error.strerror or error}", advice=advice)
        raise ConfigError((fault,)) from error


def put_in_force(loaded: Loaded, models: tuple[OpenModel, ...], scorer: Scorer, before: InForce | None) -> InForce:
    """Return the routes of what was loaded; upstreams that did not change keep their connections.

    Raises:
        ConfigError: a secret is gone, or settings changed that need a restart.
    """
    if before is not None:
        _refuse_restart_settings(before.loaded.config, loaded.config)
    known = {} if before is None else before.upstreams
    upstreams = {name: _client(name, settings, known.get(name)) for name, settings in loaded.config.upstreams.items()}
    titles = {model.source.entry.name: title_of(model) for model in models}
    routes = tuple(_route(route, loaded, upstreams[route.upstream], scorer, titles) for route in loaded.config.routes)
    generation = 1 if before is None else before.generation + 1
    return InForce(
        loaded=loaded, routes=routes, upstreams=upstreams, generation=generation, models=models, scorer=scorer
    )


_AT_START = (
    "server", "audit", "record", "jobs", "evidence", "verifier", "telemetry", "conversations", "pseudonyms", "tools",
    "fleet", "bundles", "control",
)  # fmt: skip
"""Settings that what runs was made with."""


def _refuse_restart_settings(old: Config, new: Config) -> None:
    faults = [
        Fault(
            file="configuration", reason=f"`{name}` has changed", advice="restart to put it in force, or change it back"
        )
        for name in _AT_START
        if getattr(old, name) != getattr(new, name)
    ]
    if searching_routes(old) != searching_routes(new):
        reason, advice = "`from_store` of routes has changed", "restart to put it in force, or change it back"
        faults.append(Fault(file="configuration", reason=reason, advice=advice))
    if faults:
        raise ConfigError(tuple(faults))


def searching_routes(config: Config) -> frozenset[str]:
    """Return the routes whose answers are held against the store of evidence."""
    return frozenset(
        route.name for route in config.routes if route.grounding is not None and route.grounding.from_store
    )


def _assessing(route: RouteSettings) -> Assessing:
    grounding = route.grounding or GroundingSettings()
    return Assessing(
        always=grounding.inline,
        profiles=grounding.profiles,
        deadline_ms=grounding.inline_ms,
        block=grounding.block,
    )


def _client(name: str, settings: Upstream, known: UpstreamClient | None) -> UpstreamClient:
    headers = {
        header: reveal(value) if isinstance(value, Secret) else value for header, value in settings.headers.items()
    }
    if known is not None and known.same(settings, headers):
        return known
    return UpstreamClient(name, settings, headers)


_WARM_S = 1.0
"""CPU time before the first caller is let in."""
_TURN_WORK = 1000
"""The most work of one turn of a guard on the event loop (see `core.match.work`): well below 5 ms on slow cores too."""


def _route(
    route: RouteSettings, loaded: Loaded, upstream: UpstreamClient, scorer: Scorer, models: Mapping[str, str]
) -> Route:
    if route.pass_:
        return Route(
            name=route.name,
            match=route.match,
            upstream=upstream,
            origins=_origins(route),
            quota=route.quota,
            body_bytes=route.body_bytes,
        )
    limits = loaded.config.server.limits
    program = loaded.programs[route.policies]
    kept = loaded.config.conversations
    plan = Plan(
        program=program,
        models=models,
        route=route.name,
        upstream=upstream.name,
        hold=HoldSettings(
            tokens=route.holdback.tokens,
            calm_tokens=route.holdback.calm_tokens,
            check_every=route.holdback.check_every,
            window=route.holdback.window,
            max_delay_ms=route.holdback.max_delay_ms,
            by_language=route.holdback.by_language,
        ),
        fail_mode=route.fail_mode,
        ingress_deadline_ms=route.deadline.ingress_ms,
        check_deadline_ms=route.deadline.check_ms,
        max_hold_ms=route.holdback.max_hold_ms,
        ingress_budget_ms=route.budget.ingress_ms,
        on_exceeded=route.budget.on_exceeded,
        check_budget_ms=route.budget.check_ms,
        turn_work=_TURN_WORK,
        work=route.budget.work_ms * 1000,
        keepalive_ms=route.keepalive_ms,
        held_bytes=limits.held_bytes_per_stream,
        call_bytes=limits.call_bytes,
        event_bytes=limits.event_bytes,
        answer_bytes=limits.answer_bytes,
        prompt_chars=limits.prompt_chars,
        prompt_messages=limits.prompt_messages,
        parts=route.parts,
        unknown_fields=route.unknown_fields,
        known_fields=frozenset(route.known_fields),
        tools_changed=route.tools_changed,
        pins=route.pins,
        assessing=_assessing(route),
        keeps_tools=loaded.config.tools is not None,
        keeps_names=loaded.config.pseudonyms is not None,
        recalls=kept is not None,
        recalls_texts=kept is not None and kept.texts,
        scored_chars=loaded.config.jobs.job_bytes if route.grounding is not None and route.grounding.sample else 0,
    )
    return Route(
        name=route.name,
        match=route.match,
        upstream=upstream,
        surface=_surface(route),
        plan=plan,
        scorer=scorer,
        policies=", ".join(program.packs),
        grounding=route.grounding,
        origins=_origins(route),
        quota=route.quota,
        body_bytes=route.body_bytes,
    )


def _origins(route: RouteSettings) -> frozenset[str]:
    return frozenset() if route.cors is None else frozenset(origin.lower() for origin in route.cors.origins)
