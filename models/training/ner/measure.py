"""What the entity model is worth, together with the entities that are found by pattern, as the proxy reads texts.

An entity that a validated pattern finds wins over one of the model that it overlaps, as it does in policies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random

import msgspec

from checkstream.evaluation.reading import PatternReader
from checkstream.scoring import Model, open_session, read_whole
from models.training import corpus
from models.training.ner.data import read
from models.training.ner.encode import ENTITIES
from models.training.ner.figures import Counts, count, interval
from models.training.ner.marked import Marked, Span

NAMES = ("PERSON", "LOCATION", "ORGANIZATION")
"""What the goal is set for."""

ACCOUNTS = frozenset({"BANK_ACCOUNT", "IBAN"})
"""Entities found by pattern that are what the model calls ACCOUNT."""


class Figures(msgspec.Struct, frozen=True):
    """F1 of one set of texts."""

    name: str
    texts: int
    names: float
    """Strict F1 of `NAMES` together."""
    names_interval: tuple[float, float]
    names_overlap: float
    """The same, where a span counts when it shares a character with a marked one."""
    each: dict[str, tuple[int, float, float]]
    """Entity -> spans marked, strict F1, overlap F1; of entities that the set marks."""


SETS: Mapping[str, tuple[tuple[str, ...], Callable[[Mapping[str, object]], bool]]] = {
    "pii: English": (
        ("pii_anon_dev", "pii_anon_extra"),
        lambda row: row["language"] == "en" and not row.get("adversarial"),
    ),
    "pii: other languages": (
        ("pii_anon_dev", "pii_anon_extra"),
        lambda row: row["language"] != "en" and not row.get("adversarial"),
    ),
    "pii: adversarial": (("pii_anon_dev", "pii_anon_extra"), lambda row: bool(row.get("adversarial"))),
    "social: BTC": (("pii_ner_btc",), lambda _: True),
    "social: WNUT17": (("pii_ner_wnut17_train",), lambda _: True),
}
"""Name -> files, and which of their rows."""


class Finder:
    """The model and the patterns together."""

    def __init__(self, model: Model) -> None:
        """Open a session of a verified model.

        Raises:
            ModelError: its files don't hold what they need to.
        """
        self._session = open_session(model)
        self._patterns = PatternReader()

    def find(self, text: str) -> list[Span]:
        """Return what both find; the model's spans that overlap a pattern's are left out."""
        certain = self._patterns.read(text).entities
        doubtful = read_whole(self._session, text).entities
        spans = [
            Span(found.start, found.end, "ACCOUNT" if found.entity in ACCOUNTS else found.entity) for found in certain
        ]
        spans += [
            Span(found.start, found.end, found.entity)
            for found in doubtful
            if not any(found.start < hit.end and found.end > hit.start for hit in certain)
        ]
        return spans


def texts_of(folder: Path, name: str, most: int, seed: int, part: str | None = None) -> list[Marked]:
    """Return texts of one of `SETS`: at most so many, of one part or of all.

    Args:
        folder: the pool.
        name: of the set.
        most: texts.
        seed: of the choice.
        part: `test` where the others were learnt from; None: the whole source was left out.
    """
    files, wanted = SETS[name]
    found = [
        text
        for file in files
        for text, row in read(folder, file)
        if wanted(row) and (part is None or corpus.part_of(text.text) == part)
    ]
    return Random(seed).sample(found, min(most, len(found)))


def measured(name: str, texts: Sequence[Marked], finder: Finder) -> Figures:
    """Measure one set."""
    totals = dict.fromkeys(ENTITIES, Counts())
    names: list[Counts] = []
    for text in texts:
        found = finder.find(text.text)
        own = {entity: count(found, text.spans, entity) for entity in ENTITIES}
        totals = {entity: totals[entity] + own[entity] for entity in ENTITIES}
        names.append(_sum(own[entity] for entity in NAMES))
    whole = _sum(names)
    return Figures(
        name,
        len(texts),
        whole.f1(),
        interval(names, 1),
        whole.f1(overlap=True),
        {
            entity: (counts.marked, counts.f1(), counts.f1(overlap=True))
            for entity, counts in totals.items()
            if counts.marked
        },
    )


def alarms(texts: Iterable[str], finder: Finder) -> dict[str, float]:
    """Return, by entity, the share of texts in which one is found; for texts that hold none."""
    every = list(texts)
    found = [{span.entity for span in finder.find(text)} for text in every]
    return {entity: sum(entity in kinds for kinds in found) / len(every) for entity in ENTITIES}


def _sum(counts: Iterable[Counts]) -> Counts:
    total = Counts()
    for one in counts:
        total += one
    return total
