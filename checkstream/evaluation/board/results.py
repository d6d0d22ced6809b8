"""What a scoreboard says, as `scoreboard.json` keeps it, and what has become of it since. Pure.

A figure got worse when it lies beyond the bad end of the interval that was kept, further than one text of the set is
worth, since an interval may be a point; better likewise. INVARIANT: nothing is compared that was measured on other
texts, and what is no longer measured is told like what got worse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec

from checkstream.errors import FileUnreadable
from checkstream.evaluation.board.described import Learnt

Became = Literal["same", "better", "worse", "other texts", "new"]
Key = tuple[str, str, str, str]


class Version(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which model it was."""

    version: str
    digest: str
    """Of what the manifest says of the model, the hashes of its files among it; empty: it has none."""


class ModelKept(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model that was measured."""

    name: str
    now: Version
    before: Version | None = None
    """The one that was kept before it."""


class Before(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A figure of the version before."""

    value: float
    low: float
    high: float
    texts: str


class Figure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One figure of one set."""

    model: str
    label: str
    """Of a model that scores texts; an entity, of one that finds some; empty of a verifier."""
    set: str
    kind: str
    learnt: Learnt
    harmful: bool
    """Of the set; True also of claims and of marked spans."""
    figure: str
    """`AUC`, `recall at 1 % of all`, `fires at 0.1 %`, ..."""
    good: Literal["up", "down"]
    n: Annotated[int, msgspec.Meta(ge=1)]
    """Texts of the set."""
    value: float
    low: float
    high: float
    """The 95 % interval."""
    texts: str
    """Digest of the texts."""
    before: Before | None = None

    @property
    def key(self) -> Key:
        """What it is known by over versions."""
        return self.model, self.label, self.set, self.figure

    @property
    def became(self) -> Became:
        """What it is beside the version before."""
        if self.before is None:
            return "new"
        if self.before.texts != self.texts:
            return "other texts"
        slack = 1 / self.n + _EPSILON
        low, high = self.before.low - slack, self.before.high + slack
        if low <= self.value <= high:
            return "same"
        return "better" if (self.value > high) == (self.good == "up") else "worse"


_EPSILON = 1e-9


class Threshold(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where 1 % of all innocent texts of a label together fire."""

    model: str
    label: str
    threshold: float
    n: int


class Board(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that a scoreboard says."""

    version: Annotated[int, msgspec.Meta(ge=1, le=1)] = 1
    described: str
    """Digest of what it measures."""
    rows: int
    """At most so many of a set."""
    models: tuple[ModelKept, ...]
    thresholds: tuple[Threshold, ...]
    figures: tuple[Figure, ...]


def rounded(value: float) -> float:
    """Return a figure as it is kept."""
    return round(float(value), 4)


class Compared(msgspec.Struct, frozen=True):
    """A new board beside the kept one."""

    board: Board
    """The new one, with the figures before."""
    worse: tuple[Figure, ...]
    """Than those that were kept, beyond their intervals."""
    better: tuple[Figure, ...]
    gone: tuple[Key, ...]
    """Kept, and no longer measured."""


def compare(new: Board, kept: Board | None) -> Compared:
    """Put a board beside the one that is kept.

    Of a figure that has not changed and whose model has not either, the one before stays the one before.
    """
    if kept is None:
        return Compared(new, (), (), ())
    models = {each.name: each for each in kept.models}
    figures = {each.key: each for each in kept.figures}
    changed = {each.name for each in new.models if each.name in models and each.now != models[each.name].now}
    found = [_beside(each, figures.get(each.key), each.model in changed) for each in new.figures]
    news = [each for each, is_news in found if is_news]
    board = msgspec.structs.replace(
        new,
        models=tuple(_before(each, models.get(each.name)) for each in new.models),
        figures=tuple(each for each, _ in found),
    )
    measured = {each.key for each in new.figures}
    return Compared(
        board,
        tuple(each for each in news if each.became == "worse"),
        tuple(each for each in news if each.became == "better"),
        tuple(key for key in figures if key not in measured),
    )


def _beside(new: Figure, kept: Figure | None, changed: bool) -> tuple[Figure, bool]:
    """Return a figure with the one before it, and whether that is what was kept last."""
    if kept is None:
        return new, False
    same = (kept.value, kept.low, kept.high, kept.texts) == (new.value, new.low, new.high, new.texts)
    if same and not changed:
        return msgspec.structs.replace(new, before=kept.before), False
    return msgspec.structs.replace(new, before=Before(kept.value, kept.low, kept.high, kept.texts)), True


def _before(new: ModelKept, kept: ModelKept | None) -> ModelKept:
    if kept is None:
        return new
    return msgspec.structs.replace(new, before=kept.before if kept.now == new.now else kept.now)


def not_held(board: Board, described: str, now: Mapping[str, Version]) -> Sequence[str]:
    """Return in words what a kept board does not speak of any more; nothing: it is of what is there.

    Args:
        board: as it is kept.
        described: digest of what is to be measured.
        now: name -> model, of all that ship.
    """
    faults = [] if board.described == described else ["what is measured has changed"]
    kept = {each.name: each.now for each in board.models}
    for name, version in sorted(now.items()):
        if name not in kept:
            faults.append(f"`{name}` is not on it")
        elif kept[name] != version:
            faults.append(
                f"`{name}` is {version.version} ({version.digest}), it has {kept[name].version} ({kept[name].digest})"
            )
    return faults


def encode(board: Board) -> bytes:
    """Return a board as it is kept; the same board gives the same bytes."""
    lines = msgspec.json.format(msgspec.json.encode(msgspec.structs.replace(board, figures=())), indent=1)
    figures = b",\n".join(b"  " + msgspec.json.encode(each) for each in board.figures)
    return lines.replace(b'"figures": []', b'"figures": [\n' + figures + b"\n ]") + b"\n"


def decode(data: bytes, name: str) -> Board:
    """Return a board that was kept in the file `name`.

    Raises:
        FileUnreadable: it is none.
    """
    try:
        return msgspec.json.decode(data, type=Board)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FileUnreadable(f"`{name}` is no scoreboard: {error}; take it from version control") from error
