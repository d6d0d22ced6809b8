"""`checkstream worker`: score answers in the background, until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

import uvloop

from checkstream.app.api import GateFolder
from checkstream.app.worker import run_worker
from checkstream.cli.parser import Parser
from checkstream.config import Address, load_config, parse_address
from checkstream.errors import ConfigError, Fault
from checkstream.gate.past import is_shared

_EXAMPLES = """examples:
  checkstream worker --config checkstream.yaml
  checkstream worker --config checkstream.yaml --metrics 127.0.0.1:9091
  checkstream worker --config checkstream.yaml --api 127.0.0.1:8095 --gate .

the API: POST /api/analyze, /api/analyze_batch, /api/verify, /api/ground; with --gate POST /evaluate and GET /runs,
/runs/ID, /trend, /search; GET /openapi.json describes them
"""


def add_arguments(parser: Parser) -> None:
    """Say what the command `worker` takes."""
    parser.describe(
        "Take jobs from the queue that the configuration names under `jobs`, score answers by the profiles "
        "of their routes, and do what `on_high` says, until SIGTERM or SIGINT. Several workers may share a queue.",
        examples=_EXAMPLES,
    )
    parser.add_argument("--config", metavar="FILE", required=True, help="the configuration that `serve` has, too")
    parser.add_argument("--metrics", metavar="HOST:PORT", type=_address, help="serve /metrics and /livez here")
    parser.add_argument("--api", metavar="HOST:PORT", type=_address, help="serve the scoring API here")
    parser.add_argument(
        "--gate", metavar="FOLDER", type=Path, help="the API evaluates models by the configurations below this folder"
    )
    parser.add_argument(
        "--gate-history",
        metavar="WHERE",
        default="",
        help="file that runs are kept in (default: var/gate.db below --gate); or an https://... of Elasticsearch that "
        "runs of many machines are kept in, too, and told from; callers with keys each have one of their own beside it",
    )
    parser.add_argument(
        "--gate-inline",
        action="store_true",
        help="evaluate configurations that callers send, too: they get no key and no file of prompts, but choose which "
        "addresses this machine calls",
    )


def _address(text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def run(args: argparse.Namespace) -> int:
    """Work.

    Returns:
        0: stopped in good order.

    Raises:
        ConfigError: the configuration or an address can't be used, or options don't belong together.
        JobError: the queue can't be opened.
        GateError: the file of runs can't be used.
    """
    config = load_config(args.config)
    gate = _gate(args)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run_worker(config, args.metrics, args.api, gate))
    return 0


def _gate(args: argparse.Namespace) -> GateFolder | None:
    """Return what the API evaluates.

    Raises:
        ConfigError: an option is there without the one that it belongs to.
    """
    for given, needed in (
        ("gate", "api"),
        ("gate_history", "gate"),
        ("gate_inline", "gate"),
    ):
        if getattr(args, given) and not getattr(args, needed):
            option = given.replace("_", "-")
            raise ConfigError((Fault(file="command line", reason=f"`--{option}` needs `--{needed}`"),))
    if args.gate is None:
        return None
    shared = args.gate_history if is_shared(args.gate_history) else ""
    runs = args.gate / "var" / "gate.db" if shared or not args.gate_history else Path(args.gate_history)
    return GateFolder(args.gate, runs, args.gate_inline, shared)
