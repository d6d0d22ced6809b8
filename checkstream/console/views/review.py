"""Findings that wait for somebody's word, and what people have said. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from checkstream.console.views.overview import Chart
from checkstream.console.views.quality import over_time
from checkstream.control.review.exporting import Export, cases, rows, with_texts
from checkstream.control.review.precision import WEEK_S, Precision
from checkstream.control.review.terms import Item, Word
from checkstream.control.server.reviewing import Figures, Open, Spoken

MOST = 20
"""Items on a page."""
_MOST_ROWS = 200
FORMS = {"cases": ("tests.yaml", "application/yaml"), "rows": ("labelled.jsonl", "application/jsonl")}
"""What can be made of settled items -> how the file is called, and of what kind it is."""


class Right(msgspec.Struct, frozen=True, kw_only=True):
    """How often a rule or a model was right in a week."""

    name: str
    of_model: bool
    week: str
    """Its first day."""
    found: Precision


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """What waits, and what it has come to so far."""

    rule: str
    """Items of this rule alone; empty: of all."""
    waiting: tuple[Open, ...]
    more: int
    """That wait for anybody's word and are not shown."""
    right: tuple[Right, ...]
    chart: Chart | None
    figures: Figures
    spoken: tuple[Spoken, ...]


def review(rule: str, waiting: Sequence[Open], figures: Figures, spoken: Sequence[Spoken]) -> Review:
    """Return the view."""
    told = [*((each.rule, False, each) for each in figures.precision), *((e.model, True, e) for e in figures.models)]
    right = [
        Right(
            name=name, of_model=of_model, week=f"{datetime.fromtimestamp(each.week * WEEK_S, UTC):%Y-%m-%d}", found=each
        )
        for name, of_model, each in told
    ]
    right.sort(key=lambda row: (-row.found.week, row.of_model, row.name))
    points = [(float((each.week + 1) * WEEK_S), each.rule, round(each.value, 4)) for each in figures.precision]
    return Review(
        rule=rule,
        waiting=tuple(waiting),
        more=max(figures.waiting - len(waiting), 0),
        right=tuple(right[:_MOST_ROWS]),
        chart=over_time("Share that was right", "of 1", points),
        figures=figures,
        spoken=tuple(spoken),
    )


def labels(items: Sequence[Item], words: dict[str, dict[str, Word]]) -> bytes:
    """Return lines of JSON: each settled item, and how often people have said what; without any text."""
    lines = []
    for item in items:
        said = [*words.get(item.id, {}).values()]
        told = {name: getattr(item, name) for name in _TOLD} | {word: said.count(word) for word in _WORDS}
        lines.append(msgspec.json.encode(told) + b"\n")
    return b"".join(lines)


_TOLD = ("id", "queue", "share", "stream", "route", "rule", "policy", "model", "action", "stage", "at_s")
_WORDS: tuple[Word, ...] = ("right", "wrong", "unsure")


def export(form: str, items: Sequence[Item], words: dict[str, dict[str, Word]], texts: dict[str, str]) -> Export:
    """Return a file of one of the `FORMS`, of the items whose texts somebody has."""
    return (cases if form == "cases" else rows)(with_texts(items, texts), words)
