"""Scores of the classifiers that come with the package, computed here and now, for whoever has none at hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from checkstream.config import bundled
from checkstream.core.commands import Score
from checkstream.core.events import EntityFound, Scored, ScoringFailed
from checkstream.scoring import open_session
from checkstream.scoring.catalog import load_models
from checkstream.scoring.scorer import Checked
from checkstream.scoring.session import Session, read_whole

_REMEMBERED = 8192


class ShippedModels:
    """Answers checks with the models of the package, and counts them."""

    def __init__(self) -> None:
        """Open nothing yet: a model is opened when it is first asked."""
        self.computed = 0
        """Checks that were answered."""
        self.unanswered = 0
        """Checks of classifiers that are not shipped."""
        self._sessions: dict[str, tuple[Session, Sequence[str]] | None] = {}
        self._checked = lru_cache(_REMEMBERED)(self._run)

    def answer(self, score: Score) -> Scored | ScoringFailed:
        """Return what the classifiers say of a text.

        A classifier that is not shipped fails, as one that has crashed.

        Raises:
            ModelError: a model's manifest or files can't be trusted or read.
        """
        scores: dict[str, float] = {}
        entities: list[EntityFound] = []
        for name in score.classifiers:
            checked = self._checked(name, score.text)
            if checked is None:
                self.unanswered += 1
                return ScoringFailed(score.ticket, "crash")
            scores |= checked.scores
            entities += checked.entities
        self.computed += 1
        return Scored(score.ticket, scores, tuple(sorted(entities, key=lambda entity: (entity.start, entity.end))))

    def scores(self, text: str) -> dict[str, float]:
        """Return every label's score of a whole text.

        Raises:
            ModelError: a model's manifest or files can't be trusted or read.
        """
        found: dict[str, float] = {}
        for model in load_models(bundled("models")):
            checked = self._checked(model.name, text)
            found |= {} if checked is None else checked.scores
        return found

    def _run(self, name: str, text: str) -> Checked | None:
        """Return what a classifier says of a text; None when there is no such one."""
        if name not in self._sessions:
            model = next((model for model in load_models(bundled("models")) if model.name == name), None)
            self._sessions[name] = None if model is None else (open_session(model), model.labels)
        opened = self._sessions[name]
        if opened is None:
            return None
        session, labels = opened
        reading = read_whole(session, text)
        scores = {f"{name}.{label}": value for label, value in zip(labels, reading.scores.tolist(), strict=True)}
        return Checked(scores, tuple(reading.entities))
