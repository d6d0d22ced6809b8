"""A report shows every figure, loads nothing, and lets no name that comes from outside become markup."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np

from checkstream.evaluation.assess import Assessment, ScoredSet, assess, latency_of
from checkstream.evaluation.figures import Interval
from checkstream.evaluation.plots import interval_bar, precision_recall, recall_at_rates, reliability_plot
from checkstream.evaluation.report import page, spans_page
from checkstream.evaluation.spans import SpanCounts

GENERATOR = np.random.default_rng(1)
GOOD = np.clip(GENERATOR.normal(0.7, 0.2, 300), 0, 1)
BAD = np.clip(GENERATOR.normal(0.3, 0.2, 500), 0, 1)
NONE = np.array([])
LATENCY = latency_of([0.001] * 99 + [0.1], 1_000)


def found(*sets: ScoredSet, name: str = "m") -> Assessment:
    return assess(name, "l", sets, {0.01: 0.8, 0.05: 0.6}, LATENCY)


class Outline(HTMLParser):
    """Tags that are open at each place, and everything that would load something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href", "onload", "srcset")]


def outline(html: str) -> Outline:
    parsed = Outline()
    parsed.feed(html)
    return parsed


def test_one_threshold_counts_for_all_sets() -> None:
    whole = found(ScoredSet("a", GOOD, BAD), ScoredSet("b", NONE, BAD / 2))
    negatives = np.concatenate([BAD, BAD / 2])
    assert (whole.positives, whole.negatives) == (300, 1_000)
    for place, each in enumerate(whole.rates):
        assert each.fpr is not None
        assert np.mean(negatives >= each.threshold) == each.fpr <= each.rate
        assert whole.sets[0].fpr[place] == np.mean(each.threshold <= BAD)
        assert each.recall is not None
        assert each.recall.low <= each.recall.value == whole.sets[0].recall[place] <= each.recall.high
    assert whole.sets[1].auc is None
    assert whole.sets[1].recall == ()
    assert [each.rate for each in whole.promised] == [0.05, 0.01]
    assert whole.promised[1].fpr == np.mean(negatives >= 0.8)


def test_one_class_alone_has_the_figures_that_it_can_have() -> None:
    harmless = found(ScoredSet("a", NONE, BAD))
    assert harmless.auc is None
    assert harmless.curve == ()
    assert [each.recall for each in (*harmless.rates, *harmless.promised)] == [None] * 5
    harmful = found(ScoredSet("a", GOOD, NONE))
    assert harmful.rates == ()
    assert harmful.promised[0].fpr is None
    assert harmful.promised[0].recall is not None
    for each in (harmless, harmful):
        assert "reliability" in page(each)


def test_latency_is_told_by_its_median_and_its_tail() -> None:
    assert (LATENCY.p50_ms, LATENCY.texts, LATENCY.mean_chars) == (1.0, 100, 10.0)
    assert LATENCY.p99_ms > 1.5


def test_the_page_shows_the_figures_and_loads_nothing() -> None:
    whole = found(ScoredSet("first.jsonl", GOOD, BAD), ScoredSet("second.jsonl", NONE, BAD))
    html = page(whole)
    assert whole.auc is not None
    for shown in ("first.jsonl", "second.jsonl", f"{whole.auc.value:.3f}", f"{whole.rates[1].threshold:.4f}", "p99"):
        assert shown in html
    parsed = outline(html)
    assert parsed.tags.count("svg") == 3
    assert parsed.tags.count("table") == 4
    assert parsed.loads == []
    assert "url(" not in html


def test_names_from_outside_are_text() -> None:
    name = '</title><script>alert(1)</script><img src="x">'
    counts = SpanCounts()
    counts.add([(0, 1, name)], [])
    for html in (
        page(found(ScoredSet(name, GOOD, BAD), name=name)),
        spans_page(name, counts.figures(), LATENCY),
    ):
        assert "script" not in outline(html).tags
        assert "img" not in outline(html).tags


def test_plots_are_well_formed_and_stay_in_their_frame() -> None:
    whole = found(ScoredSet("a", GOOD, BAD))
    for plot in (precision_recall(whole.curve), recall_at_rates(whole.curve), reliability_plot(whole.reliability)):
        tree = ET.fromstring(plot)
        frame = next(each for each in tree if each.get("class") == "frame")
        left, top, side = (float(frame.get(name, "")) for name in ("x", "y", "width"))
        lines = [each for each in tree if each.tag == "polyline" and each.get("class") == "line"]
        points = [tuple(map(float, point.split(","))) for point in lines[0].get("points", "").split()]
        assert len(lines) == 1
        assert len(points) > 5
        assert all(left <= x <= left + side and top <= y <= top + side for x, y in points)


def test_a_bar_shows_a_figure_in_its_interval_over_the_one_before_it() -> None:
    now, before = Interval(0.5, 0.25, 0.75), Interval(1.0, 1.0, 1.0)
    assert len(ET.fromstring(interval_bar(now, None))) == 3
    drawn = ET.fromstring(interval_bar(now, before))
    assert [each.get("class") for each in drawn] == ["grid", "now", "now", "past", "past"]
    assert [each.get("cx") for each in drawn if each.tag == "circle"] == ["52.0", "100.0"]
    assert drawn[1].get("d") == "M28.0 5H76.0"
