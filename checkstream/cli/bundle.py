"""`checkstream bundle`: policies as signed bundles, from the first key to a node that fetches them."""

from __future__ import annotations

import argparse
from pathlib import Path

from checkstream.cli import bundle_check, bundle_diff, bundle_test
from checkstream.cli.parser import Commands, Parser
from checkstream.control.bundles import PASSPHRASE
from checkstream.control.bundles.weight import MOST_EARLIER
from checkstream.errors import BundleError

_EXAMPLES = """examples:
  checkstream bundle key eve                                   # keys/eve.pem stays with Eve, keys/eve.pub goes to all
  checkstream bundle init repository --trust trust.yaml        # who may sign what; stages it
  checkstream bundle sign repository --key keys/ann.pem        # what waits for Ann's signature
  checkstream bundle build bundle.yaml -o retail/              # the files of a bundle
  checkstream bundle check . --against ../main               # of a checkout: faults, cases, and what differs
  checkstream bundle test retail/
  checkstream bundle diff retail-before/ retail/               # which rules differ, and which need approval
  checkstream bundle sign repository retail/ --as team --key keys/eve.pem
  checkstream bundle sign repository retail/ --as risk --key keys/ruth.pem
  checkstream bundle publish repository --key keys/publisher.pem
  checkstream bundle withdraw repository retail --key keys/eve.pem    # the version before is good no longer
  checkstream bundle follow --config checkstream.yaml --once
  checkstream bundle fetch https://bundles.example/ --root root.json --name retail --state var/ -o current/

The guide is checkstream/control/bundles/README.md.
"""
_KEY = (
    "private key: a file or env:VARIABLE with PEM, or NAME=URI of a key that stays where it is (hsm:, awskms:, "
    f"gcpkms:, azurekms:, hv:); ${PASSPHRASE} opens an encrypted one"
)


def add_arguments(parser: Parser) -> None:
    """Say what the command group `bundle` takes."""
    parser.describe(
        "Build, test, sign, publish and fetch bundles of policies. One role signs a bundle, another approves of what "
        "its rules enforce, and a node takes nothing that both have not signed (The Update Framework).",
        examples=_EXAMPLES,
    )
    commands = parser.add_subparsers(dest="bundle_command", metavar="COMMAND", required=True)
    _add_makers(commands)
    _add_readers(commands)


def _add_makers(commands: Commands) -> None:
    _add_key(commands)
    init = commands.add_parser(
        "init",
        help="say who may sign what, or say it anew",
        description="Stage the roles of a `trust.yaml`. Keys sign them (`sign`), then `publish` puts them in force.",
    )
    init.add_argument("repository", metavar="REPOSITORY", type=Path, help="folder, made where it is not there")
    init.add_argument("--trust", metavar="FILE", type=Path, required=True, help="a trust.yaml")
    build = commands.add_parser(
        "build",
        help="make the files of a bundle",
        description="Compile the policies of a `bundle.yaml` and gather their files. Equal files make equal bytes.",
    )
    build.add_argument("file", metavar="FILE", type=Path, help="a bundle.yaml")
    build.add_argument(
        "-o", "--output", metavar="DIR", type=Path, required=True, help="folder; an older bundle in it goes"
    )
    build.add_argument("--json", action="store_true", help="print the outcome as JSON")
    sign = commands.add_parser(
        "sign",
        help="sign a bundle, approve of one, or sign what waits",
        description="With a bundle: sign it as an author, or approve of what it enforces as an approver. Without: sign "
        "what is staged for the key's roles.",
    )
    sign.add_argument("repository", metavar="REPOSITORY", type=Path)
    sign.add_argument("bundle", metavar="BUNDLE", type=Path, nargs="?", help="folder that `build` has made")
    sign.add_argument("--models", metavar="FILE", help="a models.yaml with models of your own")
    sign.add_argument("--as", metavar="ROLE", dest="role", help="role of the key, where it has several")
    sign.add_argument(
        "--keep",
        metavar="N",
        type=_few,
        default=1,
        help="versions before this one that stay good, so that nodes can be taken back to them (default: 1)",
    )
    sign.add_argument("--key", metavar="KEY", required=True, help=_KEY)
    withdraw = commands.add_parser(
        "withdraw",
        help="say that earlier versions of a bundle are good no longer",
        description="Stage the bundle's newest version without earlier ones beside it. Nodes then refuse those, "
        "whatever a control server asks of them. To replace the newest version, sign a newer one.",
    )
    withdraw.add_argument("repository", metavar="REPOSITORY", type=Path)
    withdraw.add_argument("name", metavar="NAME", help="of the bundle")
    withdraw.add_argument("version", metavar="VERSION", nargs="?", help="version or digest (default: all earlier ones)")
    withdraw.add_argument("--key", metavar="KEY", required=True, help=_KEY)
    publish = commands.add_parser(
        "publish",
        help="put in force what is signed, and say that it is the newest",
        description="Move what is staged and signed to REPOSITORY/public, which any web server, object store or disk "
        "can hold. A node refuses what nobody has called the newest for `days` of `timestamp`: run it with --refresh "
        "by the clock.",
    )
    publish.add_argument("repository", metavar="REPOSITORY", type=Path)
    publish.add_argument("--key", metavar="KEY", action="append", default=[], required=True, help=_KEY)
    publish.add_argument(
        "--refresh", action="store_true", help="say only that what is public is the newest; what is staged waits on"
    )
    publish.add_argument("--models", metavar="FILE", help="a models.yaml with models of your own")


def _add_key(commands: Commands) -> None:
    key = commands.add_parser(
        "key",
        help="make a key pair (Ed25519), or write the public key of one that stays where it is",
        description="Make a key pair in PEM. With --at, nothing is made: the public key of that one is written.",
    )
    key.add_argument("name", metavar="NAME", help="whose it is")
    key.add_argument("--to", metavar="DIR", type=Path, default=Path("keys"), help="folder (default: keys)")
    key.add_argument(
        "--at",
        metavar="ADDRESS",
        help="of the private key: `hsm:[ID][?label=TOKEN]` of PKCS#11, `awskms:KEY`, `gcpkms:VERSION`, "
        f"`azurekms:VAULT/KEY` or `hv:KEY`; ${PASSPHRASE} is a token's PIN",
    )


def _few(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text[:4]) > MOST_EARLIER:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of versions; write 0 to {MOST_EARLIER}")
    return int(text)


def _add_readers(commands: Commands) -> None:
    bundle_check.add_parser(commands)
    bundle_diff.add_parser(commands)
    bundle_test.add_parser(commands)
    _add_follow(commands)
    for name, does in (
        ("verify", "fetch a bundle, say what it is, and keep nothing"),
        ("fetch", "fetch a bundle into a folder, verified"),
    ):
        command = commands.add_parser(
            name, help=does, description=f"{does[0].upper()}{does[1:]}. Exit 2: it is refused."
        )
        command.add_argument("source", metavar="SOURCE", help="folder or address of what was published")
        command.add_argument("--root", metavar="FILE", type=Path, required=True, help="root metadata that you trust")
        command.add_argument("--name", metavar="NAME", required=True, help="of the bundle")
        command.add_argument("--models", metavar="FILE", help="a models.yaml with models of your own")
        command.add_argument("--json", action="store_true", help="print the outcome as JSON")
        if name == "fetch":
            command.add_argument("-o", "--output", metavar="DIR", type=Path, required=True, help="folder for its files")
            command.add_argument(
                "--state",
                metavar="DIR",
                type=Path,
                required=True,
                help="remembers versions, so that no older one follows",
            )


def _add_follow(commands: Commands) -> None:
    follow = commands.add_parser(
        "follow",
        help="look for newer bundles for a proxy, and make them current",
        description="Fetch the bundle that a configuration names under `bundles`, verify it, hold it to its approval, "
        "compile it, run its cases, hold it to the routes, and make it current; then look again every `poll_s`. "
        "`serve` starts this by itself. Exit 2 with --once: it was refused, or the source can't be read.",
    )
    follow.add_argument("--config", metavar="FILE", type=Path, required=True, help="configuration file of the proxy")
    follow.add_argument("--once", action="store_true", help="look once")
    follow.add_argument("--json", action="store_true", help="say what came of each look as one line of JSON")
    follow.add_argument("--while-open", action="store_true", help=argparse.SUPPRESS)  # ends with standard input


def run(args: argparse.Namespace) -> int:
    """Carry the command out and return its exit code.

    Returns:
        0: done; 1: a case failed, or bundles differ in what they enforce; 2: faults, or none can be had.

    Raises:
        CheckstreamError: it can't be done; says why.
    """
    command: str = args.bundle_command
    if command == "check":
        return bundle_check.run(args)
    if command == "diff":
        return bundle_diff.run(args)
    if command == "test":
        return bundle_test.run(args)
    try:
        from checkstream.cli import bundle_acts, bundle_follow  # noqa: PLC0415 - the extra need not be installed for other commands
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"tuf", "securesystemslib"}:
            raise
        raise BundleError("`bundle` needs the extra `checkstream[bundles]`; install it") from error
    if command == "follow":
        return bundle_follow.run(args)
    getattr(bundle_acts, command)(args)
    return 0
