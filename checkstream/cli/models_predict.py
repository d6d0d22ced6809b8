"""`checkstream models predict`: JSON lines of texts in, JSON lines of scores or spans out."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from checkstream.cli.parser import Commands, Parser
from checkstream.cli.results import write_json
from checkstream.errors import FileUnreadable
from checkstream.evaluation.reading import PATTERNS, ModelReader, PatternReader, Reader
from checkstream.evaluation.rows import read_objects
from checkstream.evaluation.verifiers import PREFIX, open_verifier
from checkstream.grounding.terms import Claim, Excerpt, Passage, Verdict
from checkstream.scoring.provenance import installed_models


def add_parser(commands: Commands) -> Parser:
    """Register the command with the group `models`."""
    parser = commands.add_parser(
        "predict",
        help="score texts: JSON lines in, JSON lines out",
        description='Read lines {"id", "text"} on standard input; write {"id", "scores": {label: 0..1}}, or {"id", '
        '"spans": [{start, end, label, score}]} for what finds entities, line by line. A long text is read in windows, '
        'the highest score of any counts. A verifier reads {"id", "premise", "claim"} (`evidence` may stand for '
        '`premise`, and be a list of texts) and writes {"id", "scores": {"supported": 0..1}, "verdict", '
        '"reason", "excerpts"}. Exit 0: done. 2: wrong use, or a line that can\'t be read.',
        epilog="""example: echo '{"id": 1, "text": "You idiot"}' | checkstream models predict safety""",
    )
    parser.add_argument(
        "name",
        metavar="NAME",
        help=f"a model; `{PATTERNS}` for personal data and secrets found by pattern; or `{PREFIX}embedded`, "
        f"`{PREFIX}reader`, `{PREFIX}MODEL` with a model of pairs",
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
    if args.name.startswith(PREFIX):
        return _judge(args.name.removeprefix(PREFIX), args.models)
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
    advice = (
        f"claims are for verifiers, such as `{PREFIX}embedded`"
        if "claim" in values
        else 'write {"id": ..., "text": ...}'
    )
    raise FileUnreadable(f"standard input:{number}: {what}; {advice}")


class _Judged(msgspec.Struct, frozen=True):
    id: object
    scores: dict[str, float]
    verdict: Verdict
    reason: str
    excerpts: tuple[Excerpt, ...]
    """Of the evidence; its texts are numbered from 0."""
    degraded: tuple[str, ...]


def _judge(name: str, own: Path | None) -> int:
    verifier = open_verifier(name, own)
    with asyncio.Runner() as runner:
        for number, values in read_objects(sys.stdin.buffer, "standard input"):
            text = _claim(values, number)
            claim = Claim(text=text, start=0, end=len(text))
            (found,) = runner.run(verifier.judge([claim], _evidence(values, number)))
            write_json(
                _Judged(
                    values.get("id"),
                    {Verdict.SUPPORTED.value: found.score},
                    found.verdict,
                    found.reason,
                    found.excerpts,
                    found.degraded,
                )
            )
            sys.stdout.flush()
    return 0


def _claim(values: Mapping[str, object], number: int) -> str:
    claim = values.get("claim")
    if isinstance(claim, str):
        return claim
    what = "`claim` is no text" if "claim" in values else "there is no `claim`"
    raise FileUnreadable(f'standard input:{number}: {what}; write {{"id": ..., "premise": ..., "claim": ...}}')


def _evidence(values: Mapping[str, object], number: int) -> list[Passage]:
    given = values.get("premise", values.get("evidence", ()))
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise FileUnreadable(f"standard input:{number}: `premise` is no text and no list of texts; give the evidence")
    return [Passage(id=str(at), text=text) for at, text in enumerate(texts)]
