"""Scores of the classifiers that come with the package, computed here and now, for whoever has none at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from checkstream.app import open_model
from checkstream.config import bundled
from checkstream.core.commands import Score
from checkstream.core.events import Scored, ScoringFailed
from checkstream.scoring.catalog import load_models
from checkstream.scoring.session import Session

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
        self._scores = lru_cache(_REMEMBERED)(self._run)

    def answer(self, score: Score) -> Scored | ScoringFailed:
        """Return what the classifiers say of a text.

        A classifier that is not shipped fails, as one that has crashed.

        Raises:
            ModelError: a model's manifest or files can't be trusted or read.
        """
        found: dict[str, float] = {}
        for name in score.classifiers:
            scores = self._scores(name, score.text)
            if scores is None:
                self.unanswered += 1
                return ScoringFailed(score.ticket, "crash")
            found |= scores
        self.computed += 1
        return Scored(score.ticket, found)

    def scores(self, text: str) -> dict[str, float]:
        """Return every label's score of a whole text.

        Raises:
            ModelError: a model's manifest or files can't be trusted or read.
        """
        found: dict[str, float] = {}
        for model in load_models(bundled("models")):
            found |= self._scores(model.name, text) or {}
        return found

    def _run(self, name: str, text: str) -> Mapping[str, float] | None:
        """Return a classifier's scores of a text, the highest of its windows; None when there is no such one."""
        if name not in self._sessions:
            model = next((model for model in load_models(bundled("models")) if model.name == name), None)
            self._sessions[name] = None if model is None else (open_model(model), model.labels)
        opened = self._sessions[name]
        if opened is None:
            return None
        session, labels = opened
        highest = session.run([window.text for window in session.cut(text)]).max(axis=0)
        return {f"{name}.{label}": float(value) for label, value in zip(labels, highest, strict=True)}
