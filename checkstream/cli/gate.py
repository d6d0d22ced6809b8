"""`checkstream gate`: may this model be deployed? And what runs before said."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import sys
from collections import Counter as Counted
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from checkstream.app.gate import gate_of
from checkstream.cli.progress import Counter
from checkstream.cli.results import safe, write_json
from checkstream.errors import GateError
from checkstream.gate.config_file import read_yaml, settings_of
from checkstream.gate.history import comparison, trends
from checkstream.gate.ledger import Ledger
from checkstream.gate.markdown import junit, markdown
from checkstream.gate.page import page
from checkstream.gate.pipeline import STEPS
from checkstream.gate.report import Report, headline
from checkstream.gate.terms import Run
from checkstream.grounding.decision import exit_of
from checkstream.grounding.terms import Verdict

if TYPE_CHECKING:
    SubParsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - argparse gives it no other name

_CONFIG = Path(".llm-reliability.yaml")
_EXAMPLES = """examples:
  checkstream gate --config .llm-reliability.yaml --reports reports/
  checkstream gate --resume 20261122T101500-1a2b3c4d
  checkstream gate search refund --since 2026-03-01 --until 2026-04-01
  checkstream gate runs
  checkstream gate trend
  checkstream gate compare RUN RUN

exit codes: 0 deploy or warn, 1 block, 2 anything that could not be evaluated
"""
_KINDS = ("prompt", "response", "claim", "evidence", "verdict", "decision")


def add_parser(subparsers: SubParsers) -> None:
    """Register `gate` with the command line."""
    parser = subparsers.add_parser(
        "gate",
        help="evaluate a model against trusted documents: deploy, warn or block",
        description="Ask a model questions, hold what it says against trusted documents, and decide.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
    default = argparse.SUPPRESS if again else None
    parser.add_argument(
        "--history",
        metavar="FILE",
        type=Path,
        default=default or Path("var/gate.db") if not again else argparse.SUPPRESS,
        help="where runs are kept (default: var/gate.db)",
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
    if args.action is None:
        return _evaluate(args)
    actions: Mapping[str, Callable[[Ledger, argparse.Namespace], object]] = {
        "search": _search,
        "runs": _runs,
        "trend": _trend,
        "compare": _compare,
    }
    if not args.history.exists():
        raise GateError(f"there is no file of runs `{args.history}`; name the one that `checkstream gate` wrote")
    found = actions[args.action](Ledger(args.history), args)
    if args.json:
        write_json(found)
    return 0


def _evaluate(args: argparse.Namespace) -> int:
    try:
        content = args.config.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise GateError(f"`{args.config}` can't be read: {reason}; give `--config`") from error
    config = settings_of(read_yaml(str(args.config), content))
    gate = gate_of(Ledger(args.history), args.config.parent, os.environ)
    with Counter() as counter:
        report = asyncio.run(
            gate.evaluate(
                config,
                resume=args.resume,
                begun=lambda step, number: counter.show(f"step {number}/{len(STEPS)}: {step}"),
            )
        )
    if args.reports is not None:
        history = gate.ledger.runs(config_hash=report.config_hash, decided=True)
        _write(args.reports, report, history)
    ended = exit_of(report.decision)
    if args.json:
        write_json(report)
    else:
        _tell(report)
    if ended.annotation is not None and os.environ.get("GITHUB_ACTIONS") == "true":
        sys.stderr.write(f"::{ended.annotation} title=LLM reliability gate::{_command(headline(report))}\n")
    return ended.exit_code


def _command(text: str) -> str:
    """Return text as a workflow command takes it: nothing in it begins another one."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _tell(report: Report) -> None:
    print(safe(headline(report)))
    with _as_text():
        failing = [detail for detail in report.details if detail.label is not Verdict.SUPPORTED]
        found = Counted((detail.label, detail.claim, detail.justification) for detail in failing)
        for (label, claim, why), times in found.items():
            print(f"  {label:17} {safe(claim)}{f' (x{times})' if times > 1 else ''}")
            print(f"  {'':17} {safe(why)}")
    if report.baseline is not None and report.baseline.regression:
        print(f"regression: {report.baseline.difference:+.4f} since {report.baseline.run_id}")
    print(f"run {report.run_id}")


@contextmanager
def _as_text() -> Iterator[None]:
    """Have a workflow of GitHub read no commands (`::...`, `##[...]`) in what models wrote."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        yield
        return
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}")
    try:
        yield
    finally:
        print(f"::{token}::")


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


def _search(ledger: Ledger, args: argparse.Namespace) -> object:
    found = ledger.search(" ".join(args.words), kind=args.kind, since=args.since, until=args.until)
    if not args.json:
        for each in found:
            print(f"{_day(each.at)}  {each.kind:9} {safe(each.run_id)} {safe(each.item)}: {safe(each.text)}")
    if not found:
        sys.stderr.write("no run said anything with all of these words\n")
    return found


def _runs(ledger: Ledger, args: argparse.Namespace) -> object:
    found = ledger.runs(since=args.since)
    if not args.json:
        for each in found:
            how = each.decision or ("failed" if each.failure else "not ended")
            risk = "" if each.risk is None else f"{each.risk:.4f}"
            print(
                f"{_day(each.begun)}  {each.run_id}  {how:9} {risk:6}  {safe(each.target)}  {safe(each.failure or '')}"
            )
    return found


def _trend(ledger: Ledger, args: argparse.Namespace) -> object:
    found = trends(ledger.runs(since=args.since, decided=True, limit=1000))
    if not args.json:
        for trend in found:
            slope = "" if trend.slope is None else f", {trend.slope:+.4f} a run"
            print(f"configuration {trend.config_hash}{slope}")
            for point in trend.points:
                mark = "  regression" if point.regression else ""
                print(f"  {_day(point.begun)}  {point.risk:.4f}  {point.decision:6}  {safe(point.target)}{mark}")
    return found


def _compare(ledger: Ledger, args: argparse.Namespace) -> object:
    reports = []
    for run_id in (args.first, args.second):
        text = ledger.report(run_id)
        if text is None:
            raise GateError(f"there is no decided run `{run_id}`; `checkstream gate runs` lists them")
        reports.append(msgspec.json.decode(text, type=Report))
    found = comparison(*reports)
    if not args.json:
        print(f"{'':12} {safe(found.first):30} {safe(found.second)}")
        print(f"{'risk':12} {found.risk[0]:<30.4f} {found.risk[1]:.4f}  ({found.difference:+.4f})")
        print(f"{'decision':12} {found.decision[0]:30} {found.decision[1]}")
        if not found.comparable:
            print("the two ran by other configurations or over other documents")
    return found


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"
