"""What may change while the process runs: configuration, compiled policies, routes. Built whole, or not at all."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from checkstream.app.following import Pointer, current, expanded, pointers, uses_bundle
from checkstream.app.lists import lists_beside
from checkstream.app.models import OpenModel, asked, files_of, labels_of, open_models
from checkstream.app.routing import routes_of, surface_of
from checkstream.config import (
    BUILTIN,
    Config,
    RouteSettings,
    Secret,
    Upstream,
    advice_for,
    policy_file,
    read_file,
    reveal,
    warnings,
)
from checkstream.core.match.warm import warming
from checkstream.core.policy.capabilities import Target
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.nodes import Given
from checkstream.core.policy.program import Program
from checkstream.errors import ConfigError, Fault, FaultyFile, ModelError, PolicyError
from checkstream.proxy.accept import Route
from checkstream.proxy.candidate import Candidate, Chosen
from checkstream.proxy.health import CandidateStatus
from checkstream.proxy.upstream import UpstreamClient
from checkstream.scoring.catalog import Model
from checkstream.scoring.provenance import Described, described_models
from checkstream.scoring.scorer import Scorer
from checkstream.scoring.session import Session
from checkstream.telemetry.drift import Counts, Key


class LoadedBeside(msgspec.Struct, frozen=True, kw_only=True):
    """The candidate of a rollout, and whose exchanges it decides."""

    loaded: Loaded
    chosen: Chosen


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
    candidate: LoadedBeside | None = None
    """Another bundle that decides for a share of the callers; its files and models are among these."""
    left_out: str = ""
    """Why there is no candidate though there should be one; empty: there is one, or there should be none."""

    @property
    def digest(self) -> str:
        """SHA-256 of the configuration, hex; it holds no secrets."""
        return configuration_hash(self.config)

    @property
    def hashes(self) -> tuple[str, ...]:
        """Hash of each program, a candidate's too."""
        return tuple(dict.fromkeys(program.hash for program in self.every_program))

    @property
    def packs(self) -> tuple[str, ...]:
        """`name@version` of each pack, a candidate's too."""
        return tuple(dict.fromkeys(pack for program in self.every_program for pack in program.packs))

    @property
    def every_program(self) -> tuple[Program, ...]:
        """All programs, a candidate's too."""
        beside = () if self.candidate is None else self.candidate.loaded.programs.values()
        return (*self.programs.values(), *beside)

    def without_candidate(self, error: Exception) -> Loaded:
        """Return what is left where a candidate can't be used: its callers are answered as all others are."""
        first = str(error).partition("\n")[0]
        said = f"the candidate can't be used, so all callers are answered by the bundle before it: {first}"
        models = asked(self.programs.values(), {model.entry.name: model for model in self.models})
        return msgspec.structs.replace(self, candidate=None, models=models, left_out=said)


def configuration_hash(config: Config) -> str:
    """Return SHA-256 of a configuration, hex; it holds no secrets."""
    return hashlib.sha256(msgspec.json.encode(config, order="deterministic")).hexdigest()


class InForce(msgspec.Struct, frozen=True, kw_only=True):
    """What requests that come now run under."""

    loaded: Loaded
    routes: tuple[Route, ...]
    candidate: Candidate | None = None
    """The routes of a share of the callers."""
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
        every = (*self.routes, *(() if self.candidate is None else self.candidate.routes))
        guarded = ((route.name, route.plan) for route in every if route.plan is not None)
        return tuple(dict.fromkeys((name, pack) for name, plan in guarded for pack in plan.program.packs))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is allowed but should be known."""
        return (*warnings(self.loaded.config), *filter(None, (self.loaded.left_out,)))


def candidate_of(force: InForce) -> CandidateStatus | None:
    """Return what is told of the candidate in force; None: there is none."""
    beside = force.loaded.candidate
    if beside is None:
        return None
    return CandidateStatus(
        bundle=beside.loaded.bundle,
        digest=beside.loaded.bundle_digest,
        share=beside.chosen.share,
        salt=beside.chosen.salt,
        programs=beside.loaded.hashes,
    )


def title_of(model: OpenModel) -> str:
    """Return `name@version` of a model."""
    return f"{model.source.entry.name}@{model.source.entry.version}"


def load(read: Callable[[], Config], pointer: Pointer | None = None) -> Loaded:
    """Read the configuration and compile its policies. Blocks on files and takes CPU time: not for the event loop.

    A candidate that can't be used is left out: its callers are answered by the base, which was approved as well.

    Args:
        read: Returns the configuration.
        pointer: To the bundle that policies are of; None: to the one that is current.

    Raises:
        ConfigError: the configuration, or a file that it names, can't be used.
        PolicyError: policies can't be used; carries every fault of every route.
        ModelError: what says which models there are can't be used.
    """
    written = read()
    if pointer is None and written.bundles is not None and uses_bundle(written):
        pointer = current(written.bundles)  # once, so that base and candidate are of one moment
    base = load_base(written, pointer)
    if pointer is None or pointer.candidate is None:
        return base
    try:
        beside = load_base(written, pointer.candidate.pointer)
    except (FaultyFile, ModelError) as error:
        return base.without_candidate(error)
    described = described_models(base.config.models)
    chosen = Chosen(share=pointer.candidate.share, salt=pointer.candidate.salt)
    return msgspec.structs.replace(
        base,
        candidate=LoadedBeside(loaded=beside, chosen=chosen),
        files=tuple(dict.fromkeys((*base.files, *beside.files))),
        models=asked((*base.programs.values(), *beside.programs.values()), described),
    )


def load_base(written: Config, pointer: Pointer | None = None) -> Loaded:
    """Compile the policies of a configuration with one bundle, and leave candidates alone. Blocks, as `load` does.

    Raises:
        ConfigError: as `load`.
        PolicyError: as there.
        ModelError: as there.
    """
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


def with_models(
    loaded: Loaded, known: Iterable[OpenModel], open_session: Callable[[Model], Session]
) -> tuple[Loaded, tuple[OpenModel, ...]]:
    """Open the models of what was loaded; a candidate whose models can't be opened is left out. See `open_models`.

    Raises:
        ConfigError: a model can't be trusted, read or run.
    """
    try:
        return loaded, open_models(loaded.models, known, open_session)
    except ConfigError as error:
        if loaded.candidate is None:
            raise
        alone = loaded.without_candidate(error)
    return alone, open_models(alone.models, known, open_session)


def warm(loaded: Loaded) -> None:
    """Let what policies search for read some text, in turn, so that the first caller's is not the first.

    Takes CPU time, but not more than so much of it: all packs together would read for a minute.
    """
    end = time.thread_time() + _WARM_S
    cold = [warming(patterns) for program in loaded.every_program for patterns in program.searched]
    while cold and time.thread_time() < end:
        cold = [each for each in cold if time.thread_time() >= end or next(each, each) is None]


def _target(route: RouteSettings, config: Config) -> Target:
    """Return what a route's policies can count on.

    Raises:
        ConfigError: nobody knows what is spoken there.
    """
    can = frozenset[str](config.upstreams[route.upstream].can)
    return Target(route.name, surface_of(route).name, route.upstream, can)


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
    return InForce(
        loaded=loaded,
        routes=routes_of(loaded.config, loaded.programs, upstreams, scorer, titles),
        candidate=None if loaded.candidate is None else _beside(loaded.candidate, upstreams, scorer, titles),
        upstreams=upstreams,
        generation=1 if before is None else before.generation + 1,
        models=models,
        scorer=scorer,
    )


def _beside(
    candidate: LoadedBeside, upstreams: Mapping[str, UpstreamClient], scorer: Scorer, titles: Mapping[str, str]
) -> Candidate:
    loaded = candidate.loaded
    routes = routes_of(loaded.config, loaded.programs, upstreams, scorer, titles)
    marked = tuple(msgspec.structs.replace(route, candidate=True) for route in routes)
    return Candidate(routes=marked, chosen=candidate.chosen)


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


def _client(name: str, settings: Upstream, known: UpstreamClient | None) -> UpstreamClient:
    headers = {
        header: reveal(value) if isinstance(value, Secret) else value for header, value in settings.headers.items()
    }
    if known is not None and known.same(settings, headers):
        return known
    return UpstreamClient(name, settings, headers)


_WARM_S = 1.0
"""CPU time before the first caller is let in."""
