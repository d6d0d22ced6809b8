"""`checkstream replay`: what would these policies have done to a recorded run, or to many?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from checkstream.cli.parser import Parser
from checkstream.cli.progress import progress
from checkstream.cli.results import counted, safe, write_json
from checkstream.cli.sources import add_models, installed_labels, read_sources
from checkstream.core.commands import StreamRecord
from checkstream.core.policy.compile import compile_sources
from checkstream.core.transcript import MAX_BYTES, Transcript, decode
from checkstream.errors import CheckstreamError, FileUnreadable, WireError
from checkstream.trial.installed import InstalledModels
from checkstream.trial.replay import Comparing, Comparison, Replayed, takes_alike
from checkstream.trial.replay import replay as replay_transcript

_EXAMPLES = """examples:
  checkstream replay run.jsonl --policy policies/ours.yaml --policy builtin:default
  checkstream replay var/record --policy new.yaml --against old.yaml --diff 5
  checkstream replay var/record --policy new.yaml --fail-on-change

One file alone is run and shown. Of a directory, or of several files, it is counted what changes: from the policies
given with --against, else from what is recorded of each. Checks of classifiers that the recording does not answer
are answered by the installed models. The upstream's answers stay what was recorded.

A transcript is a file of JSON lines: a header, then what happened and when, in seconds; data is in base64.
  {"surface": "openai.chat"}
  {"at": 0.0, "event": {"type": "RequestReceived", "body": "eyJtb2RlbCI6ICJtIiwgLi4ufQ=="}}
  {"at": 0.1, "event": {"type": "UpstreamOpened", "status": 200, "streaming": true}}
  {"at": 0.2, "event": {"type": "UpstreamBytes", "data": "ZGF0YTogey4uLn0KCg=="}}
  {"at": 0.3, "event": {"type": "UpstreamClosed"}}
"""


_ALIKE = (
    "masked recordings under a policy with `unless: in_request` or `allow`: {}; all values of a kind are one specimen "
    "there, so more or less may be spared than was; recorded with `text: plain` they stay apart"
)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one replay."""

    downstream: str
    """What the caller would have received."""
    status: int
    closed: bool
    """The answer was brought to its end."""
    record: StreamRecord | None
    computed: int = 0
    """Checks that the recording does not answer, answered by the installed models."""
    unanswered: int = 0
    """Checks that nobody could answer; the fail mode has decided."""
    alike: bool = False
    """The recording is masked, and a rule spares values: all of a kind are one there."""


class _Unread(msgspec.Struct, frozen=True):
    file: str
    reason: str


class _Report(msgspec.Struct, frozen=True, kw_only=True):
    policies: tuple[str, ...]
    against: tuple[str, ...] | None
    """None: what was recorded."""
    comparison: Comparison
    unread: tuple[_Unread, ...]


def add_arguments(parser: Parser) -> None:
    """Say what the command `replay` takes."""
    parser.describe(
        "Run recorded transcripts through the guard under given policies; nothing is sent anywhere.",
        examples=_EXAMPLES,
    )
    parser.add_argument("transcripts", metavar="TRANSCRIPT", type=Path, nargs="+", help="file, or directory of *.jsonl")
    parser.add_argument("--policy", metavar="FILE", action="append", required=True, help="repeatable; or builtin:NAME")
    parser.add_argument("--against", metavar="FILE", action="append", help="count what changes from these policies")
    parser.add_argument(
        "--diff", metavar="N", type=_diffs, default=0, help="show what changed in the first N exchanges"
    )
    add_models(parser)
    parser.add_argument("--fail-on-change", action="store_true", help="exit with 1 when an exchange changed")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")


def _diffs(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 9:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of exchanges; write 0 or more")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Replay and print what came of it.

    Returns:
        0: done; 1: something changed, and --fail-on-change was given; 2: no transcript, or a policy, can't be used.
    """
    try:
        files = _files(args.transcripts)
        alone = len(files) == 1 and files == args.transcripts
        if alone and not (args.against or args.diff or args.fail_on_change):
            outcome = replay(_content(files[0]), args.policy, args.models)
            _show_one(outcome, as_json=args.json)
            return 0
        report = _compare(files, args.policy, args.against, args.models)
    except CheckstreamError as error:
        sys.stderr.write(f"checkstream replay: {error}\n")
        return 2
    if args.json:
        write_json(report)
    else:
        _show(report, args.diff)
    if not report.comparison.transcripts:
        return 2
    return 1 if args.fail_on_change and report.comparison.changed else 0


def replay(transcript: bytes, policies: Sequence[str], own: Path | None = None) -> Outcome:
    """Run one transcript through a guard under these policies; `own` is a `models.yaml`.

    Raises:
        WireError: the transcript is not one.
        PolicyError: a policy can't be used.
        FileUnreadable: a policy file can't be read.
        ModelError: a model can't be used.
    """
    models = InstalledModels(own)
    recorded = decode(transcript)
    program = compile_sources(read_sources(policies), installed_labels(own))
    done: Replayed = replay_transcript(recorded, program, models)
    return Outcome(
        downstream=done.downstream.decode("utf-8", "replace"),
        status=done.status,
        closed=done.closed,
        record=done.record,
        computed=models.computed,
        unanswered=models.unanswered,
        alike=takes_alike(recorded, program),
    )


def _files(given: Sequence[Path]) -> list[Path]:
    """Return the files that are meant, those of directories by name, each once.

    Raises:
        FileUnreadable: one is not there; or a directory has no transcript, or can't be read.
    """
    files: list[Path] = []
    for path in given:
        try:
            if not path.is_dir():
                path.stat()  # what was named must be there; what goes wrong later goes wrong with one of many
                files.append(path)
                continue
            within = sorted(path.glob("*.jsonl"))
        except OSError as error:
            raise FileUnreadable(f"can't read `{path}`: {(error.strerror or 'it is closed').lower()}") from error
        if not within:
            raise FileUnreadable(f"`{path}` holds no transcript; they end in `.jsonl`")
        files += within
    return list(dict.fromkeys(files))


def _content(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise FileUnreadable(f"`{path}` is no file; give a transcript or a directory of them")
        if path.stat().st_size > MAX_BYTES:
            raise FileUnreadable(f"`{path}` has more than {MAX_BYTES} bytes; it is no transcript")
        return path.read_bytes()
    except OSError as error:
        raise FileUnreadable(f"can't read `{path}`: {(error.strerror or 'it is closed').lower()}") from error


def _compare(
    files: Sequence[Path], policies: Sequence[str], against: Sequence[str] | None, own: Path | None
) -> _Report:
    """Run every transcript; one that can't be read is reported and the others still run.

    Raises:
        PolicyError: a policy can't be used.
        FileUnreadable: a policy file can't be read.
        ModelError: a model can't be used.
    """
    labels = installed_labels(own)
    after = compile_sources(read_sources(policies), labels)
    before = compile_sources(read_sources(against), labels) if against else None
    comparing = Comparing(after, before, InstalledModels(own))
    unread = []
    for file in progress(files, "exchanges"):
        try:
            transcript: Transcript = decode(_content(file))
            comparing.take(str(file), transcript)
        except (WireError, FileUnreadable) as error:
            unread.append(_Unread(str(file), str(error)))
    return _Report(
        policies=after.packs,
        against=None if before is None else before.packs,
        comparison=comparing.outcome,
        unread=tuple(unread),
    )


def _show_one(outcome: Outcome, *, as_json: bool) -> None:
    if as_json:
        write_json(outcome)
        return
    sys.stdout.write(outcome.downstream)
    if outcome.record is None:
        sys.stderr.write("the transcript ends before the exchange did\n")
        return
    for verdict in outcome.record.verdicts:
        spans = " ".join(f"{span.start}-{span.end}" for span in verdict.spans)
        sys.stderr.write(
            f"{verdict.rule_id} {verdict.action} {verdict.mode} {verdict.stage}:{verdict.channel.kind} {spans}\n"
        )
    sys.stderr.write(f"status {outcome.status}, {outcome.record.outcome}, action {outcome.record.action}\n")
    about = [*_about_checks(outcome.computed, outcome.unanswered), *([_ALIKE.format(1)] if outcome.alike else [])]
    sys.stderr.write("".join(f"{line}\n" for line in about))


def _about_checks(computed: int, unanswered: int) -> list[str]:
    """Return where scores came from that the recordings don't have."""
    said = (
        (computed, "answered by the installed models"),
        (unanswered, "not answered: no model of the package can"),
    )
    return [f"checks that were not recorded, {what}: {count}" for count, what in said if count]


def _show(report: _Report, diffs: int) -> None:
    comparison = report.comparison
    before = ", ".join(report.against) if report.against is not None else "as recorded"
    lines = [f"{counted(comparison.transcripts, 'exchange')}: {before} -> {', '.join(report.policies)}"]
    width = max((len(rule) for rule in comparison.rules), default=0)
    lines += [
        f"  {rule:<{width}} {counts.before:>6} -> {counts.after:<6} {counts.after - counts.before:+d}"
        for rule, counts in comparison.rules.items()
    ]
    lines.append(f"{len(comparison.changed)} changed")
    for place, change in enumerate(comparison.changed):
        lines.append(f"  {change.file}: {', '.join(change.why)}")
        if place < diffs:
            lines += [f"    {line}" for line in change.diff]
    if diffs and report.against is None:
        lines.append(
            "give --against to see what changed in the texts: a recording holds what came in, not what went out"
        )
    if comparison.unfinished:
        lines.append(f"{len(comparison.unfinished)} were cut off by the recorded policy; how they went on is not known")
    if comparison.unknown:
        lines.append(f"{comparison.unknown} don't say what had come of them; give --against to compare policies")
    lines += _about_checks(comparison.computed, comparison.unanswered)
    if comparison.alike:
        lines.append(_ALIKE.format(comparison.alike))
    if comparison.lost:
        lines.append(f"{comparison.lost} recordings lost something that a detector had found, when they were masked")
    sys.stdout.write("\n".join(map(safe, lines)) + "\n")
    for unread in report.unread:
        sys.stderr.write(safe(f"{unread.file}: {unread.reason}") + "\n")
