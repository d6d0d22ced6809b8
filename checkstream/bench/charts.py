"""Charts as SVG elements to stand inside a page. Pure: the same numbers give the same bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT, _LEFT, _TOP, _BELOW = 460, 220, 52, 12, 46
"""Pixels: of the field in which points stand; left of it; above it; below it."""
Points = Sequence[tuple[float, float]]


def curves(lines: Mapping[str, Points], order: Sequence[str], *, x: str, y: str, stretched: bool = False) -> str:
    """Draw lines over one another, each in its own colour, with a legend.

    Args:
        lines: Name -> points, from left to right.
        order: All names that any chart of the page has, so that one has the same colour in each.
        x: What is on the axis below.
        y: What is on the axis beside.
        stretched: The axis below is logarithmic.
    """
    drawn = {name: points for name, points in lines.items() if points}
    if not drawn:
        return '<p class="none">nothing was measured</p>'
    most_x = max(at for points in drawn.values() for at, _ in points) or 1.0
    most_y = max(value for points in drawn.values() for _, value in points) or 1.0
    least_x = max(min(at for points in drawn.values() for at, _ in points), most_x / 1e5) if stretched else 0.0
    place = _logarithmic(least_x, most_x) if stretched else _linear(most_x)

    def spot(at: float, value: float) -> str:
        return f"{_LEFT + _WIDTH * place(at):.1f} {_TOP + _HEIGHT * (1 - value / most_y):.1f}"

    inside = "".join(_grid(value, most_y) for value in (0.0, most_y / 2, most_y))
    inside += "".join(_tick(at, place(at)) for at in (_decades(least_x, most_x) if stretched else _even(most_x)))
    for name, points in drawn.items():
        number = order.index(name)
        path = " L".join(spot(at, value) for at, value in points)
        dots = "".join(_dot(spot(at, value), number) for at, value in points) if len(points) < 2 else ""
        inside += f'<path class="line l{number % 6}" d="M{path}"><title>{escape(name)}</title></path>{dots}'
    middle = _LEFT + _WIDTH / 2
    inside += f'<text x="{middle}" y="{_TOP + _HEIGHT + 38}" text-anchor="middle">{escape(x)}</text>'
    legend = "".join(
        f'<span class="key k{number % 6}">{escape(name)}</span>' for number, name in enumerate(order) if name in drawn
    )
    size = f'viewBox="0 0 {_LEFT + _WIDTH + 16} {_TOP + _HEIGHT + _BELOW}" width="{_LEFT + _WIDTH + 16}"'
    label = f'role="img" aria-label="{escape(y)} over {escape(x)}"'
    return f"<figure><figcaption>{escape(y)}: {legend}</figcaption><svg {size} {label}>{inside}</svg></figure>"


def _linear(most: float) -> Callable[[float], float]:
    return lambda at: at / most


def _logarithmic(least: float, most: float) -> Callable[[float], float]:
    reach = math.log(most / least) or 1.0
    return lambda at: math.log(max(at, least) / least) / reach


def _decades(least: float, most: float) -> list[float]:
    found = [10.0**power for power in range(math.ceil(math.log10(least)), math.floor(math.log10(most)) + 1)]
    return found or [least, most]


def _even(most: float) -> list[float]:
    return [most * part / 4 for part in range(5)]


def _grid(value: float, most: float) -> str:
    y = _TOP + _HEIGHT * (1 - value / most)
    return (
        f'<path class="grid" d="M{_LEFT} {y:.1f}h{_WIDTH}"/>'
        f'<text x="{_LEFT - 6}" y="{y:.1f}" dy="4" text-anchor="end">{_short(value)}</text>'
    )


def _tick(at: float, share: float) -> str:
    x = _LEFT + _WIDTH * share
    return (
        f'<path class="grid" d="M{x:.1f} {_TOP}v{_HEIGHT}"/>'
        f'<text x="{x:.1f}" y="{_TOP + _HEIGHT + 18}" text-anchor="middle">{_short(at)}</text>'
    )


def _dot(spot: str, number: int) -> str:
    x, y = spot.split()
    return f'<circle class="dot l{number % 6}" cx="{x}" cy="{y}" r="5"/>'


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
