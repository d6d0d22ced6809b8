"""The default policies without what classifiers decide: what the guard costs when only patterns are searched."""

from __future__ import annotations

from typing import Any

import yaml

from checkstream.config import bundled

_TRIGGERS = ("patterns", "phrases", "entities")


def without_classifiers() -> str:
    """Return the default pack as YAML, classifiers taken out, and rules that have no other trigger."""
    pack: dict[str, Any] = yaml.safe_load((bundled("policies") / "default" / "policy.yaml").read_text("utf-8"))
    kept = []
    for rule in pack["policies"]:
        rule.pop("classifiers", None)
        if any(name in rule for name in _TRIGGERS):
            kept.append(rule)
    return yaml.safe_dump({**pack, "policies": kept}, sort_keys=False, allow_unicode=True)
