"""Every setting, as frozen structs with their bounds and defaults. Reads nothing; `load.py` fills them.

Units stand in the names. Rules that span fields stand in `__post_init__`; rules that span structs (a route's upstream
exists) in `checks.py`, where the place in the file is known.
"""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from checkstream.config.background import (
    BundleSettings,
    ControlSettings,
    FleetSettings,
    GroundingSettings,
    JobsSettings,
    PseudonymSettings,
    RescoreSettings,
    ToolSettings,
    VerifierSettings,
    check_store,
)
from checkstream.config.parts import Ms, Name, Secret, Settings
from checkstream.config.servers import Quota, Server, Upstream
from checkstream.config.telemetry import TelemetrySettings
from checkstream.config.trusted import EvidenceSettings
from checkstream.core.match.language import LANGUAGES
from checkstream.core.wire.places import SurfaceName, fault_of, surface_at


class Match(Settings, frozen=True):
    """Which requests a route takes."""

    path: Annotated[str, Meta(min_length=1)]
    """A path. `{name}` stands for one part of it of any name, and `{model}` for one that is the model's name, as in
    `/openai/deployments/{model}/chat/completions`. With `pass: true` it may be a beginning of paths followed by `*`."""
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] = "POST"
    """Guarded routes take `POST`, and besides what their API takes."""
    model: str = "*"
    """A name, or a beginning of names followed by `*`. It counts what the path has for `{model}`, else the body's
    `model`, whatever its letter case, spaces and percent-encoding are."""

    def __post_init__(self) -> None:
        """The path is one, or a pattern; `*` only at an end."""
        fault = fault_of(self.path)
        if fault is not None:
            raise ValueError(fault)
        if "*" in self.model[:-1]:
            raise ValueError(f"`{self.model}`: `*` may stand at the end only")


class HoldbackSettings(Settings, frozen=True):
    """How much text waits behind the classifiers; patterns hold exactly what they must, whatever these say."""

    tokens: Annotated[int, Meta(ge=0, le=4096)] = 16
    """Most tokens that wait behind the classifiers once risk is raised."""
    calm_tokens: Annotated[int, Meta(ge=0, le=4096)] = 0
    """Tokens that wait while risk is low; three at least where classifiers find entities."""
    check_every: Annotated[int, Meta(ge=1, le=4096)] = 6
    """A classifier is asked each time so many tokens have come."""
    window: Annotated[int, Meta(ge=1, le=4096)] = 64
    """Tokens that one check reads."""
    max_delay_ms: Annotated[int, Meta(ge=1, le=60_000)] = 250
    """Text that waits is checked after this time without a byte from the upstream, though more is to come."""
    max_hold_ms: Annotated[int, Meta(ge=100, le=3_600_000)] = 30_000
    """The most that text waits for a detector that is busy; one of more than 100,000 characters may wait as much longer
    as it is longer. Then the answer ends as an error `overloaded`, which SDKs repeat, and never as a verdict."""
    by_language: dict[str, Annotated[int, Meta(ge=0, le=4096)]] = msgspec.field(default_factory=dict)
    """Language -> what counts in place of `tokens` once the text is known to be in it. Languages that put much into a
    word, such as Finnish, need more tokens to say as much as others."""

    def __post_init__(self) -> None:
        """A window reaches over what it holds, in every language that can be told, and back to the check before it."""
        if self.calm_tokens > self.tokens:
            raise ValueError(f"`calm_tokens` {self.calm_tokens} is more than `tokens` {self.tokens}; lower it")
        if self.window < self.tokens:
            raise ValueError(f"`window` {self.window} is less than `tokens` {self.tokens}; raise it")
        if self.window < self.check_every:
            raise ValueError(f"`window` {self.window} is less than `check_every` {self.check_every}; raise it")
        for language, tokens in self.by_language.items():
            if language not in LANGUAGES:
                known = ", ".join(sorted(LANGUAGES))
                raise ValueError(f"`by_language`: `{language}` is no language that can be told; known: {known}")
            if self.window < tokens:
                raise ValueError(f"`window` {self.window} is less than the {tokens} of `{language}`; raise it")


class Budget(Settings, frozen=True):
    """Soft limit of a check, before its hard deadline: how long a caller waits for it. What is over it is recorded."""

    ingress_ms: Annotated[float, Meta(gt=0)] = 150
    """Of a prompt's check, of up to 4,000 characters; a longer prompt has as much more as it is longer."""
    check_ms: Annotated[float, Meta(gt=0)] = 50
    """Of one check of an answer."""
    on_exceeded: Literal["degrade", "hold", "shed"] = "hold"
    """hold (the safe default): text waits for the answer. degrade: the rules' own patterns, phrases and entities decide
    alone, where every rule that waits has some; else it waits. shed: text waits, new requests get 429 for a moment."""
    work_ms: Annotated[int, Meta(ge=100, le=3_600_000)] = 20_000
    """The most work of patterns, phrases and entities on one exchange, in milliseconds of a usual core, counted and not
    measured. Past it `fail_mode` decides: closed ends the exchange with the error `work_exceeded`, open records it."""


class Deadline(Settings, frozen=True):
    """The most work of one detector on 64 tokens, in CPU time; past it, or when it hangs, `fail_mode` decides.

    A larger window has it for each such part, so no text is too long, and how long a check waits for its turn does not
    count. Of a remote detector it is the time to an answer.
    """

    ingress_ms: Annotated[float, Meta(gt=0, le=60_000)] = 1000
    """Of a check of a prompt."""
    check_ms: Annotated[float, Meta(gt=0, le=60_000)] = 1000
    """Of a check of an answer."""


class Cors(Settings, frozen=True):
    """Pages that may use a route from a browser. The proxy answers for itself; the upstream is never asked."""

    origins: tuple[str, ...]
    """Such as `https://chat.example.com`, or `*` for every page."""

    def __post_init__(self) -> None:
        """Each is an origin."""
        if not self.origins:
            raise ValueError("`origins` is empty, so no page may ask; add one, or remove `cors`")
        for origin in self.origins:
            if origin == "*":
                continue
            try:
                parts = urlsplit(origin)
                sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
            except ValueError:
                sound = False
            if not sound or f"{parts.scheme}://{parts.netloc}" != origin or "@" in origin:
                raise ValueError(f"`{origin}` is not an origin; write `https://host` or `http://host:port`, or `*`")


class RouteSettings(Settings, frozen=True):
    """What happens to the requests that match. The first route that matches is taken."""

    name: Name
    """Stands in logs, metrics and audit records."""
    match: Match
    """Which requests it takes."""
    upstream: Name
    """Name of the model server, one of `upstreams`."""
    surface: SurfaceName | None = None
    """Which API is spoken there; null: the one that everybody speaks at such a path."""
    policies: tuple[str, ...] = ()
    """`builtin:NAME`, or paths relative to the configuration file."""
    holdback: HoldbackSettings = HoldbackSettings()
    """How much of an answer waits behind the classifiers."""
    budget: Budget = Budget()
    """Soft limits of checks."""
    deadline: Deadline = Deadline()
    """Hard limits of checks."""
    fail_mode: Literal["open", "closed"] = "closed"
    """What happens when a detector fails. closed: the prompt is refused, the answer stopped. open: what it would have
    checked passes."""
    parts: Literal["pass", "refuse"] = "pass"
    """What becomes of what is no text: images, sound, files such as PDF. Refused are prompts with such parts; answers
    lose them. Files of text are read."""
    unknown_fields: Literal["scan", "refuse"] = "scan"
    """What becomes of fields of a request that the proxy doesn't know. scan: every string, name and number in them is
    read like the prompt, and they are forwarded. refuse: the request is refused, by the field's name."""
    known_fields: Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=256)], ...], Meta(max_length=256)] = ()
    """Further fields of a request that are known on this route, written as refusals and records write them, such as
    `provider` or `messages[].trace`: they are read like the prompt and forwarded, and are never refused as unknown."""
    tools_changed: Literal["alert", "refuse"] = "alert"
    """What becomes of a tool of a server of tools (`surface: mcp`) that is described otherwise than when it was first
    seen, or pinned. alert: metric, log and audit record say so. refuse: it is also taken out of lists, and calls of it
    are refused."""
    pins: dict[str, Annotated[str, Meta(pattern="^[0-9a-fA-F]{64}$")]] = msgspec.field(default_factory=dict)
    """Tool -> SHA-256, in hex, of how it is to be described (`surface: mcp`); others count as they are first seen."""
    keepalive_ms: Annotated[int, Meta(ge=100, le=600_000)] = 10_000
    """A stream whose text is held this long gets a comment line, so that nobody in between gives up."""
    rescore: RescoreSettings | None = None
    """Judge a sample of answers again after they have gone out; null: none."""
    grounding: GroundingSettings | None = None
    """How answers are scored after they have gone out; null: not at all."""
    cors: Cors | None = None
    """Which web pages may ask and read the answers; null: none."""
    quota: Quota | None = None
    """What one caller may have on this route, besides what it may have of the whole process."""
    body_bytes: Annotated[int, Meta(ge=1024)] | None = None
    """Of one request's body; null: as `server.limits.body_bytes` has it, which is the most that counts."""
    pass_: bool = msgspec.field(name="pass", default=False)
    """Send requests on unguarded; the audit log says so."""

    @property
    def api(self) -> SurfaceName | None:
        """The API that is guarded here; None: none is, or nobody knows which."""
        return None if self.pass_ else self.surface or surface_at(self.match.path)

    def __post_init__(self) -> None:
        """Guarded or passed, never both."""
        if self.pass_ and self.policies:
            raise ValueError("a route with `pass: true` has no policies; remove one of the two")
        if self.pass_ and self.surface is not None:
            raise ValueError("a route with `pass: true` is not read, so it speaks no `surface`; remove one of the two")
        if self.pass_ and self.rescore is not None:
            raise ValueError("a route with `pass: true` reads no answers, so none can be judged; remove `rescore`")
        if self.pass_ and self.grounding is not None:
            raise ValueError("a route with `pass: true` reads no answers, so none can be scored; remove `grounding`")
        if not self.pass_ and not self.policies:
            raise ValueError('`policies` is missing; name some, such as `["builtin:default"]`, or write `pass: true`')


class AuditSettings(Settings, frozen=True):
    """What is remembered, and how surely."""

    dir: str = "var/audit"
    """Folder of the audit log; relative to the configuration file."""
    durability: Literal["strict", "group"] = "group"
    """strict: an entry is on disk before its stream's end is sent; group: the loss window is `fsync_ms`."""
    fsync_ms: Annotated[int, Meta(ge=1, le=60_000)] = 200
    """How long records wait for the disk with `durability: group`."""
    segment_bytes: Annotated[int, Meta(ge=4096)] = 67_108_864
    """A file of the log that has grown so long is closed, and the next begun."""
    text: Literal["hash"] = "hash"
    """How spans are kept: as keyed digests, never as text."""
    key: Secret | None = None
    """Key of the digests; without it one is made beside the log's folder at the first start."""


class RecordSettings(Settings, frozen=True):
    """Transcripts of a sample of exchanges, for `checkstream replay`."""

    dir: str | None = None
    """Where they are kept; null: nothing is recorded."""
    sample: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Share of exchanges that is recorded."""
    text: Literal["masked", "plain"] = "masked"
    """masked: specimens stand in place of personal data and secrets; what can't be masked is not recorded, such as
    messages of servers of tools (`surface: mcp`), which go both ways. plain: all is recorded as it is."""
    retention_days: Annotated[int, Meta(ge=1, le=3650)] = 7
    """Older transcripts are removed."""
    max_bytes: Annotated[int, Meta(ge=1_048_576)] = 1_073_741_824
    """Bytes of all transcripts together; the oldest are removed first."""

    def __post_init__(self) -> None:
        """A share without a place is a mistake."""
        if self.dir is None and self.sample:
            raise ValueError("`sample` is given without `dir`; name a directory, such as `dir: var/record`")


class ConversationSettings(Settings, frozen=True):
    """What earlier requests of a conversation came to: risks, rules, counts."""

    store: str | None = None
    """`sqlite:FILE`, shared by the processes of one machine, or `redis://HOST:PORT/DB`, `rediss://` with TLS; all that
    is kept there is sealed. null: the memory of each process, which ends with it."""
    secret: Secret | None = None
    """What a store is sealed with, of 32 bytes at least (`openssl rand -base64 32`); the same in all processes."""
    password: Secret | None = None
    """Of the Redis server, such as `{env: REDIS_PASSWORD}`."""
    timeout_ms: Ms = 500
    """How long a request waits for a store. Where it can't be read, rules that ask for what only it knows meet the
    route's `fail_mode`."""
    texts: bool = True
    """Keep, sealed, what the user said last (the ends of three texts, of short ones up to eight) where a rule reads it
    as one and no later request says it again: of conversations that a caller or a provider names, or that go on from an
    answer."""
    ttl_s: Annotated[int, Meta(ge=1, le=2_592_000)] = 3_600
    """How long a conversation is remembered behind its last request."""
    bytes: Annotated[int, Meta(ge=65_536)] = 33_554_432
    """Of all conversations; of the caller that has most, those are forgotten first that have rested longest."""

    def __post_init__(self) -> None:
        """A store is one that there is, and has a secret."""
        if self.store is None:
            if self.secret is not None or self.password is not None:
                raise ValueError("a process's own memory has no secret and no password; name a `store`, or remove them")
            return
        check_store(self.store, self.password, "var/conversations.db")
        if self.secret is None:
            raise ValueError("a `store` needs a `secret` that seals it: `openssl rand -base64 32` makes one")

    @property
    def file(self) -> str | None:
        """The file of a SQLite store; None for others."""
        store = self.store or ""
        return store.removeprefix("sqlite:") if store.startswith("sqlite:") else None


class Config(Settings, frozen=True):
    """The whole configuration."""

    server: Server = Server()
    """The listeners and who may use them."""
    upstreams: dict[str, Upstream] = msgspec.field(default_factory=dict)
    """The model servers, by name."""
    routes: tuple[RouteSettings, ...] = ()
    """What happens to which requests; the first that matches is taken, what none takes gets 404."""
    models: str | None = None
    """A file that names models of the operator's own (`models/README.md`), fetched by `checkstream models pull`."""
    audit: AuditSettings = AuditSettings()
    """What is remembered of every exchange."""
    record: RecordSettings = RecordSettings()
    """Transcripts of a sample of exchanges."""
    conversations: ConversationSettings | None = ConversationSettings()
    """What is remembered of conversations; null: nothing."""
    pseudonyms: PseudonymSettings | None = None
    """Where names that stand for personal data are kept for a conversation; null: nowhere, they are of one request."""
    tools: ToolSettings | None = None
    """Where it is kept how tools of servers were described; null: nowhere, each process learns it anew."""
    bundles: BundleSettings | None = None
    """Where signed policies come from; null: policies are files."""
    control: ControlSettings | None = None
    """The control server that says which bundle to have; null: there is none, and the newest is taken."""
    fleet: FleetSettings | None = None
    """Other machines that serve as one with this one; null: there are none."""
    jobs: JobsSettings = JobsSettings()
    """The queue of answers that are scored in the background."""
    evidence: EvidenceSettings = EvidenceSettings()
    """The store of trusted documents."""
    verifier: VerifierSettings = VerifierSettings()
    """Who judges whether evidence supports a claim."""
    telemetry: TelemetrySettings = TelemetrySettings()
    """How logs are written, which models metrics tell apart, and who is told of exchanges besides."""
