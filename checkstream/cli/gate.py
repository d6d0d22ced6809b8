"""`checkstream gate`: may this model be deployed? And what runs before said."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections import Counter as Counted
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from checkstream.app.gate import gate_of
from checkstream.cli.gate_history import opened_past, tell
from checkstream.cli.parser import Parser
from checkstream.cli.progress import Counter
from checkstream.cli.results import safe, write_json
from checkstream.cli.workflow import annotate, as_text
from checkstream.errors import GateError
from checkstream.gate.config_file import read_yaml, settings_of
from checkstream.gate.ledger import Ledger
from checkstream.gate.markdown import junit, markdown
from checkstream.gate.page import page
from checkstream.gate.pipeline import STEPS
from checkstream.gate.report import Report, headline
from checkstream.gate.terms import Run
from checkstream.grounding.decision import exit_of
from checkstream.grounding.terms import Verdict

_CONFIG = Path(".llm-reliability.yaml")
_EXAMPLES = """examples:
  checkstream gate --config .llm-reliability.yaml --reports reports/
  checkstream gate --resume 20261122T101500-1a2b3c4d
  checkstream gate search refund --since 2026-03-01 --until 2026-04-01
  checkstream gate runs
  checkstream gate trend
  checkstream gate compare RUN RUN --history https://search.example.com:9200/gate

exit codes: 0 deploy or warn, 1 block, 2 anything that could not be evaluated
"""
_KINDS = ("prompt", "response", "claim", "evidence", "verdict", "decision")


def add_arguments(parser: Parser) -> None:
    """Say what the command `gate` takes."""
    parser.describe(
        "Ask a model questions, hold what it says against trusted documents, and decide.",
        examples=_EXAMPLES,
    )
    parser.add_argument("--config", metavar="FILE", type=Path, default=_CONFIG, help=f"default: {_CONFIG}")
    parser.add_argument(
        "--reports", metavar="FOLDER", type=Path, help="write report.json, .md, .html and junit.xml here"
    )
    parser.add_argument("--resume", metavar="RUN", help="go on with a run that was cut off or failed")
    _common(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    search = actions.add_parser("search", help="what did runs ask, hear, find and decide?")
    search.add_argument("words", nargs="+", help="looked for as words")
    search.add_argument("--kind", choices=_KINDS, help="only this kind")
    search.add_argument("--since", metavar="DATE", type=_date, help="from this day on (2026-03-01)")
    search.add_argument("--until", metavar="DATE", type=_date, help="before this day")
    runs = actions.add_parser("runs", help="list runs, the newest first")
    runs.add_argument("--since", metavar="DATE", type=_date, help="from this day on")
    trend = actions.add_parser("trend", help="how risk has changed")
    trend.add_argument("--since", metavar="DATE", type=_date, help="from this day on")
    compare = actions.add_parser("compare", help="two runs side by side")
    compare.add_argument("first", metavar="RUN")
    compare.add_argument("second", metavar="RUN")
    for action in (search, runs, trend, compare):
        _common(action, again=True)


def _common(parser: argparse.ArgumentParser, *, again: bool = False) -> None:
    parser.add_argument(
        "--history",
        metavar="WHERE",
        default=argparse.SUPPRESS if again else "var/gate.db",
        help="file that runs are kept in (default: var/gate.db); to be told of runs, also an https://... as `history`",
    )
    parser.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS if again else False, help="write JSON to stdout"
    )


def _date(text: str) -> float:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"`{text}` is no day; write 2026-03-01") from error


def run(args: argparse.Namespace) -> int:
    """Evaluate, or tell of runs before.

    Returns:
        0: deploy or warn, or told; 1: block.

    Raises:
        GateError: what was asked can't be done.
    """
    return _evaluate(args) if args.action is None else tell(args)


def _evaluate(args: argparse.Namespace) -> int:
    try:
        content = args.config.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise GateError(f"`{args.config}` can't be read: {reason}; give `--config`") from error
    config = settings_of(read_yaml(str(args.config), content))
    if "://" in args.history:
        raise GateError(f"`{args.history}` is no file; write `history: {args.history}` into the configuration")
    gate = gate_of(Ledger(Path(args.history)), args.config.parent, os.environ)
    with Counter() as counter:
        report = asyncio.run(
            gate.evaluate(
                config,
                resume=args.resume,
                begun=lambda step, number: counter.show(f"step {number}/{len(STEPS)}: {step}"),
            )
        )
    if args.reports is not None:
        _write(args.reports, report, asyncio.run(_runs_like(report, config.history or args.history)))
    ended = exit_of(report.decision)
    if args.json:
        write_json(report)
    else:
        _tell(report)
    if ended.annotation is not None:
        sys.stdout.flush()  # the other output's commands are read again before this one
        annotate(sys.stderr, ended.annotation, "LLM reliability gate", headline(report))
    return ended.exit_code


async def _runs_like(report: Report, history: str) -> list[Run]:
    async with opened_past(history) as past:
        return await past.runs(config_hash=report.config_hash, decided=True)


def _tell(report: Report) -> None:
    print(safe(headline(report)))
    with as_text(sys.stdout):
        failing = [detail for detail in report.details if detail.label is not Verdict.SUPPORTED]
        found = Counted((detail.label, detail.claim, detail.justification) for detail in failing)
        for (label, claim, why), times in found.items():
            print(f"  {label:17} {safe(claim)}{f' (x{times})' if times > 1 else ''}")
            print(f"  {'':17} {safe(why)}")
    if report.baseline is not None and report.baseline.regression:
        print(f"regression: {report.baseline.difference:+.4f} since {report.baseline.run_id}")
    print(f"run {report.run_id}")


def _write(folder: Path, report: Report, history: list[Run]) -> None:
    """Write the four reports.

    Raises:
        GateError: the folder can't be written.
    """
    files = {
        "report.json": msgspec.json.encode(report) + b"\n",
        "report.md": markdown(report).encode(errors="replace"),
        "report.html": page(report, history).encode(errors="replace"),
        "junit.xml": junit(report),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise GateError(f"`{folder}` can't be written: {(error.strerror or str(error)).lower()}") from error
