"""`checkstream demo`: conversations with a scripted model, raw and guarded side by side."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import shutil
import signal
import sys

import uvloop

from checkstream.cli.parser import Parser
from checkstream.demo.heard import SURFACES
from checkstream.demo.opening import somebody_looks
from checkstream.demo.page import MAX_COLUMNS, Page
from checkstream.demo.play import play
from checkstream.errors import BundleError

_EXAMPLES = """examples:
  checkstream demo
  checkstream demo --surface anthropic    # or responses, or ollama
  checkstream demo --keep        # then talk to it with curl, until Ctrl-C
  checkstream demo --fleet       # a control server, two proxies, and a bad bundle that is taken back; opens the console
"""


def add_arguments(parser: Parser) -> None:
    """Say what the command `demo` takes."""
    parser.describe(
        "Start a scripted model and the proxy in front of it with the default policies, have a few "
        "conversations with both, and show what came, what fired, and what it cost. Leaves nothing running.",
        examples=_EXAMPLES,
    )
    parser.add_argument(
        "--surface", choices=sorted(SURFACES), default="openai", help="the API that is spoken (default: openai)"
    )
    parser.add_argument(
        "--fleet", action="store_true", help="show a control server and two proxies (needs `checkstream[bundles]`)"
    )
    parser.add_argument(
        "--no-open", action="store_true", help="with `--fleet`: leave the browser alone, also where there is a display"
    )
    parser.add_argument("--keep", action="store_true", help="leave the proxy running until Ctrl-C")


def run(args: argparse.Namespace) -> int:
    """Play the demo and return its exit code.

    Returns:
        0: all came as it must; 1: something did not; 2: it could not be played.
    """
    colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    page = Page(shutil.get_terminal_size((MAX_COLUMNS, 24)).columns, colours=colours)
    looks = somebody_looks(terminal=sys.stdout.isatty(), platform=sys.platform, environment=os.environ)
    browse = looks and not args.no_open
    return uvloop.run(_interruptible(page, keep=args.keep, surface=args.surface, fleet=args.fleet, browse=browse))


async def _interruptible(page: Page, *, keep: bool, surface: str, fleet: bool, browse: bool) -> int:
    """Play until the end, or until SIGINT or SIGTERM; either way the servers are stopped."""
    loop = asyncio.get_running_loop()
    if fleet:
        try:
            from checkstream.demo.fleet import play_fleet  # noqa: PLC0415 - only who asks for a fleet has the extra
        except ModuleNotFoundError as error:
            raise BundleError("`demo --fleet` needs the extra `checkstream[bundles]`; install it") from error

        playing = loop.create_task(play_fleet(page, _say, keep=keep, browse=browse))
    else:
        playing = loop.create_task(play(page, _say, keep=keep, surface=surface))
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, playing.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        return await playing
    return 0 if keep else 130


def _say(line: str) -> None:
    print(line, flush=True)
