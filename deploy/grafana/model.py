"""What a dashboard is made of, and how Grafana writes it (schema 39: Grafana 10.1 and later).

A dashboard is rows of panels, a panel is queries and what a reader is told about them. Where a panel stands follows
from its width: panels fill a row of 24 columns from left to right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Literal

import msgspec

COLUMNS = 24
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_TAG = "checkstream"
Steps = tuple[tuple[float | None, str], ...]
"""From which value on (None: from the least) a figure has which colour."""


class Query(msgspec.Struct, frozen=True):
    """One query, and what its lines are called."""

    expr: str
    legend: str = ""


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """One picture."""

    title: str
    says: str
    """What it shows, and what to do where it looks wrong."""
    queries: tuple[Query, ...]
    kind: Literal["timeseries", "stat", "table", "heatmap"] = "timeseries"
    unit: str = "short"
    """As Grafana names it."""
    steps: Steps = ()
    width: int = 8
    stacked: bool = False
    most: float | None = None
    """Upper end of the axis."""


class Row(msgspec.Struct, frozen=True):
    """Panels that answer one question."""

    title: str
    panels: tuple[Panel, ...]
    is_open: bool = True


class Variable(msgspec.Struct, frozen=True):
    """What a reader can choose: values of a label."""

    name: str
    title: str
    query: str


class Board(msgspec.Struct, frozen=True, kw_only=True):
    """One dashboard."""

    uid: str
    title: str
    says: str
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...]
    events: tuple[tuple[str, str, str], ...]
    """Name, query and text of what is drawn over all panels when it happens."""


def rate(name: str, by: str, where: str) -> str:
    """Return how many a second of a counter there are, by some labels; by none: of all."""
    summed = f"sum by ({by})" if by else "sum"
    return f"{summed} (rate({name}{{{where}}}[$__rate_interval]))"


def share(part: str, whole: str) -> str:
    """Return one rate as a share of another; nothing where the other is 0."""
    return f"{part} / ({whole} > 0)"


def quantile(q: float, name: str, by: str, where: str) -> str:
    """Return a quantile of a histogram, by some labels."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({q:g}, {rate(f'{name}_bucket', labels, where)})"


def quantiles(name: str, where: str) -> tuple[Query, ...]:
    """Return the half, the twentieth and the hundredth that is slowest of all that is chosen."""
    return tuple(Query(quantile(q, name, "", where), f"p{q * 100:g}") for q in (0.5, 0.95, 0.99))


def written(board: Board) -> dict[str, Any]:
    """Return a dashboard as Grafana imports it."""
    return {
        "uid": board.uid,
        "title": board.title,
        "description": board.says,
        "tags": [_TAG],
        "timezone": "browser",
        "editable": True,
        "graphTooltip": 1,
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "links": [_links()],
        "annotations": {"list": [_event(*event) for event in board.events]},
        "templating": {"list": [_source_variable(), *map(_variable, board.variables)]},
        "panels": list(_placed(board.rows)),
    }


def _links() -> dict[str, Any]:
    return {
        "title": "Other dashboards of Checkstream",
        "type": "dashboards",
        "icon": "external link",
        "tooltip": "",
        "tags": [_TAG],
        "asDropdown": False,
        "targetBlank": False,
        "includeVars": True,
        "keepTime": True,
    }


def _event(name: str, expr: str, text: str) -> dict[str, Any]:
    return {
        "name": name,
        "datasource": _SOURCE,
        "enable": True,
        "iconColor": "blue",
        "expr": expr,
        "titleFormat": name,
        "textFormat": text,
        "step": "60s",
    }


def _source_variable() -> dict[str, Any]:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _variable(variable: Variable) -> dict[str, Any]:
    return {
        "name": variable.name,
        "label": variable.title,
        "type": "query",
        "datasource": _SOURCE,
        "query": variable.query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"], "selected": True},
    }


def _placed(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    ids, y = count(1), 0
    for row in rows:
        head = {
            "id": next(ids),
            "type": "row",
            "title": row.title,
            "collapsed": not row.is_open,
            "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1},
        }
        panels, below = _filled(row.panels, ids, y + 1)
        yield {**head, "panels": [] if row.is_open else panels}
        if row.is_open:
            yield from panels
        y = below if row.is_open else y + 1


def _filled(panels: Sequence[Panel], ids: Iterator[int], y: int) -> tuple[list[dict[str, Any]], int]:
    """Return panels from a line on, side by side while there is room, and the line below them."""
    made, x, height = list[dict[str, Any]](), 0, 0
    for panel in panels:
        if x + panel.width > COLUMNS:
            x, y, height = 0, y + height, 0
        tall = 4 if panel.kind == "stat" else 8
        place = {"x": x, "y": y, "w": panel.width, "h": tall}
        made.append(_panel(panel, next(ids), place))
        x, height = x + panel.width, max(height, tall)
    return made, y + height


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    once = panel.kind in {"stat", "table"}
    targets = [
        {
            "refId": chr(ord("A") + at),
            "datasource": _SOURCE,
            "expr": query.expr,
            "legendFormat": query.legend or "__auto",
            "instant": once,
            "range": not once,
            "format": {"table": "table", "heatmap": "heatmap"}.get(panel.kind, "time_series"),
        }
        for at, query in enumerate(panel.queries)
    ]
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.says,
        "datasource": _SOURCE,
        "gridPos": place,
        "targets": targets,
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": _OPTIONS[panel.kind],
    }


def _defaults(panel: Panel) -> dict[str, Any]:
    colours = [{"value": value, "color": colour} for value, colour in panel.steps or ((None, "green"),)]
    defaults: dict[str, Any] = {
        "unit": panel.unit,
        "min": 0,
        "thresholds": {"mode": "absolute", "steps": colours},
        "color": {"mode": "palette-classic" if panel.kind == "timeseries" else "thresholds"},
    }
    if panel.most is not None:
        defaults["max"] = panel.most
    if panel.kind == "timeseries":
        defaults["custom"] = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 30 if panel.stacked else 5,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
            "thresholdsStyle": {"mode": "dashed" if panel.steps else "off"},
        }
    return defaults


_REDUCED = {"calcs": ["lastNotNull"], "fields": "", "values": False}
_OPTIONS: dict[str, dict[str, Any]] = {
    "timeseries": {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "stat": {
        "reduceOptions": _REDUCED,
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "textMode": "auto",
    },
    "table": {"showHeader": True, "frameIndex": 0},
    "heatmap": {
        "calculate": False,
        "color": {
            "mode": "scheme",
            "scheme": "Blues",
            "steps": 64,
            "exponent": 0.5,
            "fill": "dark-blue",
            "reverse": False,
        },
        "yAxis": {"axisPlacement": "left", "unit": "short"},
        "cellGap": 1,
        "showValue": "never",
        "filterValues": {"le": 1e-9},
        "legend": {"show": True},
        "tooltip": {"show": True, "yHistogram": False},
        "rowsFrame": {"layout": "auto"},
        "exemplars": {"color": "rgba(255,0,255,0.7)"},
    },
}
