"""A report as a page of its own: nothing is loaded from anywhere, and no script runs. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from html import escape

from checkstream.bench.charts import Points, curves
from checkstream.bench.figures import Run, Spread
from checkstream.bench.report import DIRECT, HEAD, Line, cells, lines, remarks

_STREAMS = "streams-"
SHARES = (*(part / 100 for part in range(1, 100)), 0.995, 0.999)
"""At which distributions are held against each other."""
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --faint: #d9dee5; --paper: #fff; --card: #f6f8fa;
  --c0: #5b6675; --c1: #2563eb; --c2: #c0392b; --c3: #1a7f4b; --c4: #9333ea; --c5: #b7791f }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e8ee; --soft: #9aa6b5; --faint: #39424e; --paper: #14181d;
  --card: #1b2128; --c0: #9aa6b5; --c1: #7aa2ff; --c2: #f2786b; --c3: #4cc38a; --c4: #c58af9; --c5: #e0b35a } }
* { box-sizing: border-box }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 80rem; padding: 0 1.2rem }
h1 { font-size: 1.5rem; margin: 0 } h2 { font-size: 1.15rem; margin: 2.4rem 0 .3rem }
.what { color: var(--soft); margin: .1rem 0 1rem } .none { color: var(--soft) }
.wide { overflow-x: auto } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid var(--faint); white-space: nowrap }
th { color: var(--soft); font-weight: 600 } th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left }
.charts { display: flex; flex-wrap: wrap; gap: 1.5rem 2.5rem } figure { margin: 0 } figcaption { font-size: .9rem }
svg { max-width: 100%; height: auto; font: 12px system-ui, sans-serif } svg text { fill: var(--soft) }
svg .grid { stroke: var(--faint) } svg .line { fill: none; stroke-width: 2 }
.key::before { content: ""; display: inline-block; width: .8rem; height: .25rem; margin: 0 .3rem .15rem .7rem }
.l0 { stroke: var(--c0) } .l1 { stroke: var(--c1) } .l2 { stroke: var(--c2) } .l3 { stroke: var(--c3) }
.l4 { stroke: var(--c4) } .l5 { stroke: var(--c5) } .k0::before { background: var(--c0) }
.k1::before { background: var(--c1) } .k2::before { background: var(--c2) } .k3::before { background: var(--c3) }
.k4::before { background: var(--c4) } .k5::before { background: var(--c5) }
"""


def page(runs: Sequence[Run], abouts: Mapping[str, str], told: Sequence[str]) -> str:
    """Return the report as HTML.

    Args:
        runs: All of them.
        abouts: Scenario -> what it shows.
        told: What there is to know of machine and versions.
    """
    found = lines(runs)
    order = list(dict.fromkeys(line.target for line in found))
    parts = [
        "<h1>checkstream bench</h1>",
        f'<p class="what">{escape(" · ".join(told))}</p>',
        _table(found),
        "<ul>" + "".join(f"<li>{escape(remark)}</li>" for remark in remarks(found)) + "</ul>",
        _over_streams(found, runs, order),
        *(
            _scenario(name, [run for run in runs if run.scenario == name], about, order)
            for name, about in abouts.items()
        ),
    ]
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>checkstream bench</title>'
        "<meta http-equiv=\"content-security-policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style>\n'
        + "\n".join(parts)
        + "\n</html>\n"
    )


def _table(found: Sequence[Line]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in HEAD)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells(line))}</tr>" for line in found)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _scenario(name: str, runs: Sequence[Run], about: str, order: Sequence[str]) -> str:
    rounds: dict[str, list[Run]] = {}
    for run in runs:
        rounds.setdefault(run.target, []).append(run)
    charts = [
        _spread({each: [run.delay for run in mine] for each, mine in rounds.items()}, order, "tokens", "delay"),
        _spread(
            {each: [run.first_text for run in mine] for each, mine in rounds.items()}, order, "answers", "first text"
        ),
    ]
    memory: dict[str, Points] = {
        target: [(sample.at_s, sample.rss_bytes / 1e6) for sample in mine[-1].memory] for target, mine in rounds.items()
    }
    if any(memory.values()):
        charts.append(curves(memory, order, x="seconds", y="memory, MB, in the last round"))
    charts += _leaks(rounds, order)
    return f'<h2>{escape(name)}</h2><p class="what">{escape(about)}</p><div class="charts">{"".join(charts)}</div>'


def _spread(spreads: Mapping[str, Sequence[Spread]], order: Sequence[str], what: str, of: str) -> str:
    """Draw what each target adds to the model alone, share by share; where that was not measured, what there is.

    Args:
        spreads: Target -> its rounds.
        order: Of all targets.
        what: Tokens, or answers.
        of: Their delay, or the wait for their first text.
    """
    middle = {target: _middle(mine) for target, mine in spreads.items() if any(spread.count for spread in mine)}
    bare = middle.pop(DIRECT, None)
    if bare is None or not middle:
        lines = {target: list(zip(values, SHARES, strict=True)) for target, values in middle.items()}
        lines |= {DIRECT: list(zip(bare, SHARES, strict=True))} if bare is not None else {}
        return curves(lines, order, x="milliseconds", y=f"share of {what} by {of}", stretched=True)
    added: dict[str, Points] = {
        target: [(max(value - own, 0.0), share) for value, own, share in zip(values, bare, SHARES, strict=True)]
        for target, values in middle.items()
    }
    return curves(added, order, x="milliseconds more than the model alone", y=f"share of {what} by added {of}")


def _middle(rounds: Sequence[Spread]) -> list[float]:
    """Return the time within which each share is, milliseconds: the median of the rounds."""
    found = [spread for spread in rounds if spread.count]
    return [statistics.median(spread.within(share) for spread in found) for share in SHARES]


def _leaks(rounds: Mapping[str, Sequence[Run]], order: Sequence[str]) -> list[str]:
    """Draw what came behind the beginning of harm against the delay that is the price of holding it back."""
    bare = rounds.get(DIRECT, ())
    base = statistics.median(run.delay.at("p50") or 0.0 for run in bare) if bare else 0.0
    leaks: dict[str, Points] = {
        target: [
            (
                max(statistics.median(run.delay.at("p50") or 0.0 for run in mine) - base, 0.0),
                statistics.median(count for run in mine for count in run.leaked),
            )
        ]
        for target, mine in rounds.items()
        if any(run.leaked for run in mine)
    }
    if not leaks:
        return []
    more = "delay added to a token" if bare else "delay of a token"
    return [curves(leaks, order, x=f"{more}, ms, median", y="tokens behind the beginning of harm, median")]


def _over_streams(found: Sequence[Line], runs: Sequence[Run], order: Sequence[str]) -> str:
    """Draw what scenarios that differ by their number of streams came to, where several were measured."""
    offered = {run.scenario: sum(run.outcomes.values()) for run in runs if run.scenario.startswith(_STREAMS)}
    if len(offered) < 2:
        return ""
    speed: dict[str, Points] = {}
    cost: dict[str, Points] = {}
    for target in order:
        mine = [(offered[line.scenario], line) for line in found if line.target == target and line.scenario in offered]
        mine.sort(key=lambda each: each[0])
        speed[target] = [(count, line.tokens_per_s) for count, line in mine]
        cost[target] = [(count, line.cpu_us) for count, line in mine if line.cpu_us is not None]
    charts = curves(speed, order, x="streams offered", y="tokens a second")
    charts += curves(cost, order, x="streams offered", y="CPU microseconds a token")
    return f'<h2>More streams</h2><div class="charts">{charts}</div>'
