"""The command line: one file per command group. Results go to stdout, all else to stderr.

Exit codes: 0 done, 1 the answer is no, 2 wrong use or configuration.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

import checkstream
from checkstream.cli import audit, config, demo, policy, replay, serve
from checkstream.errors import CheckstreamError

_EXAMPLES = """examples:
  checkstream serve --upstream http://127.0.0.1:8000
  checkstream serve --config checkstream.yaml
  checkstream config check checkstream.yaml
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="checkstream",
        description="A guardrail proxy that checks an LLM's streamed answer before it is sent on.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"checkstream {checkstream.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    runs: dict[str, Callable[[argparse.Namespace], int]] = {}
    for name, group in (
        ("serve", serve),
        ("demo", demo),
        ("config", config),
        ("policy", policy),
        ("replay", replay),
        ("audit", audit),
    ):
        group.add_parser(commands)
        runs[name] = group.run
    parsed = parser.parse_args(arguments)
    try:
        return runs[parsed.command](parsed)
    except CheckstreamError as error:
        print(f"checkstream: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        sys.stderr.close()  # who read our output has gone; there is nothing to say
        return 1
