"""The reliability gate as operations: `POST /evaluate`, and what runs before came to.

INVARIANT: a path that a caller names is read only below the folder that the operator named. A configuration that a
caller sends is evaluated only where the operator allowed it, and never with a secret of this machine: whoever chooses
the address may not choose what is sent there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import msgspec
from msgspec import Meta

from checkstream.api.operation import Operation
from checkstream.errors import RequestInvalid, RouteUnknown
from checkstream.gate.config_file import read_yaml, settings_of
from checkstream.gate.history import Trend
from checkstream.gate.ledger import Ledger
from checkstream.gate.past import LocalPast, Past
from checkstream.gate.report import Report
from checkstream.gate.settings import GateSettings
from checkstream.gate.terms import Run, Said
from checkstream.listen import Admission, Identity

MOST_RUNS = 1000
_CONFIG = ".llm-reliability.yaml"
_NAMED = (".yaml", ".yml", ".json")
_CONFIG_BYTES = 1 << 20
_AT_ONCE = 4
Seconds = Annotated[float, Meta(ge=0, lt=1e12, description="Seconds since 1970.")]
Words = Annotated[str, Meta(max_length=2000)]


class _Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request; unknown fields are refused."""


class EvaluateRequest(_Asked, frozen=True, kw_only=True):
    """What is evaluated: a file below the operator's folder, or the configuration itself."""

    config_path: str | None = None
    """Relative to that folder, and named `.yaml`, `.yml` or `.json`; `.llm-reliability.yaml` when neither is given."""
    config: dict[str, Any] | None = None
    """As the file says it. Taken only where the operator allows it, and without keys."""
    resume: Words | None = None
    """Id of a run of the same configuration that was cut off or failed: what it finished is not asked again."""


class RunsQuery(_Asked, frozen=True, kw_only=True):
    """Which runs are listed, the newest first."""

    since: Seconds | None = None
    config_hash: Words | None = None
    target: Words | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_RUNS)] = 100


class RunQuery(_Asked, frozen=True, kw_only=True):
    """One run."""

    run_id: str


class TrendQuery(_Asked, frozen=True, kw_only=True):
    """Which runs are looked at."""

    since: Seconds | None = None
    config_hash: Words | None = None
    target: Words | None = None


class SearchQuery(_Asked, frozen=True, kw_only=True):
    """What is looked for in what runs asked, heard, found and decided."""

    q: Words
    """Words; all of them have to be there."""
    kind: Literal["prompt", "response", "claim", "evidence", "verdict", "decision"] | None = None
    since: Seconds | None = None
    until: Seconds | None = None


class RunList(msgspec.Struct, frozen=True, kw_only=True):
    """Runs, the newest first."""

    runs: tuple[Run, ...]


class TrendList(msgspec.Struct, frozen=True, kw_only=True):
    """How risk has changed, for each configuration."""

    trends: tuple[Trend, ...]


class FoundList(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, the best first."""

    found: tuple[Said, ...]


class Evaluate(Protocol):
    """Runs an evaluation; `Gate.evaluate` is one."""

    def __call__(self, config: GateSettings, *, resume: str | None = None) -> Awaitable[Report]:
        """Evaluate `config`, or go on with the run `resume`."""
        ...


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one caller: what makes them, and where they are."""

    evaluate: Evaluate
    """Runs what a file below the operator's folder says."""
    ledger: Ledger
    """What this process's runs are kept in, ended or not."""
    past: Past | None = None
    """Tells of runs; None: what is in `ledger`."""
    inline: Evaluate | None = None
    """Runs a configuration that a caller sends, with no secret at hand; None: none is taken."""

    @property
    def told(self) -> Past:
        """Who tells of them."""
        return self.past or LocalPast(self.ledger)


class Evaluation:
    """Evaluates models for callers, and tells each of its own runs.

    INVARIANT: what one caller's runs asked, heard and decided is nowhere that another's requests reach.
    """

    def __init__(self, runs: Mapping[str | None, Runs], *, root: Path, at_once: int = _AT_ONCE) -> None:
        """Answer from what runs left.

        Args:
            runs: those of each caller, by its name; of None where callers have no names.
            root: configurations are read below it.
            at_once: evaluations that run at a time.
        """
        self._runs_of = runs
        self._root = root.resolve()
        self._admission = Admission(streams=at_once, held_bytes=1)

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What can be asked."""
        return (
            Operation("POST", "/evaluate", "May a model be deployed?", EvaluateRequest, (Report,), self._run),
            Operation("GET", "/runs", "Which runs were there?", RunsQuery, (RunList,), self._runs),
            Operation("GET", "/runs/{run_id}", "What came of a run?", RunQuery, (Report, Run), self._one),
            Operation("GET", "/trend", "How has risk changed?", TrendQuery, (TrendList,), self._trend),
            Operation("GET", "/search", "What did runs say about it?", SearchQuery, (FoundList,), self._search),
        )

    async def _run(self, asked: EvaluateRequest, caller: Identity) -> Report:
        own = self._runs_of[caller.name]
        with self._admission.visit() as visit:
            visit.enter()
            if asked.config is None:
                given = await asyncio.to_thread(self._file, asked.config_path or _CONFIG)
                return await own.evaluate(settings_of(given), resume=asked.resume)
            if asked.config_path is not None:
                raise RequestInvalid("`config` and `config_path` are both given; send one of them")
            if own.inline is None:
                raise RequestInvalid("`config` is not taken here; name a file with `config_path`")
            settings = settings_of(asked.config)
            _require_harmless(settings)
            return await own.inline(settings, resume=asked.resume)

    def _file(self, path: str) -> object:
        """Read a configuration below the root.

        Raises:
            RequestInvalid: it is named as no configuration is; other files are none of a caller's business.
            RouteUnknown: there is no such file there.
            GateError: it is no YAML.
        """
        if not path.endswith(_NAMED):
            raise RequestInvalid(f"`{path[:200]}` is no configuration; name a file that ends in {', '.join(_NAMED)}")
        try:
            found = (self._root / path).resolve(strict=True)
            inside = found.is_relative_to(self._root) and found.is_file() and found.name.endswith(_NAMED)
            content = found.read_bytes() if inside and found.stat().st_size <= _CONFIG_BYTES else None
        except (OSError, ValueError, RuntimeError):
            content = None
        if content is None:
            raise RouteUnknown(f"there is no configuration `{path[:200]}` here; name one below the served folder")
        return read_yaml(path, content)

    async def _runs(self, asked: RunsQuery, caller: Identity) -> RunList:
        found = await self._runs_of[caller.name].told.runs(
            since=asked.since, config_hash=asked.config_hash, target=asked.target, limit=asked.limit
        )
        return RunList(runs=tuple(found))

    async def _one(self, asked: RunQuery, caller: Identity) -> msgspec.Raw | Run:
        """Return the report of a run, or the run itself where it has none: a run of this process may go on yet."""
        own = self._runs_of[caller.name]
        run = await asyncio.to_thread(own.ledger.run, asked.run_id)
        if run is not None and run.decision is None:
            return run
        past = own.told if run is None else LocalPast(own.ledger)
        report = await past.report(asked.run_id)
        if report is None:
            raise RouteUnknown(f"there is no run `{asked.run_id[:100]}`; `/runs` lists them")
        return msgspec.Raw(report.encode())

    async def _trend(self, asked: TrendQuery, caller: Identity) -> TrendList:
        found = await self._runs_of[caller.name].told.trends(
            since=asked.since, config_hash=asked.config_hash, target=asked.target
        )
        return TrendList(trends=tuple(found))

    async def _search(self, asked: SearchQuery, caller: Identity) -> FoundList:
        found = await self._runs_of[caller.name].told.search(
            asked.q, kind=asked.kind, since=asked.since, until=asked.until
        )
        return FoundList(found=tuple(found))


def _require_harmless(settings: GateSettings) -> None:
    """Let a caller's own configuration pass that reads no files but stores, and reaches nothing with a key.

    Raises:
        RequestInvalid: it names a file of prompts, a server that holds documents, a key, or a provider that finds its
            keys by itself.
    """
    for model in (settings.target, settings.judge):
        if model is not None and (model.api_key_env or model.provider == "bedrock"):
            raise RequestInvalid(
                f"`{model.name}` needs a key of this machine, which a `config` that is sent can't have; put it into a "
                "file below the served folder, and name that with `config_path`"
            )
    if (
        settings.prompt_library
        or settings.history
        or settings.embedder == "titan"
        or not settings.store.startswith("sqlite:")
    ):
        raise RequestInvalid(
            "a `config` that is sent names no `prompt_library` or `history`, no store but `sqlite:FILE`, and not "
            "`titan`; put it into a file below the served folder, and name that with `config_path`"
        )
