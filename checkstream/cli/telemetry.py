"""`checkstream telemetry`: send the audit log of a node to its control server, as the agent beside a proxy does."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from checkstream.app.shipping import opened_shipper
from checkstream.cli.parser import Parser
from checkstream.cli.results import safe, write_json
from checkstream.config import Config, load_config
from checkstream.control.telemetry.shipper import Shipped

_EXAMPLES = """examples:
  checkstream telemetry ship --config checkstream.yaml --once        # all that waits, and end

Beside `checkstream serve` this happens by itself. The guide is checkstream/control/telemetry/README.md.
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
    ship.add_argument("--json", action="store_true", help="write JSON, a line for each delivery")


def run(args: argparse.Namespace) -> int:
    """Ship until told to stop.

    Returns:
        0: stopped, or with `--once` all was sent; 2: with `--once`, it was not.

    Raises:
        ConfigError: the configuration can't be used.
        ControlError: it names no control server, or the node's key can't be used.
    """
    return asyncio.run(_ship(load_config(args.config), once=args.once, as_json=args.json))


async def _ship(config: Config, *, once: bool, as_json: bool) -> int:
    async with opened_shipper(config) as shipper:
        while True:
            shipped = await shipper.step()
            say_shipped(shipped, as_json=as_json)
            if once and shipped.shipping == "idle":
                return 0
            if once and shipped.shipping != "sent":
                return 2
            await asyncio.sleep(0 if once else shipped.wait_s)


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
