"""Settings of what operators see: logs, metrics, and OpenTelemetry."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from checkstream.config.parts import Name, Secret, Settings
from checkstream.config.servers import CallerName


class OtlpSettings(Settings, frozen=True):
    """A collector of OpenTelemetry, which is told of exchanges and metrics by OTLP over HTTP. By the extra `otel`."""

    endpoint: str
    """Root of its addresses, such as `http://127.0.0.1:4318`; `/v1/traces` and `/v1/metrics` are put behind it."""
    headers: dict[Name, Secret] = msgspec.field(default_factory=dict)
    """Sent along, such as `{authorization: {env: OTLP_TOKEN, prefix: "Bearer "}}`."""
    sample: Annotated[float, Meta(ge=0, le=1)] = 0.1
    """Share of the exchanges that are told as spans. Of those whose caller sends `traceparent`, what it says counts."""
    metrics_s: Annotated[int, Meta(ge=0, le=3600)] = 60
    """How often metrics are told, seconds; 0: never."""
    service: Name = "checkstream"
    """What this proxy is called there (`service.name`)."""

    def __post_init__(self) -> None:
        """The collector is one, and no password stands in its address."""
        url = urlsplit(self.endpoint)
        if url.scheme not in {"http", "https"} or not url.hostname or url.query or url.fragment:
            raise ValueError(f"`{self.endpoint}` is no collector; write its root, such as `http://127.0.0.1:4318`")
        if url.username is not None or url.password is not None:
            raise ValueError("`endpoint` holds a password; send it in `headers`, from a secret")
        if url.path.rstrip("/").endswith(("/v1/traces", "/v1/metrics")):
            raise ValueError(f"`{self.endpoint}` is the address of one signal; leave `/v1/...` out")


class LogSettings(Settings, frozen=True):
    """Logs go to stderr."""

    log: Literal["auto", "json", "console"] = "auto"
    """json: one object a line. console: lines for people. auto: console on a terminal, json elsewhere."""


Told = Literal["none", "aggregate", "decisions", "full_evidence"]
"""What of an exchange leaves its node, from the one that tells least."""


class TelemetrySettings(LogSettings, frozen=True):
    """Logs go to stderr, metrics to whoever asks the admin listener; a `control` server is told of the audit log."""

    models: Literal["answered", "configured"] = "answered"
    """Which models metrics tell apart. configured: those that routes name. answered: also up to 32 others, once an
    upstream has answered to them and no rule fired; where it answers to any name, callers choose those."""
    otlp: OtlpSettings | None = None
    """Who is told of exchanges and metrics, besides; null: nobody. Read at the start."""
    privacy: Told = "decisions"
    """What it is told of an exchange. decisions: its record, with places and digests of what was found, never a text.
    aggregate: one more in the counts of its minute. none: nothing. What is not told still proves that the log is
    whole. full_evidence: its record, and beside it what was asked and answered, sealed to the caller's key, so that
    neither the control server nor anybody else reads it."""
    privacy_of_routes: dict[Name, Told] = msgspec.field(default_factory=dict)
    """Route -> the same of its exchanges. Where route and caller both have a word, the one that tells less counts."""
    privacy_of_callers: dict[CallerName, Told] = msgspec.field(default_factory=dict)
    """Caller -> the same of its exchanges."""
    evidence_key: str | None = None
    """File of the public key (PEM) that evidence is sealed to, of callers without one of their own; `checkstream
    control evidence-key` makes a pair, and who has its other half reads."""
    evidence_keys: dict[CallerName, str] = msgspec.field(default_factory=dict)
    """Caller -> file of the public key of its own."""
    evidence_dir: str = "var/evidence-out"
    """Folder in which evidence that is sealed waits to be sent."""
    evidence_bytes: Annotated[int, Meta(ge=1_048_576)] = 268_435_456
    """Most of it that waits; the oldest is dropped, which is counted."""
    salt: Secret | None = None
    """Of digests, 32 bytes at least (`openssl rand -base64 32`); the same on all nodes, so that equal texts of one
    caller have equal digests on all of them, and those of two callers never. null: digests are of this node alone."""
    batch_ms: Annotated[int, Meta(ge=50, le=3_600_000)] = 1000
    """How long a record waits for others to be sent with."""
    batch_bytes: Annotated[int, Meta(ge=16_384, le=4_194_304)] = 1_048_576
    """Bytes of the log that are sent at once."""
    batch_records: Annotated[int, Meta(ge=1, le=20_000)] = 1000
    """Records that are sent at once."""
    spool_bytes: Annotated[int, Meta(ge=1_048_576)] = 1_073_741_824
    """Most of the log that waits while the server is away; then the oldest records are not sent, which is counted and
    told. The log itself keeps them."""
