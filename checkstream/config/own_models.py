"""`models.yaml`: the models that an operator brings, where each comes from, and what its output means here.

Says what is wanted. What is there, byte for byte, stands in the lock file that `checkstream models pull` writes
(`scoring/provenance.py`).
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Annotated, Literal
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec import Meta

from checkstream.config.parts import Address, Secret, Settings
from checkstream.config.reader import read_settings

ModelName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
_Share = Annotated[float, Meta(gt=0, lt=1)]
_SHA256 = frozenset("0123456789abcdef")
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")


class ModelSource(Settings, frozen=True):
    """Where the files of a model come from: one of `path`, `url` and `hub`."""

    path: str | None = None
    """A folder; relative to the file that names it."""
    url: str | None = None
    """What stands before the names of the files, with `/` at its end."""
    sha256: dict[str, str] = msgspec.field(default_factory=dict)
    """Of `url`: name of a file -> SHA-256 of its bytes, for every file."""
    hub: str | None = None
    """`owner/name` of a repository of the Hugging Face hub."""
    revision: str | None = None
    """Of `hub`: the commit, 40 hexadecimal digits; a branch could change what is behind it."""

    def __post_init__(self) -> None:
        """One place, named so that nothing else can come to stand there unseen."""
        if sum(place is not None for place in (self.path, self.url, self.hub)) != 1:
            raise ValueError("a source has one of `path`, `url` and `hub`")
        if (self.hub is None) != (self.revision is None):
            raise ValueError("`hub` and `revision` belong together; give both or neither")
        if self.revision is not None and not _is_hex(self.revision, 40):
            raise ValueError(f"`{self.revision}` is no commit; write all 40 hexadecimal digits, not a branch or a tag")
        if self.hub is not None and not _is_repository(self.hub):
            raise ValueError(f"`{self.hub}` is no repository of the hub; write `owner/name`")
        if (self.url is None) != (not self.sha256):
            raise ValueError("`url` and `sha256` belong together; give the hash of every file")
        if self.url is not None:
            require_safe_url(self.url)
            if not self.url.endswith("/"):
                raise ValueError(f"`{self.url}` is no folder; end it with `/`, names of files follow it")
        for name, digest in self.sha256.items():
            if not _is_hex(digest, 64):
                raise ValueError(f"the hash of `{name}` is no SHA-256; write 64 hexadecimal digits in lower case")

    @property
    def origin(self) -> str:
        """The place in one line."""
        if self.hub is not None:
            return f"hub:{self.hub}@{self.revision}"
        return f"url:{self.url}" if self.url is not None else f"path:{self.path}"


class RemoteSettings(Settings, frozen=True):
    """A detector that another process runs and answers for over HTTP."""

    url: str
    """Root of the service; `/v1/detect` is added."""
    model: str | None = None
    """What the service calls the model; without it, it has the same name there."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    """What the service says -> label or ENTITY here, the highest where several have one label; without it, those of the
    shipped model of this name."""
    token: Secret | None = None
    """Sent as `Authorization: Bearer ...`."""
    connections: Annotated[int, Meta(ge=1, le=64)] = 4
    """How many requests may run at once, for prompts and for answers each."""

    def __post_init__(self) -> None:
        """The url is one. It may be http, as that of an upstream: a service nearby often has no certificate."""
        _require_url(self.url)


class OwnRate(Settings, frozen=True):
    """At which score a label keeps to a false-positive rate on benign whole texts."""

    label: str
    """As `labels` names it."""
    fpr: _Share
    """Share of benign whole texts that fire."""
    threshold: _Share
    """From this score on."""


class OwnModel(Settings, frozen=True):
    """One model of an operator."""

    name: ModelName
    """What policies call it; a shipped model of the same name gives way to it."""
    kind: Literal["sequence", "tokens", "pair", "remote"]
    """sequence: labels of a whole text. tokens: spans. pair: claim and evidence together. remote: a detector that
    another process runs."""
    source: ModelSource | None = None
    """Where its files come from; not of kind `remote`."""
    remote: RemoteSettings | None = None
    """Where it answers; of kind `remote` only."""
    graph: str = "model.onnx"
    """File of the graph, at the source."""
    tokenizer: str = "tokenizer.json"
    """File of the tokenizer, at the source."""
    config: str | None = "config.json"
    """Where `id2label` names the columns of the output; null when there is no such file."""
    columns: tuple[str, ...] = ()
    """Names of the columns, in order, when there is no `config`."""
    activation: Literal["sigmoid", "softmax", "none"] | None = None
    """From the graph's output to 0..1: sigmoid when labels are independent, softmax when one of them is true."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    """Column (its name in `id2label`, or its number) -> label here; of kind `tokens` the part behind `B-` and `I-` ->
    entity here. Several may have one label: the highest counts. Columns that are not named are not used."""
    thresholds: dict[str, _Share] = msgspec.field(default_factory=dict)
    """Label or entity -> from where on its score counts when a policy names no threshold."""
    rates: tuple[OwnRate, ...] = ()
    """What was measured on benign texts; needed for `fpr` in policies."""
    window_tokens: Annotated[int, Meta(ge=8, le=65_536)] = 256
    """Tokens that are read at once; a longer text is read in several windows."""
    overlap_tokens: Annotated[int, Meta(ge=0, le=4_096)] = 32
    """Tokens that a window shares with the one before it."""
    version: Annotated[str, Meta(pattern=r"^\d+\.\d+\.\d+$")] = "1.0.0"
    """Stands in logs and audit records beside the name."""
    licence: str = "unknown"
    """Shown by `models list`."""

    def __post_init__(self) -> None:
        """What belongs to the kind is there, and nothing else."""
        if self.kind == "remote":
            if self.remote is None or self.source is not None or self.labels:
                raise ValueError("a model of kind `remote` has `remote` with `url` and `labels`, and no `source`")
        elif self.source is None or self.remote is not None:
            raise ValueError(f"a model of kind `{self.kind}` has a `source`, and no `remote`")
        elif not self.labels:
            raise ValueError("`labels` is missing; say which column of the output is which label")
        if (self.config is None) != bool(self.columns) and self.kind != "remote":
            raise ValueError("the columns of the output are named by `config` or by `columns`; give one of the two")
        if self.kind in ("sequence", "pair") and self.activation is None:
            raise ValueError("`activation` is missing; write sigmoid (independent labels) or softmax (one of them)")
        for role, name in self.files.items():
            _require_file_name(name, ".onnx" if role == "graph" else ".json")
        if self.kind == "pair" and (self.thresholds or self.rates):
            raise ValueError("no policy asks a model of kind `pair`; remove `thresholds` and `rates`")
        self._check_labels()

    def _check_labels(self) -> None:
        for label in self.names:
            upper = self.kind == "tokens" or (self.kind == "remote" and label[:1].isupper())
            if not _is_word(label, upper=upper):
                letters = "capitals" if upper else "small letters"
                raise ValueError(f"`{label}` is no name of {'an entity' if upper else 'a label'}; use {letters}, _")
        for label in (*self.thresholds, *(rate.label for rate in self.rates)):
            if self.names and label not in self.names:
                raise ValueError(f"`{label}` has a threshold and is not in `labels`; correct its name")

    @property
    def names(self) -> tuple[str, ...]:
        """Every label and entity, as it is called here."""
        mapped = self.labels if self.remote is None else self.remote.labels
        return tuple(dict.fromkeys(mapped.values()))

    @property
    def files(self) -> dict[str, str]:
        """Role -> name at the source, of every file that is fetched; none of a remote model."""
        if self.source is None:
            return {}
        named = {"graph": self.graph, "tokenizer": self.tokenizer}
        return named if self.config is None else {**named, "config": self.config}


class OwnModels(Settings, frozen=True):
    """The whole file."""

    models: Annotated[tuple[OwnModel, ...], Meta(max_length=64)]
    """The models, each with a name of its own."""

    def __post_init__(self) -> None:
        """Names are unique; every hash that is needed is there."""
        if len({model.name for model in self.models}) < len(self.models):
            raise ValueError("two models have the same name; give each its own")
        for model in self.models:
            source = model.source
            missing = [
                name for name in model.files.values() if source and source.url is not None and name not in source.sha256
            ]
            if missing:
                raise ValueError(f"model `{model.name}`: `sha256` has no hash of `{missing[0]}`; add it")


def read_own_models(file: Path) -> tuple[OwnModel, ...]:
    """Return the models that a `models.yaml` names; files of tokens are relative to it.

    Raises:
        ConfigError: the file can't be read, or holds faults; carries all of them.
    """
    own = read_settings(file, OwnModels)
    return tuple(_absolute(model, file.resolve().parent) for model in own.models)


def _absolute(model: OwnModel, base: Path) -> OwnModel:
    replace = msgspec.structs.replace
    if model.remote is None or model.remote.token is None or model.remote.token.file is None:
        return model
    token = replace(model.remote.token, file=str(base / model.remote.token.file))
    return replace(model, remote=replace(model.remote, token=token))


def require_safe_url(url: str) -> None:
    """Let only https pass, and http to this machine.

    Raises:
        ValueError: it is no such url, or holds a password, a query or a fragment.
    """
    parts = _require_url(url)
    if parts.scheme == "http" and not Address(parts.hostname or "", 0).loopback:
        raise ValueError(f"`{url}` is not encrypted; write https, http is for this machine only")


def _require_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        known = parts.scheme in ("http", "https") and bool(host) and parts.port != 0 and url.isascii()
    except ValueError:  # a port that is none, brackets without an address
        known = False
    if not known or not url.isprintable() or " " in url:
        raise ValueError(f"`{url}` is no url; write `https://host/...`")
    if parts.query or parts.fragment:
        raise ValueError(f"`{url}` has a query or a fragment; leave it out")
    if parts.username or parts.password:
        raise ValueError("the url holds a password; give a `token` from the environment")
    return parts


def _require_file_name(name: str, ending: str) -> None:
    path = PurePosixPath(name)
    if not name or path.is_absolute() or not set(name) <= _NAME | {"/"} or not set(path.parts).isdisjoint({".", ".."}):
        raise ValueError(f"`{name}` is no name of a file inside the source; write one such as `onnx/model.onnx`")
    if path.suffix != ending:
        raise ValueError(f"`{name}` does not end in `{ending}`; only .onnx and .json are read, nothing that unpickles")


def _is_repository(name: str) -> bool:
    parts = name.split("/")
    return len(parts) == 2 and all(part and part[0].isalnum() and set(part) <= _NAME for part in parts)


def _is_hex(text: str, digits: int) -> bool:
    return len(text) == digits and set(text) <= _SHA256


def _is_word(text: str, *, upper: bool) -> bool:
    fitting = text.isupper() if upper else text.islower()
    return len(text) <= 64 and text.isascii() and fitting and text[0].isalpha() and text.replace("_", "a").isalnum()
