"""`checkstream bench`: what does the proxy cost, and what does it hold back?"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import uvloop

import checkstream
from checkstream.cli.parser import Parser
from checkstream.cli.progress import Counter
from checkstream.config import BUILTIN
from checkstream.errors import CheckstreamError
from checkstream.processes.cores import MOST_WORKERS

if TYPE_CHECKING:
    from checkstream.bench.play import Wanted
    from checkstream.bench.scenario import Script

_EXAMPLES = """examples:
  checkstream bench
  checkstream bench --scenario chat --scenario streams-50 --html report.html
  checkstream bench --workers 4 --scenario streams-200   # beside one worker; wants five cores or more
  checkstream bench --policy policies/ours.yaml --rounds 5 --json rows.json
  checkstream bench --proxy other=http://127.0.0.1:4000 --model-port 9100   # a gateway before http://127.0.0.1:9100
  checkstream bench --target https://llm.example.com --header authorization=LLM_AUTHORIZATION --model gpt-4.1-mini
"""
_PACKAGES = ("aiohttp", "uvloop", "onnxruntime")


def add_arguments(parser: Parser) -> None:
    """Say what the command `bench` takes."""
    parser.describe(
        "Send load that waits for nobody to a scripted model: straight, through nginx if it is installed, and through "
        "checkstream, in turn. Shows what each adds to the first text and to a token, what it costs, and what came "
        "of every answer.",
        examples=_EXAMPLES,
    )
    parser.add_argument(
        "--scenario", action="append", metavar="NAME", help="one that is shipped, or a file; may be repeated"
    )
    parser.add_argument("--all", action="store_true", help="all scenarios that are shipped")
    parser.add_argument("--list", action="store_true", help="say which are shipped, and end")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="how often each is run (default: 3)")
    parser.add_argument(
        "--policy", action="append", metavar="NAME", help="in place of builtin:default; may be repeated"
    )
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="measure checkstream with so many workers, too"
    )
    parser.add_argument("--proxy", action="append", default=[], metavar="NAME=URL", help="another gateway to measure")
    parser.add_argument("--model-port", type=int, default=0, metavar="PORT", help="where the model listens for it")
    parser.add_argument("--target", metavar="URL", help="measure a deployment with a model of its own, alone")
    parser.add_argument(
        "--header", action="append", default=[], metavar="NAME=VARIABLE", help="sent with the value of a variable"
    )
    parser.add_argument("--model", default="bench", metavar="NAME", help="what is asked for")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run as a line")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with charts")


def run(args: argparse.Namespace) -> int:
    """Measure, and return the exit code.

    Returns:
        0: done; 1: a load generator was late, or an answer broke off; 2: it could not be measured.
    """
    try:
        from checkstream.bench.page import page  # noqa: PLC0415 - the extra need not be installed for other commands
        from checkstream.bench.play import play  # noqa: PLC0415
        from checkstream.bench.report import table  # noqa: PLC0415
        from checkstream.bench.scenario import read_scenario, shipped  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise CheckstreamError("`bench` needs the extra `checkstream[bench]`; install it") from error
    if args.list:
        for name, about in shipped().items():
            sys.stdout.write(f"{name:14}{about}\n")
        return 0
    names = list(shipped()) if args.all else args.scenario or ["chat"]
    scripts = tuple(read_scenario(name) for name in dict.fromkeys(names))
    wanted = _wanted(args, scripts)
    with Counter() as counter:
        runs = uvloop.run(play(wanted, counter.show))
    sys.stdout.write(table(runs) + "\n")
    if args.json is not None:
        args.json.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in runs))
    if args.html is not None:
        abouts = {script.name: script.scenario.about for script in scripts}
        args.html.write_text(page(runs, abouts, _machine()), "utf-8")
    return int(any(each.is_late or each.outcomes["broken"] for each in runs))


def _wanted(args: argparse.Namespace, scripts: tuple[Script, ...]) -> Wanted:
    """Return what is to be measured.

    Raises:
        CheckstreamError: an option can't be understood.
    """
    from checkstream.bench.caller import Place  # noqa: PLC0415
    from checkstream.bench.play import Wanted  # noqa: PLC0415

    if args.rounds < 1:
        raise CheckstreamError(f"`--rounds {args.rounds}` is none; write 1 or more")
    if not 1 <= args.workers <= MOST_WORKERS:
        raise CheckstreamError(f"`--workers {args.workers}`: write a number from 1 to {MOST_WORKERS}")
    try:
        headers = dict(_header(each) for each in args.header)
        proxies = {}
        for each in args.proxy:
            name, _, url = each.partition("=")
            proxies[name] = Place.at(url, headers, args.model)
        target = None if args.target is None else Place.at(args.target, headers, args.model)
    except ValueError as error:
        raise CheckstreamError(str(error)) from error
    if proxies and not args.model_port:
        raise CheckstreamError("`--proxy` needs `--model-port`: the gateway must know where the model listens")
    return Wanted(
        scripts=scripts,
        rounds=args.rounds,
        policies=tuple(
            each if each.startswith(BUILTIN) else str(Path(each).resolve())
            for each in args.policy or ("builtin:default",)
        ),
        workers=args.workers,
        proxies=proxies,
        model_port=args.model_port,
        target=target,
    )


def _header(given: str) -> tuple[str, str]:
    """Return a header and its value, which is a variable's: what is written in a command can be seen by others."""
    name, _, variable = given.partition("=")
    value = os.environ.get(variable, "")
    if not name or not value or not (name + value).isprintable():
        raise ValueError(f"`--header {given}`: the variable `{variable}` is not set, or holds control characters")
    return name, value


def _machine() -> list[str]:
    """Return what the figures were measured on."""
    packages = (f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES)
    load = f"load average {os.getloadavg()[0]:.1f} at the end"
    return [
        f"{datetime.now(UTC):%Y-%m-%d}",
        f"checkstream {checkstream.__version__}",
        f"{len(os.sched_getaffinity(0))} cores of {platform.machine()}, {load}",
        f"Python {platform.python_version()}",
        *packages,
    ]
