"""A report as a page of its own: nothing is loaded from anywhere, and no script runs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

from checkstream.gate.charts import over_time, shares
from checkstream.gate.report import Detail, Report
from checkstream.gate.terms import EvidenceDocument, Run
from checkstream.grounding.terms import Verdict

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --faint: #d9dee5; --paper: #fff; --card: #f6f8fa;
  --good: #1a7f4b; --fair: #b7791f; --bad: #c0392b; --worse: #7b241c }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e8ee; --soft: #9aa6b5; --faint: #39424e; --paper: #14181d;
  --card: #1b2128; --good: #4cc38a; --fair: #e0b35a; --bad: #f2786b; --worse: #d98c84 } }
* { box-sizing: border-box }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 76rem; padding: 0 1.2rem }
h1 { font-size: 1.5rem; margin: 0 } h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem }
.what { color: var(--soft); margin: .1rem 0 1rem }
.decision { display: inline-block; padding: .15rem .7rem; border-radius: 1rem; color: #fff; font-weight: 600 }
.deploy { background: var(--good) } .warn { background: var(--fair) } .block { background: var(--bad) }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(8rem, 1fr)); gap: .8rem }
.card { background: var(--card); border-radius: .5rem; padding: .7rem .9rem }
.card b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums }
.card span { color: var(--soft); font-size: .85rem }
.charts { display: flex; flex-wrap: wrap; gap: 2rem; align-items: flex-start }
svg { max-width: 100%; height: auto; font: 12px system-ui, sans-serif } svg text { fill: var(--ink) }
svg .grid { stroke: var(--faint) } svg .line { fill: none; stroke: var(--ink); stroke-width: 2 }
svg .limit { stroke-dasharray: 5 4; fill: none } .dot-deploy { fill: var(--good) } .dot-warn { fill: var(--fair) }
.dot-block { fill: var(--bad) } .limit-deploy { stroke: var(--good) } .limit-warn { stroke: var(--bad) }
.part-supported { fill: var(--good) } .part-weakly_supported { fill: var(--fair) }
.part-unsupported { fill: var(--bad) } .part-contradicted { fill: var(--worse) }
.claim { border: 1px solid var(--faint); border-left: .35rem solid var(--bad); border-radius: .4rem; margin: .6rem 0 }
.claim.supported { border-left-color: var(--good) } .claim.weakly_supported { border-left-color: var(--fair) }
.claim.contradicted { border-left-color: var(--worse) }
.claim > summary { padding: .6rem .9rem; cursor: pointer } .claim .label { color: var(--soft); font-size: .85rem }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 1.2rem; padding: .2rem .9rem .9rem }
@media (max-width: 45rem) { .sides { grid-template-columns: 1fr } }
.sides h3 { font-size: .85rem; color: var(--soft); margin: 0 0 .3rem; font-weight: 600 }
blockquote { margin: 0 0 .7rem; padding: .5rem .8rem; background: var(--card); border-radius: .4rem;
  white-space: pre-wrap; overflow-wrap: anywhere } blockquote.used { outline: 2px solid var(--faint) }
blockquote cite { display: block; color: var(--soft); font-size: .8rem; font-style: normal }
footer { color: var(--soft); font-size: .85rem; margin-top: 2.5rem; overflow-wrap: anywhere }
"""
_ORDER = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED, Verdict.WEAKLY_SUPPORTED, Verdict.SUPPORTED)
_EVIDENCE_CHARS = 1500


def page(report: Report, history: Sequence[Run] = ()) -> str:
    """Return the report as HTML.

    Args:
        report: of a run.
        history: decided runs of the same configuration, this one too, in any order.
    """
    title = f"{report.use_case}: {report.decision}"
    parts = [_head(report), _cards(report), _charts(report, history), "<h2>Claims</h2>"]
    details = sorted(report.details, key=lambda detail: _ORDER.index(detail.label) if detail.label in _ORDER else 9)
    said = {response.prompt_id: response.text for response in report.responses}
    parts += [_claim(detail, said.get(detail.claim_id.partition(".")[0], "")) for detail in details]
    parts += ["<p>No claim was found in any answer.</p>"] if not details else []
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        "<meta http-equiv=\"content-security-policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style>\n'
        + "\n".join(parts)
        + f"\n{_foot(report)}\n</html>\n"
    )


def _head(report: Report) -> str:
    why = f" because of {escape(report.reason.replace('_', ' '))}" if report.reason else ""
    return (
        f"<h1>{escape(report.use_case)}</h1>"
        f'<p class="what"><span class="decision {report.decision}">{report.decision}</span>{why} '
        f"for {escape(report.target)}, {_when(report.ended)}</p>"
    )


def _when(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def _cards(report: Report) -> str:
    cards = [
        (f"{report.score:.4f}", "risk"),
        (f"{report.thresholds['deploy']:g} / {report.thresholds['warn']:g}", "deploy / warn up to"),
        (str(report.total_claims), "claims"),
        (str(report.supported), "supported"),
        (str(report.weakly_supported), "weakly supported"),
        (str(report.unsupported), f"unsupported, {report.contradicted} of them contradicted"),
        (str(len(report.prompts)), "prompts"),
    ]
    if report.baseline is not None:
        worse = "a regression" if report.baseline.regression else "no regression"
        cards.append((f"{report.baseline.difference:+.4f}", f"since the last deployed run: {worse}"))
    inside = "".join(
        f'<div class="card"><b>{escape(value)}</b><span>{escape(name)}</span></div>' for value, name in cards
    )
    return f'<div class="cards">{inside}</div>'


def _charts(report: Report, history: Sequence[Run]) -> str:
    counts = {
        Verdict.SUPPORTED: report.supported,
        Verdict.WEAKLY_SUPPORTED: report.weakly_supported,
        Verdict.UNSUPPORTED: report.unsupported - report.contradicted,
        Verdict.CONTRADICTED: report.contradicted,
    }
    points = sorted((run.begun, run.risk, run.decision or "") for run in history if run.risk is not None)
    drawn = [("Claims by verdict", shares(counts))]
    if points:
        drawn.insert(0, ("Risk over time", over_time(points, report.thresholds["deploy"], report.thresholds["warn"])))
    inside = "".join(f"<div><h2>{name}</h2>{chart}</div>" for name, chart in drawn)
    return f'<div class="charts">{inside}</div>'


def _claim(detail: Detail, response: str) -> str:
    evidence = (
        "".join(_evidence(document, detail) for document in detail.evidence) or "<p>No trusted document was found.</p>"
    )
    opened = "" if detail.label is Verdict.SUPPORTED else " open"
    degraded = f"<p>degraded: {escape(', '.join(detail.degraded))}</p>" if detail.degraded else ""
    return (
        f'<details class="claim {detail.label}"{opened}><summary><b>{escape(detail.claim)}</b><br>'
        f'<span class="label">{detail.label.replace("_", " ")}: {escape(detail.justification)}</span></summary>'
        f'<div class="sides"><div><h3>asked ({escape(detail.category)})</h3><blockquote>{escape(detail.source_prompt)}'
        f"</blockquote><h3>answered</h3><blockquote>{escape(response)}</blockquote>{degraded}</div>"
        f"<div><h3>trusted documents</h3>{evidence}</div></div></details>"
    )


def _evidence(document: EvidenceDocument, detail: Detail) -> str:
    text = document.content
    if len(text) > _EVIDENCE_CHARS:
        text = text[:_EVIDENCE_CHARS] + "…"
    used = ' class="used"' if document.chunk_id in detail.evidence_ids else ""
    return (
        f"<blockquote{used}>{escape(text)}<cite>{document.rank}. {escape(document.source)} "
        f"{escape(document.chunk_id[:12])}</cite></blockquote>"
    )


def _foot(report: Report) -> str:
    parts = (
        f"run {report.run_id}",
        f"verifier {report.verifier}",
        f"configuration {report.config_hash}",
        f"documents {report.snapshot}",
    )
    return f"<footer>{' · '.join(escape(part) for part in parts)}</footer>"
