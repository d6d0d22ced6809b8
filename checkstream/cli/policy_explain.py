"""`checkstream policy explain`: which rules fire on a text, on what, and why not the others."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from checkstream.cli.parser import Commands, Parser
from checkstream.cli.results import write_json
from checkstream.core.cel.values import from_json
from checkstream.core.channel.reading import Reading
from checkstream.core.policy.check import STAGE_CHANNELS
from checkstream.core.policy.explain import Circumstances, RuleReport, explain
from checkstream.core.policy.program import Program
from checkstream.core.policy.vm import exchange_facts
from checkstream.core.terms import Stage, StreamFacts
from checkstream.core.wire.context import read_context
from checkstream.errors import RequestInvalid
from checkstream.trial.installed import InstalledModels

_EPILOG = """examples:
  checkstream policy explain ours.yaml --text 'guaranteed returns' --json
  checkstream policy explain ours.yaml --text 'mail joe@example.com' --context '{"user": {"age": 17}}' --model m
  checkstream policy explain ours.yaml --text - --score lexicon.toxicity=0.9 < answer.txt
"""
_MARKS = {"fired": "FIRED ", "shadow": "shadow", "not_fired": "-     ", "out_of_scope": "      "}


def add_parser(commands: Commands) -> Parser:
    """Register the command with the group `policy`."""
    parser = commands.add_parser(
        "explain",
        help="which rules fire on a text, where, and why the others don't",
        description="Run policies over a text and say of every rule why it fires or doesn't.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--stage", choices=[str(stage) for stage in Stage], default=str(Stage.MIDSTREAM))
    parser.add_argument("--channel", help="kind of channel (default: content, at ingress user)")
    parser.add_argument("--text", required=True, help="the text; `-` reads it from standard input")
    parser.add_argument("--context", metavar="JSON", help="what the caller says of the request")
    parser.add_argument("--model", default="m", help="the request's model")
    parser.add_argument("--route", default="", help="name of the route")
    parser.add_argument("--caller", help="name of the caller")
    parser.add_argument("--user", help="the request's user")
    parser.add_argument(
        "--fail-mode", choices=["open", "closed"], default="closed", help="the route's (default: closed)"
    )
    parser.add_argument(
        "--score",
        action="append",
        default=[],
        metavar="MODEL.LABEL=SCORE",
        help="take this score instead of the model's own (repeatable)",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON line for each rule")
    return parser


def run(args: argparse.Namespace, program: Program) -> int:
    """Explain every rule.

    Returns:
        0: done.

    Raises:
        ArgumentTypeError: an argument is not what it should be.
        ModelError: a model can't be used.
    """
    stage = Stage(args.stage)
    channel = args.channel or ("user" if stage is Stage.INGRESS else "content")
    if channel not in STAGE_CHANNELS[stage]:
        known = ", ".join(STAGE_CHANNELS[stage])
        raise argparse.ArgumentTypeError(f"stage `{stage}` has no channel `{channel}`; it has {known}")
    text = _standard_input() if args.text == "-" else args.text
    circumstances = _circumstances(args, program, text, program.scope(stage, channel).risk_labels)
    for report in explain(program, stage, channel, text, circumstances):
        if args.json:
            write_json(report)
        else:
            _show(report)
    return 0


def _circumstances(args: argparse.Namespace, program: Program, text: str, risky: frozenset[str]) -> Circumstances:
    try:
        context = read_context(args.context, None, called="the argument `--context`")
    except RequestInvalid as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    person = context.get("user")
    user = args.user or (person.get("id") if isinstance(person, dict) else None)
    request = {"route": args.route, "model": args.model, "surface": "openai.chat", "stream": True, "tools": ()}
    named = {"caller": args.caller, "user": args.user}
    said = request | {"metadata": {}} | {name: value for name, value in named.items() if value is not None}
    exchange, _ = exchange_facts(
        program,
        from_json(context),
        {name: from_json(list(value) if isinstance(value, tuple) else value) for name, value in said.items()},
        who=(args.caller or "", str(user or "")),
        fail_mode=args.fail_mode,
    )
    asked = {signal.classifier for signal in program.signals if signal.classifier}
    checked = InstalledModels(args.models).whole(text, asked)
    scores = checked.scores | _scores(args.score, program)
    read = Reading()
    read.feed(text)
    risk = max((score for name, score in scores.items() if name in risky), default=0.0)
    stream = StreamFacts(tokens=read.tokens(len(text)), language=read.language(len(text)), risk=risk)
    stream.trend = stream.risk
    return Circumstances(
        scores=scores, entities=checked.entities, exchange=exchange, stream=stream, fail_mode=args.fail_mode
    )


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise argparse.ArgumentTypeError(f"the text is not UTF-8 at byte `{error.start}`; send UTF-8") from error


def _scores(given: Sequence[str], program: Program) -> dict[str, float]:
    """Read `model.label=score` arguments."""
    known = [signal.name for signal in program.signals if signal.kind == "classifier"]
    scores = {}
    for item in given:
        name, _, number = item.partition("=")
        try:
            score = float(number)
        except ValueError:
            score = -1.0
        if not 0 <= score <= 1:
            raise argparse.ArgumentTypeError(f"`{item}` is not a score; write MODEL.LABEL=0.9, from 0 to 1")
        if name not in known:
            listed = ", ".join(known) or "none"
            raise argparse.ArgumentTypeError(f"no rule reads the score `{name}`; scores that rules read: {listed}")
        scores[name] = score
    return scores


def _show(report: RuleReport) -> None:
    actions = f" -> {', '.join(report.actions)}" if report.outcome in {"fired", "shadow"} else ""
    sys.stdout.write(f"{_MARKS[report.outcome]} {report.rule_id}{actions}: {report.reason}\n")
