"""`checkstream policy check | test | explain | disassemble`: is a policy sound, and what would it do to a text?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from checkstream.app import open_model
from checkstream.cli import policy_test
from checkstream.cli.sources import installed_labels, read_sources
from checkstream.config import bundled
from checkstream.core.policy.check import STAGE_CHANNELS
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.explain import RuleReport, explain
from checkstream.core.policy.listing import disassemble
from checkstream.core.policy.program import Program
from checkstream.core.terms import Stage
from checkstream.errors import FaultyFile, FileUnreadable, ModelError
from checkstream.scoring.catalog import load_models

if TYPE_CHECKING:
    SubParsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - argparse gives it no other name

_EXAMPLES = """examples:
  checkstream policy check policies/ours.yaml
  checkstream policy test builtin:default
  checkstream policy explain builtin:default --stage midstream --channel content --text 'mail joe@example.com'
  checkstream policy explain ours.yaml --text - --score lexicon.toxicity=0.9 < answer.txt
"""
_MARKS = {"fired": "FIRED ", "shadow": "shadow", "not_fired": "-     ", "out_of_scope": "      "}


def add_parser(subparsers: SubParsers) -> None:
    """Register the group `policy` with the command line."""
    parser = subparsers.add_parser(
        "policy",
        help="check policies and explain what they do",
        description="Check policy files and explain what they do to a text.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="policy_command", metavar="COMMAND", required=True)
    check = commands.add_parser(
        "check",
        help="compile policy files; every fault is reported with its place",
        description="Compile policy files together. Exit 0: they are sound. 2: they are not, each fault is shown.",
        epilog="example: checkstream policy check builtin:default policies/ours.yaml",
    )
    explained = commands.add_parser(
        "explain",
        help="which rules fire on a text, where, and why the others don't",
        description="Run policies over a text and say of every rule why it fires or doesn't.",
        epilog="example: checkstream policy explain ours.yaml --text 'guaranteed returns' --json",
    )
    listed = commands.add_parser(
        "disassemble",
        help="print the compiled program",
        description="Print the signals, constants and code that policy files compile to.",
        epilog="example: checkstream policy disassemble builtin:default",
    )
    tested = policy_test.add_parser(commands)
    for command in (check, tested, explained, listed):
        command.add_argument("files", metavar="FILE", nargs="+", help="policy file, or builtin:NAME")
    check.add_argument("--json", action="store_true", help="print the outcome as JSON")
    explained.add_argument("--stage", choices=[str(stage) for stage in Stage], default=str(Stage.MIDSTREAM))
    explained.add_argument("--channel", help="kind of channel (default: content, at ingress user)")
    explained.add_argument("--text", required=True, help="the text; `-` reads it from standard input")
    explained.add_argument(
        "--score",
        action="append",
        default=[],
        metavar="MODEL.LABEL=SCORE",
        help="take this score instead of the model's own (repeatable)",
    )
    explained.add_argument("--json", action="store_true", help="print a JSON line for each rule")


def run(args: argparse.Namespace) -> int:
    """Carry the command out and return its exit code.

    Returns:
        0: done; 1: a test case failed; 2: a policy or the command itself is wrong.
    """
    try:
        if args.policy_command == "test":
            return policy_test.run(args)
        program = compile_sources(read_sources(args.files), installed_labels())
        if args.policy_command == "check":
            return _checked(args, program)
        if args.policy_command == "disassemble":
            sys.stdout.write(disassemble(program))
            return 0
        return _explained(args, program)
    except FaultyFile as error:
        if getattr(args, "json", False):
            sys.stdout.write(msgspec.json.encode({"ok": False, "faults": error.faults}).decode() + "\n")
        else:
            count = len(error.faults)
            sys.stderr.write(f"{error}\n{count} fault{'s' if count > 1 else ''}\n")
        return 2
    except (FileUnreadable, ModelError, argparse.ArgumentTypeError) as error:
        sys.stderr.write(f"checkstream policy: {error}\n")
        return 2


def _checked(args: argparse.Namespace, program: Program) -> int:
    rules, signals = len(program.rules), len(program.signals)
    if args.json:
        report = {"ok": True, "packs": program.packs, "rules": rules, "signals": signals, "program": program.hash}
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    else:
        packs = ", ".join(program.packs)
        sys.stdout.write(f"{packs}: {rules} rules, {signals} detectors, program {program.hash[:12]}\n")
    return 0


def _explained(args: argparse.Namespace, program: Program) -> int:
    stage = Stage(args.stage)
    channel = args.channel or ("user" if stage is Stage.INGRESS else "content")
    if channel not in STAGE_CHANNELS[stage]:
        known = ", ".join(STAGE_CHANNELS[stage])
        raise argparse.ArgumentTypeError(f"stage `{stage}` has no channel `{channel}`; it has {known}")
    text = _standard_input() if args.text == "-" else args.text
    scores = _model_scores(text) | _scores(args.score, program)
    reports = explain(program, stage, channel, text, scores)
    for report in reports:
        if args.json:
            sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
        else:
            _show(report)
    return 0


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise argparse.ArgumentTypeError(f"the text is not UTF-8 at byte `{error.start}`; send UTF-8") from error


def _model_scores(text: str) -> dict[str, float]:
    """Return what the classifiers that come with the package say of the whole text, label by label."""
    scores: dict[str, float] = {}
    for model in load_models(bundled("models")):
        session = open_model(model)
        highest = session.run([window.text for window in session.cut(text)]).max(axis=0)
        scores |= {
            f"{model.entry.name}.{label}": float(score)
            for label, score in zip(model.entry.labels, highest, strict=True)
        }
    return scores


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
