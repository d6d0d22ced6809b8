"""What a gate is asked to judge, as one frozen record. Pure; `config_file` makes it of a file in either shape."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from checkstream.config import EmbedderKind
from checkstream.grounding.decision import Thresholds

MAX_PROMPTS = 10_000
CATEGORIES: tuple[str, ...] = ("factual_recall", "edge_cases", "policy_boundaries", "ambiguous_queries")
Words = Annotated[str, Meta(min_length=1, max_length=2000)]


class _Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A group of settings; unknown keys are refused."""


class Model(_Settings, frozen=True, kw_only=True):
    """A model behind an API."""

    provider: Literal["openai", "ollama", "bedrock"] = "openai"
    """`openai`: any server that speaks OpenAI's chat API."""
    model_id: Words
    url: str = ""
    """Root of the server; a trailing `/v1` is accepted. Bedrock has none but its region's."""
    api_key_env: str = ""
    """Environment variable with the key; the key itself never stands in the file."""
    system: str = ""
    """System prompt that it runs with in production."""
    max_tokens: Annotated[int, Meta(ge=1, le=131_072)] = 1024
    timeout_s: Annotated[float, Meta(gt=0, le=3600)] = 120.0

    def __post_init__(self) -> None:
        """A server has an address."""
        if self.provider == "bedrock":
            if self.url:
                raise ValueError("`url` has no meaning for bedrock; set the region in the environment")
            return
        parts = urlsplit(self.root)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
            raise ValueError(f"`{self.url}` is not the address of a server; write `http://host:port`")

    @property
    def root(self) -> str:
        """The server's address without a path at its end."""
        url = self.url or ("http://127.0.0.1:11434" if self.provider == "ollama" else "")
        return url.rstrip("/").removesuffix("/v1")

    @property
    def name(self) -> str:
        """What names it in reports and comparisons."""
        return f"{self.provider}:{self.model_id}"


class GateSettings(_Settings, frozen=True, kw_only=True):
    """Everything that decides what a run does. Equal settings and equal documents mean comparable runs."""

    use_case: Words
    thresholds: Thresholds
    num_prompts: Annotated[int, Meta(ge=1, le=MAX_PROMPTS)] = 20
    prompt_categories: Annotated[tuple[Words, ...], Meta(min_length=1, max_length=100)] = CATEGORIES
    prompt_library: Annotated[tuple[Words, ...], Meta(max_length=100)] = ()
    """Files of prompts, asked instead of written ones."""
    min_claims: Annotated[int, Meta(ge=0, le=MAX_PROMPTS)] = 1
    """Fewer claims prove nothing: the gate warns."""
    parallel: Annotated[int, Meta(ge=1, le=64)] = 4
    target: Model
    judge: Model | None = None
    """None: no language model judges; the verifier `reader` does, and claims are told by rules."""
    allow_same_model: bool = False
    doc_sources: tuple[str, ...] = ()
    """Addresses (`s3://bucket/prefix`, `https://...`, a path) that `checkstream ingest` reads into the store."""
    store: str = "sqlite:var/evidence.db"
    index: str = "trusted_docs"
    embedder: EmbedderKind = "model"
    """What the store was filled with."""
    history: str = ""
    """Elasticsearch in which many machines keep their runs (`https://host:9200/index`); empty: the file alone."""

    def __post_init__(self) -> None:
        """No model verifies its own output; a history is an address without a password."""
        parts = urlsplit(self.history)
        if self.history and (parts.scheme not in {"http", "https"} or not parts.hostname or parts.password):
            raise ValueError(f"`{self.history}` is no address of a history; write `https://host:9200/index`")
        if self.judge is not None and not self.allow_same_model and _same(self.judge, self.target):
            raise ValueError(
                f"target and judge are the same model, `{self.target.name}`, and none may verify its own output; "
                "name another judge, or write `allow_same_model: true`"
            )

    def fingerprint(self, library: str = "") -> str:
        """Name the configuration apart from the target's version: runs of equal ones are compared.

        Args:
            library: digest of what the files of prompts hold.
        """
        kept = {**msgspec.to_builtins(self), "prompt_library": library}
        for name in ("target", "parallel", "store", "index", "history"):
            kept.pop(name)
        return hashlib.sha256(msgspec.json.encode(kept, order="sorted")).hexdigest()[:16]


def _same(first: Model, second: Model) -> bool:
    return (first.provider, first.model_id.casefold(), first.root) == (
        second.provider,
        second.model_id.casefold(),
        second.root,
    )
