"""`checkstream replay`: what would these policies have done to a recorded run?

A transcript is a file of JSON lines. The first is a header: `{"surface": "openai.chat", ...}`. Each other line is an
event and its time: `{"at": 0.25, "event": {"type": "UpstreamBytes", "data": "<base64>"}}`. Scores are replayed where
the recorded ticket is asked for again; a check that the recording does not answer fails with `deadline`.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from checkstream.app import labels_of
from checkstream.config import bundled, policy_file
from checkstream.core.commands import CloseDownstream, Record, Reply, Score, SendDownstream, StreamRecord
from checkstream.core.events import AnyEvent, Scored, ScoringFailed
from checkstream.core.guard import Guard, Plan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.surfaces import SURFACES
from checkstream.errors import CheckstreamError, WireError
from checkstream.scoring.catalog import load_models

if TYPE_CHECKING:
    SubParsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - argparse gives it no other name

_EXAMPLES = """example:
  checkstream replay run.jsonl --policy policies/ours.yaml --policy builtin:default

A transcript is a file of JSON lines: a header, then what happened and when, in seconds; data is in base64.
  {"surface": "openai.chat"}
  {"at": 0.0, "event": {"type": "RequestReceived", "body": "eyJtb2RlbCI6ICJtIiwgLi4ufQ=="}}
  {"at": 0.1, "event": {"type": "UpstreamOpened", "status": 200, "streaming": true}}
  {"at": 0.2, "event": {"type": "UpstreamBytes", "data": "ZGF0YTogey4uLn0KCg=="}}
  {"at": 0.3, "event": {"type": "UpstreamClosed"}}
"""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """First line of a transcript."""

    surface: str
    """Name of the API, such as `openai.chat`."""
    fail_mode: Literal["open", "closed"] = "closed"


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What happened, and when."""

    at: float
    """Seconds from the run's start."""
    event: AnyEvent


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a replay."""

    downstream: str
    """What the caller would have received."""
    status: int
    closed: bool
    """The answer was brought to its end."""
    record: StreamRecord | None


def add_parser(subparsers: SubParsers) -> None:
    """Register `replay` with the command line."""
    parser = subparsers.add_parser(
        "replay",
        help="run a recorded transcript against a policy",
        description="Run a recorded transcript through the guard under given policies; nothing is sent anywhere.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("transcript", metavar="TRANSCRIPT", type=Path)
    parser.add_argument("--policy", metavar="FILE", action="append", required=True, help="repeatable; or builtin:NAME")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")


def run(args: argparse.Namespace) -> int:
    """Replay and print what came of it.

    Returns:
        0: done; 2: the transcript or a policy can't be used.
    """
    try:
        outcome = replay(args.transcript.read_bytes(), args.policy)
    except OSError as error:
        sys.stderr.write(f"checkstream replay: {error}\n")
        return 2
    except CheckstreamError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if args.json:
        sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")
        return 0
    sys.stdout.write(outcome.downstream)
    if outcome.record is None:
        sys.stderr.write("the transcript ends before the exchange did\n")
        return 0
    for verdict in outcome.record.verdicts:
        spans = " ".join(f"{span.start}-{span.end}" for span in verdict.spans)
        sys.stderr.write(
            f"{verdict.rule_id} {verdict.action} {verdict.mode} {verdict.stage}:{verdict.channel.kind} {spans}\n"
        )
    sys.stderr.write(f"status {outcome.status}, {outcome.record.outcome}, action {outcome.record.action}\n")
    return 0


def replay(transcript: bytes, policies: list[str]) -> Outcome:
    """Run a transcript through a guard under these policies.

    Raises:
        WireError: the transcript is not one.
        PolicyError: a policy can't be used.
        ModelError: a model that is shipped can't be read.
    """
    lines = _lines(transcript)
    header = next(lines, None)
    if not isinstance(header, Header):
        raise WireError('line 1 is no header; write `{"surface": "openai.chat"}`')
    surface = next((surface for surface in SURFACES.values() if surface.name == header.surface), None)
    if surface is None:
        known = ", ".join(surface.name for surface in SURFACES.values())
        raise WireError(f"line 1: there is no surface `{header.surface}`; known: {known}")
    sources = [(name, _read(name)) for name in policies]
    program = compile_sources(sources, labels_of(load_models(bundled("models"))))
    guard = Guard(surface=surface, plan=Plan(program=program, fail_mode=header.fail_mode), digest=_digest)
    return _run(guard, [line for line in lines if isinstance(line, Line)])


def _run(guard: Guard, lines: list[Line]) -> Outcome:
    answered = {line.event.ticket for line in lines if isinstance(line.event, Scored | ScoringFailed)}
    sent: list[bytes] = []
    status, closed, record = 200, False, None
    for line in lines:
        pending = [line.event]
        while pending:
            for command in guard.receive(pending.pop(0), line.at):
                match command:
                    case SendDownstream(data):
                        sent.append(data)
                    case Reply(given, body):
                        sent.append(body)
                        status, closed = given, True
                    case CloseDownstream():
                        closed = True
                    case Record(kept):
                        record = kept
                    case Score(ticket) if ticket not in answered:
                        pending.append(ScoringFailed(ticket, "deadline"))
                    case _:
                        pass
    return Outcome(downstream=b"".join(sent).decode("utf-8", "replace"), status=status, closed=closed, record=record)


def _lines(transcript: bytes) -> Iterator[Header | Line]:
    for number, text in enumerate(transcript.splitlines(), 1):
        if not text.strip():
            continue
        kind: type[Header | Line] = Header if number == 1 else Line
        try:
            yield msgspec.json.decode(text, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise WireError(f"line {number} is not of a transcript: {error}") from error


def _read(name: str) -> bytes:
    try:
        return policy_file(name).read_bytes()
    except OSError as error:
        raise WireError(f"can't read `{name}`: {error.strerror}; give a policy file or `builtin:NAME`") from error


def _digest(text: str) -> str:
    """Return a digest without a key: a replay's record is shown, not kept."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
