"""`checkstream worker`: score answers in the background, until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

import uvloop

from checkstream.app.worker import run_worker
from checkstream.config import Address, load_config, parse_address

if TYPE_CHECKING:
    SubParsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - argparse gives it no other name

_EXAMPLES = """examples:
  checkstream worker --config checkstream.yaml
  checkstream worker --config checkstream.yaml --metrics 127.0.0.1:9091
"""


def add_parser(subparsers: SubParsers) -> None:
    """Register `worker` with the command line."""
    parser = subparsers.add_parser(
        "worker",
        help="score answers in the background",
        description="Take jobs from the queue that the configuration names under `jobs`, score answers by the profiles "
        "of their routes, and do what `on_high` says, until SIGTERM or SIGINT. Several workers may share a queue.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", metavar="FILE", required=True, help="the configuration that `serve` has, too")
    parser.add_argument("--metrics", metavar="HOST:PORT", type=_address, help="serve /metrics and /livez here")


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
        ConfigError: the configuration or the address can't be used.
        JobError: the queue can't be opened.
    """
    config = load_config(args.config)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run_worker(config, args.metrics))
    return 0
