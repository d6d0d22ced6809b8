"""`checkstream models eval --all DATA_FOLDER`: every model on every set, beside the version before."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from checkstream.cli.progress import progress
from checkstream.cli.results import counted, safe
from checkstream.config import bundled
from checkstream.errors import FileUnreadable
from checkstream.evaluation.board.asking import Asking
from checkstream.evaluation.board.described import read_described
from checkstream.evaluation.board.making import Making
from checkstream.evaluation.board.page import markdown, page, told
from checkstream.evaluation.board.remembered import Remembered
from checkstream.evaluation.board.results import Board, Compared, compare, decode, encode

DESCRIBED, KEPT, SHOWN = "scoreboard.yaml", "scoreboard.json", "SCOREBOARD.md"


class _InPlaceOfFiles(argparse.Action):
    """Stands in place of arguments without a name, which are needed without it."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object, _: str | None = None
    ) -> None:
        """Take the value; nothing else is needed then."""
        setattr(namespace, self.dest, values)
        for action in parser._actions:  # noqa: SLF001 - argparse has no other list of them
            action.required = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what only a scoreboard needs."""
    parser.add_argument(
        "--all",
        action=_InPlaceOfFiles,
        metavar="DATA_FOLDER",
        type=Path,
        help="make the scoreboard: every model on every set of texts that its description names in this folder",
    )
    parser.add_argument(
        "--board",
        metavar="FOLDER",
        type=Path,
        help=f"of a scoreboard: where {DESCRIBED} and what is kept stand (default: the models that ship)",
    )
    parser.add_argument(
        "--cache", metavar="FILE", type=Path, help="of a scoreboard: remember scores here, so that another run is quick"
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help=f"of a scoreboard: write {KEPT} and {SHOWN} anew, for the next to be held to",
    )


def run(args: argparse.Namespace) -> int:
    """Measure, compare with what is kept, and print.

    Returns:
        0: nothing got worse; 1: something did, or is no longer measured.

    Raises:
        ConfigError: models.yaml holds faults, or the model of a verifier is missing.
        FileUnreadable: the description, a file of texts, the cache or what is kept can't be read, or texts are missing.
        ModelError: there is no such model, or it can't be used.
        ScoringError: a model gave no usable scores.
    """
    folder = args.board or bundled("models")
    described = read_described(folder / DESCRIBED)
    kept = read_kept(folder)
    with Remembered.open(args.cache) as remembered:
        board = Making(described, args.all, Asking(args.models, remembered), progress).board()
    compared = compare(board, kept)
    if args.html is not None:
        args.html.write_text(page(compared.board), encoding="utf-8")
    if args.keep:
        (folder / KEPT).write_bytes(encode(compared.board))
        (folder / SHOWN).write_text(markdown(compared.board), encoding="utf-8")
    if args.json:
        sys.stdout.write(encode(compared.board).decode())
    else:
        sys.stdout.write("\n".join(_lines(compared, kept is not None)) + "\n")
    return 1 if compared.worse or compared.gone else 0


def read_kept(folder: Path) -> Board | None:
    """Return the board that a folder keeps; None: it keeps none.

    Raises:
        FileUnreadable: it can't be read, or is none.
    """
    path = folder / KEPT
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileUnreadable(f"can't read `{path}`: {(error.strerror or str(error)).lower()}") from error
    return decode(data, KEPT)


def _lines(compared: Compared, beside: bool) -> list[str]:
    board = compared.board
    lines = [f"{counted(len(board.figures), 'figure')} of {counted(len(board.models), 'model')}"]
    if not beside:
        return [*lines, "nothing is kept to compare them with; --keep keeps these"]
    lines += [f"worse: {safe(told(each))}" for each in compared.worse]
    lines += [f"no longer measured: {safe(', '.join(filter(None, key)))}" for key in compared.gone]
    lines += [f"better: {safe(told(each))}" for each in compared.better]
    summary = f"{len(compared.worse)} worse, {len(compared.better)} better"
    return [*lines, f"{summary}, {len(compared.gone)} no longer measured"]
