"""Policies as large as a bank's: rules of every kind, made from a seed; and long lists of phrases."""

from __future__ import annotations

import random
from copy import deepcopy
from typing import Any

import yaml

from bench.scenario import answer
from checkstream.core.match.entities import ENTITIES

_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
_PATTERNS = (
    (r"(?i)\b{0}[ -]?(?:no|nr|number|id)[.:# ]{{0,3}}[0-9]{{{1},{2}}}\b", None),
    (r"\b[A-Z]{{2,3}}-[0-9]{{{1}}}(?:-[A-Z0-9]{{2,{2}}})?\b", None),
    (r"(?i)\b(?:guaranteed|certain|assured) (?:{0}|{3})(?: (?:return|gain|profit)s?)?\b", None),
    (r"(?i)\b{0}s? (?:never|can(?:no|')t) (?:lose|fail|{3})\b", None),
    (r"(?i)project[ _-]{0}(?:[ _-]{3})?", None),
    (r"https?://[a-z0-9.-]+\.{0}\.example/[^ \n]*", 300),
    (r"(?i)BEGIN {0}[^\x00]*END {0}", 2000),
)
_ACTIONS: tuple[tuple[list[str], list[dict[str, str]]], ...] = (
    (["midstream"], [{"type": "redact"}]),
    (["midstream"], [{"type": "stop", "message": "[withheld]"}]),
    (["ingress"], [{"type": "reject", "message": "not here"}]),
    (["ingress", "midstream"], [{"type": "redact", "text": "[removed]"}]),
    (["ingress", "midstream"], [{"type": "log_event", "severity": "low"}]),
    (["midstream"], [{"type": "inject_disclaimer", "text": "Capital at risk.", "position": "end"}]),
)
_CHANNELS = (None, None, ["content"], ["content", "reasoning"], ["content", "tool_arguments"])
_CLASSIFIERS = ("lexicon.toxicity", "lexicon.injection")


def words(rng: random.Random, size: int) -> list[str]:
    """Return `size` words: those of a benign answer, which it will meet, and invented ones."""
    benign = sorted({word.strip(".,:;'\"()") for word in "".join(answer("benign.txt")).lower().split()} - {""})
    made: dict[str, None] = dict.fromkeys(benign)
    while len(made) < size:
        made["".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(2, 4)))] = None
    return list(made)


def phrases(rng: random.Random, size: int, vocabulary: list[str]) -> list[str]:
    """Return `size` phrases of two to five words, each word as likely as any."""
    made: dict[str, None] = {}
    while len(made) < size:
        made[" ".join(rng.choice(vocabulary) for _ in range(rng.randint(2, 5)))] = None
    return list(made)


def policy(rules: int, *, seed: int = 1, scores: bool = True) -> str:
    """Return a policy file: of ten rules three with patterns, three with phrases, two each with entities and scores.

    Without `scores`, entities stand in for them.
    """
    rng = random.Random(seed)
    vocabulary = words(rng, 4000)
    made = []
    for number in range(rules):
        stages, actions = deepcopy(rng.choice(_ACTIONS))  # YAML must not alias them
        rule: dict[str, Any] = {"name": f"rule_{number}", "id": f"GEN-{number:04}", "stage": stages, "actions": actions}
        channels = deepcopy(rng.choice(_CHANNELS))
        if channels is not None and stages == ["midstream"]:
            rule["channels"] = channels
        rule.update(_trigger(rng, number, vocabulary, scores=scores))
        rule["metadata"] = {"regulation": f"Handbook {number}.1", "severity": "medium"}
        made.append(rule)
    pack = {"pack": {"name": "generated", "version": "1.0.0"}, "policies": made}
    return yaml.safe_dump(pack, sort_keys=False, width=100)


def phrase_policy(size: int, *, seed: int = 1) -> str:
    """Return a policy file of the bench's patterns and one rule with `size` phrases (none: no such rule)."""
    rng = random.Random(seed)
    rules: list[dict[str, Any]] = [
        {
            "name": "codes",
            "id": "CODE-1",
            "stage": ["midstream"],
            "patterns": [{"name": "code", "regex": r"\b[A-Z]{3}-[0-9]{4,8}\b"}],
            "actions": [{"type": "redact"}],
        }
    ]
    if size:
        listed = phrases(rng, size, words(rng, 8000))
        rules.append(
            {"name": "list", "id": "LIST-1", "stage": ["midstream"], "phrases": listed, "actions": [{"type": "redact"}]}
        )
    pack = {"pack": {"name": "phrases", "version": "1.0.0"}, "policies": rules}
    return yaml.safe_dump(pack, sort_keys=False, width=100)


def _trigger(rng: random.Random, number: int, vocabulary: list[str], *, scores: bool) -> dict[str, Any]:
    kind = number % 10
    if kind < 3:
        patterns = []
        for place in range(rng.randint(1, 3)):
            regex, cap = rng.choice(_PATTERNS)
            one, other = rng.choice(vocabulary[200:]), rng.choice(vocabulary[200:])
            low = rng.randint(3, 6)
            pattern: dict[str, Any] = {"name": f"p{number}_{place}", "regex": regex.format(one, low, low + 4, other)}
            patterns.append(pattern if cap is None else {**pattern, "max_chars": cap})
        return {"patterns": patterns}
    if kind < 6:
        return {"phrases": phrases(rng, rng.randint(5, 20), vocabulary)}
    if kind < 8 or not scores:
        return {"entities": rng.sample(sorted(ENTITIES), rng.randint(1, 4))}
    threshold = rng.randint(50, 95) / 100
    return {"classifiers": [{"name": rng.choice(_CLASSIFIERS), "threshold": threshold}]}
