"""Charts as SVG elements to stand inside a page. Pure: the same numbers give the same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape

from checkstream.grounding.terms import Verdict

_WIDTH, _HEIGHT, _LEFT, _TOP, _BELOW = 460, 200, 44, 12, 30
"""Pixels: of the field in which points stand; left of it; above it; below it."""


def over_time(points: Sequence[tuple[float, float, str]], deploy: float, warn: float) -> str:
    """Draw the risk of runs in their order, with both limits.

    Args:
        points: (seconds since 1970, risk, decision), the oldest first; at least one.
        deploy: highest risk that is deployed.
        warn: highest risk that is not blocked.
    """
    top = max(0.1, warn * 1.25, *(risk for _, risk, _ in points))
    places = [(_x(at, len(points)), _y(risk, top)) for at, (_, risk, _) in enumerate(points)]
    limits = "".join(
        f'<path class="limit limit-{name}" d="M{_LEFT} {_y(limit, top)}h{_WIDTH}"/>'
        f'<text x="{_LEFT + _WIDTH}" y="{_y(limit, top)}" dx="4" dy="4">{name}</text>'
        for name, limit in (("deploy", deploy), ("warn", warn))
    )
    ticks = "".join(
        f'<path class="grid" d="M{_LEFT} {_y(value, top)}h{_WIDTH}"/>'
        f'<text x="{_LEFT - 6}" y="{_y(value, top)}" dy="4" text-anchor="end">{value:.2f}</text>'
        for value in (0.0, top / 2, top)
    )
    line = f'<path class="line" d="M{" L".join(f"{x} {y}" for x, y in places)}"/>' if len(places) > 1 else ""
    dots = "".join(
        f'<circle class="dot-{escape(decision)}" cx="{x}" cy="{y}" r="5">'
        f"<title>{_day(when)}: {risk:.4f}, {escape(decision)}</title></circle>"
        for (x, y), (when, risk, decision) in zip(places, points, strict=True)
    )
    ends = f'<text x="{_LEFT}" y="{_TOP + _HEIGHT + 20}">{_day(points[0][0])}</text>'
    if len(points) > 1:
        last = _day(points[-1][0])
        ends += f'<text x="{_LEFT + _WIDTH}" y="{_TOP + _HEIGHT + 20}" text-anchor="end">{last}</text>'
    return _svg(_LEFT + _WIDTH + 56, _TOP + _HEIGHT + _BELOW, "risk over time", ticks + limits + line + dots + ends)


def shares(counts: Mapping[Verdict, int]) -> str:
    """Draw one bar whose parts are the claims of each verdict, with a legend."""
    total = sum(counts.values())
    bar, legend, at = "", "", 0.0
    for number, (verdict, count) in enumerate(counts.items()):
        width = _WIDTH * count / total if total else 0.0
        bar += f'<rect class="part-{verdict}" x="{at:.1f}" y="8" width="{width:.1f}" height="34"/>'
        at += width
        share = f" ({count / total:.0%})" if total else ""
        y = 66 + 22 * number
        legend += (
            f'<rect class="part-{verdict}" x="0" y="{y - 10}" width="12" height="12"/>'
            f'<text x="20" y="{y}">{verdict.replace("_", " ")}: {count}{share}</text>'
        )
    return _svg(_WIDTH, 66 + 22 * len(counts), "claims by verdict", bar + legend)


def _svg(width: int, height: int, label: str, inside: str) -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f'<svg {size} role="img" aria-label="{label}">{inside}</svg>'


def _x(at: int, count: int) -> float:
    return round(_LEFT + (_WIDTH * at / (count - 1) if count > 1 else _WIDTH / 2), 1)


def _y(value: float, top: float) -> float:
    return round(_TOP + _HEIGHT * (1 - min(value, top) / top), 1)


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"
