"""Models, patterns and verifiers by name, and what they are remembered to have said; each is opened when needed."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

import checkstream
from checkstream.errors import ModelError
from checkstream.evaluation.board.remembered import Remembered
from checkstream.evaluation.board.results import Version
from checkstream.evaluation.board.texts import digest
from checkstream.evaluation.reading import PATTERNS, ModelReader, PatternReader, Reader, Said
from checkstream.evaluation.rows import PairRow
from checkstream.evaluation.verifiers import EMBEDDED, PREFIX, open_verifier
from checkstream.grounding.terms import Claim, Passage, Verifier
from checkstream.scoring.manifest import ModelEntry, ModelKind
from checkstream.scoring.provenance import described_models, installed_models


def versions(own: Path | None) -> Mapping[str, Version]:
    """Return every model that can be on a scoreboard: not one of vectors, which scores nothing.

    Raises:
        ConfigError: `models.yaml` holds faults.
        ModelError: what says which models there are can't be trusted or read.
    """
    entries = {name: each.entry for name, each in described_models(own).items()}
    found = {}
    for name, entry in entries.items():
        match entry.kind:
            case ModelKind.EMBEDDING:
                continue
            case ModelKind.PAIR:
                found[PREFIX + name] = _version(entry)
            case _:
                found[name] = _version(entry)
    for name in (PATTERNS, PREFIX + EMBEDDED):
        found[name] = Version(checkstream.__version__, "")
    return found


def _version(entry: ModelEntry) -> Version:
    """Return which model it is; what its manifest leaves out counts for nothing: a new field is no new model.

    Nor is what its scores are held against later: no score comes from it.
    """
    files = tuple(file for file in entry.files if file.role != "reference")
    said = {name: value for name, value in msgspec.to_builtins(entry).items() if value}
    said["files"] = msgspec.to_builtins(files)
    return Version(entry.version, hashlib.sha256(msgspec.json.encode(said)).hexdigest()[:16])


class Asking:
    """Asks each model about texts."""

    def __init__(self, own: Path | None, remembered: Remembered) -> None:
        """Open nothing yet.

        Args:
            own: the `models.yaml`, if there is one.
            remembered: what was said before.

        Raises:
            ConfigError: `models.yaml` holds faults.
            ModelError: what says which models there are can't be trusted or read.
        """
        self._own = own
        self._remembered = remembered
        self._versions = versions(own)
        self._entries = {name: each.entry for name, each in described_models(own).items()}
        self._readers: dict[str, Reader] = {}
        self._verifiers: dict[str, Verifier] = {}

    def version(self, name: str) -> Version:
        """Return which model it is.

        Raises:
            ModelError: there is no such model.
        """
        if name not in self._versions:
            raise ModelError(f"there is no model `{name}`; known: {', '.join(sorted(self._versions))}")
        return self._versions[name]

    def labels(self, name: str) -> tuple[str, ...]:
        """Return the labels of a model."""
        return self._entries[name].labels if name in self._entries else ()

    def kinds(self, name: str) -> tuple[str, ...]:
        """Return which entities a model finds."""
        return self._reader(name).kinds

    def thresholds(self, name: str) -> Mapping[str, Mapping[str, float]]:
        """Return the thresholds that policies ask for: what they are called -> label -> score.

        `5 %`, ... where a model is calibrated to rates, else `its threshold`.
        """
        entry = self._entries[name]
        found: dict[str, dict[str, float]] = {}
        for rate in sorted(entry.rates, key=lambda each: -each.fpr):
            found.setdefault(f"{rate.fpr * 100:g} %", {})[rate.label] = rate.threshold
        return found or {"its threshold": {each.label: each.score for each in entry.thresholds}}

    def read(self, name: str, text: str) -> Said:
        """Return what a model says of a text.

        Raises:
            ModelError: its files can't be trusted or read.
            ScoringError: it gave no usable scores.
        """
        key = f"{name} {self.version(name)}"
        return self._remembered.ask(key, digest(text), Said, lambda: self._reader(name).read(text))

    def judge(self, name: str, row: PairRow, runner: asyncio.Runner) -> float:
        """Return how sure a verifier is that evidence supports a claim, 0..1; each claim by itself.

        Raises:
            ConfigError: the model of a verifier is missing.
            ModelError: its files can't be trusted or read.
        """
        key = f"{name} {self.version(name)}"
        return self._remembered.ask(
            key, digest(row.premise, row.claim), float, lambda: runner.run(self._judged(name, row))
        )

    async def _judged(self, name: str, row: PairRow) -> float:
        if name not in self._verifiers:
            self._verifiers[name] = open_verifier(name.removeprefix(PREFIX), self._own)
        asked = Claim(text=row.claim, start=0, end=len(row.claim))
        (found,) = await self._verifiers[name].judge([asked], [Passage(id="0", text=row.premise)])
        return found.score

    def _reader(self, name: str) -> Reader:
        if name not in self._readers:
            self._readers[name] = (
                PatternReader() if name == PATTERNS else ModelReader(installed_models(self._own, (name,))[0])
            )
        return self._readers[name]
