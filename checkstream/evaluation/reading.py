"""What reads whole texts on trial: a model of the catalog, or the entities that policies find by pattern.

A model reads as the proxy has it read: cut into its windows, the highest score of any counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from checkstream.core.events import EntityFound
from checkstream.core.match.entities import ENTITIES
from checkstream.core.match.patterns import PatternSet
from checkstream.core.match.scan import Scan
from checkstream.core.policy.link import pattern_of
from checkstream.core.policy.signals import entity_signal
from checkstream.errors import CheckstreamError, ScoringError
from checkstream.scoring import Model, open_session, read_whole
from checkstream.scoring.outcomes import judged
from checkstream.scoring.session import Readings

ANY = "any"
"""A label of this name, where a model has one; else it stands for all labels together: the highest score counts, and a
text fires where any label does."""
PATTERNS = "entities"
"""Stands for the entities that are found by pattern, where a model could be named."""


class Said(msgspec.Struct, frozen=True):
    """What is said of a text."""

    scores: dict[str, float]
    """Label -> 0..1."""
    entities: tuple[EntityFound, ...] = ()
    """In the order of their places."""


def score_of(scores: Mapping[str, float], label: str) -> float:
    """Return the score of a label; of `any`, where a model has no label of that name, the highest of all."""
    return max(scores.values()) if label == ANY and label not in scores else scores[label]


class Reader(Protocol):
    """Something that says what a text is or holds."""

    @property
    def labels(self) -> tuple[str, ...]:
        """What it gives scores for."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Which entities it finds."""

    def read(self, text: str) -> Said:
        """Read a whole text.

        Raises:
            ScoringError: it can't, or says what is no answer.
        """


class ModelReader:
    """A model of the catalog, in a session of its own."""

    def __init__(self, model: Model) -> None:
        """Load the model.

        Raises:
            ModelError: its files don't hold what its kind needs.
        """
        self.model = model
        self._session = open_session(model)

    @property
    def labels(self) -> tuple[str, ...]:
        """What it gives scores for."""
        return self.model.labels

    @property
    def kinds(self) -> tuple[str, ...]:
        """Which entities it finds."""
        return tuple(kind.entity for kind in self.model.entry.entities)

    def read(self, text: str) -> Said:
        """Read a whole text.

        Raises:
            ScoringError: the model crashed, or gave no usable scores.
        """
        try:
            reading = read_whole(self._session, text)
        except CheckstreamError:
            raise
        except Exception as error:
            raise ScoringError(
                f"model `{self.model.name}` crashed: {error}; check its files", reason="crash"
            ) from error
        readings = Readings(reading.scores[None, :], (reading.entities,))
        outcome = judged(readings, 1, len(self.labels), self.model.name)[0]
        if isinstance(outcome, ScoringError):
            raise outcome
        scores = zip(self.labels, outcome.scores.tolist(), strict=True)
        return Said(dict(scores), tuple(outcome.entities))


class PatternReader:
    """Every entity that is found by pattern, with its validators."""

    labels = ()

    def __init__(self) -> None:
        """Compile the patterns."""
        self.kinds = tuple(ENTITIES)
        self._patterns = PatternSet([pattern_of(number, entity_signal(name)) for number, name in enumerate(self.kinds)])

    def read(self, text: str) -> Said:
        """Return every entity of a text; what a validator accepts is certain."""
        scan = Scan(self._patterns)
        spans = {(hit.span.start, hit.span.end, self.kinds[hit.signal]) for hit in (*scan.feed(text), *scan.end())}
        return Said({}, tuple(EntityFound(name, start, end, 1.0) for start, end, name in sorted(spans)))
