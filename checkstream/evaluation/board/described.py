"""What a scoreboard measures, as `scoreboard.yaml` says it: which texts of which files, and which model is asked.

Nothing of the texts is part of the project: a file is named relative to a folder that is given when it is measured.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from checkstream.errors import FileUnreadable
from checkstream.evaluation.verifiers import PREFIX

LEFT_OUT: Learnt = "left out"
KNOWN: Learnt = "known"

_Words = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]


class SetDescribed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Texts of one file."""

    file: Annotated[str, msgspec.Meta(min_length=1)]
    """In the data folder."""
    kind: Annotated[str, msgspec.Meta(min_length=1)]
    """What sort of texts they are: `attack`, `role-play`, `documents`, `claims`."""
    where: dict[str, _Words] = {}
    """Key of a row -> what it may hold there; rows with anything else are left out."""
    rows: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None
    """At most so many; None: as many as of every set."""
    supported: tuple[str, ...] = ()
    """Of claims: labels that say that the evidence says so."""
    names: dict[str, str] = {}
    """Of marked spans: what a label is called here."""


Learnt = Literal["left out", "known"]


class Sets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names of sets, by whether the model has learnt from their sources."""

    left_out: tuple[str, ...] = ()
    """Nothing of it was learnt from, and nothing was chosen by it."""
    known: tuple[str, ...] = ()
    """Learnt from in part, or chosen by: figures are better than they would be elsewhere."""

    def all(self) -> Iterator[tuple[str, Learnt]]:
        """Yield each name with what it is."""
        yield from ((name, LEFT_OUT) for name in self.left_out)
        yield from ((name, KNOWN) for name in self.known)


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one model is asked about: a label on harmful and innocent texts, or claims, or marked spans."""

    model: str
    label: str = ""
    """Of a model that scores texts; `any`: all of them."""
    harmful: Sets = Sets()
    innocent: Sets = Sets()
    """Of these together the threshold is taken that lets 1 % fire."""
    claims: Sets = Sets()
    spans: Sets = Sets()

    def __post_init__(self) -> None:
        """Refuse what can't be measured."""
        scored = tuple(self.harmful.all()), tuple(self.innocent.all())
        if self.model.startswith(PREFIX):
            wrong = not tuple(self.claims.all()) or any(scored) or bool(self.label)
            need = "`claims` alone"
        elif not self.label:
            wrong = not tuple(self.spans.all()) or any(scored) or any(self.claims.all())
            need = "a `label`, or `spans` alone"
        else:
            wrong = not all(scored) or any(self.claims.all()) or any(self.spans.all())
            need = "`harmful` and `innocent` sets alone beside its label"
        if wrong:
            raise ValueError(f"`{self.model}` needs {need}")
        names = [name for sets in (self.harmful, self.innocent, self.claims, self.spans) for name, _ in sets.all()]
        if len(set(names)) < len(names):
            raise ValueError(f"`{self.model}` names a set twice")


class Described(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that a scoreboard measures."""

    version: Annotated[int, msgspec.Meta(ge=1, le=1)]
    rows: Annotated[int, msgspec.Meta(ge=1, le=100_000)]
    """At most so many of a set, chosen by the digests of their texts."""
    sets: dict[str, SetDescribed]
    asked: Annotated[tuple[Asked, ...], msgspec.Meta(min_length=1)]
    digest: str = ""
    """Of the file."""

    def __post_init__(self) -> None:
        """Refuse names without a set, and sets without a use."""
        used = {name for name, _ in self.uses()}
        for name in sorted(used ^ set(self.sets)):
            what = "is no set; describe it under `sets`" if name in used else "is asked of no model; take it out"
            raise ValueError(f"`{name}` {what}")
        asked = [(each.model, each.label) for each in self.asked]
        for pair in asked:
            if asked.count(pair) > 1:
                raise ValueError(f"`{'.'.join(filter(None, pair))}` is asked twice; join the two")

    def uses(self) -> Iterator[tuple[str, Asked]]:
        """Yield each name of a set with what asks for it."""
        for each in self.asked:
            for sets in (each.harmful, each.innocent, each.claims, each.spans):
                yield from ((name, each) for name, _ in sets.all())

    def most(self, name: str) -> int:
        """Return how many rows of a set are read."""
        return self.sets[name].rows or self.rows


def read_described(path: Path) -> Described:
    """Read a description.

    Raises:
        FileUnreadable: it can't be read, or is none; says what is wrong.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FileUnreadable(f"can't read `{path}`: {reason}; give a folder with a scoreboard.yaml") from error
    try:
        found = msgspec.yaml.decode(data, type=Described)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FileUnreadable(f"`{path.name}` is no description of a scoreboard: {error}") from error
    return msgspec.structs.replace(found, digest=hashlib.sha256(data).hexdigest()[:16])


def files_of(described: Described, folder: Path) -> Mapping[str, Path]:
    """Return the file of each set.

    Raises:
        FileUnreadable: some are not there; names every one.
    """
    found = {name: folder / each.file for name, each in described.sets.items()}
    missing: Sequence[str] = sorted({str(path.relative_to(folder)) for path in found.values() if not path.is_file()})
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        raise FileUnreadable(f"`{folder}` lacks {names}; a scoreboard is of all of them, or of none")
    return found
