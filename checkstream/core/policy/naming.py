"""What rules ask of pseudonyms: which placeholders they may put into a prompt, and whose values come back for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from checkstream.core.match.placeholders import Placeholders
from checkstream.core.policy.action import Pseudonymise
from checkstream.core.policy.program import RuleMeta, Signal


def placeholders_of(signals: Sequence[Signal], rules: Sequence[RuleMeta]) -> Placeholders | None:
    """Return the placeholders that rules may put in; None: no rule that is enforced does."""
    asked = [(kind, action.style) for kind, action, _ in _asked(signals, rules)]
    surrogates = any(style == "surrogate" for _, style in asked)
    return Placeholders((kind for kind, _ in asked), surrogates=surrogates) if asked else None


def restores_of(signals: Sequence[Signal], rules: Sequence[RuleMeta]) -> Mapping[str, frozenset[str]]:
    """Return, by kind of placeholder, the channels of the prompt whose values come back for it.

    A rule speaks of the channels that it reads: another may name those of the same kind that stand elsewhere.
    """
    found: dict[str, frozenset[str]] = {}
    for kind, action, rule in _asked(signals, rules):
        found[kind] = found.get(kind, frozenset()) | (rule.channels & frozenset(action.restore))
    return MappingProxyType(found)


def _asked(signals: Sequence[Signal], rules: Sequence[RuleMeta]) -> Iterator[tuple[str, Pseudonymise, RuleMeta]]:
    for rule in rules:
        for action in rule.actions:
            if rule.mode == "enforce" and isinstance(action, Pseudonymise):
                for signal in rule.triggers:
                    yield signals[signal].kind_of_placeholder, action, rule
