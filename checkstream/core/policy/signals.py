"""From what a rule names to the signals of the program, whatever rule names it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from checkstream.core.match.entities import ENTITIES
from checkstream.core.match.fingerprints import Fingerprints
from checkstream.core.match.phrases import phrase_regex
from checkstream.core.policy.classifiers import ModelEntity
from checkstream.core.policy.fingerprints_syntax import FingerprintsTrigger
from checkstream.core.policy.program import RecitedTexts, Signal
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
    """Return what is found by some trees of triggers, but for entities, by name; what can't be used is left out."""
    found: dict[str, list[Signal]] = {}
    for group in groups:
        signals = [pattern_signal(pattern) for pattern in group.detectors.patterns]
        signals += map(recital_signal, group.detectors.fingerprints)
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


def recital_signal(trigger: FingerprintsTrigger) -> Signal:
    """Return the signal of recitals of some texts."""
    texts = RecitedTexts(digest=trigger.texts.digest, words=trigger.words)
    return Signal(kind="recital", name=trigger.file.value, texts=texts)


def texts_of(groups: Iterable[WrittenGroup]) -> dict[str, Fingerprints]:
    """Return the fingerprints that some trees of triggers name, by their digests."""
    found: dict[str, Fingerprints] = {}
    for group in groups:
        found |= {trigger.texts.digest: trigger.texts for trigger in group.detectors.fingerprints}
        found |= texts_of(group.items)
    return found


def phrase_signal(phrase: str) -> Signal:
    """Return the signal of a phrase.

    Raises:
        PatternError: the phrase has no word.
    """
    words = " ".join(phrase.split())
    return Signal(kind="phrase", name=words, regex=phrase_regex(words))
