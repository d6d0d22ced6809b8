"""Runs as rows and as a table: the median of the rounds, and beside it what the same cost without a proxy. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence

import msgspec

from checkstream.bench.figures import Run, Spread

DIRECT, NGINX = "direct", "nginx"
"""Targets that the others are held against: the model alone, and a proxy that reads nothing."""
HEAD = (
    "scenario",
    "target",
    "whole",
    "edited",
    "stopped",
    "refused",
    "other",
    "first text ms",
    "token p50",
    "p99",
    "tokens/s",
    "CPU us",
    "MB",
)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario through one target: the median of its rounds."""

    scenario: str
    target: str
    outcomes: dict[str, int]
    """Of all rounds together."""
    first_text_ms: float | None
    delay_p50_ms: float | None
    delay_p99_ms: float | None
    gap_p50_ms: float | None
    tokens_per_s: float
    cpu_us: float | None
    """CPU time for a token."""
    rss_mb: float | None
    """The most memory."""
    leaked: float | None
    """Tokens that came behind the beginning of harm, at the median of answers."""
    late: bool
    """The load generator was late in one of them: no figure of the target's."""


def lines(runs: Sequence[Run]) -> list[Line]:
    """Return one line for each scenario and target, in the order in which they ran."""
    places = dict.fromkeys((run.scenario, run.target) for run in runs)
    return [_line([run for run in runs if (run.scenario, run.target) == place]) for place in places]


def _line(runs: Sequence[Run]) -> Line:
    peaks = [max(sample.rss_bytes for sample in run.memory) / 1e6 for run in runs if run.memory]
    first = runs[0]
    return Line(
        scenario=first.scenario,
        target=first.target,
        outcomes={name: sum(run.outcomes[name] for run in runs) for name in first.outcomes},
        first_text_ms=_median(runs, lambda run: run.first_text, "p50"),
        delay_p50_ms=_median(runs, lambda run: run.delay, "p50"),
        delay_p99_ms=_median(runs, lambda run: run.delay, "p99"),
        gap_p50_ms=_median(runs, lambda run: run.gap, "p50"),
        tokens_per_s=statistics.median(run.tokens_per_s for run in runs),
        cpu_us=_middle([run.cpu_us for run in runs if run.cpu_us is not None]),
        rss_mb=max(peaks, default=None),
        leaked=_middle([count for run in runs for count in run.leaked]),
        late=any(run.is_late for run in runs),
    )


def _median(runs: Sequence[Run], of: Callable[[Run], Spread], quantile: str) -> float | None:
    found = [spread.at(quantile) for spread in map(of, runs)]
    return _middle([each for each in found if each is not None])


def _middle(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def table(runs: Sequence[Run]) -> str:
    """Return the lines as a table for a terminal, and what has to be said about them."""
    found = lines(runs)
    rows = [HEAD, *(cells(line) for line in found)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEAD))]
    shown = ["  ".join(_put(row[at], width, at) for at, width in enumerate(widths)).rstrip() for row in rows]
    return "\n".join([*shown, *remarks(found)])


def _put(cell: str, width: int, at: int) -> str:
    return cell.ljust(width) if at < 2 else cell.rjust(width)


def cells(line: Line) -> tuple[str, ...]:
    """Return a line as it is shown, column by column."""
    counts = line.outcomes
    other = sum(counts[name] for name in ("denied", "left", "broken"))
    return (
        line.scenario,
        line.target + ("*" if line.late else ""),
        *(str(counts[name]) for name in ("whole", "edited", "stopped", "refused")),
        str(other),
        _number(line.first_text_ms),
        _number(line.delay_p50_ms),
        _number(line.delay_p99_ms),
        f"{line.tokens_per_s:,.0f}",
        _number(line.cpu_us),
        _number(line.rss_mb),
    )


def remarks(found: Sequence[Line]) -> Iterator[str]:
    """Yield what a proxy adds to the model alone, what it costs beside nginx, and what has to be known of figures."""
    direct = {line.scenario: line for line in found if line.target == DIRECT}
    plain = {line.scenario: line.cpu_us for line in found if line.target == NGINX}
    for line in found:
        bare = direct.get(line.scenario)
        if bare is None or line is bare or line.delay_p50_ms is None or bare.delay_p50_ms is None:
            continue
        added = [f"a token {line.delay_p50_ms - bare.delay_p50_ms:,.1f} ms"]
        if line.first_text_ms is not None and bare.first_text_ms is not None:
            added.append(f"the first text {line.first_text_ms - bare.first_text_ms:,.1f} ms")
        leak = ""
        if line.leaked is not None and bare.leaked is not None:
            leak = f"; behind the beginning of harm came {line.leaked:g} tokens of {bare.leaked:g}"
        yield f"{line.scenario}: {line.target} adds at the median {' and '.join(added)}{leak}"
    for line in found:
        beside = plain.get(line.scenario)
        if beside and line.cpu_us is not None and line.target != NGINX:
            yield f"{line.scenario}: {line.target} takes {line.cpu_us / beside:.1f} times the CPU of nginx for a token"
    if any(line.late for line in found):
        yield "* the load generator itself was late: the machine has no room for it, and these figures say little"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
