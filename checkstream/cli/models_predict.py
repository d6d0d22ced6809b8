"""`checkstream models predict`: JSON lines of texts in, JSON lines of scores or spans out."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import msgspec

from checkstream.cli.results import write_json
from checkstream.errors import FileUnreadable
from checkstream.evaluation.reading import PATTERNS, ModelReader, PatternReader, Reader
from checkstream.evaluation.rows import read_objects
from checkstream.scoring.provenance import installed_models

if TYPE_CHECKING:
    from pathlib import Path

    SubParsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - argparse gives it no other name


def add_parser(commands: SubParsers) -> argparse.ArgumentParser:
    """Register the command with the group `models`."""
    parser = commands.add_parser(
        "predict",
        help="score texts: JSON lines in, JSON lines out",
        description='Read lines {"id", "text"} on standard input; write {"id", "scores": {label: 0..1}}, or {"id", '
        '"spans": [{start, end, label, score}]} for what finds entities, line by line. A long text is read in windows, '
        "the highest score of any counts. Exit 0: done. 2: wrong use, or a line that can't be read.",
        epilog="""example: echo '{"id": 1, "text": "You idiot"}' | checkstream models predict safety""",
    )
    parser.add_argument(
        "name", metavar="NAME", help=f"a model, or `{PATTERNS}` for personal data and secrets found by pattern"
    )
    return parser


class _Span(msgspec.Struct, frozen=True):
    start: int
    end: int
    label: str
    score: float


class _Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    id: object
    scores: dict[str, float] | None = None
    spans: tuple[_Span, ...] | None = None


def open_reader(name: str, own: Path | None) -> Reader:
    """Make a model, or the entities that are found by pattern, ready to read.

    Raises:
        ConfigError: models.yaml holds faults.
        ModelError: there is no such model, or it can't be used.
    """
    return PatternReader() if name == PATTERNS else ModelReader(installed_models(own, (name,))[0])


def run(args: argparse.Namespace) -> int:
    """Answer every line.

    Returns:
        0: done.

    Raises:
        ConfigError: models.yaml holds faults.
        ModelError: there is no such model, or it can't be used.
        FileUnreadable: a line is not of the form.
        ScoringError: the model gave no usable scores.
    """
    reader = open_reader(args.name, args.models)
    for number, values in read_objects(sys.stdin.buffer, "standard input"):
        said = reader.read(_text(values, number))
        answer = _Answer(
            values.get("id"),
            said.scores if reader.labels else None,
            tuple(_Span(each.start, each.end, each.entity, each.score) for each in said.entities)
            if reader.kinds
            else None,
        )
        write_json(answer)
        sys.stdout.flush()  # whoever writes a line may wait for its answer before the next
    return 0


def _text(values: dict[str, object], number: int) -> str:
    text = values.get("text")
    if isinstance(text, str):
        return text
    what = "`text` is no text" if "text" in values else "there is no `text`"
    advice = "claims are for verifiers" if "claim" in values else 'write {"id": ..., "text": ...}'
    raise FileUnreadable(f"standard input:{number}: {what}; {advice}")
