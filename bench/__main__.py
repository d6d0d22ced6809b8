"""The cost of one benign event: through the guard by stage, and through the running proxy beside a pass-through.

`--parts` adds what an event costs the core by part, counted (see `counted.py`). `--only policy` measures large
policies instead: thousands of phrases, two hundred rules, a reload beside a stream. `--only scoring` measures the
classifiers that are installed, and those of `--models FILE`; `--only checks` what checks by `safety` cost in the
running proxy at 200 streams, whose events have one token, and eight.

    python -m bench [--only core|saturated|paced|checks|policy|scoring] [--parts] [--rounds N] [--models FILE]
                    [--out FILE]

Prints Markdown; `--out` writes it to a file as well. Close what else uses the machine: the figures are CPU time and
ratios of interleaved runs, which bear some company, but not much.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

import uvloop

from bench import core, counted, policy, proxy, report, scenario, scoring

_SCENARIOS = ("saturated", "paced")
_CORE_ROUNDS = 25
_POLICY_ROUNDS = 9
_SCORING_ROUNDS = 15
_TOGETHER = {"checks": ("checks", "chunks")}
"""What is measured in several scenarios."""
_APART = {"policy": "large policies", "scoring": "classifiers"}
"""Measured only when asked for -> the cost of what."""


def _arguments(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", choices=("core", *_SCENARIOS, "checks", "chunks", *_APART), help="one part")
    parser.add_argument("--parts", action="store_true", help="the core's cost by part, too, counted")
    parser.add_argument("--rounds", type=int, help="turns of each measurement (default: as its scenario says)")
    parser.add_argument("--models", type=Path, metavar="FILE", help="own models, for `--only scoring`")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the report here too")
    return parser.parse_args(given)


def main(given: list[str]) -> int:
    """Run what was asked for."""
    args = _arguments(given)
    parts = _TOGETHER.get(args.only, (args.only,)) if args.only else ("core", *_SCENARIOS)
    lines = [f"# The cost of {_APART.get(args.only, 'one benign event')}", ""]
    body: list[str] = []
    for part in parts:
        sys.stderr.write(f"{part} ...\n")
        if part == "core":
            body += report.of_core(core.run(args.rounds or _CORE_ROUNDS))
            body += counted.section() if args.parts else ()
            continue
        if part == "scoring":
            body += scoring.lines(scoring.run(args.rounds or _SCORING_ROUNDS, args.models))
            continue
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            if part == "policy":
                body += policy.lines(runner.run(policy.run(args.rounds or _POLICY_ROUNDS)))
                continue
            body += report.of_proxy(part, runner.run(proxy.run(scenario.load(part), args.rounds)))
    only = (f" --only {args.only}" if args.only else "") + (" --parts" if args.parts else "")
    command = f"python -m bench{only}" + (f" --rounds {args.rounds}" if args.rounds else "")
    everything = "" if args.only in _APART else " (all of it: `make bench`)"
    lines += [f"Made by `{command}`{everything}.", "", *report.machine(), "", *body]
    text = "\n".join(lines).rstrip() + "\n"
    sys.stdout.write(text)
    if args.out is not None:
        args.out.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
