"""The model card of `reader`, written from its figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from checkstream.evaluation.figures import Interval
from checkstream.grounding.reader import BIAS, DENIED, READ, SURELY, SURFACE
from models.training.reader.data import LEFT_OUT
from models.training.reader.measure import MISSED, Line, Weights
from models.training.reader.ship import VERSION

JUDGES = ("embedded", "reader alone", "both")


class Measured(msgspec.Struct, frozen=True):
    """Everything that was measured in one build."""

    choosing: list[Line]
    left_out: list[Line]
    weights: Weights
    """That were chosen; those that ship stand in `checkstream.grounding.reader`."""
    pairs: int
    curve: list[tuple[int, float]]
    ms: float
    """Of one window, on one core."""


def card(found: Measured) -> str:
    """Return the card."""
    text, tried = ((Path(__file__).parent / name).read_text() for name in ("card.md", "tried.md"))
    chosen = ", ".join(f"{value:g}" for value in msgspec.structs.astuple(found.weights))
    return text.format(
        version=VERSION,
        pairs=found.pairs,
        read=READ,
        denied=DENIED,
        surface=SURFACE,
        bias=BIAS,
        missed=MISSED,
        surely=SURELY,
        chosen=chosen,
        left_out=_table(found.left_out),
        choosing=_table(found.choosing),
        ms=found.ms,
        tried=tried,
    )


def _table(lines: Sequence[Line]) -> str:
    heads = [
        "AUC: embedded",
        "model alone",
        "both",
        "gained over embedded",
        "balanced: embedded",
        "both",
        "missed: embedded",
        "both",
    ]
    rows = [f"| set | supported + other | {' | '.join(heads)} |", "|---|--:|" + "---|" * len(heads)]
    for each in lines:
        cells = [*(_shown(each.auc[judge]) for judge in JUDGES), _shown(each.gained)]
        cells += [_shown(each.balanced[judge]) for judge in ("embedded", "both")]
        cells += [f"{each.missed[judge]:.1%}" for judge in ("embedded", "both")]
        name = f"`{each.name}`" + (" (teacher saw it)" if each.name in LEFT_OUT else "")
        rows.append(f"| {name} | {each.supported} + {each.other} | {' | '.join(cells)} |")
    means = [f"{np.mean([each.auc[judge].value for each in lines]):.3f}" for judge in JUDGES]
    means.append(_mean_gained(lines))
    means += [f"{np.mean([each.balanced[judge].value for each in lines]):.3f}" for judge in ("embedded", "both")]
    means += [f"{np.mean([each.missed[judge] for each in lines]):.1%}" for judge in ("embedded", "both")]
    rows.append(f"| **mean** | | {' | '.join(f'**{mean}**' for mean in means)} |")
    return "\n".join(rows)


def _mean_gained(lines: Sequence[Line]) -> str:
    """Return the mean gain of sets, with the interval that theirs come to, taken for independent."""
    half = np.sqrt(sum((each.gained.high - each.gained.low) ** 2 for each in lines)) / 2 / len(lines)
    mean = np.mean([each.gained.value for each in lines])
    return f"{mean:+.3f} ({mean - half:+.3f} to {mean + half:+.3f})"


def _shown(interval: Interval) -> str:
    return f"{interval.value:.3f} ({interval.low:.3f} to {interval.high:.3f})"
