"""An assessment as a page of its own: tables and plots, nothing loaded from anywhere. Pure: figures in, HTML out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from checkstream.evaluation.assess import RATES, Assessment, AtRate, Latency, SetFigures
from checkstream.evaluation.figures import Interval
from checkstream.evaluation.plots import precision_recall, recall_at_rates, reliability_plot
from checkstream.evaluation.spans import SpanFigures

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --faint: #d5dae1; --accent: #1f6fb2; --paper: #fff }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e8ee; --faint: #39424e; --accent: #6db3f2; --paper: #14181d } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 74rem; padding: 0 1rem }
h1 { font-size: 1.5rem; margin: 0 0 .2rem } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
p { margin: .3rem 0; max-width: 50rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .25rem .8rem; border-bottom: 1px solid var(--faint) }
th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere; min-width: 13rem }
.plots { display: flex; flex-wrap: wrap; gap: 1rem } .wide { overflow-x: auto }
svg { font: 11px system-ui, sans-serif } svg text { fill: var(--ink) } svg .title { font-size: 13px; font-weight: 600 }
.frame { fill: none; stroke: var(--ink) } .grid { stroke: var(--faint); fill: none }
.line { fill: none; stroke: var(--accent); stroke-width: 2 } .ideal { fill: none; stroke: var(--ink);
  stroke-dasharray: 4 4 } .dot { fill: var(--accent); fill-opacity: .45 }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem } small { opacity: .75 } code { overflow-wrap: anywhere }
.sets th, .sets td { text-align: left; vertical-align: top }
.now { stroke: var(--accent); stroke-width: 2; fill: var(--accent) }
.past { stroke: var(--ink); stroke-width: 1; fill: var(--ink); opacity: .6 }
b.worse { color: #c62828 } b.better { color: #2e7d32 }
@media (prefers-color-scheme: dark) { b.worse { color: #ff8a80 } b.better { color: #81c784 } }
@media (max-width: 40rem) { body { margin: 1rem auto } .sets, .sets tbody, .sets tr { display: block }
  .sets th, .sets .none { display: none } .sets td { display: block; border: 0; padding: .1rem 0 .3rem }
  .sets tr { border-bottom: 1px solid var(--faint); padding: .4rem 0 }
  .sets td[data-is]::before { content: attr(data-is) ": "; opacity: .75 } }
"""


def page(assessment: Assessment) -> str:
    """Return the report of one label of a model."""
    plots = [reliability_plot(assessment.reliability)]
    if assessment.curve:
        plots = [precision_recall(assessment.curve), recall_at_rates(assessment.curve), *plots]
    counted = f"{assessment.positives:,} positive and {assessment.negatives:,} negative texts."
    how = "One threshold a rate, found on the negatives of all sets together. In brackets: 95 % bootstrap intervals."
    parts = [
        f"<p>{counted} {how}</p>",
        _summary(assessment),
        "<h2>At fixed false-positive rates</h2>",
        _at_rates(assessment.rates),
    ]
    if assessment.promised:
        parts += ["<h2>At the model's own thresholds</h2>", _at_rates(assessment.promised)]
    parts += ["<h2>Sets</h2>", _sets(assessment.sets), "<h2>Curves</h2>", f'<div class="plots">{"".join(plots)}</div>']
    return document(f"{assessment.model}: {assessment.label}", parts)


def spans_page(model: str, figures: Sequence[SpanFigures], latency: Latency) -> str:
    """Return the report of a model that finds entities."""
    heads = ("kind", "marked", "found", "precision", "recall", "F1", "precision", "recall", "F1")
    rows = (
        (
            each.kind,
            f"{each.gold:,}",
            f"{each.found:,}",
            *(
                _percent(value)
                for value in (
                    each.strict_precision,
                    each.strict_recall,
                    each.strict_f1,
                    each.overlap_precision,
                    each.overlap_recall,
                    each.overlap_f1,
                )
            ),
        )
        for each in figures
    )
    words = "<p>Three columns strictly (same start, end and kind), then three by overlap (same kind).</p>"
    return document(f"{model}: entities", [words, f"<p>{escape(_took(latency))}</p>", _table(heads, rows)])


def document(title: str, parts: Iterable[str]) -> str:
    """Return a page of its own with a title and parts that are HTML already."""
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style>\n'
        f"<h1>{escape(title)}</h1>\n" + "\n".join(parts) + "\n</html>\n"
    )


def _summary(assessment: Assessment) -> str:
    rows = [("expected calibration error", f"{assessment.calibration_error:.3f}")]
    if assessment.auc is not None and assessment.average_precision is not None:
        rows = [("AUC", interval(assessment.auc)), ("average precision", f"{assessment.average_precision:.3f}"), *rows]
    return f"{_table((), rows)}<p>{escape(_took(assessment.latency))}</p>"


def _took(latency: Latency) -> str:
    return (
        f"One text at a time: p50 {latency.p50_ms:.2f} ms, p99 {latency.p99_ms:.2f} ms over {latency.texts:,} texts "
        f"of {latency.mean_chars:,.0f} characters on average."
    )


def _at_rates(found: Sequence[AtRate]) -> str:
    rows = (
        (
            _rate(each.rate),
            f"{each.threshold:.4f}",
            "" if each.recall is None else interval(each.recall, percent=True),
            "" if each.fpr is None else _percent(each.fpr),
        )
        for each in found
    )
    return _table(("rate", "threshold", "recall", "false positives here"), rows)


def _sets(sets: Sequence[SetFigures]) -> str:
    heads = (
        *("set", "positives", "negatives", "AUC"),
        *(f"recall at {_rate(rate)}" for rate in RATES),
        *(f"false positives at {_rate(rate)}" for rate in RATES),
    )
    rows = (
        (
            *(each.name, f"{each.positives:,}", f"{each.negatives:,}", "" if each.auc is None else f"{each.auc:.3f}"),
            *(_percent(value) for value in each.recall or ()),
            *("" for _ in RATES[len(each.recall) :]),
            *(_percent(value) for value in each.fpr or ()),
            *("" for _ in RATES[len(each.fpr) :]),
        )
        for each in sets
    )
    return _table(heads, rows)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table>{f"<tr>{head}</tr>" if head else ""}{body}</table></div>'


def interval(found: Interval, *, percent: bool = False) -> str:
    """Return a figure with its interval in brackets."""
    shown = _percent if percent else "{:.3f}".format
    return f"{shown(found.value)} [{shown(found.low)}, {shown(found.high)}]"


def _percent(value: float) -> str:
    return f"{value * 100:.2f} %"


def _rate(value: float) -> str:
    return f"{value * 100:g} %"
