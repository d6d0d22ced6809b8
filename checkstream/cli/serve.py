"""`checkstream serve`: run the proxy until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import uvloop

from checkstream.app import App
from checkstream.cli.parser import Parser
from checkstream.config import Config, default_config, load_config, override
from checkstream.errors import CheckstreamError, ConfigError, Fault

_EXAMPLES = """examples:
  checkstream serve --upstream http://127.0.0.1:8000
  checkstream serve --upstream http://127.0.0.1:8000 --policy builtin:default --policy ours.yaml
  checkstream serve --config checkstream.yaml --listen 127.0.0.1:8888
"""


def add_arguments(parser: Parser) -> None:
    """Say what the command `serve` takes."""
    parser.describe(
        "Run the proxy until SIGTERM or SIGINT; SIGHUP loads configuration and policies anew.",
        examples=_EXAMPLES,
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--config", metavar="FILE", type=Path, help="the configuration file")
    source.add_argument("--upstream", metavar="URL", help="the model server; everything else has its default")
    parser.add_argument(
        "--policy",
        metavar="FILE",
        action="append",
        default=[],
        help="with --upstream: a policy file, its folder, or `builtin:NAME`, in place of builtin:default; repeatable",
    )
    parser.add_argument("--listen", metavar="HOST:PORT", help="where callers connect (default 127.0.0.1:8080)")
    parser.add_argument("--admin", metavar="HOST:PORT", help="where health and metrics are (default 127.0.0.1:9090)")
    parser.add_argument(
        "--log", choices=("console", "json"), help="how logs are written (default: console on a terminal, else json)"
    )


def run(args: argparse.Namespace) -> int:
    """Run the proxy.

    Returns:
        0: stopped in good order; 2: the configuration, a policy or an address can't be used.
    """
    if args.config is None and args.upstream is None:
        args.parser.error("give `--upstream URL`, or `--config FILE` (`checkstream config init` writes one)")
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_serve(_reader(args), args.config))
    except (CheckstreamError, OSError) as error:
        sys.stderr.write(f"checkstream serve: {error}\n")
        return 2


def _reader(args: argparse.Namespace) -> Callable[[], Config]:
    """Return what reads the configuration, now and at each reload.

    Raises:
        ConfigError: options don't belong together.
    """
    given = {"listen": args.listen, "admin": args.admin, "log": args.log}
    if args.config is None:
        return lambda: default_config(args.upstream, policies=args.policy, **given)
    if args.policy:
        advice = f"name the policies under `routes` of `{args.config}`, or give `--upstream` in place of `--config`"
        raise ConfigError((Fault(file="command line", reason="`--policy` goes with `--upstream`", advice=advice),))
    return lambda: override(load_config(args.config), **given)


async def _serve(read: Callable[[], Config], file: Path | None) -> int:
    async with App(read, config_file=file) as app:
        await app.run()
    return 0
