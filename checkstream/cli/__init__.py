"""The command line: one file per command group. Results go to stdout, all else to stderr.

Exit codes: 0 done, 1 the answer is no, 2 wrong use or configuration, 130 interrupted.
"""

from __future__ import annotations

import functools
import importlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TextIO

import checkstream
from checkstream.cli.parser import Parser
from checkstream.cli.workflow import as_text
from checkstream.errors import CheckstreamError

_GROUPS = {
    "serve": "run the proxy",
    "demo": "show raw and guarded conversations side by side",
    "bench": "measure what the proxy costs and holds back",
    "config": "write, check and explain configuration files",
    "policy": "check policies and explain what they do",
    "replay": "run recorded transcripts against a policy",
    "audit": "verify and read the audit chains",
    "models": "list, verify, fetch, run and evaluate models",
    "score": "serve models to other proxies over HTTP",
    "gate": "evaluate a model against trusted documents: deploy, warn or block",
    "worker": "score answers in the background",
    "tools": "review how servers of tools describe them, and accept changes",
    "jobs": "list and retry background jobs",
    "ingest": "bring trusted documents into the store of evidence",
    "bundle": "build, sign, publish and fetch signed bundles of policies",
    "control": "look after many nodes: what each is to have in force, and what it has",
    "telemetry": "send the audit log to a control server",
    "fingerprint": "make the file by which a policy knows texts that must not be recited",
    "completion": "print what a shell needs to complete commands",
}
"""Each is a file beside this one, with `add_arguments` and `run`, imported when it is asked for."""
_EXAMPLES = """examples:
  checkstream serve --upstream http://127.0.0.1:8000
  checkstream serve --config checkstream.yaml
  checkstream config check checkstream.yaml
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parser = Parser(prog="checkstream")
    parser.describe(
        "A guardrail proxy that checks an LLM's streamed answer before it is sent on.",
        examples=_EXAMPLES,
    )
    parser.add_argument("--version", action="version", version=f"checkstream {checkstream.__version__}")
    parser.set_defaults(root=parser)  # what shells complete
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, does in _GROUPS.items():
        commands.add_parser(name, help=does, later=functools.partial(_read_in, name))
    _open_outputs()
    parsed = parser.parse(arguments)
    parsed.given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code: int = _group(parsed.command).run(parsed)
        sys.stdout.flush()  # a pipe or disk that takes no more is found out here, not when the interpreter ends
    except CheckstreamError as error:
        with as_text(sys.stderr):
            print(f"checkstream: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130  # what a shell says of a program that ended so
    except BrokenPipeError:
        sys.stderr.close()  # who read our output has gone; there is nothing to say
        return 1
    except OSError as error:
        where = f"`{error.filename}`" if error.filename is not None else "the output"
        with as_text(sys.stderr):
            print(f"checkstream: {where}: {(error.strerror or 'it can not be used').lower()}", file=sys.stderr)
        sys.stdout = _nowhere()  # else the interpreter fails once more at what is still to be written
        return 2
    return code


def _group(name: str) -> ModuleType:
    return importlib.import_module(f"checkstream.cli.{name}")


def _read_in(name: str, parser: Parser) -> None:
    _group(name).add_arguments(parser)


def _open_outputs() -> None:
    """Make sure that whatever is said can be said: into closed outputs, and of names that are no text."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, _nowhere())
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _nowhere() -> TextIO:
    """Return an output that goes nowhere; it stays open until the process ends."""
    return Path(os.devnull).open("w", encoding="utf-8")
