"""The page of `checkstream bench`, of a real run: each chart is there, and shows the figures of the run's rows."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

from checkstream.bench.figures import Run, Spread
from checkstream.bench.page import SHARES
from tests.e2e.harness import ROOT

Chart = Mapping[str, Sequence[tuple[float, float]]]
"""Target -> points, in the units of the axes."""
_SCENARIOS = {
    "streams-2": "arrivals: {count: 2, within_s: 0}\nsays: [benign.txt]\ntokens: 30\nper_s: 60\n",
    "streams-4": "arrivals: {count: 4, within_s: 0}\nsays: [benign.txt]\ntokens: 30\nper_s: 60\n",
    "harm": "arrivals: {count: 2, within_s: 0}\nsays: [harmful.txt]\ntokens: 120\nper_s: 200\nharm: ' stupid'\n",
}
_LEFT, _TOP, _WIDTH, _HEIGHT = 52, 12, 460, 220
"""Of the field of a chart, pixels."""


def _measured(folder: Path) -> tuple[str, dict[tuple[str, str], Run]]:
    """Return the page, and the runs by scenario and target."""
    rows, html = folder / "rows.json", folder / "page.html"
    command = ["bench", "--rounds", "1", "--json", str(rows), "--html", str(html)]
    for name, said in _SCENARIOS.items():
        (folder / f"{name}.yaml").write_text(f"about: {name}\n{said}")
        command += ["--scenario", str(folder / f"{name}.yaml")]
    done = subprocess.run(
        [sys.executable, "-m", "checkstream", *command],
        capture_output=True, text=True, timeout=120, cwd=ROOT, check=False,
    )  # fmt: skip
    assert html.exists(), done.stderr
    runs = [msgspec.json.decode(line, type=Run) for line in rows.read_bytes().splitlines()]
    return html.read_text(), {(run.scenario, run.target): run for run in runs}


def _charts(html: str) -> dict[tuple[str, str], Chart]:
    """Return what the charts show, as far as their axes tell, which have three figures; by heading and label."""
    found: dict[tuple[str, str], Chart] = {}
    heading = ""
    for each in ET.fromstring(f"<body>{html[html.index('<h1>') : html.index('</html>')]}</body>").iter():
        if each.tag == "h2":
            heading = each.text or ""
        elif each.tag == "svg":
            told = [(text.get("text-anchor"), (text.text or "").replace(",", "")) for text in each.findall("text")]
            most_x = max(float(tick) for anchor, tick in told if anchor == "middle" and tick[0].isdecimal())
            most_y = max(float(tick) for anchor, tick in told if anchor == "end")
            chart: dict[str, Sequence[tuple[float, float]]] = {}
            for path in each.findall("path"):
                if path.get("class", "").startswith("line"):
                    spots = [map(float, spot.split()) for spot in path.get("d", "")[1:].split(" L")]
                    chart[path.findtext("title", "")] = [
                        ((x - _LEFT) / _WIDTH * most_x, (1 - (y - _TOP) / _HEIGHT) * most_y) for x, y in spots
                    ]
            found[heading, each.get("aria-label", "")] = chart
    return found


def _shows(chart: Chart, wanted: Chart) -> None:
    """Check that a chart has these lines and points."""
    assert set(chart) == set(wanted)
    reach = [max(point[axis] for points in wanted.values() for point in points) for axis in (0, 1)]
    for target, points in wanted.items():
        assert len(chart[target]) == len(points)
        for axis in (0, 1):
            drawn = [point[axis] for point in chart[target]]
            assert drawn == pytest.approx([point[axis] for point in points], abs=0.01 * reach[axis]), target


def test_each_chart_of_the_page_shows_what_was_measured(tmp_path: Path) -> None:
    html, runs = _measured(tmp_path)
    charts = _charts(html)
    targets = {target for _, target in runs}
    proxies = targets - {"direct"}
    assert targets - {"nginx"} == {"direct", "checkstream"}

    def added(name: str, spread: Callable[[Run], Spread]) -> Chart:
        bare = spread(runs[name, "direct"])
        own = {target: spread(runs[name, target]) for target in proxies}
        return {
            target: [(max(each.within(share) - bare.within(share), 0.0), share) for share in SHARES]
            for target, each in own.items()
        }

    def of_streams(value: Callable[[Run], float | None]) -> Chart:
        found = {target: [(n, value(runs[f"streams-{n}", target])) for n in (2, 4)] for target in targets}
        points = {target: [(n, y) for n, y in each if y is not None] for target, each in found.items()}
        return {target: each for target, each in points.items() if each}

    more = "over milliseconds more than the model alone"
    for name in _SCENARIOS:
        _shows(charts[name, f"share of tokens by added delay {more}"], added(name, lambda run: run.delay))
        _shows(charts[name, f"share of answers by added first text {more}"], added(name, lambda run: run.first_text))
        memory = {
            target: [(each.at_s, each.rss_bytes / 1e6) for each in runs[name, target].memory] for target in proxies
        }
        assert len(memory["checkstream"]) > 1
        label = "memory, MB, in the last round over seconds"
        _shows(charts[name, label], {target: points for target, points in memory.items() if points})
    streams = "over streams offered"
    _shows(charts["More streams", f"tokens a second {streams}"], of_streams(lambda run: run.tokens_per_s))
    cost = of_streams(lambda run: run.cpu_us)
    assert "checkstream" in cost
    _shows(charts["More streams", f"CPU microseconds a token {streams}"], cost)
    delay = {target: runs["harm", target].delay.at("p50") or 0.0 for target in targets}
    leaks = {
        target: [(max(delay[target] - delay["direct"], 0.0), statistics.median(runs["harm", target].leaked))]
        for target in targets
    }
    assert leaks["checkstream"][0][1] < leaks["direct"][0][1]
    label = "tokens behind the beginning of harm, median over delay added to a token, ms, median"
    _shows(charts["harm", label], leaks)
