"""`checkstream telemetry`: send the audit log of a node to its control server, as the agent beside a proxy does."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from checkstream.app.measuring import serve_metrics
from checkstream.app.shipping import opened_shipper
from checkstream.cli.parser import Parser
from checkstream.cli.results import safe, write_json
from checkstream.config import Address, Config, load_config, parse_address
from checkstream.control.telemetry.shipper import Shipped
from checkstream.errors import ConfigError, Fault
from checkstream.listen.tls import open_tls
from checkstream.processes.following import Said
from checkstream.telemetry.logs import Log, open_log
from checkstream.telemetry.metrics import Metrics

_EXAMPLES = """examples:
  checkstream telemetry ship --config checkstream.yaml --once        # all that waits, and end
  checkstream telemetry ship --config checkstream.yaml --metrics 127.0.0.1:9092

Beside a `checkstream serve` that follows a bundle this happens by itself.
The guide is checkstream/control/telemetry/README.md.
"""


def add_arguments(parser: Parser) -> None:
    """Say what the command group `telemetry` takes."""
    parser.describe("Send the audit log of a node to its control server.", examples=_EXAMPLES)
    commands = parser.add_subparsers(dest="telemetry_command", metavar="COMMAND", required=True)
    ship = commands.add_parser(
        "ship", help="send what waits", description="Send what the audit log has and the control server has not."
    )
    ship.add_argument("--config", metavar="FILE", type=Path, required=True, help="the node's checkstream.yaml")
    ship.add_argument("--once", action="store_true", help="end when nothing is left; exit 2 where it can't be sent")
    ship.add_argument(
        "--metrics", metavar="HOST:PORT", type=_address, help="log as `serve` does, and serve /metrics and /livez here"
    )
    ship.add_argument("--json", action="store_true", help="write JSON, a line for each delivery")


def _address(text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def run(args: argparse.Namespace) -> int:
    """Ship until SIGTERM or SIGINT.

    Returns:
        0: stopped, or with `--once` all was sent; 2: with `--once`, it was not.

    Raises:
        ConfigError: the configuration can't be used, or the address of metrics can't be bound.
        ControlError: it names no control server, or the node's key can't be used.
    """
    config = load_config(args.config)
    if args.once:
        return asyncio.run(_ship_once(config, as_json=args.json))
    if args.metrics is None:
        asyncio.run(_ship(config, lambda shipped: say_shipped(shipped, as_json=args.json)))
        return 0
    metrics = Metrics()
    log = open_log(config.telemetry.log, sys.stderr.buffer, terminal=sys.stderr.isatty())
    asyncio.run(_measured(config, args.metrics, metrics, log))
    return 0


async def _ship_once(config: Config, *, as_json: bool) -> int:
    async with opened_shipper(config) as shipper:
        while True:
            shipped = await shipper.step()
            say_shipped(shipped, as_json=as_json)
            if shipped.shipping != "sent":
                return 0 if shipped.shipping == "idle" else 2


async def _ship(config: Config, say: Callable[[Shipped], None]) -> None:
    """Ship until SIGTERM or SIGINT; what is under way then counts when it is sent again."""
    loop = asyncio.get_running_loop()
    async with opened_shipper(config) as shipper:
        shipping = loop.create_task(shipper.run(say))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, shipping.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await shipping


async def _measured(config: Config, address: Address, metrics: Metrics, log: Log) -> None:
    """Ship as a service that is watched.

    Raises:
        ConfigError: the address can't be bound, or `admin_tls` can't be used.
    """
    tls = await asyncio.to_thread(open_tls, config.server.admin_tls, "metrics", log, metrics)
    async with contextlib.AsyncExitStack() as stack:
        try:
            serving = serve_metrics(address, lambda: asyncio.to_thread(metrics.render), tls=tls)
            where = await stack.enter_async_context(serving)
        except OSError as error:
            reason = f"can't listen on `{address}`: {(error.strerror or str(error)).lower()}"
            fault = Fault(file="command line", reason=reason, advice="give another `--metrics`")
            raise ConfigError((fault,)) from error
        log.info("shipping", metrics=where)
        await _ship(config, Said(log, metrics).hear_shipped)


def say_shipped(shipped: Shipped, *, as_json: bool) -> None:
    """Write what a delivery came to; of idle moments nothing."""
    if as_json:
        if shipped.shipping != "idle" or shipped.waiting:
            write_json(shipped)
            sys.stdout.flush()
        return
    if shipped.shipping == "sent" and not shipped.records:
        return
    if shipped.shipping != "idle":
        told = f"{shipped.records} records" if not shipped.reason else shipped.reason
        skipped = f", {shipped.skipped} left out" if shipped.skipped else ""
        sys.stdout.write(safe(f"{shipped.shipping}: {told}{skipped}; {shipped.waiting} bytes wait") + "\n")
        sys.stdout.flush()
