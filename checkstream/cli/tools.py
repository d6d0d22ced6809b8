"""`checkstream tools list | accept | forget`: how servers of tools have described them, and which changes count."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import json
from collections.abc import Iterable, Iterator

from checkstream.cli.parser import Parser
from checkstream.cli.results import counted, safe, write_json
from checkstream.config import load_config
from checkstream.core.exchange.rpc.toolbook import Pin, Pins, Seen
from checkstream.errors import ConfigError, Fault
from checkstream.sealed import ToolStore, open_tools

_EXAMPLES = """examples:
  checkstream tools list --config checkstream.yaml
  checkstream tools list --changed --config checkstream.yaml
  checkstream tools accept "library /mcp" search --config checkstream.yaml
"""
_SHOWN_DIGITS = 12


def add_arguments(parser: Parser) -> None:
    """Say what the command group `tools` takes."""
    parser.describe(
        "See how the tools of each server were described when they were first seen, what has changed since, and accept "
        "it or not.",
        examples=_EXAMPLES,
    )
    commands = parser.add_subparsers(dest="tools_command", metavar="COMMAND", required=True)
    listing = commands.add_parser(
        "list",
        help="print what is known, with what has changed",
        description="Print every tool that was seen, by server. Below one that was described otherwise when it was "
        "last seen stands what has changed. Exit 1: --changed was given, and something has.",
        epilog="example: checkstream tools list --config checkstream.yaml",
    )
    listing.add_argument("--changed", action="store_true", help="only those that have changed")
    accepting = commands.add_parser(
        "accept",
        help="let tools be described as they were last",
        description="Let tools be described as they were last seen. Exit 1: none of them had changed.",
        epilog='example: checkstream tools accept "library /mcp" search --config checkstream.yaml',
    )
    forgetting = commands.add_parser(
        "forget",
        help="know nothing of tools: what is seen next counts",
        description="Know nothing of tools any more: what is seen of them next counts. Exit 1: none of them was known.",
        epilog='example: checkstream tools forget "library /mcp" --all --config checkstream.yaml',
    )
    for command in (accepting, forgetting):
        command.add_argument("server", metavar="SERVER", help="as `tools list` prints it")
        command.add_argument("tools", metavar="TOOL", nargs="*", help="names of its tools")
        command.add_argument("--all", action="store_true", help="all of them")
    for command in (listing, accepting, forgetting):
        command.add_argument(
            "--config", metavar="FILE", required=True, help="the configuration that names the store under `tools`"
        )
        command.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Carry the command out and return its exit code.

    Returns:
        0: done; 1: there was nothing to accept or to forget, or (`list --changed`) something has changed.

    Raises:
        ConfigError: the configuration names no store.
        VaultFailed: it can't be used, or has been altered.
    """
    if args.tools_command != "list" and bool(args.tools) == args.all:
        raise _wrong("give names of tools, or `--all`", "`checkstream tools list` prints them")
    with _store(args.config) as store:
        if args.tools_command == "list":
            return _list(store, only_changed=args.changed, as_json=args.json)
        if args.server not in store.servers():
            raise _wrong(f"there is no server `{args.server}`", "`checkstream tools list` prints them")
        names = None if args.all else args.tools
        count = store.change(args.server, lambda pins: _change(pins, names, args.tools_command))
        if args.json:
            write_json({"changed": count})
        else:
            print(f"{counted(count, 'tool')} {'accepted' if args.tools_command == 'accept' else 'forgotten'}")
        return 0 if count else 1


@contextlib.contextmanager
def _store(file: str) -> Iterator[ToolStore]:
    store = open_tools(load_config(file).tools)
    if store is None:
        raise ConfigError(
            (
                Fault(
                    file=file,
                    reason="it names no store of tools",
                    advice="add `tools: {secret: {env: CHECKSTREAM_TOOLS_SECRET}}`",
                ),
            )
        )
    with contextlib.closing(store):
        yield store


def _change(pins: Pins, names: Iterable[str] | None, what: str) -> int:
    chosen = list(pins.tools) if names is None else [name for name in names if name in pins.tools]
    if what == "accept":
        return sum([pins.accept(name) for name in chosen])
    for name in chosen:
        pins.forget(name)
    return len(chosen)


def _list(store: ToolStore, *, only_changed: bool, as_json: bool) -> int:
    changed = 0
    for server in store.servers():
        for name, pin in sorted(store.tools(server).items()):
            changed += pin.now is not None
            if only_changed and pin.now is None:
                continue
            if as_json:
                write_json({"server": server, "tool": name, **_as_json(pin)})
                continue
            print(safe(f"{server}  {name}  {_state(pin)}"))
            for line in _difference(pin):
                print(safe(line))
    return 1 if only_changed and changed else 0


def _as_json(pin: Pin) -> dict[str, object]:
    return {"first": pin.first, "now": pin.now, **({"refused": pin.refused} if pin.refused else {})}


def _state(pin: Pin) -> str:
    first = "never as it may be called" if pin.first is None else pin.first.said[:_SHOWN_DIGITS]
    now = "as it was" if pin.now is None else f"changed to {pin.now.said[:_SHOWN_DIGITS]}"
    refused = f"refused: {pin.refused}" if pin.refused else ""
    return "  ".join(filter(None, (first, "" if pin.first is None else now, refused)))


def _difference(pin: Pin) -> Iterator[str]:
    """Yield what has changed, line by line."""
    if pin.now is None or pin.first is None:
        return
    if pin.first.text is None or pin.now.text is None:
        yield "    (too long to be kept: compare the hashes with what the server says)"
        return
    for line in list(difflib.unified_diff(_lines(pin.first), _lines(pin.now), n=0, lineterm=""))[2:]:
        if not line.startswith("@@"):
            yield f"    {line}"


def _lines(seen: Seen) -> list[str]:
    return json.dumps(json.loads(seen.text or "{}"), indent=1, ensure_ascii=False).splitlines()


def _wrong(reason: str, advice: str) -> ConfigError:
    return ConfigError((Fault(file="command line", reason=reason, advice=advice),))
