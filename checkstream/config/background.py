"""Settings of what happens after an answer has gone out: which answers are scored, and the queue in between."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from checkstream.config.parts import Ms, Secret, Settings, require_no_password

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class WebhookSettings(Settings, frozen=True):
    """Who is called about high risks. Redirects are not followed."""

    url: str
    """Gets a `POST` for each risk that is high; https, or http to this machine."""
    secret: Secret
    """Signs each call, after Standard Webhooks; `whsec_` and base64, or any text."""

    def __post_init__(self) -> None:
        """The url is https, or http to this machine: what it is sent must come unchanged."""
        try:
            parts = urlsplit(self.url)
            host = parts.hostname or ""
            sound = bool(host) and parts.port != 0 and self.url.isascii() and self.url.isprintable()
        except ValueError:  # a port that is none, brackets without an address
            sound = False
        if not sound or " " in self.url or parts.scheme not in ("http", "https") or parts.fragment:
            raise ValueError(f"`{self.url}` is no url of a webhook; write `https://host/path`")
        if parts.username or parts.password:
            raise ValueError("the url holds a password; the receiver knows calls by their signature")
        if parts.scheme == "http" and host not in _LOOPBACK:
            raise ValueError(f"`{self.url}` is not encrypted; write https, http is for this machine only")


class VerifierSettings(Settings, frozen=True):
    """Who says what evidence supports."""

    kind: Literal["reader", "embedded", "cross_encoder", "judge"] | None = None
    """embedded: words, numbers, names and negations are compared here. reader: the same, and the model `reader` reads
    claim and evidence together. cross_encoder: a model of yours does, alone. judge: a language model is asked. null:
    `reader` in workers, `embedded` in replies, which wait for it."""
    url: str | None = None
    """Of the judge: root of an OpenAI-compatible API, such as `https://api.openai.com/v1`."""
    model: str | None = None
    """The judge's name there; of `cross_encoder` the name of a model of the kind `pair` in `models`."""
    key: Secret | None = None
    """Sent as a bearer token."""
    timeout_ms: Annotated[int, Meta(ge=1, le=600_000)] = 30_000
    """For a question with all its repeats."""

    def __post_init__(self) -> None:
        """A judge is somewhere and has a name; what reads here has no place, and only a model of yours a name."""
        if self.kind == "judge" and (self.url is None or not self.model):
            raise ValueError("a judge needs `url` and `model`; write both, or `kind: embedded`")
        if self.kind == "cross_encoder" and not self.model:
            raise ValueError("a cross-encoder needs `model`: one of the kind `pair` in your models.yaml")
        if self.kind != "judge" and (self.url or self.key):
            raise ValueError(f"{self._named} asks nobody; write `kind: judge`, or remove `url` and `key`")
        if self.kind not in ("judge", "cross_encoder") and self.model:
            raise ValueError(f"{self._named} has its own model; remove `model`, or write another `kind`")
        try:
            parts = urlsplit(self.url or "http://unnamed")
            sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # a port that is none, brackets without an address
            sound = False
        if not sound or not (self.url or "").isprintable():
            raise ValueError(f"`{self.url}` is no url of an API; write `https://host/v1`")
        if parts.username or parts.password:
            raise ValueError("the url holds a password; give `key` from the environment")

    @property
    def _named(self) -> str:
        return "the verifier of this machine" if self.kind is None else f"`{self.kind}`"


Profile = Literal["watchdog", "rag", "budget"]
"""watchdog: the risk engine. rag: RAG verification. budget: the evidence budget."""


class RescoreSettings(Settings, frozen=True):
    """A sample of a route's answers is judged again when they have gone out, as one text, by `checkstream worker`."""

    sample: Annotated[float, Meta(ge=0, le=1)] = 0.01
    """Share of answers."""
    policies: tuple[str, ...] = ()
    """What judges them, such as a copy with lower thresholds; (): the policies of the route."""


class GroundingSettings(Settings, frozen=True):
    """How a route's answers are held against evidence: in the background by `checkstream worker`, or in the reply."""

    sample: Annotated[float, Meta(ge=0, le=1)] = 1.0
    """Share of answers that is scored in the background."""
    profiles: Annotated[tuple[Profile, ...], Meta(min_length=1)] = ("watchdog",)
    """What scores them. watchdog: the risk engine. rag: RAG verification. budget: the evidence budget."""
    from_store: bool = False
    """Look for evidence in the store (`evidence`) where a request brings no documents along."""
    inline: bool = False
    """Put what the profiles say into the reply."""
    inline_ms: Annotated[int, Meta(ge=1, le=600_000)] = 3_000
    """How long a reply waits for that; then it goes without."""
    block: Annotated[float, Meta(gt=0, le=100)] | None = None
    """Whole answers whose risk reaches this are blocked; null: none are."""
    high: Annotated[float, Meta(ge=0, le=100)] = 70
    """From here on a risk is high."""
    on_high: tuple[Literal["metric", "log", "webhook", "marker"], ...] = ("metric", "log")
    """marker: the conversation's next request is told, where the caller names conversations."""
    marker_ms: Ms = 3_600_000
    """How long a marker waits for that request."""
    webhook: WebhookSettings | None = None
    """Who is called, where `on_high` names `webhook`."""

    def __post_init__(self) -> None:
        """What is to happen can happen."""
        if self.block is not None and not self.inline:
            raise ValueError("`block` needs `inline: true`: a score that comes afterwards can block nothing")
        if len(set(self.profiles)) < len(self.profiles):
            raise ValueError("`profiles` names one twice; name it once")
        if len(set(self.on_high)) < len(self.on_high):
            raise ValueError("`on_high` names something twice; name it once")
        if ("webhook" in self.on_high) != (self.webhook is not None):
            raise ValueError("`webhook` and its name in `on_high` belong together; write both, or neither")


def check_store(store: str, password: Secret | None, example: str) -> None:
    """Hold the name of a store to one that there is: a SQLite file, or a Redis server.

    Raises:
        ValueError: it names none.
    """
    kind, _, rest = store.partition(":")
    if kind == "sqlite":
        if not rest or "\0" in rest or rest.startswith(":"):
            raise ValueError(f"`{store}` names no file; write `sqlite:{example}`")
        if password is not None:
            raise ValueError("a SQLite file has no password; remove `password`")
        return
    check_redis(store, "`sqlite:FILE` or `redis://host:6379/0`")


def check_redis(url: str, wanted: str) -> None:
    """Hold an url to one of a Redis server.

    Args:
        url: What was written.
        wanted: What could have been, for the error.

    Raises:
        ValueError: it is none, or holds a password.
    """
    require_no_password(url, "password")
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("redis", "rediss") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none, brackets without an address
        sound = False
    if not sound or parts.query or parts.fragment:
        raise ValueError(f"`{url}` is no store; write {wanted}")


class PseudonymSettings(Settings, frozen=True):
    """Names that stand for personal data, kept sealed over the requests of a conversation that has a name."""

    secret: Secret
    """What they are sealed with, of 32 bytes at least (`openssl rand -base64 32`); the same in all processes."""
    store: str = "sqlite:var/pseudonyms.db"
    """`sqlite:FILE`, for the processes of one machine, or `redis://HOST:PORT/DB`, `rediss://` with TLS."""
    password: Secret | None = None
    """Of the Redis server, such as `{env: REDIS_PASSWORD}`."""
    ttl_s: Annotated[int, Meta(ge=1, le=31_536_000)] = 86_400
    """How long the names of a conversation are kept after the last one was given."""
    bytes: Annotated[int, Meta(ge=16_777_216)] = 134_217_728
    """Of all names; of the caller that has most, those are forgotten first that have rested longest. Placeholders of
    names that were forgotten stay as they are."""

    def __post_init__(self) -> None:
        """The store is one that there is."""
        check_store(self.store, self.password, "var/pseudonyms.db")

    @property
    def file(self) -> str | None:
        """The file of a SQLite store; None for others."""
        return self.store.removeprefix("sqlite:") if self.store.startswith("sqlite:") else None


class ToolSettings(Settings, frozen=True):
    """How servers of tools (`surface: mcp`) have described them, kept for all processes, and over their restarts."""

    secret: Secret
    """What it is sealed with, of 32 bytes at least (`openssl rand -base64 32`); the same in all processes."""
    store: str = "sqlite:var/tools.db"
    """`sqlite:FILE`, for the processes of one machine, or `redis://HOST:PORT/DB`, `rediss://` with TLS."""
    password: Secret | None = None
    """Of the Redis server, such as `{env: REDIS_PASSWORD}`."""

    def __post_init__(self) -> None:
        """The store is one that there is."""
        check_store(self.store, self.password, "var/tools.db")

    @property
    def file(self) -> str | None:
        """The file of a SQLite store; None for others."""
        return self.store.removeprefix("sqlite:") if self.store.startswith("sqlite:") else None


class FleetSettings(Settings, frozen=True):
    """Other machines that serve as one with this one: quotas, busy routes and confirmations are those of all."""

    store: str
    """Where they meet: `redis://HOST:PORT/DB`, or `rediss://` with TLS. Where it is away each machine counts by itself,
    and confirmations are refused."""
    secret: Secret
    """Of 32 bytes at least (`openssl rand -base64 32`); the same on all machines. What they tell each other is sealed
    with it."""
    password: Secret | None = None
    """Of the Redis server, such as `{env: REDIS_PASSWORD}`."""

    def __post_init__(self) -> None:
        """The store is one that several machines reach."""
        check_redis(self.store, "`redis://host:6379/0`, or `rediss://` with TLS; a file is of one machine")


class BundleSettings(Settings, frozen=True):
    """Policies that come as a signed bundle; a route asks for one of its programs as `bundle:NAME`."""

    source: str
    """Where bundles are published: `https://...`, or a folder."""
    root: str
    """File of the root metadata that this node trusts, given to it by a way of your own."""
    name: Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9-]{0,62}\Z")]
    """Of the bundle."""
    poll_s: Annotated[int, Meta(ge=1, le=3600)] = 30
    """How often it is looked for a newer one, give or take a fifth; 15 to 60 is usual."""
    dir: str = "var/bundles"
    """Folder of the bundles that this node has, and of what it has seen; where the source is away it starts from it."""

    def __post_init__(self) -> None:
        """The source is one."""
        if "://" in self.source and not self.source.startswith(("https://", "http://")):
            raise ValueError(f"`{self.source}` is no source of bundles; write `https://...`, or a folder")


class ControlSettings(Settings, frozen=True):
    """A control server: this node tells it what it is and has, and is told which bundle to have."""

    url: str
    """`https://control.example:8100`; `http://` only to this machine."""
    node: Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9.-]{0,62}\Z")]
    """What the server calls this node."""
    key: str
    """File of the node's private key (PEM, Ed25519), for nobody else to read; `checkstream bundle key` makes it."""
    ca: str | None = None
    """File with the certificate that the server's is signed with, if that is one of your own."""
    certificate: str | None = None
    """File of this node's certificate (PEM), for servers that ask for one; read anew when it changes."""
    certificate_key: str | None = None
    """File of its private key."""
    poll_s: Annotated[int, Meta(ge=1, le=3600)] = 15
    """How often it attests, give or take a fifth."""

    def __post_init__(self) -> None:
        """The server is reached by TLS, or is on this machine."""
        try:
            parts = urlsplit(self.url)
            sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            sound = False
        if not sound or parts.query or parts.fragment or "@" in parts.netloc or parts.path.strip("/"):
            raise ValueError(f"`{self.url}` is no address of a server; write `https://control.example:8100`")
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            raise ValueError(f"`{self.url}` would be asked in the clear; write `https://`")
        if (self.certificate is None) != (self.certificate_key is None):
            raise ValueError("`certificate` and `certificate_key` belong together; write both, or neither")


class JobsSettings(Settings, frozen=True):
    """The queue between the proxy and its workers."""

    store: str = "sqlite:var/jobs.db"
    """`sqlite:FILE`, for the processes of one machine, or `redis://HOST:PORT/DB`, `rediss://` with TLS."""
    password: Secret | None = None
    """Of the Redis server, such as `{env: REDIS_PASSWORD}`."""
    capacity: Annotated[int, Meta(ge=1, le=100_000_000)] = 100_000
    """Most jobs that wait or are worked on."""
    max_bytes: Annotated[int, Meta(ge=1_048_576)] = 1_073_741_824
    """Bytes of all of them together."""
    job_bytes: Annotated[int, Meta(ge=1024, le=104_857_600)] = 1_048_576
    """A longer exchange is not scored."""
    buffer: Annotated[int, Meta(ge=1, le=1_000_000)] = 10_000
    """Most exchanges that wait in the proxy's memory for the store."""
    buffer_chars: Annotated[int, Meta(ge=1024)] = 67_108_864
    """Most characters of all of them."""
    full: Literal["drop_new", "drop_oldest", "sample"] = "drop_new"
    """What has to go when the queue, or the buffer before it, is full. sample: from half full on a shrinking share is
    taken."""
    attempts: Annotated[int, Meta(ge=1, le=100)] = 5
    """A job that failed so often is a dead letter."""
    lease_ms: Annotated[int, Meta(ge=1000, le=3_600_000)] = 60_000
    """A job of a worker that died is another's after this time."""
    concurrency: Annotated[int, Meta(ge=1, le=1024)] = 4
    """Jobs that one worker does at a time."""
    retention_days: Annotated[int, Meta(ge=1, le=3650)] = 30
    """How long results and dead letters are kept."""

    def __post_init__(self) -> None:
        """The store is one that there is."""
        check_store(self.store, self.password, "var/jobs.db")

    @property
    def file(self) -> str | None:
        """The file of a SQLite store; None for others."""
        return self.store.removeprefix("sqlite:") if self.store.startswith("sqlite:") else None
