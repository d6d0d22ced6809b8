"""Measure how often the policy packs touch what is harmless: each pack over innocent prompts, documents and answers.

    python -m bench.packs DATA_FOLDER [--packs NAME ...] [--texts N] [--show N] [--out FILE] [--readme FILE]

The texts are innocent sets of `models/scoreboard.yaml`, read from DATA_FOLDER. Each runs whole through a real guard, as
a user's prompt, a system prompt, a tool's result or an answer, with the scores of the installed models and without any
context: what a condition can't decide then counts as held. Prints Markdown, with Wilson's 95 % intervals; `--readme`
puts the table of what is touched between two marks of that file; `--show` prints texts that were changed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import report
from checkstream.cli.sources import installed_labels, read_sources
from checkstream.config import bundled
from checkstream.core.events import RequestReceived, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.program import Program
from checkstream.core.terms import Verdict
from checkstream.core.wire.surfaces import SURFACES
from checkstream.evaluation.board.described import files_of, read_described
from checkstream.evaluation.board.measured import wilson
from checkstream.evaluation.board.texts import read_texts
from checkstream.trial.cases import Case, Expect
from checkstream.trial.exchange import Exchange
from checkstream.trial.installed import InstalledModels
from checkstream.trial.script import Cut, answer_pieces, request_body

DONE: Mapping[str, str] = {
    "reject": "refuses",
    "require_confirmation": "refuses",
    "stop": "stops",
    "redact": "changes",
    "pseudonymise": "changes",
    "rewrite_span": "changes",
    "remove_message": "changes",
    "safe_mode": "changes",
    "constrain_tools": "shapes",
    "lower_temp": "shapes",
    "allow_constrained": "shapes",
    "adapt_tone": "shapes",
    "inject_disclaimer": "adds",
    "require_disclaimer": "adds",
    "attribute_sources": "adds",
    "log_event": "flags",
}
"""Action -> what a caller finds: the text is refused, cut off or changed, the request is shaped, words are added; or
nothing, and the record has a flag."""
WAYS = tuple(dict.fromkeys(DONE.values()))
_WHOLE = Cut("whole")
MARKS = ("<!-- touched: made by bench.packs -->", "<!-- end of touched -->")


class Set(NamedTuple):
    """Innocent texts, and where they stand in an exchange."""

    name: str
    """In `scoreboard.yaml`."""
    place: str
    """`user`, `system`, `tool_result` or `answer`."""


SETS = (
    *(
        Set(name, "user")
        for name in (
            *("prompts", "prompts_questions", "prompts_tasks", "prompts_of_ai", "prompts_unlicensed"),
            *("prompts_security", "bank_questions", "medical_questions", "roleplay", "roleplay_unlicensed"),
            *("roleplay_act_as", "languages", "code_requests"),
        )
    ),
    *(Set(name, "system") for name in ("system_prompts", "system_prompts_languages")),
    *(
        Set(name, "tool_result")
        for name in ("documents", "documents_reference", "documents_instructions", "documents_security", "code", "logs")
    ),
    *(
        Set(name, "answer")
        for name in (
            *("answers", "answers_safe", "answers_rbr", "answers_preferred", "refusals", "refusals_known"),
            *("documents", "code", "lookalikes_groups", "lookalikes_counter"),
        )
    ),
)


class Tally:
    """What a pack did on one set."""

    def __init__(self) -> None:
        """Start with nothing counted."""
        self.texts = 0
        self.ways: Counter[str] = Counter()
        """What a caller finds -> texts of which that is so; a text counts once for each."""
        self.touched: list[str] = []
        """Refused, stopped or changed."""
        self.rules: Counter[tuple[str, str]] = Counter()
        """(rule, action) -> texts on which it fired, enforced, and did more than record."""

    def count(self, text: str, verdicts: Sequence[Verdict]) -> None:
        """Count one text."""
        done = {(v.rule_id, v.action) for v in verdicts if v.mode == "enforce" and v.excepted_by is None}
        done = {(rule, action) for rule, action in done if action in DONE}
        ways = {DONE[action] for _, action in done}
        self.texts += 1
        self.ways.update(ways)
        self.rules.update((rule, action) for rule, action in done if DONE[action] != "flags")
        if ways & {"refuses", "stops", "changes"}:
            self.touched.append(text)


def verdicts_on(program: Program, place: str, text: str, models: InstalledModels) -> tuple[Verdict, ...]:
    """Return what the rules did on a text."""
    nothing = Expect(action="allow")
    case = (
        Case(name=place, expect=nothing, answer=text)
        if place == "answer"
        else Case(name=place, expect=nothing, prompt=text, channel=place)
    )
    exchange = Exchange(SURFACES["openai.chat"], Plan(program=program), models.answer)
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


def packs() -> list[str]:
    """Return the names of the packs that come with the package."""
    return sorted(path.parent.name for path in bundled("policies").glob("*/policy.yaml"))


def share(hits: int, n: int) -> str:
    """Return a share with its interval, in percent."""
    found = wilson(hits, n)
    return f"{100 * found.value:.1f} [{100 * found.low:.1f}, {100 * found.high:.1f}]" if hits else "0"


def measured(
    programs: Mapping[str, Program], texts: Mapping[Set, Sequence[str]], models: InstalledModels
) -> dict[str, dict[Set, Tally]]:
    """Return what each pack did on each set; a text runs through all packs in turn, so that it is scored once."""
    tallies = {pack: {meant: Tally() for meant in texts} for pack in programs}
    for meant, own in texts.items():
        for text in own:
            for pack, program in programs.items():
                tallies[pack][meant].count(text, verdicts_on(program, meant.place, text, models))
        sys.stderr.write(f"{meant.place}: {meant.name} done\n")
    return tallies


def touched(tallies: Mapping[str, Mapping[Set, Tally]], kinds: Mapping[str, str]) -> list[str]:
    """Return the table of what each pack does to each kind of innocent texts, of those that it does anything to."""
    rows = []
    for pack, sets in tallies.items():
        by_kind: dict[tuple[str, str], list[Tally]] = {}
        for meant, tally in sets.items():
            by_kind.setdefault((meant.place, kinds[meant.name]), []).append(tally)
        for (place, kind), own in by_kind.items():
            n = sum(tally.texts for tally in own)
            counts = [sum(tally.ways[way] for tally in own) for way in WAYS]
            if any(counts):
                rows.append([pack, place.replace("_", " "), kind, f"{n:,}", *(share(count, n) for count in counts)])
    return report.table(("pack", "as", "kind", "texts", *WAYS), rows)


def _by_rule(tallies: Mapping[str, Mapping[Set, Tally]]) -> Iterator[list[str]]:
    for pack, sets in tallies.items():
        for meant, tally in sets.items():
            for (rule, action), fired in sorted(tally.rules.items()):
                place = f"`{meant.name}` as {meant.place.replace('_', ' ')}"
                yield [pack, f"`{rule}` {action}", place, f"{fired} of {tally.texts:,}", share(fired, tally.texts)]


def put_between(text: str, lines: Sequence[str]) -> str:
    """Return a page with the lines between its two marks.

    Raises:
        ValueError: it has no such marks.
    """
    before, first, rest = text.partition(MARKS[0])
    _, second, after = rest.partition(MARKS[1])
    if not first or not second:
        raise ValueError(f"the page lacks `{MARKS[0]}` and `{MARKS[1]}`")
    return "\n".join((before + first, "", *lines, "", second + after))


def main(given: list[str]) -> int:
    """Run the packs over the sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--packs", nargs="+", choices=packs(), default=packs())
    parser.add_argument("--texts", type=int, default=200, help="most texts of a set (default: 200)")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N touched texts of each pack and set")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the report here too")
    parser.add_argument("--readme", type=Path, metavar="FILE", help="put the table of what is touched there")
    args = parser.parse_args(given)
    described = read_described(bundled("models") / "scoreboard.yaml")
    files = files_of(described, args.folder)
    texts = {
        meant: [
            row.text.encode("utf-8", "replace").decode()
            for row in read_texts(files[meant.name], described.sets[meant.name], args.texts)
        ]
        for meant in SETS
    }
    programs = {pack: compile_sources(read_sources([f"builtin:{pack}"]), installed_labels()) for pack in args.packs}
    tallies = measured(programs, texts, InstalledModels())
    for pack, sets in tallies.items() if args.show else ():
        for meant, tally in sets.items():
            for text in tally.touched[: args.show]:
                sys.stderr.write(f"{pack}: {meant.name}: {text[:300]!r}\n")
    table = touched(tallies, {name: each.kind for name, each in described.sets.items()})
    lines = [
        "# How often the packs touch what is harmless",
        "",
        "Made by `python -m bench.packs DATA_FOLDER` (the texts are not part of the project; `models/scoreboard.yaml`",
        "says what the sets are). Whole texts, without context: what a condition can't decide counts as held. In",
        "percent, with Wilson's 95 % intervals.",
        "",
        *report.machine(),
        "",
        *table,
        "",
        "## By rule",
        "",
        *report.table(("pack", "rule", "set", "fired", "%"), _by_rule(tallies)),
    ]
    text = "\n".join(lines) + "\n"
    sys.stdout.write(text)
    if args.out is not None:
        args.out.write_text(text, "utf-8")
    if args.readme is not None:
        args.readme.write_text(put_between(args.readme.read_text("utf-8"), table), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
