"""What the policy VM costs: a quiet chunk, and one with findings and scores, with 200 rules loaded, 50 with conditions.

    python -m bench.vm [--rounds N]

Prints medians of interleaved rounds in microseconds, on one core, garbage collection off as `timeit` has it.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import timeit
from collections.abc import Callable
from statistics import median
from typing import Any

import yaml

from bench import generated
from checkstream.core.cel.values import from_json
from checkstream.core.channel.brief import Brief
from checkstream.core.channel.checks import HoldSettings
from checkstream.core.channel.judge import Judge
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.program import Program
from checkstream.core.policy.vm import Machine, exchange_facts
from checkstream.core.terms import Channel, Facts, Stage

LABELS = (ClassifierLabel("lexicon.toxicity", 0.5), ClassifierLabel("lexicon.injection", 0.5))
CONDITIONS = (
    'context.user.segment == "retail_customer" && context.product_type in ["loan{0}", "investment", "lending"]',
    'has(context.user) && (context.user.age < {0} || context.user.region.startsWith("EU"))',
    'request.model != "internal{0}" && request.tools.size() == 0',
    "stream.tokens < 2{0} && findings.EMAIL < 3",
    'context.flags.exists(flag, flag == "strict" || flag == "{0}")',
)
CONTEXT = {
    "user": {"segment": "retail_customer", "age": 40, "region": "EU-DE"},
    "product_type": "investment",
    "flags": ["beta", "audit", "strict"],
}
_NUMBER = 2_000


def policy() -> str:
    """Return 200 generated rules, every fourth with a condition."""
    pack: dict[str, Any] = yaml.safe_load(generated.policy(200))
    rules = pack["policies"]
    for number, (rule, condition) in enumerate(zip(rules[::4], itertools.cycle(CONDITIONS), strict=False)):
        rule["conditions"] = [condition.format(number)]  # no two alike, so that no code is shared
    return yaml.safe_dump(pack, sort_keys=False, width=100)


def measured(program: Program) -> dict[str, Callable[[], object]]:
    """Return what is measured, by name."""
    request: dict[str, Any] = {
        "route": "chat",
        "model": "m",
        "surface": "openai.chat",
        "stream": True,
        "tools": (),
        "metadata": {},
    }
    exchange, _ = exchange_facts(program, from_json(CONTEXT), request, who=("", ""), fail_mode="closed")
    brief = Brief(
        program=program,
        settings=HoldSettings(),
        fail_mode="closed",
        exchange=exchange,
        digest=str,
        degrade=lambda _: None,
    )
    judge = Judge(Channel("content"), Stage.MIDSTREAM, brief)
    scope = program.scope(Stage.MIDSTREAM, "content")
    facts = Facts(Stage.MIDSTREAM, "content", exchange)
    machine = Machine(program, facts)
    found = sorted(
        (signal for signal in scope.rules if program.signals[signal].kind != "classifier"),
        key=lambda signal: -len(scope.rules[signal]),
    )[:3]
    scored = sorted(scope.score_signals.values())
    facts.counts.update(dict.fromkeys(found, 1))

    def decide() -> int:
        return sum(machine.decide(entry) is not False for signal in (*found, *scored) for entry in scope.rules[signal])

    def decide_first() -> int:
        exchange.known.clear()
        return decide()

    def quiet() -> list[Any]:
        return judge.advance()

    facts.scores.update(dict.fromkeys(scored, 0.99))
    entries = sum(len(scope.rules[signal]) for signal in (*found, *scored))
    sys.stderr.write(f"{len(scope.active)} rules on the channel, {entries} looked at, {decide()} fire\n")
    judge.feed("Nothing of note here. ")
    judge.follow(Stage.MIDSTREAM)
    judge.follow(Stage.EGRESS)
    return {"quiet": quiet, "findings": decide, "first": decide_first}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.vm", description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    args = parser.parse_args()
    program = compile_sources([("generated", policy())], LABELS)
    timed = measured(program)
    took: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(args.rounds):
        for name, run in timed.items():
            took[name].append(timeit.timeit(run, number=_NUMBER) / _NUMBER * 1e6)
    conditions = sum(bool(rule.conditions) for rule in program.rules)
    sys.stdout.write(f"{len(program.rules)} rules, {conditions} with conditions, {len(program.code)} instructions\n\n")
    sys.stdout.write("| what | goal | median us | least us |\n|---|---|---|---|\n")
    titles = {
        "quiet": ("a quiet chunk", 3),
        "findings": ("a chunk with 3 findings and 2 scores", 30),
        "first": ("the same, first of its exchange: conditions on context and request are run", 30),
    }
    for name, (title, goal) in titles.items():
        sys.stdout.write(f"| {title} | {goal} | {median(took[name]):.2f} | {min(took[name]):.2f} |\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
