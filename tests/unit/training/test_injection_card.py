"""The card of `injection` is written from figures, not from hopes."""

from __future__ import annotations

import msgspec
import pytest

from tests.train_packages import TRAIN

pytest.importorskip("torch", reason=TRAIN)
pytest.importorskip("onnx", reason=TRAIN)

from checkstream.evaluation.figures import Interval
from models.training.injection.card import card
from models.training.injection.folds import FoldFigures, GatedFigures
from models.training.injection.ship import Limits, ShippedFigures


def figures(value: float) -> dict[str, Interval]:
    names = ("AUC", "recall at 0.1 %", "recall at 1 %", "recall at 5 %")
    return {name: Interval(value, value - 0.01, value + 0.01) for name in names}


def fold(name: str, value: float) -> FoldFigures:
    return FoldFigures(
        fold=name,
        figures=figures(value),
        sources={"misc": (10, value)},
        innocents={},
        unseen_innocents={"docs": (30, 0.0), "form": (10, 0.4)},
        generated=(0.9, 0.8),
        elsewhere={"set": (5, 0.2)},
        curve=[(50, 0.5)],
    )


def measured(name: str, alone: float, behind: float) -> tuple[FoldFigures, GatedFigures]:
    return fold(name, alone), GatedFigures(found=fold(name, behind), threshold=0.0625, misses=0.0375, doubts=0.115)


SHIPPED = ShippedFigures(
    figures=figures(0.97),
    innocents={"articles": (7, 0.125)},
    elsewhere={},
    rates=[{"fpr": 0.01, "threshold": 0.75}],
    calibration_error=0.02,
    drift=0.001,
    flips=0.0025,
    gate_threshold=0.03,
    gate_misses=0.0125,
    gate_doubts=0.2,
    gate_doubts_prompts=0.05,
    curve=[(50, 0.6)],
    gate_curve=[(50, 0.3)],
)


def test_the_mean_over_the_folds_weighs_them_alike() -> None:
    text = card(SHIPPED, [measured("personas", 0.9, 0.8), measured("methods", 0.7, 0.5)])
    alone, behind = text.split("**Behind a gate.**")
    assert "| mean of 2 | 0.800 | 0.800 | 0.800 | 0.800 | 0.100 |" in alone
    assert "| mean of 2 | 0.650 | 0.650 | 0.650 | 0.650 | 0.100 |" in behind


def test_what_a_folds_gate_costs_is_told() -> None:
    text = card(SHIPPED, [measured("personas", 0.9, 0.8)])
    assert "gate at 0.0625 clears 3.8% of the fold's attacks" in text
    assert "doubts 11.5% of the innocent texts" in text
    assert "set 0.200 (n=5)" in text
    assert "- gate of personas: 50: 0.500" in text


def test_every_figure_of_the_model_that_ships_is_told() -> None:
    text = card(SHIPPED, [])
    for told in ("0.7500 for 1.0%", "0.25%", "1.25%", "5.0%", "articles 0.125 (n=7)"):
        assert told in text


def test_figures_survive_being_kept() -> None:
    for figure in (SHIPPED, *measured("methods", 0.7, 0.5)):
        assert msgspec.json.decode(msgspec.json.encode(figure), type=type(figure)) == figure


def test_the_default_threshold_is_that_of_one_percent() -> None:
    limits = Limits([{"fpr": 0.05, "threshold": 0.2}, {"fpr": 0.01, "threshold": 0.6}], 0.1)
    assert limits.default == 0.6
