"""`checkstream models list | verify | pull | predict | eval | watch`: which there are, whence, how good."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

import msgspec

from checkstream.cli import models_eval, models_predict, models_watch
from checkstream.cli.parser import Parser
from checkstream.cli.progress import Counter
from checkstream.cli.results import counted, safe, write_json
from checkstream.config import OwnModel
from checkstream.errors import ModelError
from checkstream.scoring.provenance import Described, described_models, load_described
from checkstream.scoring.pull import pull

_EXAMPLES = """examples:
  checkstream models list
  checkstream models pull --models models.yaml
  echo '{"id": 1, "text": "Ignore previous instructions"}' | checkstream models predict injection
  checkstream models eval injection attacks.jsonl --against benign.jsonl --html report.html
  checkstream models watch
"""


def add_arguments(parser: Parser) -> None:
    """Say what the command group `models` takes."""
    parser.describe(
        "List, verify, fetch, run, evaluate and watch models.",
        examples=_EXAMPLES,
    )
    commands = parser.add_subparsers(dest="models_command", metavar="COMMAND", required=True)
    listed = commands.add_parser(
        "list",
        help="print the models, their labels and where they come from",
        description="Print the models that are shipped and those of a models.yaml. Loads nothing.",
        epilog="example: checkstream models list --models models.yaml --json",
    )
    verify = commands.add_parser(
        "verify",
        help="check every file against its pinned hash; exit 1 when one differs",
        description="Check every file of every model against its pinned hash. Exit 0: all are so. 1: one is not. "
        "2: wrong use.",
        epilog="example: checkstream models verify --models models.yaml",
    )
    fetch = commands.add_parser(
        "pull",
        help="fetch the models of a models.yaml, try them, pin them",
        description="Fetch the models that a models.yaml names, have each score, and pin what was fetched in the lock "
        "beside it. Nothing that isn't pinned is ever loaded.",
        epilog="example: checkstream models pull --models models.yaml",
    )
    fetch.add_argument("--update", action="store_true", help="pin what is at the sources now, where it has changed")
    predict = models_predict.add_parser(commands)
    evaluate = models_eval.add_parser(commands)
    models_watch.add_parser(commands)
    for command in (listed, verify, predict, evaluate):
        command.add_argument("--models", metavar="FILE", type=Path, help="a models.yaml with models of your own")
    fetch.add_argument("--models", metavar="FILE", type=Path, default=Path("models.yaml"), help="default: models.yaml")
    for command in (listed, verify, fetch):
        command.add_argument("--json", action="store_true", help="print the outcome as JSON")


def run(args: argparse.Namespace) -> int:
    """Carry the command out and return its exit code.

    Returns:
        0: done; 1: a file is not what is pinned, or the scores of a classifier have changed.

    Raises:
        ConfigError: models.yaml holds faults.
        ModelError: a model can't be used.
        FileUnreadable: a file of texts can't be read.
        ScoringError: a model gave no usable scores.
        MetricsUnreadable: there are no metrics to watch.
    """
    match args.models_command:
        case "list":
            return _list(args)
        case "verify":
            return _verify(args)
        case "pull":
            return _pull(args)
        case "predict":
            return models_predict.run(args)
        case "watch":
            return models_watch.run(args)
        case _:
            return models_eval.run(args)


class _Listed(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    kind: str
    version: str
    labels: tuple[str, ...]
    entities: tuple[str, ...]
    calibrated: bool
    bytes: int
    origin: str
    licence: str
    reason: str = ""
    """Why it can't be used; empty: it can."""


def _list(args: argparse.Namespace) -> int:
    unpinned: list[_Listed] = []
    described = described_models(args.models, unpinned=lambda *given: unpinned.append(_unpinned(*given)))
    found = [*map(_listed, described.values()), *unpinned]
    if args.json:
        write_json(found)
        return 0
    rows = [("name", "kind", "version", "MB", "origin", "labels")]
    rows += [
        (
            each.name,
            each.kind,
            each.version,
            "-" if each.reason else f"{each.bytes / 1e6:.1f}",
            safe(each.origin),
            each.reason or ", ".join((*each.labels, *each.entities)),
        )
        for each in found
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        sys.stdout.write(
            "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[5])) + "\n"
        )
    return 0


def _listed(model: Described) -> _Listed:
    entry = model.entry
    return _Listed(
        name=entry.name,
        kind=entry.kind.value,
        version=entry.version,
        labels=entry.labels,
        entities=tuple(kind.entity for kind in entry.entities),
        calibrated=entry.calibrated,
        bytes=sum(file.bytes for file in entry.files),
        origin=model.origin,
        licence=entry.licence,
    )


def _unpinned(model: OwnModel, error: ModelError) -> _Listed:
    return _Listed(
        name=model.name,
        kind=model.kind,
        version=model.version,
        labels=(),
        entities=(),
        calibrated=False,
        bytes=0,
        origin="" if model.source is None else model.source.origin,
        licence=model.licence,
        reason=str(error),
    )


class _Verified(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    files: int
    ok: bool
    reason: str = ""


def _verify(args: argparse.Namespace) -> int:
    unpinned: list[_Verified] = []
    described = described_models(
        args.models,
        unpinned=lambda model, error: unpinned.append(
            _Verified(name=model.name, files=len(model.files), ok=False, reason=str(error))
        ),
    )
    found = [*map(_verified, described.values()), *unpinned]
    if args.json:
        write_json(found)
    else:
        for each in found:
            verdict = f"{counted(each.files, 'file')} as pinned" if each.ok else each.reason
            sys.stdout.write(f"{each.name}: {verdict}\n")
    return 0 if all(each.ok for each in found) else 1


def _verified(model: Described) -> _Verified:
    name, files = model.entry.name, len(model.entry.files)
    try:
        load_described(model)
    except ModelError as error:
        return _Verified(name=name, files=files, ok=False, reason=str(error))
    return _Verified(name=name, files=files, ok=True)


def _pull(args: argparse.Namespace) -> int:
    with Counter() as counter:
        outcomes = asyncio.run(
            pull(args.models, update=args.update, told=lambda name, size: counter.show(f"{name}: {size / 1e6:.1f} MB"))
        )
    if args.json:
        write_json(outcomes)
        return 0
    for each in outcomes:
        sys.stdout.write(f"{each.name}: {each.change}, {each.bytes / 1e6:.1f} MB from {safe(each.origin)}\n")
    if not outcomes:
        sys.stdout.write("nothing to fetch\n")
    return 0
