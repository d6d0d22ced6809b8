"""Makes a scoreboard: reads the texts, asks the models, and reckons."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from checkstream.errors import FileUnreadable, ModelError
from checkstream.evaluation.board.asking import Asking
from checkstream.evaluation.board.described import Asked, Described, Learnt, files_of
from checkstream.evaluation.board.measured import Scored, SetOf, of_claims, of_scores, of_spans
from checkstream.evaluation.board.results import Board, Figure, ModelKept, Threshold
from checkstream.evaluation.board.texts import digest, read_claims, read_texts
from checkstream.evaluation.reading import ANY, Said, score_of
from checkstream.evaluation.rows import Row
from checkstream.evaluation.spans import SpanCounts
from checkstream.evaluation.verifiers import PREFIX

_T = TypeVar("_T")


class Shown(Protocol):
    """Yields what it is given, and may show how far it is with what."""

    def __call__(self, items: Sequence[_T], what: str, /) -> Iterable[_T]:
        """Yield the items."""


class Making:
    """One run over all sets."""

    def __init__(self, described: Described, folder: Path, asking: Asking, shown: Shown) -> None:
        """Look that all files are there.

        Args:
            described: what is measured.
            folder: of the data.
            asking: who is asked.
            shown: is told how far it is.

        Raises:
            FileUnreadable: files are missing.
            ModelError: there is no such model, or label.
        """
        self._described = described
        self._files = files_of(described, folder)
        self._asking = asking
        self._shown = shown
        self._texts: dict[str, list[Row]] = {}
        for each in described.asked:
            asking.version(each.model)
            if each.label and each.label != ANY and each.label not in asking.labels(each.model):
                labels = ", ".join(asking.labels(each.model)) or "none"
                raise ModelError(f"`{each.label}` is no label of `{each.model}`; it has {labels}")
            if each.label == ANY and not asking.labels(each.model):
                raise ModelError(f"`{each.model}` has no labels")

    def board(self) -> Board:
        """Measure everything.

        Raises:
            ConfigError: the model of a verifier is missing.
            FileUnreadable: a file can't be read, or holds nothing of what is meant.
            ModelError: a model's files can't be trusted or read.
            ScoringError: a model gave no usable scores.
        """
        thresholds: list[Threshold] = []
        figures: list[Figure] = []
        with asyncio.Runner() as runner:
            for each in self._described.asked:
                if each.model.startswith(PREFIX):
                    figures += self._claims(each, runner)
                elif each.label:
                    found, threshold = self._scores(each)
                    figures += found
                    thresholds.append(threshold)
                else:
                    figures += self._spans(each)
        names = dict.fromkeys(each.model for each in self._described.asked)
        return Board(
            described=self._described.digest,
            rows=self._described.rows,
            models=tuple(ModelKept(name=name, now=self._asking.version(name)) for name in names),
            thresholds=tuple(thresholds),
            figures=tuple(figures),
        )

    def _scores(self, asked: Asked) -> tuple[list[Figure], Threshold]:
        wanted = [(True, *each) for each in asked.harmful.all()] + [(False, *each) for each in asked.innocent.all()]
        thresholds = self._asking.thresholds(asked.model)
        sets = []
        for harmful, name, learnt in wanted:
            said = [said for _, said in self._said(asked, name)]
            of = self._of(asked.model, name, learnt, [row.text for row in self._rows(name)], harmful=harmful)
            scores = [score_of(each.scores, asked.label) for each in said]
            fires = {
                called: np.array([_fires(each.scores, at, asked.label) for each in said])
                for called, at in thresholds.items()
            }
            sets.append(Scored(of, np.array(scores), fires))
        return of_scores(asked.model, asked.label, sets)

    def _claims(self, asked: Asked, runner: asyncio.Runner) -> list[Figure]:
        found: list[Figure] = []
        for name, learnt in asked.claims.all():
            described = self._described.sets[name]
            rows = read_claims(self._files[name], described, self._described.most(name))
            told: dict[bool, list[float]] = {True: [], False: []}
            for row in self._shown(rows, f"{asked.model} {name}"):
                told[row.label in described.supported].append(self._asking.judge(asked.model, row, runner))
            if not told[True] or not told[False]:
                labels = ", ".join(sorted({row.label for row in rows})[:12])
                raise FileUnreadable(
                    f"`{name}` needs supported and other claims; its labels are {labels}: say under `supported` "
                    "which mean so"
                )
            of = self._of(asked.model, name, learnt, [digest(row.premise, row.claim, row.label) for row in rows])
            found += of_claims(of, np.array(told[True]), np.array(told[False]))
        return found

    def _spans(self, asked: Asked) -> list[Figure]:
        found: list[Figure] = []
        for name, learnt in asked.spans.all():
            names = self._described.sets[name].names
            kinds = [kind for kind in self._asking.kinds(asked.model) if kind in names.values()]
            counts = []
            for row, said in self._said(asked, name):
                marked = [(span.start, span.end, names.get(span.label, "")) for span in row.spans]
                ours = [(each.start, each.end, each.entity) for each in said.entities]
                counts.append(SpanCounts())
                counts[-1].add([each for each in marked if each[2] in kinds], ours)
            of = self._of(asked.model, name, learnt, [row.text for row in self._rows(name)])
            figures = of_spans(of, counts, kinds)
            if not figures:
                raise FileUnreadable(
                    f"no text of `{name}` has a span that is named under its `names`; name those it has"
                )
            found += figures
        return found

    def _of(self, model: str, name: str, learnt: Learnt, texts: Sequence[str], *, harmful: bool = True) -> SetOf:
        described = self._described.sets[name]
        return SetOf(model=model, name=name, described=described, learnt=learnt, harmful=harmful, texts=texts)

    def _said(self, asked: Asked, name: str) -> list[tuple[Row, Said]]:
        rows = self._rows(name)
        return [(row, self._asking.read(asked.model, row.text)) for row in self._shown(rows, f"{asked.model} {name}")]

    def _rows(self, name: str) -> list[Row]:
        if name not in self._texts:
            described = self._described.sets[name]
            self._texts[name] = read_texts(self._files[name], described, self._described.most(name))
        return self._texts[name]


def _fires(scores: Mapping[str, float], at: Mapping[str, float], label: str) -> bool:
    """Tell whether a text reaches the threshold of a label, or of any."""
    all_together = label == ANY and label not in scores
    return any(scores[name] >= threshold for name, threshold in at.items() if all_together or label == name)
