"""Scores of the installed classifiers, computed here and now, for whoever has none at hand."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path

from checkstream.core.commands import Score
from checkstream.core.events import Scored, ScoringFailed
from checkstream.errors import ScoringError, ScoringReason
from checkstream.scoring import open_session
from checkstream.scoring.provenance import described_models, load_described
from checkstream.scoring.scorer import Checked
from checkstream.scoring.session import Session, read_whole

_REMEMBERED = 8192


class InstalledModels:
    """Answers checks with the models of the package and those of a `models.yaml`, and counts them."""

    def __init__(self, own: Path | None = None) -> None:
        """Open nothing yet: a model is opened when it is first asked.

        Args:
            own: the `models.yaml`, if there is one.
        """
        self.computed = 0
        """Checks that were answered."""
        self.unanswered = 0
        """Checks of classifiers that are not installed, or gave no usable answer."""
        self._own = own
        self._sessions: dict[str, tuple[Session, Sequence[str]] | None] = {}
        self._checked = lru_cache(_REMEMBERED)(self._run)

    def answer(self, score: Score) -> Scored | ScoringFailed:
        """Return what the classifiers say of a text.

        A classifier that is not installed fails, as one that has crashed.

        Raises:
            ConfigError: `models.yaml` holds faults.
            ModelError: what says which models there are, or a model's files, can't be trusted or read.
        """
        found: list[Checked] = []
        for name in score.classifiers:
            checked = self._checked(name, score.text)
            if not isinstance(checked, Checked):
                self.unanswered += 1
                return ScoringFailed(score.ticket, checked)
            found.append(checked)
        self.computed += 1
        joined = _joined(found)
        return Scored(score.ticket, joined.scores, joined.entities)

    def whole(self, text: str, classifiers: Collection[str]) -> Checked:
        """Return what those of the classifiers that are installed say of a whole text.

        Raises:
            ConfigError: `models.yaml` holds faults.
            ModelError: what says which models there are, or a model's files, can't be trusted or read.
        """
        said = (self._checked(name, text) for name in sorted(classifiers))
        return _joined([checked for checked in said if isinstance(checked, Checked)])

    def _run(self, name: str, text: str) -> Checked | ScoringReason:
        """Return what a classifier says of a text, or why it says nothing."""
        if name not in self._sessions:
            described = described_models(self._own).get(name)
            model = None if described is None else load_described(described)
            self._sessions[name] = None if model is None else (open_session(model), model.labels)
        opened = self._sessions[name]
        if opened is None:
            return "crash"
        session, labels = opened
        try:
            reading = read_whole(session, text)
        except ScoringError as error:
            return error.reason
        scores = {f"{name}.{label}": value for label, value in zip(labels, reading.scores.tolist(), strict=True)}
        return Checked(scores, tuple(reading.entities))


def _joined(found: Sequence[Checked]) -> Checked:
    """Join what several classifiers say of one text."""
    scores = {name: score for checked in found for name, score in checked.scores.items()}
    entities = (entity for checked in found for entity in checked.entities)
    return Checked(scores, tuple(sorted(entities, key=lambda entity: (entity.start, entity.end))))
