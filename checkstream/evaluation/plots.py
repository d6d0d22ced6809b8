"""Plots as SVG elements to stand inside a page. Pure: points in, text out; the same points give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Protocol

from checkstream.evaluation.figures import Bin, Point

_SIZE, _LEFT, _TOP, _ROOM = 300, 52, 28, 44
"""Pixels: side of the square in which points are drawn; left of it; above it; below it."""
_BAR = 96
_TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def precision_recall(points: Sequence[Point]) -> str:
    """Return precision over recall, with the share of positives implied by the lowest threshold."""
    line = [(point.recall, point.precision) for point in points]
    return _framed("precision over recall", "recall", "precision", _line(line, "line"))


def recall_at_rates(points: Sequence[Point]) -> str:
    """Return recall over the false-positive rate; its axis is stretched (cube root): low rates matter."""
    line = [(point.fpr ** (1 / 3), point.recall) for point in points]
    ticks = "".join(_x_tick(rate ** (1 / 3), f"{rate:g}") for rate in (0.0, 0.001, 0.01, 0.05, 0.2, 0.5, 1.0))
    return _framed("recall over false-positive rate", "false-positive rate", "recall", _line(line, "line"), ticks)


def reliability_plot(bins: Sequence[Bin]) -> str:
    """Return the share of positives over the mean score; the area of a dot is the share of texts behind it."""
    total = sum(each.count for each in bins)
    dots = "".join(
        f'<circle class="dot" cx="{_x(each.mean_score)}" cy="{_y(each.positive)}" '
        f'r="{3 + 17 * (each.count / total) ** 0.5:.1f}"><title>{each.count} texts</title></circle>'
        for each in bins
    )
    line = _line([(each.mean_score, each.positive) for each in bins], "line")
    return _framed("reliability", "mean score", "share of positives", _line([(0, 0), (1, 1)], "ideal") + line + dots)


class Spread(Protocol):
    """A figure of 0..1 with its interval."""

    @property
    def value(self) -> float:
        """The figure."""

    @property
    def low(self) -> float:
        """Where its interval begins."""

    @property
    def high(self) -> float:
        """Where it ends."""


def interval_bar(now: Spread, before: Spread | None) -> str:
    """Return a figure in its interval on a line from 0 to 1, over the one before it."""
    rows = [(now, "now", 5)] if before is None else [(now, "now", 5), (before, "past", 12)]
    marks = "".join(
        f'<path class="{kind}" d="M{each.low * _BAR + 4:.1f} {at}H{each.high * _BAR + 4:.1f}"/>'
        f'<circle class="{kind}" cx="{each.value * _BAR + 4:.1f}" cy="{at}" r="2.5"/>'
        for each, kind, at in rows
    )
    width, height = _BAR + 8, 8 if before is None else 16
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" aria-hidden="true">'
        f'<path class="grid" d="M4 {height - 1}h{_BAR}"/>{marks}</svg>'
    )


def _framed(title: str, x_label: str, y_label: str, inside: str, x_ticks: str | None = None) -> str:
    width, height = _LEFT + _SIZE + 20, _TOP + _SIZE + _ROOM
    middle_x, middle_y = _LEFT + _SIZE / 2, _TOP + _SIZE / 2
    if x_ticks is None:
        x_ticks = "".join(_x_tick(value, f"{value:.1f}") for value in _TICKS)
    y_ticks = "".join(
        f'<path class="grid" d="M{_LEFT} {_y(value)}h{_SIZE}"/>'
        f'<text x="{_LEFT - 8}" y="{_y(value)}" dy="4" text-anchor="end">{value:.1f}</text>'
        for value in _TICKS
    )
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escape(title)}">'
        f'<text class="title" x="{middle_x}" y="16" text-anchor="middle">{escape(title)}</text>'
        f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{_SIZE}" height="{_SIZE}"/>{x_ticks}{y_ticks}'
        f'<text x="{middle_x}" y="{height - 6}" text-anchor="middle">{escape(x_label)}</text>'
        f'<text transform="translate(14 {middle_y}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>'
        f"{inside}</svg>"
    )


def _x_tick(value: float, shown: str) -> str:
    return (
        f'<path class="grid" d="M{_x(value)} {_TOP}v{_SIZE}"/>'
        f'<text x="{_x(value)}" y="{_TOP + _SIZE + 16}" text-anchor="middle">{shown}</text>'
    )


def _line(points: Sequence[tuple[float, float]], kind: str) -> str:
    places = " ".join(f"{_x(x)},{_y(y)}" for x, y in points)
    return f'<polyline class="{kind}" points="{places}"/>'


def _x(value: float) -> str:
    return f"{_LEFT + value * _SIZE:.1f}"


def _y(value: float) -> str:
    return f"{_TOP + (1 - value) * _SIZE:.1f}"
