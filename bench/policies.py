"""The default policies without what classifiers decide, or with one classifier alone."""

from __future__ import annotations

from typing import Any

import yaml

from checkstream.config import bundled

_TRIGGERS = ("patterns", "phrases", "entities")


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
