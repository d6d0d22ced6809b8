"""Reads `.llm-reliability.yaml`, in either of the shapes that its document shows: nested, or flat as a state. Pure.

Files and addresses that it names are only named here. INVARIANT: a value is compared or written out only after its type
has been looked at; what a file holds can be of any shape and size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import yaml

from checkstream.errors import GateError
from checkstream.gate.settings import CATEGORIES, MAX_PROMPTS, GateSettings
from checkstream.grounding.decision import Thresholds

_Read = TypeVar("_Read")
_NO_FILES: tuple[str, ...] = ()
_ANYTHING = (yaml.YAMLError, RecursionError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError)
"""What the library raises: its own readers of dates and numbers let through what they meet."""
_EITHER = frozenset({"num_prompts", "prompt_categories", "min_claims", "prompt_library", "parallel"})
"""Keys that stand under `evaluation`, or beside it."""
_OF_STORES = ("index", "embedder")
_KNOWN = _EITHER | {
    *("use_case", "risk_tolerance", "thresholds", "evaluation", "doc_sources", "allow_same_model"),
    *("model", "target", "judge", "elasticsearch", "evidence", "history"),
}


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
    except _ANYTHING as error:
        raise GateError(f"`{name}` is no YAML that can be read: {_told(error)}") from error


def _told(error: Exception) -> str:
    """Return what is wrong and where, without the line itself: who may name a file may not be one who may read it."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{error.problem}, at line {mark.line + 1}, column {mark.column + 1}"[:300]
    return " ".join(str(error).split())[:300]


def settings_of(file: object) -> GateSettings:
    """Return what a configuration (YAML or JSON, read) asks for.

    Raises:
        GateError: something in it is wrong; says what and where.
    """
    given = normalised(file)
    if "target" not in given:
        raise GateError("`model` is missing: name the model that is evaluated, with `provider`, `model_id` and `url`")
    try:
        found = msgspec.convert(given, GateSettings)
        msgspec.json.encode(found)
    except msgspec.ValidationError as error:
        raise GateError(f"{error}; mend the configuration") from error
    except UnicodeEncodeError as error:
        raise GateError("the configuration holds half of a surrogate pair, which is no character; remove it") from error
    return found


def normalised(given: object) -> dict[str, Any]:
    """Return what `given` says, by the names of `GateSettings`, whichever way it was written down.

    Raises:
        GateError: It is no mapping, names what is not known, thresholds are missing or out of order, or two places say
            different things.
    """
    if not isinstance(given, Mapping):
        raise GateError("the configuration is not a mapping; write `use_case: ...` and what follows")
    evaluation = _mapping(given, "evaluation")
    for known, names, place in ((_KNOWN, given, "the configuration"), (_EITHER, evaluation, "`evaluation`")):
        unknown = sorted(str(name)[:100] for name in names if name not in known)
        if unknown:
            raise GateError(f"{place} has `{unknown[0]}`, which is not known; it takes {', '.join(sorted(known))}")

    both = (evaluation, given)
    found = {
        "use_case": _text("use_case", given.get("use_case", "")),
        "thresholds": _thresholds(given),
        "num_prompts": _either(both, "num_prompts", _positive, 20),
        "prompt_categories": _either(both, "prompt_categories", _texts, CATEGORIES),
        "prompt_library": _either(both, "prompt_library", _files, _NO_FILES),
        "min_claims": _either(both, "min_claims", _count, 1),
        "parallel": _either(both, "parallel", _positive, 4),
        "doc_sources": tuple(_address(source) for source in _list("doc_sources", given.get("doc_sources") or [])),
        "allow_same_model": _switch("allow_same_model", given.get("allow_same_model", False)),
        "judge": given.get("judge"),
        "history": _text("history", given.get("history", "")),
        **_store(given),
    }
    target = given.get("target", given.get("model"))
    return found if target is None else {**found, "target": target}


def _thresholds(given: Mapping[str, Any]) -> Thresholds:
    nested, flat = given.get("risk_tolerance"), _mapping(given, "thresholds")
    tolerance = nested if isinstance(nested, Mapping) else {}
    found = {}
    for name in ("deploy", "warn"):
        values = [place[key] for place, key in ((tolerance, f"{name}_threshold"), (flat, name)) if key in place]
        if not values:
            raise GateError(f"missing risk_tolerance.{name}_threshold")
        if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            raise GateError(_ORDER)
        if any(value != values[0] for value in values[1:]):
            raise GateError(f"risk_tolerance.{name}_threshold and thresholds.{name} differ; keep one of them")
        found[name] = values[0]
    if not 0 <= found["deploy"] <= found["warn"] <= 1:
        raise GateError(_ORDER)
    return Thresholds(deploy=float(found["deploy"]), warn=float(found["warn"]))


_ORDER = "thresholds must satisfy 0 <= deploy <= warn <= 1"


def _mapping(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = given.get(name)
    if found is not None and not isinstance(found, Mapping):
        raise GateError(f"`{name}` is not a mapping")
    return found or {}


def _either(
    places: Sequence[Mapping[str, Any]], name: str, read: Callable[[str, object], _Read], default: _Read
) -> _Read:
    """Return what stands under `evaluation` or beside it."""
    values = [read(name, place[name]) for place in places if place.get(name) is not None]
    if any(value != values[0] for value in values[1:]):
        raise GateError(f"evaluation.{name} and {name} differ; keep one of them")
    return values[0] if values else default


def _text(name: str, given: object) -> str:
    if not isinstance(given, str):
        raise GateError(f"`{name}` is not a text")
    return given


def _switch(name: str, given: object) -> bool:
    if not isinstance(given, bool):
        raise GateError(f"`{name}` must be true or false")
    return given


def _list(name: str, given: object) -> list[Any]:
    if not isinstance(given, list):
        raise GateError(f"`{name}` is not a list")
    return given


def _texts(name: str, given: object) -> tuple[str, ...]:
    found = _list(name, given)
    if not found:
        raise GateError(f"`{name}` is empty; name some, or leave it out")
    if not all(isinstance(text, str) and text for text in found):
        raise GateError(f"`{name}` holds something that is no text")
    return tuple(found)


def _files(name: str, given: object) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) and given else _texts(name, given)


def _count(name: str, given: object, least: int = 0) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= MAX_PROMPTS:
        raise GateError(f"`{name}` must be a whole number from {least} to {MAX_PROMPTS}")
    return given


def _positive(name: str, given: object) -> int:
    return _count(name, given, 1)


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


def _store(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return where evidence is kept: by `evidence`, or by the section that names Elasticsearch alone."""
    elastic, evidence = given.get("elasticsearch"), given.get("evidence")
    if elastic is not None and evidence is not None:
        raise GateError("`elasticsearch` and `evidence` both say where documents are; keep one of them")
    name, section, key = ("elasticsearch", elastic, "host") if evidence is None else ("evidence", evidence, "store")
    if section is None:
        return {}
    if not isinstance(section, Mapping) or not isinstance(section.get(key), str) or set(section) - {key, *_OF_STORES}:
        raise GateError(f"`{name}` can't be read; it takes `{key}`, an address, `index` and `embedder`")
    return {"store": section[key], **{name: section[name] for name in _OF_STORES if name in section}}
