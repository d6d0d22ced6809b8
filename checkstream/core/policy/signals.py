"""From what a rule names to the signals of the program, whatever rule names it."""

from __future__ import annotations

from collections.abc import Iterator

from checkstream.core.match.entities import ENTITIES
from checkstream.core.match.phrases import phrase_regex
from checkstream.core.policy.classifiers import ModelEntity
from checkstream.core.policy.program import Signal
from checkstream.core.policy.spares import Spares
from checkstream.core.policy.triggers import PatternTrigger, WrittenGroup
from checkstream.errors import PatternError


def entity_signal(name: str, spares: Spares | None = None) -> Signal:
    """Return the signal of an entity that has a regex."""
    entity = ENTITIES[name]
    return Signal(kind="entity", name=name, regex=entity.regex, max_chars=entity.max_chars, spares=spares)


def model_entity_signal(entity: ModelEntity, spares: Spares | None = None) -> Signal:
    """Return the signal of an entity that a model finds."""
    return Signal(kind="entity", name=entity.name, model=entity.model, threshold=entity.threshold, spares=spares)


def findings_of(groups: Iterator[WrittenGroup]) -> dict[str, list[Signal]]:
    """Return the patterns and phrases of some trees of triggers by name; those that can't be used are left out."""
    found: dict[str, list[Signal]] = {}
    for group in groups:
        signals = [pattern_signal(pattern) for pattern in group.detectors.patterns]
        for phrase in group.detectors.phrases:
            try:
                signals.append(phrase_signal(phrase.value))
            except PatternError:
                continue
        for signal in signals:
            known = found.setdefault(" ".join(signal.name.split()), [])
            if signal not in known:
                known.append(signal)
        for name, more in findings_of(iter(group.items)).items():
            found.setdefault(name, []).extend(signal for signal in more if signal not in found[name])
    return found


def pattern_signal(pattern: PatternTrigger) -> Signal:
    """Return the signal of a pattern."""
    return Signal(kind="pattern", name=pattern.name.value, regex=pattern.regex.value, max_chars=pattern.max_chars)


def phrase_signal(phrase: str) -> Signal:
    """Return the signal of a phrase.

    Raises:
        PatternError: the phrase has no word.
    """
    words = " ".join(phrase.split())
    return Signal(kind="phrase", name=words, regex=phrase_regex(words))
