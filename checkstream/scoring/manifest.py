"""The form of `manifest.json`: what an installation says of its models. Pure; nothing is opened here."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated

import msgspec

MAX_FILE_BYTES = (1 << 31) - 1
"""What a graph in one file can have; those that answer within a deadline on a CPU are far below it."""

_Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class ModelKind(enum.StrEnum):
    """How a model is run."""

    LEXICON = "lexicon"
    """A weighted lexicon; file role `lexicon`."""
    SEQUENCE = "sequence"
    """An ONNX graph that gives a text one row of label scores; file roles `graph`, `tokenizer` and perhaps `gate`, and
    `reference`: what it says of calm texts."""
    TOKENS = "tokens"
    """An ONNX graph that tags every token, which gives entities; file roles `graph`, `tokenizer`."""
    EMBEDDING = "embedding"
    """An ONNX graph that gives a text a vector, for finding and comparing; it scores nothing. File roles `graph`,
    `tokenizer`."""
    PAIR = "pair"
    """An ONNX graph that says whether a claim follows from a premise; file roles `graph`, `tokenizer`."""
    REMOTE = "remote"
    """A service that is asked over HTTP."""


PAIR_LABELS = ("entailment", "neutral", "contradiction")
"""What a model of the kind `pair` may say; the first it must."""


class Activation(enum.StrEnum):
    """What makes scores of a graph's logits."""

    SIGMOID = "sigmoid"
    """Each label by itself: several may hold."""
    SOFTMAX = "softmax"
    """One label of all holds."""
    NONE = "none"
    """The graph gives scores of 0..1 already."""


class TokenTypes(enum.StrEnum):
    """What a graph's input `token_type_ids` carries."""

    ZERO = "zero"
    """Nothing."""
    CASE = "case"
    """How the word of each token is written: 0 lower, 1 Capitalised, 2 UPPER, 3 with a digit."""


class Threshold(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a label's score counts as a hit if a policy names no threshold of its own."""

    label: _Name
    score: Annotated[float, msgspec.Meta(gt=0, lt=1)]


class Rate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How high a threshold must be for at most so many benign texts to reach it."""

    label: _Name
    fpr: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    """Share of benign whole texts whose highest score over all their checks reaches the threshold."""
    threshold: Annotated[float, msgspec.Meta(ge=0, le=1)]


class EntityKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of entity that a model finds."""

    entity: Annotated[str, msgspec.Meta(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
    threshold: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.5
    """From which probability on a word counts as part of one."""


class ModelFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of a model, as the manifest pins it."""

    role: _Name
    """What the file is to its kind of model (`lexicon`, `graph`, `tokenizer`, `gate`)."""
    path: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    """Relative to the models folder, with `/`."""
    sha256: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
    bytes: Annotated[int, msgspec.Meta(ge=1, le=MAX_FILE_BYTES)]


class ModelLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model can take at once."""

    window_tokens: Annotated[int, msgspec.Meta(ge=8, le=65_536)]
    """Size of a window in the model's own tokens, those that mark its start and end included."""
    overlap_tokens: Annotated[int, msgspec.Meta(ge=0, le=4_096)] = 0
    """What two neighbouring windows of a long text share."""
    gate_tokens: Annotated[int, msgspec.Meta(ge=8, le=65_536)] = 64
    """Size of a window of the gate, if the model has one; at most `window_tokens`."""
    gate_above_tokens: Annotated[int, msgspec.Meta(ge=0, le=65_536)] = 0
    """Windows of so many tokens or fewer are not shown to the gate, and read by the model: too little for the gate to
    tell by; 0: all are shown."""

    def __post_init__(self) -> None:
        """Refuse windows that don't advance."""
        if self.overlap_tokens * 4 > self.window_tokens * 3:
            raise ValueError("`overlap_tokens` is more than three quarters of `window_tokens`; lower it")


_Phrase = Annotated[str, msgspec.Meta(pattern=r"^[a-z]+(\|[a-z]+)*( [a-z]+(\|[a-z]+)*){1,7}$", max_length=512)]
_Score = Annotated[float, msgspec.Meta(gt=0, lt=1)]
Curve = Annotated[tuple[tuple[_Score, _Score], ...], msgspec.Meta(min_length=2, max_length=64)]
"""Scores and what they come to, both rising; outside of the first and last they come to the same as those."""


class Tail(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many windows a text may have before some of them are high by chance."""

    rise: Annotated[float, msgspec.Meta(gt=0, le=10)]
    """What is taken off the highest logit for each time that there are e times as many windows as that."""
    windows: Annotated[int, msgspec.Meta(ge=1, le=65_536)]
    """Of texts whose scores are what they are."""


class Joint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How scores come about where the gate has a say in them, of a model with one label."""

    gate: Annotated[float, msgspec.Meta(ge=0, le=10)]
    """Of a window that both have read, the logit is `slope * (model's + gate * gate's) + offset`."""
    slope: Annotated[float, msgspec.Meta(gt=0, le=10)]
    offset: Annotated[float, msgspec.Meta(ge=-60, le=60)]
    alone: Curve
    """What a score of the model comes to, of a window that the gate is not asked about."""
    foreign: Curve
    """What a score of the gate comes to, of a window that is mostly letters which the vocabulary has no words of: the
    model is not asked about it ..."""
    legible: Curve
    """... and this is what a score of the model comes to, of the words within such a window."""
    phrases: Annotated[tuple[_Phrase, ...], msgspec.Meta(max_length=64)]
    """Beginnings of orders, in lower case, `a|b` for either word: the sentence around one is read by itself too."""
    tail: Tail | None = None
    """How the number of a text's windows is reckoned with, where it is; not with that of the sentences around orders,
    which innocent texts have few of."""

    def __post_init__(self) -> None:
        """Refuse curves that don't rise."""
        for name, curve in (("alone", self.alone), ("foreign", self.foreign), ("legible", self.legible)):
            if any(low >= high or less > more for (low, less), (high, more) in pairwise(curve)):
                raise ValueError(f"`{name}` of `joint` falls; give its points in rising order")


_ROLES: Mapping[ModelKind, tuple[frozenset[str], frozenset[str]]] = MappingProxyType(
    {
        ModelKind.LEXICON: (frozenset({"lexicon"}), frozenset()),
        ModelKind.SEQUENCE: (frozenset({"graph", "tokenizer"}), frozenset({"gate", "reference"})),
        ModelKind.TOKENS: (frozenset({"graph", "tokenizer"}), frozenset()),
        ModelKind.EMBEDDING: (frozenset({"graph", "tokenizer"}), frozenset()),
        ModelKind.PAIR: (frozenset({"graph", "tokenizer"}), frozenset()),
        ModelKind.REMOTE: (frozenset(), frozenset()),
    }
)
"""Kind -> the roles of files that it must have, and those that it may have."""


class ModelEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model, as the manifest describes it."""

    name: _Name
    """What policies and signals call it (`lexicon` in `lexicon.injection`)."""
    kind: ModelKind
    version: Annotated[str, msgspec.Meta(pattern=r"^\d+\.\d+\.\d+$")]
    licence: str
    card: str
    """The file that says what the model is, saw and can't do; relative to the models folder."""
    labels: Annotated[tuple[_Name, ...], msgspec.Meta(max_length=256)]
    """What it gives scores for, in order. None for the kind `tokens`, which gives entities, and for `embedding`."""
    columns: Annotated[tuple[Annotated[str, msgspec.Meta(max_length=64)], ...], msgspec.Meta(max_length=1024)] = ()
    """Names of the graph's output columns, in order, when they are not the labels. The highest of the columns that are
    named as a label is its score; columns with other names are ignored. Of the kind `tokens`: BIO tags (`B-PERSON`)."""
    entities: Annotated[tuple[EntityKind, ...], msgspec.Meta(max_length=256)] = ()
    """What a model of the kind `tokens` finds."""
    dimensions: Annotated[int, msgspec.Meta(ge=0, le=8192)] = 0
    """Of the kind `embedding`: how long its vectors are."""
    activation: Activation | None = None
    """Of graphs that score alone."""
    token_types: TokenTypes = TokenTypes.ZERO
    thresholds: tuple[Threshold, ...] = ()
    rates: Annotated[tuple[Rate, ...], msgspec.Meta(max_length=4096)] = ()
    """Calibration: which thresholds keep to which rates of false positives; allows `fpr` in policies."""
    gate_threshold: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None
    """From which score of the gate on a window is given to the model itself."""
    joint: Joint | None = None
    """How scores come about where the gate has a say in them; None: it only clears windows, or passes them on."""
    limits: ModelLimits
    calibrated: bool = False
    """Its scores are probabilities."""
    files: Annotated[tuple[ModelFile, ...], msgspec.Meta(max_length=32)]

    def __post_init__(self) -> None:
        """Refuse an entry that contradicts itself or its kind."""
        for what, names in (
            ("a label", self.labels),
            ("an entity", tuple(kind.entity for kind in self.entities)),
            ("a threshold", tuple(threshold.label for threshold in self.thresholds)),
            ("a rate", tuple((rate.label, rate.fpr) for rate in self.rates)),
        ):
            if len(set(names)) != len(names):
                raise ValueError(f"model `{self.name}` names {what} twice; name each once")
        if len({file.role for file in self.files}) != len(self.files):
            raise ValueError(f"model `{self.name}` gives two files one role; roles are unique")
        for label in (*(told.label for told in self.thresholds), *(told.label for told in self.rates)):
            if label not in self.labels:
                raise ValueError(f"model `{self.name}` has a threshold for `{label}`, which is not its label")
        self._check_rates()
        self._check_kind()

    def _check_rates(self) -> None:
        for label in self.labels:
            own = sorted((rate for rate in self.rates if rate.label == label), key=lambda rate: rate.fpr)
            if any(lower.threshold < higher.threshold for lower, higher in pairwise(own)):
                raise ValueError(
                    f"rates of `{self.name}.{label}` fall with the threshold; a lower rate needs a higher one"
                )

    def _check_kind(self) -> None:
        needed, allowed = _ROLES[self.kind]
        roles = {file.role for file in self.files}
        if missing := needed - roles:
            raise ValueError(f"model `{self.name}` has no file with the role `{min(missing)}`; add it")
        if unknown := roles - needed - allowed:
            raise ValueError(
                f"role `{min(unknown)}` is not of the kind `{self.kind}`; remove the file from `{self.name}`"
            )
        embedding = self.kind is ModelKind.EMBEDDING
        scoring = "graph" in needed and not embedding
        if (self.activation is None) == scoring:
            raise ValueError(f"model `{self.name}` must give `activation` if its graph scores, and only then")
        if self.columns and not scoring:
            raise ValueError(f"model `{self.name}` has no graph that scores; remove `columns`")
        if (self.dimensions > 0) != embedding:
            raise ValueError(f"model `{self.name}` must give `dimensions` if it is an embedding, and only then")
        if ("gate" in roles) != (self.gate_threshold is not None):
            raise ValueError(f"model `{self.name}` needs both a file `gate` and `gate_threshold`, or neither")
        if self.joint is not None and ("gate" not in roles or len(self.labels) != 1):
            raise ValueError(f"`joint` of model `{self.name}` needs a gate and one label; remove it")
        if "gate" in roles and self.limits.gate_tokens > self.limits.window_tokens:
            raise ValueError(f"`gate_tokens` of model `{self.name}` is more than `window_tokens`; lower it")
        self._check_labels()
        self._check_columns()

    def _check_labels(self) -> None:
        tokens, remote = self.kind is ModelKind.TOKENS, self.kind is ModelKind.REMOTE
        if self.kind is ModelKind.EMBEDDING:
            if self.labels or self.entities:
                raise ValueError(f"model `{self.name}` gives vectors: remove its `labels` and `entities`")
            return
        if self.kind is ModelKind.PAIR and (
            PAIR_LABELS[0] not in self.labels or not set(self.labels) <= {*PAIR_LABELS}
        ):
            raise ValueError(f"labels of model `{self.name}` are {', '.join(PAIR_LABELS)}, the first one at least")
        if tokens and (self.labels or not self.entities):
            raise ValueError(f"model `{self.name}` tags tokens: give it `entities`, and no `labels`")
        if not tokens and not self.labels and not (remote and self.entities):
            raise ValueError(f"model `{self.name}` has no `labels`; give it one")
        if self.entities and not tokens and not remote:
            raise ValueError(f"model `{self.name}` doesn't tag tokens; remove `entities`")

    def _check_columns(self) -> None:
        if self.kind in {ModelKind.SEQUENCE, ModelKind.PAIR} and self.columns:
            for label in self.labels:
                if label not in self.columns:
                    raise ValueError(f"no column of model `{self.name}` is named `{label}`; name one so in `columns`")
        if self.kind is ModelKind.TOKENS:
            named = {column.partition("-")[2] for column in self.columns}
            for kind in self.entities:
                if kind.entity not in named:
                    raise ValueError(f"no column of model `{self.name}` is named `B-{kind.entity}`; name one so")


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every model of a folder."""

    version: Annotated[int, msgspec.Meta(ge=1, le=1)]
    """Of the manifest's form."""
    models: Annotated[tuple[ModelEntry, ...], msgspec.Meta(max_length=256)]

    def __post_init__(self) -> None:
        """Refuse doubled names."""
        if len({model.name for model in self.models}) != len(self.models):
            raise ValueError("two models share a name; names are unique")
