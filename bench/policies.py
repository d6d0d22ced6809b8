"""The default policies without what classifiers decide, or with one classifier alone."""

from __future__ import annotations

from typing import Any

import yaml

from checkstream.config import bundled
from checkstream.core.policy.classifiers import ClassifierLabel

_TRIGGERS = ("patterns", "phrases", "entities")


def with_scores() -> tuple[str, tuple[ClassifierLabel, ...]]:
    """Return the default pack as YAML, asking for scores above 0.9, and all labels that it asks for."""
    pack: dict[str, Any] = yaml.safe_load((bundled("policies") / "default" / "policy.yaml").read_text("utf-8"))
    labels: dict[str, None] = {}
    pending: list[Any] = [pack]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            if each.pop("fpr", None) is not None:
                each["threshold"] = 0.9
            if "threshold" in each:
                labels[each["name"]] = None
        pending += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
    source = yaml.safe_dump(pack, sort_keys=False, allow_unicode=True)
    return source, tuple(ClassifierLabel(name) for name in sorted(labels))


def with_classifiers(*models: str) -> str:
    """Return the default pack as YAML, without classifiers but those of `models` and rules left without trigger."""
    pack: dict[str, Any] = yaml.safe_load((bundled("policies") / "default" / "policy.yaml").read_text("utf-8"))
    kept = []
    for rule in pack["policies"]:
        asked = [each for each in rule.pop("classifiers", ()) if each["name"].partition(".")[0] in models]
        if asked:
            rule["classifiers"] = asked
        if asked or any(name in rule for name in _TRIGGERS):
            kept.append(rule)
    return yaml.safe_dump({**pack, "policies": kept}, sort_keys=False, allow_unicode=True)
