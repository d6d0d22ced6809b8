"""What `.llm-reliability.yaml` says, in either of the shapes that its document shows, as one frozen record. Pure.

Files and addresses that it names are only named here; `sources` reads them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

import msgspec
import yaml
from msgspec import Meta

from checkstream.errors import GateError
from checkstream.grounding.decision import Thresholds
from checkstream.grounding.gate_config import CATEGORIES, normalised

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
    num_prompts: Annotated[int, Meta(ge=1, le=10_000)] = 20
    categories: tuple[Words, ...] = CATEGORIES
    library: tuple[str, ...] = ()
    """Files of prompts, asked instead of written ones."""
    min_claims: Annotated[int, Meta(ge=0)] = 1
    parallel: Annotated[int, Meta(ge=1, le=64)] = 4
    target: Model
    judge: Model | None = None
    """None: no model judges; the embedded verifier does, and claims are told by rules."""
    allow_same_model: bool = False
    documents: tuple[str, ...] = ()
    """Addresses of trusted documents, which `checkstream ingest` reads into the store."""
    store: str = "sqlite:var/evidence.db"
    index: str = "trusted_docs"

    def __post_init__(self) -> None:
        """No model verifies its own output."""
        if self.judge is not None and not self.allow_same_model and _same(self.judge, self.target):
            raise ValueError(
                f"target and judge are the same model, `{self.target.name}`, and none may verify its own output; "
                "name another judge, or write `allow_same_model: true`"
            )

    @property
    def fingerprint(self) -> str:
        """Names the configuration apart from the target's version: runs of equal ones are compared."""
        kept = msgspec.to_builtins(self)
        for name in ("target", "parallel", "store", "index"):
            kept.pop(name)
        return hashlib.sha256(msgspec.json.encode(kept, order="sorted")).hexdigest()[:16]


def _same(first: Model, second: Model) -> bool:
    return (first.provider, first.model_id.casefold(), first.root) == (
        second.provider,
        second.model_id.casefold(),
        second.root,
    )


_KNOWN = frozenset(
    {"use_case", "risk_tolerance", "thresholds", "evaluation", "num_prompts", "prompt_categories", "min_claims"}
    | {"doc_sources", "allow_same_model", "model", "target", "judge", "elasticsearch", "evidence", "prompt_library"}
    | {"parallel"}
)
_KNOWN_EVALUATION = frozenset({"num_prompts", "prompt_categories", "min_claims", "prompt_library", "parallel"})


def settings_of(file: object) -> GateSettings:
    """Read a configuration.

    Args:
        file: what the YAML or JSON says, in either shape.

    Raises:
        GateError: something in it is wrong; says what and where.
    """
    plain = normalised(file)
    given = cast("Mapping[str, Any]", file)
    evaluation = given.get("evaluation") or {}
    for known, names, place in ((_KNOWN, given, "the configuration"), (_KNOWN_EVALUATION, evaluation, "`evaluation`")):
        unknown = sorted(str(name) for name in names if name not in known)
        if unknown:
            raise GateError(
                f"{place} has `{unknown[0][:100]}`, which is not known; it takes {', '.join(sorted(known))}"
            )
    target = given.get("target", given.get("model"))
    if target is None:
        raise GateError("`model` is missing: name the model that is evaluated, with `provider`, `model_id` and `url`")
    library = evaluation.get("prompt_library", given.get("prompt_library", ()))
    flat = {
        "use_case": plain.use_case,
        "thresholds": plain.thresholds,
        "num_prompts": plain.num_prompts,
        "categories": plain.prompt_categories,
        "library": (library,) if isinstance(library, str) else library,
        "min_claims": plain.min_claims,
        "parallel": evaluation.get("parallel", given.get("parallel", 4)),
        "target": target,
        "judge": given.get("judge"),
        "allow_same_model": plain.allow_same_model,
        "documents": plain.doc_sources,
        **_store(given),
    }
    try:
        return msgspec.convert(flat, GateSettings)
    except msgspec.ValidationError as error:
        raise GateError(f"{error}; mend the configuration") from error


class _Loader(yaml.SafeLoader):
    """Takes no aliases: a few lines of them can mean more than fits into memory."""

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it holds an alias (`*name`), which is not taken; write out what it stands for")
        return super().compose_node(parent, index)  # type: ignore[arg-type]  # a key or a number, as the parent has it


def read_yaml(name: str, content: bytes) -> object:
    """Read YAML.

    Raises:
        GateError: it is none, or holds an alias.
    """
    try:
        return yaml.load(content.decode("utf-8-sig"), _Loader)  # noqa: S506 - a kind of safe loader
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, AttributeError, KeyError) as error:
        # Not only `YAMLError`: the library's own readers of dates and numbers raise what they meet.
        raise GateError(f"`{name}` is no YAML that can be read: {' '.join(str(error).split())[:300]}") from error


def _store(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return where evidence is kept: `evidence: {store, index}`, or the section that names Elasticsearch alone."""
    elastic, evidence = given.get("elasticsearch"), given.get("evidence")
    if elastic is not None and evidence is not None:
        raise GateError("`elasticsearch` and `evidence` both say where documents are; keep one of them")
    section, key = (elastic, "host") if evidence is None else (evidence, "store")
    if section is None:
        return {}
    if not isinstance(section, Mapping) or not isinstance(section.get(key), str) or set(section) - {key, "index"}:
        name = "elasticsearch" if evidence is None else "evidence"
        raise GateError(f"`{name}` can't be read; it takes `{key}`, an address, and `index`")
    return {"store": section[key], **({"index": section["index"]} if "index" in section else {})}
