"""Settings of trusted documents: where they are kept, where they come from, how they are cut."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from checkstream.config.parts import Secret, Settings, require_no_password

_SQLITE = "sqlite:"
_SCHEMES = ("http", "https", "postgresql", "postgres")

EmbedderKind = Literal["model", "hashing", "titan"]


class EvidenceSettings(Settings, frozen=True):
    """Where evidence is found, and what `checkstream ingest` brings in."""

    store: str = "sqlite:var/evidence.db"
    """`sqlite:FILE`, `https://host:9200/index` (Elasticsearch) or `postgresql://user@host/database`."""
    secret: Secret | None = None
    """Elasticsearch's API key, or PostgreSQL's password."""
    authority: str | None = None
    """File with the certificate that Elasticsearch's is signed with, if that is one of your own."""
    sources: tuple[Annotated[str, Meta(min_length=1)], ...] = ()
    """Files, folders, `https://` pages and `s3://` buckets that `ingest` reads where it is given none."""
    hosts: tuple[str, ...] = ()
    """Names of hosts that pages are fetched from, over https."""
    private_hosts: tuple[str, ...] = ()
    """Hosts of your own network: over http too, and at addresses that are not public."""
    embedder: EmbedderKind = "model"
    """What makes vectors of chunks and claims: the model `embedding`; words hashed into places, which is quick and
    knows no meanings; Titan of AWS Bedrock (extra `bedrock`). A store keeps to the one that it was filled with."""
    chunk_tokens: Annotated[int, Meta(ge=20, le=100_000)] = 500
    """In tokens of that model, or in words."""
    overlap_tokens: Annotated[int, Meta(ge=0, le=50_000)] = 50
    """Tokens that a chunk repeats of the one before it."""
    document_bytes: Annotated[int, Meta(ge=1024, le=1 << 30)] = 67_108_864
    """A longer document is not read."""
    document_ms: Annotated[int, Meta(ge=100, le=3_600_000)] = 60_000
    """How long reading one may take."""

    def __post_init__(self) -> None:
        """The store is of a known kind, hosts are names, and chunks bring more than they repeat."""
        if self.file is None:
            self._require_server()
        elif not self.file or "\0" in self.file:
            raise ValueError(f"`{self.store}` names no file; write `sqlite:var/evidence.db`")
        elif self.secret is not None:
            raise ValueError("a SQLite file has no password; remove `secret`")
        for host in (*self.hosts, *self.private_hosts):
            if not host or not set(host) <= _HOST_CHARS:
                raise ValueError(f"`{host}` is no name of a host; write `docs.example.com`")
        if self.overlap_tokens * 2 > self.chunk_tokens:
            raise ValueError(f"`overlap_tokens` {self.overlap_tokens} is more than half of `chunk_tokens`; lower it")

    def _require_server(self) -> None:
        require_no_password(self.store, "secret")
        try:
            parts = urlsplit(self.store)
            sound = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
        except ValueError:  # a port that is none, brackets without an address
            sound = False
        if not sound or not self.store.isprintable():
            raise ValueError(f"`{self.store}` is no store; write sqlite:FILE, https://... or postgresql://...")

    @property
    def file(self) -> str | None:
        """The file of a SQLite store; None for others."""
        return self.store.removeprefix(_SQLITE) if self.store.startswith(_SQLITE) else None


_HOST_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:")
