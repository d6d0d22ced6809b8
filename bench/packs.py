"""Measure how often the policy packs touch benign text: each pack over folders of prompts and answers.

    python -m bench.packs DATA_FOLDER [--packs NAME ...] [--texts N] [--show N] [--out FILE]

DATA_FOLDER holds gzipped JSON lines. Every text runs through a real guard, whole, as a user's prompt or as an answer,
with the scores of the shipped lexicon and without any context: what a condition can't decide then counts as held.
Prints Markdown: the share of texts on which an enforced rule changes, holds up or ends something, and on which it only
adds a text; `--show` prints texts that were changed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench import report
from checkstream.cli.sources import installed_labels, read_sources
from checkstream.config import bundled
from checkstream.core.commands import Score
from checkstream.core.events import RequestReceived, Scored, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.program import Program
from checkstream.core.terms import Verdict
from checkstream.core.wire.surfaces import SURFACES
from checkstream.scoring import load_models, open_session, read_whole
from checkstream.trial.cases import Case, Expect
from checkstream.trial.exchange import Exchange
from checkstream.trial.script import Cut, answer_pieces, request_body

_RECORDS = frozenset({"allow", "log_event"})
_ADDS = frozenset({"inject_disclaimer", "require_disclaimer", "attribute_sources"})
_WHOLE = Cut("whole")

Row = Mapping[str, Any]


class Set(NamedTuple):
    """Benign texts of one file."""

    file: str
    what: str
    side: str
    """`prompt` or `answer`."""
    text: Callable[[Row], str | None]
    """The text of a row; None: the row is not meant."""


def _text(row: Row) -> str | None:
    return str(row["text"])


def _answer(row: Row) -> str | None:
    return row.get("answer")


def _chosen(row: Row) -> str | None:
    return str(row["text"]) if row["label"] == "chosen" else None


def _not_jailbroken(row: Row) -> str | None:
    return str(row["text"]) if str(row["label"]) == "0" else None


SETS = (
    Set("benign_prompts", "tasks, roles, security questions", "prompt", _text),
    Set("domain_banking77", "bank customers' questions", "prompt", _text),
    Set("domain_clinc150", "assistant commands", "prompt", _text),
    Set("domain_medquad", "medical questions", "prompt", _text),
    Set("domain_spikee_investment", "questions on investments", "prompt", _text),
    Set("domain_medquad", "medical answers", "answer", _answer),
    Set("out_gptfuzz_responses", "answers to jailbreaks that failed", "answer", _not_jailbroken),
    Set("out_hh_harmless_test", "answers that people preferred, many on hostile prompts", "answer", _chosen),
    Set("out_refusals", "refusals", "answer", _text),
)


class Tally:
    """What a pack did on one set."""

    def __init__(self) -> None:
        """Start with nothing counted."""
        self.texts = 0
        self.changed: list[str] = []
        self.added = 0
        self.rules: Counter[tuple[str, str]] = Counter()
        """(rule, action) -> texts on which it fired, enforced, and did more than record."""

    def count(self, text: str, verdicts: Sequence[Verdict]) -> None:
        """Count one text."""
        done = {(v.rule_id, v.action) for v in verdicts if v.mode == "enforce" and v.excepted_by is None}
        self.texts += 1
        touched = {(rule, action) for rule, action in done if action not in _RECORDS}
        self.rules.update(touched)
        if any(action not in _ADDS for _, action in touched):
            self.changed.append(text)
        elif touched:
            self.added += 1


class Runner:
    """Runs texts through guards, with the scores of the shipped lexicon, each window scored once."""

    def __init__(self) -> None:
        """Load the lexicon."""
        (model,) = load_models(bundled("models"), ("lexicon",))
        self._session = open_session(model)
        self._names = [f"{model.name}.{label}" for label in model.labels]
        self._known: dict[str, dict[str, float]] = {}

    def _scored(self, score: Score) -> Scored:
        scores = self._known.get(score.text)
        if scores is None:
            row = read_whole(self._session, score.text).scores
            scores = self._known[score.text] = dict(zip(self._names, map(float, row), strict=True))
        return Scored(score.ticket, scores)

    def verdicts(self, program: Program, side: str, text: str) -> tuple[Verdict, ...]:
        """Return what the rules did on a text."""
        nothing = Expect(action="allow")
        case = (
            Case(name=side, expect=nothing, prompt=text)
            if side == "prompt"
            else Case(name=side, expect=nothing, answer=text)
        )
        exchange = Exchange(SURFACES["openai.chat"], Plan(program=program), self._scored)
        exchange.send(RequestReceived(request_body(case, streaming=False)), 0.001)
        if not exchange.over:
            exchange.send(UpstreamOpened(200, streaming=False), 0.002)
            for piece in answer_pieces(case, _WHOLE):
                exchange.send(UpstreamBytes(piece), 0.003)
            exchange.send(UpstreamClosed(), 0.004)
        record = exchange.came.record
        if record is None:
            message = f"the exchange over {text[:60]!r} has no end"
            raise AssertionError(message)
        return record.verdicts


def texts_of(folder: Path, meant: Set, most: int) -> list[str]:
    """Return up to `most` texts of a set, evenly spaced."""
    with gzip.open(folder / f"{meant.file}.jsonl.gz", "rt", encoding="utf-8") as lines:
        found = [text for line in lines if (text := meant.text(json.loads(line)))]
    step = -(-len(found) // most)
    return found[::step]


def packs() -> list[str]:
    """Return the names of the packs that come with the package."""
    return sorted(path.parent.name for path in bundled("policies").glob("*/policy.yaml"))


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %" if part else "0"


def _summary(tallies: Mapping[str, Mapping[Set, Tally]]) -> Iterator[list[str]]:
    for pack, sets in tallies.items():
        for side in ("prompt", "answer"):
            these = [tally for meant, tally in sets.items() if meant.side == side]
            texts = sum(tally.texts for tally in these)
            changed = sum(len(tally.changed) for tally in these)
            added = sum(tally.added for tally in these)
            yield [pack, side, f"{texts:,}", _share(changed, texts), _share(added, texts)]


def _by_rule(tallies: Mapping[str, Mapping[Set, Tally]]) -> Iterator[list[str]]:
    for pack, sets in tallies.items():
        for meant, tally in sets.items():
            for (rule, action), fired in sorted(tally.rules.items()):
                place = f"`{meant.file}`: {meant.what}"
                yield [pack, f"`{rule}` {action}", place, f"{fired} of {tally.texts:,}", _share(fired, tally.texts)]


def main(given: list[str]) -> int:
    """Run the packs over the sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--packs", nargs="+", choices=packs(), default=packs())
    parser.add_argument("--texts", type=int, default=1500, help="most texts of a set (default: 1500)")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N changed texts of each pack and set")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the report here too")
    args = parser.parse_args(given)
    runner = Runner()
    data = {meant: texts_of(args.folder, meant, args.texts) for meant in SETS}
    tallies: dict[str, dict[Set, Tally]] = {}
    for pack in args.packs:
        program = compile_sources(read_sources([f"builtin:{pack}"]), installed_labels())
        tallies[pack] = {meant: Tally() for meant in SETS}
        for meant, texts in data.items():
            tally = tallies[pack][meant]
            for text in texts:
                tally.count(text, runner.verdicts(program, meant.side, text))
            for text in tally.changed[: args.show]:
                sys.stderr.write(f"{pack}: {meant.file}: {text[:300]!r}\n")
        sys.stderr.write(f"{pack} done\n")
    lines = [
        "# How often the packs touch benign text",
        "",
        "Made by `python -m bench.packs DATA_FOLDER` (the data sets are not part of the project). Whole texts, without",
        "context: what a condition can't decide counts as held.",
        "",
        *report.machine(),
        "",
        "*changed*: an enforced rule refuses, edits, ends or shapes something. *added*: rules add a text and no more.",
        "",
        *report.table(("pack", "texts as", "texts", "changed", "added"), _summary(tallies)),
        "",
        "## By rule",
        "",
        *report.table(("pack", "rule", "set", "fired", "share"), _by_rule(tallies)),
    ]
    text = "\n".join(lines) + "\n"
    sys.stdout.write(text)
    if args.out is not None:
        args.out.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
