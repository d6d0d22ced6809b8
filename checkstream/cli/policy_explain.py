"""`checkstream policy explain`: which rules fire on a text, on what, why not the others, and what comes of the text."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import msgspec

from checkstream.cli.parser import Commands, Parser
from checkstream.cli.results import safe, write_json
from checkstream.core.cel.values import from_json
from checkstream.core.channel.reading import Reading
from checkstream.core.exchange.ingress.recollection import of_one_text
from checkstream.core.exchange.plan import Plan
from checkstream.core.policy.check import STAGE_CHANNELS
from checkstream.core.policy.explain import Circumstances, RuleReport, explain
from checkstream.core.policy.program import Program
from checkstream.core.policy.vm import exchange_facts
from checkstream.core.terms import Past, Stage, StreamFacts
from checkstream.core.wire.context import read_context
from checkstream.errors import RequestInvalid
from checkstream.scoring.scorer import Checked
from checkstream.trial.cases import Case, Expect
from checkstream.trial.explained import Exempt, Explained, explained, told_in
from checkstream.trial.installed import InstalledModels

_EPILOG = """examples:
  checkstream policy explain ours.yaml --text 'guaranteed returns' --json
  checkstream policy explain ours.yaml --text 'mail joe@example.com' --context '{"user": {"age": 17}}' --model m
  checkstream policy explain ours.yaml --text 'I wrote to joe@example.com' --prompt 'Write to joe@example.com'
  checkstream policy explain ours.yaml --text - --score lexicon.toxicity=0.9 < answer.txt
"""
_MARKS = {"fired": "FIRED ", "shadow": "shadow", "not_fired": "-     ", "out_of_scope": "      "}


def add_parser(commands: Commands) -> Parser:
    """Register the command with the group `policy`."""
    parser = commands.add_parser(
        "explain",
        help="which rules fire on a text, where, why the others don't, and what comes of it",
        description="Run policies over a text and say of every rule why it fires or doesn't, and what comes of the "
        "text: what the caller would get, or of a prompt the model.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--stage", choices=[str(stage) for stage in Stage], default=str(Stage.MIDSTREAM))
    parser.add_argument("--channel", help="kind of channel (default: content, at ingress user)")
    parser.add_argument("--text", required=True, help="the text; `-` reads it from standard input")
    parser.add_argument("--prompt", metavar="TEXT", help="what the user has said, where the text is an answer's")
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
    parser.add_argument("--json", action="store_true", help="print a JSON line for each rule, and one with the result")
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
    if args.prompt is not None and stage is Stage.INGRESS:
        raise argparse.ArgumentTypeError("`--prompt` goes with answers; at stage `ingress` the text is the prompt")
    text = _standard_input() if args.text == "-" else args.text
    checked = _checked(args, program, text)
    case = _case(args, text, channel, checked)
    reports = explain(program, stage, channel, text, _circumstances(args, program, text, case, checked))
    labels = [signal.name for signal in program.signals if signal.kind == "classifier"]
    entities = [signal.name for signal in program.signals if signal.kind == "entity" and signal.model]
    plan = Plan(program=program, route=args.route, fail_mode=args.fail_mode)
    result = explained(case, plan, [*labels, *entities])
    if args.json:
        for report in reports:
            write_json(report)
        write_json({"result": result})
    else:
        for report in reports:
            _show(report)
        _show_result(result, stage)
    return 0


def _context(args: argparse.Namespace) -> dict[str, object]:
    try:
        return read_context(args.context, None, called="the argument `--context`")
    except RequestInvalid as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _checked(args: argparse.Namespace, program: Program, text: str) -> Checked:
    """Return what classifiers say of the text: the installed ones, or the command line in their place."""
    asked = {signal.classifier for signal in program.signals if signal.classifier}
    checked = InstalledModels(args.models).whole(text, asked)
    return Checked(checked.scores | _scores(args.score, program), checked.entities)


def _case(args: argparse.Namespace, text: str, channel: str, checked: Checked) -> Case:
    """Return an exchange in which the text stands where it is meant to."""
    entities: dict[str, tuple[str, ...]] = {}
    for each in checked.entities:
        entities[each.entity] = (*entities.get(each.entity, ()), text[each.start : each.end])
    ingress = args.stage == Stage.INGRESS
    return Case(
        name="explain",
        prompt=text if ingress else args.prompt,
        answer=None if ingress else text,
        channel=channel,
        model=args.model,
        context=_context(args) or None,
        caller=args.caller,
        user=args.user,
        scores=dict(checked.scores),
        entities=entities,
        expect=Expect(action="allow"),
    )


def _circumstances(
    args: argparse.Namespace, program: Program, text: str, case: Case, checked: Checked
) -> Circumstances:
    context = case.context or {}
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
    read = Reading()
    read.feed(text)
    risky = program.scope(Stage(args.stage), case.kind).risk_labels
    risk = max((score for name, score in checked.scores.items() if name in risky), default=0.0)
    stream = StreamFacts(tokens=read.tokens(len(text)), language=read.language(len(text)), risk=risk)
    stream.trend = stream.risk
    past = _past(args, program, case, checked)
    return Circumstances(
        scores=checked.scores,
        entities=checked.entities,
        exchange=msgspec.structs.replace(exchange, told=told_in(program, case), conversation=past),
        stream=stream,
        fail_mode=args.fail_mode,
    )


def _past(args: argparse.Namespace, program: Program, case: Case, checked: Checked) -> Past:
    """Return what rules know of a conversation in which the user has said the prompt, and nothing before."""
    said = None if args.stage == Stage.INGRESS and case.kind != "user" else case.prompt
    if not isinstance(said, str):
        return of_one_text(program, None)
    if args.stage != Stage.INGRESS and program.scope(Stage.INGRESS, "user").accumulates:
        checked = _checked(args, program, said)
    return of_one_text(program, checked.scores)


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


def _show_result(result: Explained, stage: Stage) -> None:
    """Show what comes of the text: lines of it stay lines, and nothing in it steers a terminal."""
    lines = [f"excepted {each.rule_id} by {each.by}{_places(each)}" for each in result.exempt]
    who = "the model" if stage is Stage.INGRESS else "the caller"
    if result.error:
        lines.append(f"result: {result.action}; the caller is told: {safe(result.error)}")
    else:
        gets = f"{who} gets" if result.texts else "documents are read and not forwarded"
        lines.append(f"result: {result.action}; {gets}")
        lines += [f"  {channel}: {_indented(text)}" for channel, text in result.texts.items()]
    lines += [f"  degraded: {each}" for each in result.degraded]
    sys.stdout.write("\n".join(lines) + "\n")


def _places(exempt: Exempt) -> str:
    return " at " + ", ".join(f"{span.start}..{span.end}" for span in exempt.spans) if exempt.spans else ""


def _indented(text: str) -> str:
    return "\n    ".join(safe(line) for line in text.split("\n"))
