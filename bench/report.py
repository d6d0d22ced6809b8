"""Figures to Markdown: medians, the spread beside them, and what they were measured on."""

from __future__ import annotations

import importlib.metadata
import math
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles

from bench import core, proxy
from bench.scenario import Scenario

_PACKAGES = ("aiohttp", "uvloop", "msgspec", "pyre2", "onnxruntime")


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Return the median, and the quartiles where there are enough values."""
    if not values:
        return "-"
    middle = f"{median(values):.{digits}f}"
    if len(values) < 4:
        return middle
    low, _, high = quantiles(values, n=4)
    return f"{middle} ({low:.{digits}f} to {high:.{digits}f})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def machine() -> list[str]:
    """Return what the figures were measured on."""
    packages = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES)
    load = os.getloadavg()[0]
    return [
        f"- date: {datetime.now(UTC):%Y-%m-%d}",
        f"- machine: {_processor()}, {os.cpu_count()} cores, load average {load:.1f} at the end",
        f"- Python {platform.python_version()}, {packages}",
    ]


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text("utf-8").splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def of_core(found: core.Report) -> list[str]:
    """Return the section on the guard alone."""
    whole = median(found.whole.event_us)
    rows = [[found.whole.name, spread(found.whole.event_us), "100 %"]]
    rows += [
        [f"- {part.name}", spread(part.event_us), f"{median(part.event_us) / whole:.0%}".replace("%", " %")]
        for part in found.parts
    ]
    rows.append([found.together.name, spread(found.together.event_us), ""])
    return [
        "## One event through the guard, in process",
        "",
        (
            f"Benign chat chunks of {found.event_bytes:.0f} bytes, the default policies without classifiers "
            f"({found.patterns} patterns and phrases on the answer's content). CPU time, no sockets."
        ),
        "",
        *table(["stage", "us an event: median (quartiles)", "share"], rows),
        "",
    ]


def of_proxy(name: str, found: proxy.Report) -> list[str]:
    """Return the section on the running proxy under one scenario."""
    scenario = found.scenario
    pace = "as fast as they are read" if scenario.per_s is None else f"at {scenario.per_s:g} events a second each"
    costs = {mode: [turn.event_us for turn in turns] for mode, turns in found.turns.items()}
    base = median(costs["pass"])
    rows = []
    for mode, turns in found.turns.items():
        cpu = "-" if mode == "direct" else spread(costs[mode])
        ratio = "-" if mode == "direct" else f"{median(costs[mode]) / base:.2f}"
        row = [proxy.MODES[mode], cpu, ratio, f"{median(turn.events / turn.wall_s for turn in turns):,.0f}"]
        rows.append(row)
    lines = [
        f"## Through the running proxy: {name}",
        "",
        (
            f"{scenario.streams} streams {pace}, events of {_tokens(scenario)}{found.event_bytes:.0f} bytes, "
            f"{len(costs['pass'])} turns of {scenario.window_s:g} s a mode. CPU time of the proxy's process, pinned to "
            "one core."
        ),
        "",
        *table(["route", "CPU us an event: median (quartiles)", "to pass-through", "events/s"], rows),
        "",
    ]
    if scenario.probes:
        lines += _first(found)
    if "safety" in found.turns:
        lines += _checks(found)
    return lines


def _tokens(scenario: Scenario) -> str:
    return f"{scenario.tokens} tokens and " if scenario.tokens > 1 else ""


def _checks(found: proxy.Report) -> list[str]:
    """Return the table of what one check of a running answer takes, and all of them together."""
    without = median(turn.cpu_s / turn.wall_s for turn in found.turns["guarded"])
    rows = []
    for turn in found.turns["safety"]:
        last = max(turn.checks)
        within = [f"{share:.1%}".replace("%", " %") for share in (_within(turn.checks, ms) for ms in (1.0, 2.5, 5.0))]
        late = [f"{_late(turn.checks, share):.2f}" for share in (0.5, 0.99)]
        share = turn.cpu_s / turn.wall_s - without
        each = f"{share * turn.wall_s / turn.checks[last] * 1e3:.2f}"
        often, part = f"{turn.checks[last] / turn.wall_s:,.0f}", f"{share:.0%}".replace("%", " %")
        rows.append([often, *late, *within, part, each, f"{turn.waited_s * 1000:.0f}"])
    late_heads = ("p50, ms", "p99, ms", "within 1 ms", "2.5 ms", "5 ms")
    head = ("checks/s", *late_heads, "share of a core", "CPU ms a check", "kept from its core, ms")
    return [
        (
            "One check by `safety`, from the guard's question to its answer (from the proxy's own histogram, straight "
            "lines within its buckets); CPU time of the whole process above the same guard without classifiers; how "
            "long other work of the machine kept the proxy from its core in the turn."
        ),
        "",
        *table(head, rows),
        "",
    ]


def _within(checks: Mapping[float, int], ms: float) -> float:
    """Return the share of checks that took up to so long, a bound of a bucket."""
    return checks[ms] / max(checks[max(checks)], 1)


def _late(checks: Mapping[float, int], share: float) -> float:
    """Return the time within which so large a share of the checks was answered, ms."""
    wanted = share * checks[max(checks)]
    below, counted = 0.0, 0
    for bound, count in sorted(checks.items()):
        if count >= wanted and math.isfinite(bound):
            return below + (bound - below) * (wanted - counted) / max(count - counted, 1)
        below, counted = (bound if math.isfinite(bound) else below), count
    return below


def _first(found: proxy.Report) -> list[str]:
    """Return the table of what a caller waits for the first events."""
    event = {mode: [ms for turn in turns for ms in turn.first_event_ms] for mode, turns in found.turns.items()}
    text = {mode: [ms for turn in turns for ms in turn.first_text_ms] for mode, turns in found.turns.items()}
    rows = []
    for mode in found.turns:
        added = [f"{median(figures[mode]) - median(figures['direct']):+.2f}" for figures in (event, text)]
        rows.append([proxy.MODES[mode], spread(event[mode], 2), added[0], spread(text[mode], 2), added[1]])
    late = median(turn.late_ms for turns in found.turns.values() for turn in turns)
    return [
        (
            "Time from a request to its first event (the role: connection, ingress, processing) and to its first text "
            "(the hold besides), of probes that start while the streams run; `added` is to no proxy at all."
        ),
        "",
        *table(["route", "first event, ms", "added p50", "first text, ms", "added p50"], rows),
        "",
        f"The load generator itself was {late:.2f} ms late with the median event.",
        "",
    ]
