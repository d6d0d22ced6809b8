"""`checkstream jobs list | retry`: see what is in the background queue, and try dead letters again."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from checkstream.cli.parser import Parser
from checkstream.cli.results import counted, safe, write_json
from checkstream.config import JobsSettings, load_config
from checkstream.errors import ConfigError, Fault
from checkstream.jobs import Queue, open_queue

_EXAMPLES = """examples:
  checkstream jobs list --config checkstream.yaml
  checkstream jobs list --store sqlite:var/jobs.db --stream 4f2a --json
  checkstream jobs retry --config checkstream.yaml --all
"""
_COLUMNS = ("given up", "id", "attempts", "error")


def add_arguments(parser: Parser) -> None:
    """Say what the command group `jobs` takes."""
    parser.describe(
        "See how many background jobs are where, which were given up and why, and try them again.",
        examples=_EXAMPLES,
    )
    commands = parser.add_subparsers(dest="jobs_command", metavar="COMMAND", required=True)
    listing = commands.add_parser(
        "list",
        help="print counts and dead letters, or the results of a stream",
        description="Print how many jobs are where, and the dead letters, newest first; with --stream what scorers "
        "said of that exchange.",
        epilog="example: checkstream jobs list --config checkstream.yaml",
    )
    listing.add_argument("--last", metavar="N", type=_count, default=50, help="only the last N (default: 50)")
    listing.add_argument("--stream", metavar="ID", help="print the results of this exchange instead")
    again = commands.add_parser(
        "retry",
        help="put dead letters back into the queue",
        description="Put dead letters back into the queue. Exit 1: there was none to put back. A job that was dropped "
        "to make room has no body any more.",
        epilog="example: checkstream jobs retry score:4f2a:watchdog --config checkstream.yaml",
    )
    again.add_argument("ids", metavar="ID", nargs="*", help="as `jobs list` prints them")
    again.add_argument("--all", action="store_true", help="all of them")
    for command in (listing, again):
        where = command.add_mutually_exclusive_group(required=True)
        where.add_argument("--config", metavar="FILE", help="the configuration that names the queue under `jobs`")
        where.add_argument("--store", metavar="STORE", help="the queue: sqlite:FILE or redis://host:6379/0")
        command.add_argument("--json", action="store_true", help="print JSON")


def _count(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a count; give a whole number from 1")
    return number


def run(args: argparse.Namespace) -> int:
    """Carry the command out and return its exit code.

    Returns:
        0: done; 1: there was nothing to try again, or no result of the stream.

    Raises:
        ConfigError: the queue is not named rightly.
        JobError: it can't be used.
    """
    if args.jobs_command == "retry" and bool(args.ids) == args.all:
        raise _wrong("give ids, or `--all`", "`checkstream jobs list` prints the ids")
    with _queue(args) as queue:
        if args.jobs_command == "retry":
            return _retry(queue, args)
        return _list(queue, args) if args.stream is None else _results(queue, args)


@contextlib.contextmanager
def _queue(args: argparse.Namespace) -> Iterator[Queue]:
    if args.config is not None:
        settings = load_config(args.config).jobs
    else:
        try:
            settings = JobsSettings(store=args.store)
        except ValueError as error:
            raise _wrong(str(error), "") from error
    with contextlib.closing(open_queue(settings, make=False)) as queue:
        yield queue


def _list(queue: Queue, args: argparse.Namespace) -> int:
    counts, letters = queue.counts(), queue.dead(args.last)
    if args.json:
        write_json({"counts": counts, "dead": letters})
        return 0
    print(", ".join(f"{number} {state}" for state, number in msgspec.to_builtins(counts).items()))
    rows = [
        (_time(letter.at_ms), letter.id, str(letter.attempts), letter.error if letter.whole else f"{letter.error} *")
        for letter in letters
    ]
    if rows:
        table = [_COLUMNS, *(tuple(safe(cell) for cell in row) for row in rows)]
        widths = [max(len(row[at]) for row in table) for at in range(len(_COLUMNS))]
        for row in table:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    if any(not letter.whole for letter in letters):
        print("* can't be tried again: what it was about is gone")
    return 0


def _results(queue: Queue, args: argparse.Namespace) -> int:
    results = queue.results(args.stream)
    for result in results:
        if args.json:
            shown = msgspec.to_builtins(result) | {"report": msgspec.Raw(result.report)}
            write_json(shown)
        else:
            what = f"{result.scorer}@{result.version}  risk {result.risk:g}"
            print(safe(f"{_time(result.at_ms)}  {what}  {result.report.decode('utf-8', 'replace')}"))
    if not results:
        print(f"no result of `{safe(args.stream)}`")
    return 0 if results else 1


def _retry(queue: Queue, args: argparse.Namespace) -> int:
    count = queue.retry(None if args.all else args.ids)
    if args.json:
        write_json({"retried": count})
    else:
        print(f"{counted(count, 'job')} put back")
    return 0 if count else 1


def _time(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _wrong(reason: str, advice: str) -> ConfigError:
    return ConfigError((Fault(file="command line", reason=reason, advice=advice),))
