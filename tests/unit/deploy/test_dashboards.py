"""Dashboards and alerts ask for nothing but what is exported, and show all of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

import checkstream
from checkstream.control.alerts.conditions import Kind
from checkstream.control.server.metrics import SPECS as OF_CONTROL
from checkstream.telemetry.metrics import SPECS as OF_PROXIES
from checkstream.telemetry.metrics import MetricSpec
from deploy.grafana.__main__ import BOARDS, LEFT_OUT, file_of, text_of
from deploy.grafana.model import COLUMNS, Board, Panel

DEPLOY = Path(checkstream.__file__).parents[1] / "deploy"
RULES = DEPLOY / "prometheus" / "rules.yaml"
SPECS = (*OF_PROXIES, *OF_CONTROL)
SCRAPED = {"job", "instance"}
NAME = re.compile(r"checkstream[:_][a-z0-9_:]+")
SELECTOR = re.compile(r"(checkstream[:_][a-z0-9_:]+|up)(?:\{([^}]*)\})?")
GROUPED = re.compile(r"(?:\b(?:by|on|ignoring|group_left|group_right) ?)\(([a-z_, ]*)\)")


def exported() -> dict[str, MetricSpec]:
    """Return each series that a scrape has, with its metric."""
    found: dict[str, MetricSpec] = {}
    for spec in SPECS:
        ends = ("_bucket", "_count", "_sum") if spec.kind == "histogram" else ("",)
        found |= {f"{spec.name}{end}": spec for end in ends}
    return found


def rules() -> Iterator[dict[str, Any]]:
    for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"]:
        yield from group["rules"]


RECORDED = {rule["record"]: rule["expr"] for rule in rules() if "record" in rule}
ALERTS = {rule["alert"]: rule for rule in rules() if "alert" in rule}


def panels() -> list[tuple[Board, Panel]]:
    return [(board, panel) for board in BOARDS for row in board.rows for panel in row.panels]


def asked() -> list[tuple[str, str]]:
    """Return every expression of dashboards and rules, with where it stands."""
    found = [(panel.title, query.expr) for _, panel in panels() for query in panel.queries]
    found += [(name, expr) for board in BOARDS for name, expr, _ in board.events]
    found += [(variable.title, variable.query) for board in BOARDS for variable in board.variables]
    return found + [(rule.get("alert") or rule["record"], rule["expr"]) for rule in rules()]


def labels_of(series: str) -> set[str]:
    """Return the labels that a series has."""
    if series == "up":
        return SCRAPED
    if series in RECORDED:
        (by, *_) = (match.group(1) for match in re.finditer(r"by \(([a-z_, ]*)\)", RECORDED[series]))
        return {label.strip() for label in by.split(",")}
    spec = exported()[series]
    return {*spec.labels, *SCRAPED, *({"le"} if series.endswith("_bucket") else ())}


@pytest.mark.parametrize(("where", "expr"), asked(), ids=lambda value: value[:60])
def test_each_expression_asks_for_series_and_labels_that_are_exported(where: str, expr: str) -> None:
    series = {match.group(1): match.group(2) or "" for match in SELECTOR.finditer(expr)}
    assert series, where
    assert {name for name in series if name != "up" and name not in RECORDED} <= exported().keys()
    for match in SELECTOR.finditer(expr):
        matchers = re.findall(r"([a-z_]+)(?:=~|!~|!=|=)", match.group(2) or "")
        assert set(matchers) <= labels_of(match.group(1)), match.group()
    known = set().union(*map(labels_of, series))
    for grouped in GROUPED.finditer(expr):
        assert {label.strip() for label in grouped.group(1).split(",") if label.strip()} <= known, grouped.group()
    if expr.startswith("label_values("):
        assert expr.removesuffix(")").rpartition(", ")[2] in known


@pytest.mark.parametrize(("board", "panel"), panels(), ids=lambda value: getattr(value, "title", ""))
def test_legends_name_labels_that_a_query_leaves(board: Board, panel: Panel) -> None:
    del board
    for query in panel.queries:
        named = set(re.findall(r"\{\{([a-z_]+)\}\}", query.legend))
        by = re.findall(r"by \(([a-z_, ]*)\)", query.expr)
        left = {label.strip() for label in by[0].split(",")} if by else set()
        assert named <= left, query.legend
    assert panel.says.endswith((".", ")"))
    assert len(panel.says) > 20


def test_every_metric_is_shown_or_said_to_be_left_out() -> None:
    shown = {
        exported()[name].name
        for _, panel in panels()
        for query in panel.queries
        for name in NAME.findall(query.expr)
        if name in exported()
    }
    assert {spec.name for spec in SPECS} - shown == LEFT_OUT.keys()
    assert all(LEFT_OUT.values())


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_the_files_are_what_the_generator_makes(board: Board) -> None:
    assert file_of(board).read_text("utf-8") == text_of(board), "run `python -m deploy.grafana`"


def test_no_other_dashboards_lie_there() -> None:
    assert set((DEPLOY / "grafana").glob("*.json")) == {file_of(board) for board in BOARDS}


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_grafanas_own_types_know_each_field(board: Board) -> None:
    """What its reference types don't know is lost when they read a dashboard and write it again."""
    register_default_plugins()
    given = json.loads(text_of(board))
    again = json.loads(JSONEncoder().encode(Dashboard.from_json(given)))
    lost = [place for place in _lost(given, again) if not place.startswith(".annotations.")]
    assert not lost
    ours = {place.rpartition(".")[2] for place in _lost(given, again)}
    assert ours == {"titleFormat", "textFormat", "step"}, "what the data source Prometheus has of its own"


def _lost(given: Any, again: Any, place: str = "") -> Iterator[str]:
    if isinstance(given, dict) and isinstance(again, dict):
        for key, value in given.items():
            if key not in again:
                yield f"{place}.{key}"
            else:
                yield from _lost(value, again[key], f"{place}.{key}")
    elif isinstance(given, list) and isinstance(again, list):
        if len(given) != len(again):
            yield f"{place}: {len(given)} and {len(again)}"
        for at, (one, other) in enumerate(zip(given, again, strict=False)):
            yield from _lost(one, other, f"{place}[{at}]")
    elif given != again:
        yield f"{place}: {given!r} and {again!r}"


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_panels_have_room_and_ids_of_their_own(board: Board) -> None:
    made = json.loads(text_of(board))["panels"]
    every = [*made, *(inner for panel in made for inner in panel.get("panels", ()))]
    assert len({panel["id"] for panel in every}) == len(every)
    for among in (made, *(panel["panels"] for panel in made if panel.get("panels"))):
        taken: set[tuple[int, int]] = set()
        for panel in among:
            place = panel["gridPos"]
            assert place["x"] + place["w"] <= COLUMNS
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken, panel["title"]
            taken |= cells


def test_every_alert_says_what_it_is_and_where_its_page_is() -> None:
    for name, rule in ALERTS.items():
        assert rule["labels"]["severity"] in {"page", "ticket"}
        notes = rule["annotations"]
        assert set(notes) == {"summary", "description", "runbook_url"}
        assert notes["runbook_url"] == f"deploy/RUNBOOK.md#{name.lower()}"
        left = set(re.findall(r"(?:by|on) \(([a-z_, ]*)\)", rule["expr"]))
        known = {label.strip() for each in left for label in each.split(",")} | SCRAPED
        known |= {label for series in NAME.findall(rule["expr"]) if series in RECORDED for label in labels_of(series)}
        for template in re.findall(r"\{\{(.*?)\}\}", f"{notes['summary']} {notes['description']}"):
            value = re.fullmatch(r" \$(?:labels\.([a-z_]+)|value(?: \| humanize(?:Percentage|Duration)?)?) ", template)
            assert value is not None, template
            assert value.group(1) is None or value.group(1) in known, template


def test_the_runbook_has_a_section_for_each_alert_and_no_other() -> None:
    sections = re.split(r"^## ", (DEPLOY / "RUNBOOK.md").read_text("utf-8"), flags=re.MULTILINE)[1:]
    of_control = [kind.replace("_", "-") for kind in get_args(Kind)]
    assert [section.partition("\n")[0] for section in sections] == [*ALERTS, *of_control]
    for section in sections:
        assert re.findall(r"^\*\*(.*?)\.\*\* ", section, flags=re.MULTILINE) == ["Meaning", "First look", "Remedy"]


def test_the_dashboards_and_pages_name_alerts_that_exist() -> None:
    texts = [panel.says for _, panel in panels()] + [(DEPLOY / "RUNBOOK.md").read_text("utf-8")]
    named = {name for text in texts for name in re.findall(r"\bCheckstream[A-Z][A-Za-z]+", text)}
    assert named <= ALERTS.keys()


@pytest.fixture(scope="module")
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed; Debian's package `prometheus` has it")
    return found


def test_each_alert_fires_when_it_should_and_a_calm_node_fires_none(promtool: str) -> None:
    ran = subprocess.run(
        [promtool, "test", "rules", "rules.test.yaml"], cwd=RULES.parent, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    tested = (RULES.parent / "rules.test.yaml").read_text("utf-8")
    assert set(re.findall(r'labels: \'ALERTS\{alertname="(\w+)"', tested)) == ALERTS.keys()


def test_prometheus_can_parse_what_dashboards_ask(promtool: str, tmp_path: Path) -> None:
    asked = [expr for _, panel in panels() for expr in (query.expr for query in panel.queries)]
    asked += [expr for board in BOARDS for _, expr, _ in board.events]
    made = [
        {"record": f"r:{at}", "expr": re.sub(r"\$[a-z]+\b", ".*", expr.replace("$__rate_interval", "5m"))}
        for at, expr in enumerate(asked)
    ]
    file = tmp_path / "asked.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "asked", "rules": made}]}))
    ran = subprocess.run([promtool, "check", "rules", str(file)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
