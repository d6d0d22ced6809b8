"""`checkstream control`: look after many nodes: what each is to have in force, and what it has."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from checkstream.cli.parser import Commands, Parser
from checkstream.config import load_control

_EXAMPLES = """examples:
  checkstream control key                                   # a key for a person, and what goes into control.yaml
  checkstream control serve --config control.yaml

  export CHECKSTREAM_CONTROL_URL=https://control.example CHECKSTREAM_CONTROL_KEY=...
  checkstream control status
  checkstream control rollout shop 2026.11.2 --reason "new rules on refunds"
  checkstream control approve 7
  checkstream control rollback shop --reason "it refuses half of all prompts"
  checkstream control allow shop configuration 3f0e...

  checkstream control alerts
  checkstream control silence "node_stale:shop/eu-*" --minutes 60 --reason "they move"
  checkstream control draft new "Refunds" --from .           # what is otherwise here than in the server's sources
  checkstream control draft propose 3
  checkstream control draft approve 3 --digest 9c41d02e      # somebody else, who has looked at just this
  checkstream control draft export 3 --to signing/

  checkstream control reviews                               # what waits for your word
  checkstream control review 3f0e12ab... wrong
  checkstream control reviewed --texts exchanges.jsonl --as cases > tests.yaml

  checkstream gate --reports reports/ && checkstream control tell reports/report.json --fleet shop
  checkstream control evidence-key hospital.pem             # hospital.pem.pub is for the nodes
  checkstream control evidence c3f1... --key hospital.pem
  checkstream control erase --caller hospital --reason "their contract has ended"

The guide is checkstream/control/README.md.
"""


_WITH_REASON = frozenset(
    (
        "rollout",
        "approve",
        "promote",
        "rollback",
        "allow",
        "silence",
        "new",
        "put",
        "propose",
        "refuse",
        "withdraw",
        "export",
        "erase",
    )
)
_OF_DRAFTS = frozenset({"drafts", "draft"})
_OF_EVIDENCE = frozenset({"evidence", "evidence-key", "erase"})
_OF_REVIEW = frozenset({"alerts", "silence", "speak", "reviews", "review", "flag", "precision", "reviewed"})


def add_arguments(parser: Parser) -> None:
    """Say what the command group `control` takes."""
    parser.describe("Serve as the control server of many nodes, or ask one.", examples=_EXAMPLES)
    commands = parser.add_subparsers(dest="control_command", metavar="COMMAND", required=True)
    serve = commands.add_parser(
        "serve", help="serve nodes and people", description="Serve nodes and people until SIGTERM or SIGINT."
    )
    serve.add_argument("--config", metavar="FILE", type=Path, required=True, help="a control.yaml")
    commands.add_parser(
        "key",
        help="make a key for a person",
        description="Print a fresh key on stdout, and on stderr what `people` of control.yaml needs to know it.",
    )
    status = _asking(
        commands, "status", "show which bundle each node has, and which it should have", "Exit 1: some node hasn't."
    )
    status.add_argument("fleet", metavar="FLEET", nargs="?", help="this fleet alone")
    rollout = _asking(commands, "rollout", "ask for a rollout; somebody else has to approve of it")
    rollout.add_argument("fleet", metavar="FLEET")
    rollout.add_argument("version", metavar="VERSION", help="of the bundle, or the beginning of its digest")
    approve = _asking(commands, "approve", "approve of a rollout, which begins")
    approve.add_argument("rollout", metavar="ROLLOUT", help="its number")
    for name, does in (
        ("promote", "have a rollout go on to the next ring at once"),
        ("rollback", "take a rollout back"),
    ):
        _asking(commands, name, does).add_argument("rollout", metavar="ROLLOUT", help="its number, or its fleet")
    allow = _asking(commands, "allow", "say what nodes of a fleet may be")
    allow.add_argument("fleet", metavar="FLEET")
    allow.add_argument("kind", metavar="KIND", choices=("package", "configuration", "image"))
    allow.add_argument("value", metavar="VALUE", help="a digest, as events and `status --json` show it")
    allow.add_argument("--remove", action="store_true", help="they may no longer")
    _add_watching(commands)
    tell = _asking(commands, "tell", "tell the server what a run of the gate came to")
    tell.add_argument("report", metavar="FILE", type=Path, help="the `report.json` that `gate --reports` wrote")
    tell.add_argument("--fleet", metavar="FLEET", help="whose model it is (default: no fleet's)")
    _add_drafts(commands)
    _add_evidence(commands)
    events = _asking(commands, "events", "show what has happened")
    events.add_argument("fleet", metavar="FLEET", nargs="?", help="to this fleet alone")
    events.add_argument("--most", metavar="N", type=int, default=50, help="the last so many (default: 50)")


def _add_watching(commands: Commands) -> None:
    _asking(commands, "alerts", "show what stands, and what is silenced", "Exit 1: something stands.")
    silence = _asking(commands, "silence", "mute alerts for some time; that they are over is told all the same")
    silence.add_argument("pattern", metavar="PATTERN", help="of keys, with * and ?: `node_stale:shop/eu-*`")
    silence.add_argument("--minutes", metavar="N", type=int, default=60, help="how long (default: 60)")
    _asking(commands, "speak", "end a silence").add_argument("silence", metavar="NUMBER", type=int)
    reviews = _asking(commands, "reviews", "show which findings wait for your word")
    reviews.add_argument("rule", metavar="RULE", nargs="?", default="", help="of this rule alone")
    review = _asking(commands, "review", "say whether a rule was right")
    review.add_argument("item", metavar="ITEM")
    review.add_argument("word", metavar="WORD", choices=("right", "wrong", "unsure"), help="right, wrong or unsure")
    flag = _asking(commands, "flag", "have people look at what a rule did in an exchange")
    flag.add_argument(
        "stream", metavar="STREAM", help="id of the exchange, as callers get it in `x-checkstream-stream`"
    )
    flag.add_argument("rule", metavar="RULE")
    _asking(commands, "precision", "show how often rules were right, by week")
    reviewed = _asking(commands, "reviewed", "make test cases or labelled texts of what people have settled")
    reviewed.add_argument(
        "--texts", metavar="FILE", type=Path, required=True, help="JSON lines with `stream` and `text`, of your own"
    )
    reviewed.add_argument("--as", dest="form", choices=("cases", "rows"), default="cases", help="default: cases")


def _add_drafts(commands: Commands) -> None:
    _asking(commands, "drafts", "show the drafts of policies").add_argument(
        "--all", action="store_true", help="also those that are withdrawn or exported"
    )
    draft = commands.add_parser(
        "draft",
        help="write a draft of policies, propose it, approve of it, and take it out to be signed",
        description="Change the policies of the control server's sources without touching them: from a folder, such as "
        "a checkout of Git, or in the console. What is approved of is one content, by its digest.",
    )
    does = draft.add_subparsers(dest="draft_command", metavar="COMMAND", required=True)
    new = _asking(does, "new", "begin a draft")
    new.add_argument("title", metavar="TITLE")
    new.add_argument("--from", dest="folder", metavar="DIR", type=Path, help="with what this folder has otherwise")
    put = _asking(does, "put", "make a draft hold what a folder holds")
    put.add_argument("draft", metavar="DRAFT", type=int)
    put.add_argument("folder", metavar="DIR", type=Path)
    for name, what, more in (
        ("show", "show a draft, and its digest", ""),
        ("check", "say what is wrong with a draft, and what differs", "Exit 1: a case fails. 2: there are faults."),
        ("rebase", "take the sources over as they are now", "Of files that both have changed the draft's stay."),
        ("propose", "have others look at a draft", "It has to be sound, and to do what its cases say."),
        ("approve", "approve of a draft that others have written", ""),
        ("refuse", "refuse a draft", ""),
        ("withdraw", "withdraw a draft", ""),
        ("get", "write the files of a draft into a folder", ""),
        ("export", "do as `get`, and mark an approved draft as taken out to be signed", ""),
    ):
        command = _asking(does, name, what, more)
        command.add_argument("draft", metavar="DRAFT", type=int, help="its number")
        if name in {"approve", "refuse"}:
            command.add_argument("--digest", metavar="HEX", required=True, help="of what you have looked at")
        if name in {"get", "export"}:
            command.add_argument("--to", metavar="DIR", type=Path, required=True, help="a checkout, or new")


def _add_evidence(commands: Commands) -> None:
    key = commands.add_parser(
        "evidence-key",
        help="make a pair of keys for evidence",
        description="Write a private key that opens evidence, and its public half with `.pub` behind the name.",
    )
    key.add_argument("file", metavar="FILE", type=Path)
    evidence = _asking(
        commands, "evidence", "open what was kept of an exchange", "Exit 1: there is none, or it proves nothing."
    )
    evidence.add_argument("stream", metavar="STREAM", help="id of the exchange")
    evidence.add_argument("--key", metavar="FILE", type=Path, required=True, help="the private key")
    evidence.add_argument("--transcript", metavar="FILE", type=Path, help="write it for `checkstream replay`, too")
    erase = _asking(commands, "erase", "erase what was kept of an exchange, or of a caller")
    whose = erase.add_mutually_exclusive_group(required=True)
    whose.add_argument("--stream", metavar="STREAM", default="")
    whose.add_argument("--caller", metavar="CALLER", default="")


def _asking(commands: Commands, name: str, does: str, more: str = "") -> Parser:
    parser = commands.add_parser(name, help=does, description=f"{does[0].upper()}{does[1:]}. {more}".strip())
    parser.add_argument("--server", metavar="URL", help="the control server (default: $CHECKSTREAM_CONTROL_URL)")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    if name in _WITH_REASON:
        parser.add_argument("--reason", metavar="TEXT", default="", help="for the record")
    return parser


def run(args: argparse.Namespace) -> int:
    """Carry the command out and return its exit code.

    Returns:
        0: done; 1: a node hasn't what it should have.

    Raises:
        CheckstreamError: it can't be done; says why.
    """
    command: str = args.control_command
    if command == "serve":
        return _serve(args.config)
    if command == "key":
        return _key()
    from checkstream.cli import (  # noqa: PLC0415 - who serves asks nobody
        control_ask,
        control_drafts,
        control_evidence,
        control_gate,
        control_review,
    )

    where: Mapping[str, ModuleType] = {
        **dict.fromkeys(_OF_REVIEW, control_review),
        **dict.fromkeys(_OF_DRAFTS, control_drafts),
        **dict.fromkeys(_OF_EVIDENCE, control_evidence),
        "tell": control_gate,
    }
    named = {"approve": "move", "promote": "move", "rollback": "move", "evidence-key": "key"}
    found: int = getattr(where.get(command, control_ask), named.get(command, command))(args)
    return found


def _serve(file: Path) -> int:
    import uvloop  # noqa: PLC0415 - only who serves

    from checkstream.app.control import run_control  # noqa: PLC0415 - clients need no server

    config = load_control(file)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run_control(config))
    return 0


def _key() -> int:
    key = secrets.token_urlsafe(32)
    sys.stdout.write(f"{key}\n")
    sys.stdout.flush()
    sys.stderr.write(f"key_sha256: {hashlib.sha256(key.encode()).hexdigest()}\n")
    return 0
