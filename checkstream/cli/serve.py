"""`checkstream serve`: run the proxy until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import uvloop

from checkstream.cli.parser import Parser
from checkstream.config import Config, default_config, load_config, override
from checkstream.errors import BundleError, CheckstreamError, ConfigError, Fault
from checkstream.processes.cores import MOST_WORKERS, workers_of
from checkstream.processes.manager import Manager, Passed, take_sockets
from checkstream.processes.member import Member
from checkstream.processes.parent import Parent
from checkstream.processes.succession import Elder

_EXAMPLES = """examples:
  checkstream serve --upstream http://127.0.0.1:8000
  checkstream serve --upstream http://127.0.0.1:8000 --policy builtin:default --policy ours.yaml
  checkstream serve --config checkstream.yaml --listen 127.0.0.1:8888
"""


def add_arguments(parser: Parser) -> None:
    """Say what the command `serve` takes."""
    parser.describe(
        "Run the proxy until SIGTERM or SIGINT; SIGHUP loads configuration and policies anew; SIGUSR2, with several "
        "workers, starts what is installed now in its place, on the same sockets.",
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
    parser.add_argument(
        "--admin", metavar="HOST:PORT", help="where console, health and metrics are (default 127.0.0.1:9090)"
    )
    parser.add_argument(
        "--workers", metavar="N|auto", type=_workers, help="processes that share the port; auto: one a core (default 1)"
    )
    parser.add_argument("--as-worker", metavar="FD", type=int, help=argparse.SUPPRESS)  # the parent starts these
    parser.add_argument("--take-over", metavar="FD", type=int, help=argparse.SUPPRESS)
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
        return _run(args)
    except (CheckstreamError, OSError) as error:
        sys.stderr.write(f"checkstream serve: {error}\n")
        return 2


def _run(args: argparse.Namespace) -> int:
    """Run as one process, as one of several, or as the parent of those.

    Raises:
        CheckstreamError: what is configured can't be used.
        OSError: the parent of this process is gone.
    """
    read = _reader(args)
    member = None if args.as_worker is None else Member.join(args.as_worker)
    elder = None if args.take_over is None else Elder(args.take_over)
    manager = Manager() if member is not None else Manager.of(os.environ, os.getpid(), heir=elder is not None)
    passed: Passed = {}
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if member is None:
            config = read()
            if config.bundles is not None and args.config is not None:
                _have_bundle(args.config, config, config.bundles.name)
            if elder is None:
                passed = take_sockets(os.environ, os.getpid(), config.server)
            count = workers_of(config.server.workers)
            if count > 1 or elder is not None:
                given = tuple(_without(args.given, "--take-over"))
                parent = Parent(config, count, given, args.config, elder=elder, manager=manager, passed=passed)
                return runner.run(_parent(parent, manager))
        return runner.run(_serve(read, args.config, member, manager, passed))


def _have_bundle(file: Path, config: Config, name: str) -> None:
    """Fetch the bundle if this node has none that can be used; else it starts, whether or not there is a newer one.

    Raises:
        BundleError: there is none, and none can be had.
        ControlError: the node's key can't be used.
    """
    from checkstream.app.following import expanded  # noqa: PLC0415 - only where there are bundles

    try:
        expanded(load_config(file))
    except CheckstreamError as error:
        lacks = error
    else:
        return
    try:
        from checkstream.app.agent import Told  # noqa: PLC0415
        from checkstream.app.force import configuration_hash  # noqa: PLC0415 - only where there are bundles
        from checkstream.cli.bundle_follow import looked_once  # noqa: PLC0415 - needs an extra
        from checkstream.control.attestation import Running  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise BundleError("`bundles` needs the extra `checkstream[bundles]`; install it") from error
    sys.stderr.write(f"checkstream serve: looking for a bundle: {str(lacks).partition(chr(10))[0]}\n")
    running = Running(configuration=configuration_hash(config))
    step = asyncio.run(looked_once(file, config, lambda: Told(running)))
    if step.outcome not in {"same", "accepted"}:
        raise BundleError(f"no bundle `{name}` can be had: {step.reason}")


def _without(arguments: Sequence[str], option: str) -> Iterator[str]:
    """Yield arguments without an option and its value."""
    skip = False
    for argument in arguments:
        if not skip and argument != option:
            yield argument
        skip = argument == option


def _workers(text: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not text.isdecimal() or not 1 <= int(text[:9]) <= MOST_WORKERS:
        raise argparse.ArgumentTypeError(f"`{text}` is neither `auto` nor a number from 1 to {MOST_WORKERS}")
    return int(text)


def _reader(args: argparse.Namespace) -> Callable[[], Config]:
    """Return what reads the configuration, now and at each reload.

    Raises:
        ConfigError: options don't belong together.
    """
    given = {"listen": args.listen, "admin": args.admin, "log": args.log, "workers": args.workers}
    if args.config is None:
        return lambda: default_config(args.upstream, policies=args.policy, **given)
    if args.policy:
        advice = f"name the policies under `routes` of `{args.config}`, or give `--upstream` in place of `--config`"
        raise ConfigError((Fault(file="command line", reason="`--policy` goes with `--upstream`", advice=advice),))
    return lambda: override(load_config(args.config), **given)


async def _parent(parent: Parent, manager: Manager) -> int:
    async with manager.watched():
        return await parent.run()


async def _serve(
    read: Callable[[], Config], file: Path | None, member: Member | None, manager: Manager, passed: Passed
) -> int:
    from checkstream.app import App  # noqa: PLC0415 - a parent of several processes has no use for all of it

    async with manager.watched(), App(read, config_file=file, member=member, passed=passed) as app:
        manager.say_ready()
        await app.run()
        manager.say_stopping()
    return 0
