"""What a gate is asked to judge, from either shape that its file has: nested as a file, or flat as a run's state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from checkstream.errors import GateError
from checkstream.grounding.decision import Thresholds

DEFAULT_PROMPTS = 20
MAX_PROMPTS = 10_000
CATEGORIES = ("factual_recall", "edge_cases", "policy_boundaries", "ambiguous_queries")


class GateConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One evaluation, whichever way it was written down."""

    use_case: str
    thresholds: Thresholds
    num_prompts: int = DEFAULT_PROMPTS
    prompt_categories: tuple[str, ...] = CATEGORIES
    doc_sources: tuple[str, ...] = ()
    """Addresses: `s3://bucket/prefix`, `https://...`, or a path."""
    min_claims: int = 1
    """Fewer claims prove nothing: the gate warns."""
    allow_same_model: bool = False
    """Whether a model may judge its own answers."""


def normalised(given: object) -> GateConfig:
    """Return the configuration that `given` (a YAML mapping, read) means.

    Raises:
        GateError: It is no mapping, thresholds are missing or out of order, or two places say different things.
    """
    if not isinstance(given, Mapping):
        raise GateError("the configuration is not a mapping; write `use_case: ...` and what follows")
    evaluation = _mapping(given, "evaluation")
    categories = _either(given, evaluation, "prompt_categories")
    minimum = given.get("min_claims", evaluation.get("min_claims", 1))
    return GateConfig(
        use_case=_text(given, "use_case"),
        thresholds=_thresholds(given),
        num_prompts=_count("num_prompts", _either(given, evaluation, "num_prompts"), DEFAULT_PROMPTS, least=1),
        prompt_categories=CATEGORIES if categories is None else _texts("prompt_categories", categories),
        doc_sources=tuple(_address(source) for source in _list("doc_sources", given.get("doc_sources") or [])),
        min_claims=_count("min_claims", minimum, 1, least=0),
        allow_same_model=given.get("allow_same_model", False) is True,
    )


def _thresholds(given: Mapping[str, Any]) -> Thresholds:
    nested, flat = given.get("risk_tolerance"), _mapping(given, "thresholds")
    tolerance = nested if isinstance(nested, Mapping) else {}
    found = {}
    for name in ("deploy", "warn"):
        values = [place[key] for place, key in ((tolerance, f"{name}_threshold"), (flat, name)) if key in place]
        if not values:
            raise GateError(f"missing risk_tolerance.{name}_threshold")
        if any(value != values[0] for value in values[1:]):
            raise GateError(f"risk_tolerance.{name}_threshold and thresholds.{name} differ; keep one of them")
        found[name] = values[0]
    deploy, warn = found["deploy"], found["warn"]
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (deploy, warn))
    if not numbers or not 0 <= deploy <= warn <= 1:
        raise GateError("thresholds must satisfy 0 <= deploy <= warn <= 1")
    return Thresholds(deploy=float(deploy), warn=float(warn))


def _mapping(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = given.get(name)
    if found is not None and not isinstance(found, Mapping):
        raise GateError(f"`{name}` is not a mapping")
    return found or {}


def _either(given: Mapping[str, Any], evaluation: Mapping[str, Any], name: str) -> Any:
    """Return what stands under `evaluation` or beside it."""
    values = [place[name] for place in (evaluation, given) if place.get(name) is not None]
    if any(value != values[0] for value in values[1:]):
        raise GateError(f"evaluation.{name} and {name} differ; keep one of them")
    return values[0] if values else None


def _text(given: Mapping[str, Any], name: str) -> str:
    found = given.get(name, "")
    if not isinstance(found, str):
        raise GateError(f"`{name}` is not a text")
    return found


def _list(name: str, given: object) -> list[Any]:
    if not isinstance(given, list):
        raise GateError(f"`{name}` is not a list")
    return given


def _texts(name: str, given: object) -> tuple[str, ...]:
    found = _list(name, given)
    if not all(isinstance(text, str) and text for text in found):
        raise GateError(f"`{name}` holds something that is no text")
    return tuple(found)


def _count(name: str, given: object, default: int, *, least: int) -> int:
    if given is None:
        return default
    if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= MAX_PROMPTS:
        raise GateError(f"`{name}` must be a whole number from {least} to {MAX_PROMPTS}")
    return given


def _address(source: object) -> str:
    """Return where documents are: a text as it is, a mapping by its `type`."""
    if isinstance(source, str) and source:
        return source
    if isinstance(source, Mapping):
        kind, texts = source.get("type"), {key: value for key, value in source.items() if isinstance(value, str)}
        if kind == "s3" and texts.get("bucket"):
            return f"s3://{texts['bucket']}/{texts.get('prefix', '').lstrip('/')}"
        if kind in {"local", "file"} and texts.get("path"):
            return texts["path"]
        if kind in {"http", "https", "url"} and texts.get("url"):
            return texts["url"]
    raise GateError(
        "a source in `doc_sources` can't be read; write an address, or `type: s3` with `bucket`, `type: local` "
        "with `path`, `type: https` with `url`"
    )
