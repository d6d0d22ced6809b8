"""`checkstream audit verify | show`: check an audit directory, and read it."""

from __future__ import annotations

import argparse
import heapq
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from checkstream.audit.bodies import Body, ConversationTold, StreamTold, body_of, short
from checkstream.audit.chain import Record, read
from checkstream.audit.keys import load_public_key
from checkstream.audit.segments import lines, segment_name, segments
from checkstream.audit.verify import ChainReport, verify
from checkstream.cli.parser import Parser
from checkstream.cli.results import counted, safe
from checkstream.errors import AuditError

_EXAMPLES = """examples:
  checkstream audit verify var/audit --key var/audit.key.pub
  checkstream audit show var/audit --rule INJ-001 --last 20
"""
_COLUMNS = ("time", "chain", "seq", "kind", "stream", "route", "action", "outcome", "rules", "what")


def add_arguments(parser: Parser) -> None:
    """Say what the command group `audit` takes."""
    parser.describe(
        "Verify and read the audit chains of a directory.",
        examples=_EXAMPLES,
    )
    commands = parser.add_subparsers(dest="audit_command", metavar="COMMAND", required=True)
    check = commands.add_parser(
        "verify",
        help="check every chain; exit 1 names the first bad record",
        description="Check hashes, links, numbers and signed heads of every chain. Exit 0: all hold. 1: one is "
        "broken, its first bad record is named. 2: wrong use.",
        epilog="example: checkstream audit verify var/audit --key var/audit.key.pub",
    )
    check.add_argument("directory", metavar="DIR", type=Path, help="the audit directory")
    check.add_argument(
        "--key",
        metavar="PUB",
        type=Path,
        action="append",
        default=[],
        help="public key that heads must be signed with (again for each key ever used)",
    )
    check.add_argument("--heads", metavar="DIR", type=Path, help="where the heads are, if not in DIR")
    check.add_argument(
        "--strict", action="store_true", help="exit 1, too, where records stand behind the last signed head"
    )
    check.add_argument("--json", action="store_true", help="print a JSON line for each chain")
    show = commands.add_parser(
        "show",
        help="print the entries, oldest first",
        description="Print the entries of every chain in the order of their times; of one stream its verdicts, too.",
        epilog="example: checkstream audit show var/audit --stream 4f2a --json\n"
        "Exit 0: done. 1: there is no such entry. 2: wrong use.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    show.add_argument("directory", metavar="DIR", type=Path, help="the audit directory")
    show.add_argument("--stream", metavar="ID", help="only entries of streams whose id begins so")
    show.add_argument(
        "--conversation", metavar="ID", help="only streams of conversations whose id in the log begins so"
    )
    show.add_argument("--rule", metavar="ID", help="only streams in which this rule fired")
    show.add_argument("--last", metavar="N", type=_count, help="only the last N of them")
    show.add_argument("--json", action="store_true", help="print the records as they stand in the log")


def run(args: argparse.Namespace) -> int:
    """Carry the command out and return its exit code.

    Returns:
        0: done; 1: a chain is broken; 2: the directory or a key can't be used.
    """
    try:
        if args.audit_command == "verify":
            return _verify(args)
        return _show(args)
    except AuditError as error:
        print(f"checkstream audit: {error}", file=sys.stderr)
        return 2


def _count(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a count; give a whole number from 1")
    return number


def _verify(args: argparse.Namespace) -> int:
    keys = [load_public_key(file) for file in args.key]
    reports = verify(args.directory, heads=args.heads, keys=keys)
    if not reports:
        raise AuditError(f"there is no audit chain in `{args.directory}`; give the directory that holds `*.jsonl`")
    for report in reports:
        if args.json:
            told = {**msgspec.to_builtins(report), "unsigned": report.unsigned, "signatures_checked": bool(keys)}
            print(msgspec.json.encode(told).decode())
        else:
            print(_verdict(report, signatures=bool(keys)))
    if not keys and not args.json:
        print(
            "signatures were not checked: whoever can write here could have written all of it anew, records and heads. "
            f"Give the public key with --key{_where_key(args.directory)} to rule that out.",
            file=sys.stderr,
        )
    return 1 if any(report.bad or (args.strict and report.unsigned) for report in reports) else 0


def _where_key(directory: Path) -> str:
    """Return where the public key is, if it is where `serve` puts it."""
    beside = directory.parent / "audit.key.pub"
    return f" ({safe(str(beside))})" if beside.is_file() else ""


def _verdict(report: ChainReport, *, signatures: bool) -> str:
    if report.bad is not None:
        return f"{report.chain}: broken after {report.records} records\n  {safe(report.bad.render())}"
    signed = f"signed up to {report.signed}" if signatures else f"heads up to {report.signed}, signatures not checked"
    torn = f", {report.torn_bytes} bytes of an unfinished record at its end" if report.torn_bytes else ""
    behind = ""
    if report.unsigned:
        many = "1 record stands" if report.unsigned == 1 else f"{report.unsigned} records stand"
        behind = f"\n  {many} behind the last head: no signature vouches for that; a running process signs it shortly"
    size = f"{counted(report.records, 'record')} in {counted(report.segments, 'segment')}"
    return f"{report.chain}: ok, {size}, {signed}{torn}{behind}"


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that was read, and the line that it was read from."""

    record: Record
    body: Body
    line: bytes

    @property
    def rules(self) -> tuple[str, ...]:
        return self.body.record.rules or self.body.rules


def _show(args: argparse.Namespace) -> int:
    found = segments(args.directory)
    if not found:
        raise AuditError(f"there is no audit chain in `{args.directory}`; give the directory that holds `*.jsonl`")
    chains = [_entries(args.directory, chain, numbers) for chain, numbers in found.items()]
    merged = heapq.merge(*chains, key=lambda entry: (entry.record.time, entry.record.chain, entry.record.seq))
    wanted = (
        entry
        for entry in merged
        if (args.stream is None or entry.body.stream.startswith(args.stream))
        and (args.conversation is None or _is_of(entry, args.conversation))
        and (args.rule is None or args.rule in entry.rules)
    )
    asked = [f"stream `{args.stream}...`"] if args.stream is not None else []
    asked += [f"conversation `{args.conversation}...`"] if args.conversation is not None else []
    asked += [f"rule `{args.rule}`"] if args.rule is not None else []
    shown = 0
    if args.json:
        for entry in wanted if args.last is None else deque(wanted, maxlen=args.last):
            sys.stdout.write(entry.line.decode() + "\n")
            shown += 1
    else:
        entries = list(deque(wanted, maxlen=args.last))
        shown = len(entries)
        if shown or not asked:
            _print_table([_row(entry) for entry in entries])
        for entry in entries if args.stream is not None else ():
            _print_verdicts(entry.body.record)
            _print_fields(entry.body.record)
    if shown or not asked:
        return 0
    print(f"checkstream audit: no entry of {' and '.join(asked)} in `{args.directory}`", file=sys.stderr)
    return 1


def _is_of(entry: _Entry, conversation: str) -> bool:
    known = entry.body.record.conversation.id
    return bool(known) and known.startswith(conversation)


def _entries(directory: Path, chain: str, numbers: Sequence[int]) -> Iterator[_Entry]:
    """Yield what can be read of a chain; what can't is named on stderr, `audit verify` says why."""
    for number in numbers:
        name = segment_name(chain, number)
        for line in lines(directory / name):
            try:
                record = read(line.data)
                body = body_of(record)
            except AuditError as error:
                print(f"{name}:{line.number}: left out, {safe(str(error))}", file=sys.stderr)
                continue
            yield _Entry(record=record, body=body, line=line.data)


def _row(entry: _Entry) -> tuple[str, ...]:
    record, body = entry.record, entry.body
    match record.kind:
        case "stream":
            told = body.record
            fields = {"not read": told.unscanned, "unknown field": told.unknown, "removed field": told.removed}
            counts = (_counted(names, what) for what, names in fields.items() if names)
            what = ", ".join((counted(len(told.findings), "finding"), *counts, *told.degradations))
            what += f", {counted(told.conversation.turns, 'turn')}" if told.conversation.id else ""
            what += ", for the conversation" if told.conversation.rules else ""
        case "rescored":
            what = "judged again: " + body.result
            if body.cutoff_ms is not None:
                what += f", {short(str(body.cutoff_ms))} ms before the stop"
        case "pass":
            what = f"{body.method} {body.path}"
        case "repair":
            what = f"{body.dropped_bytes} bytes dropped"
        case "reload":
            what = f"accepted, {', '.join(body.policies)}" if body.accepted else f"refused, {body.reason}"
        case "start":
            what = f"{body.version}, {', '.join(body.policies)}"
        case _:
            what = body.reason or body.next or body.version
    cells = (
        record.time,
        record.chain,
        str(record.seq),
        record.kind,
        body.stream,
        body.route,
        body.record.action,
        body.record.outcome,
        " ".join(entry.rules),
        what,
    )
    return tuple(safe(cell) or "-" for cell in cells)


def _counted(names: Sequence[str], what: str) -> str:
    return f"{len(names)} {what}" if what.startswith("not ") else counted(len(names), what)


def _print_table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[i]) for row in (_COLUMNS, *rows)) for i in range(len(_COLUMNS))]
    for row in (_COLUMNS, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _print_conversation(known: ConversationTold) -> None:
    """Print where an exchange stands in its conversation, and where rules fired for that, which turns counted."""
    if not known.id and not known.rules:
        return
    risks = "".join(f", {name} {short(risk)}" for name, risk in known.risks.items())
    print(safe(f"  conversation {known.id or '-'}: {counted(known.turns, 'turn')}{risks}"))
    if known.rules:
        turns = ", ".join(f"turn {number} ({short(score)})" for number, score in known.counted.items())
        print(safe(f"  for the conversation: {', '.join(known.rules)}{'; counted: ' if turns else ''}{turns}"))


def _print_fields(record: StreamTold) -> None:
    """Print where it stands in its conversation, what was not read or known or went out, where the answer was cut."""
    _print_conversation(record.conversation)
    if record.pseudonyms or record.restored or record.not_given:
        kinds = ", ".join(f"{kind} {count}" for kind, count in record.pseudonyms.items()) or "none given"
        strange = f"; {record.not_given} in the answer that stand for nothing" if record.not_given else ""
        print(safe(f"  pseudonyms: {kinds}; put back {counted(record.restored, 'time')}{strange}"))
    for name in record.unscanned:
        print(safe(f"  not read: {name}"))
    for name in record.unknown:
        print(safe(f"  not known, read as text: {name}"))
    for name in record.removed:
        print(safe(f"  taken out of the request, as it could undo a rule: {name}"))
    if record.turned_at is not None:
        print(f"  the answer was cut at character {record.turned_at}, and goes on in a second one")


def _print_verdicts(record: StreamTold) -> None:
    """Print what each rule decided in an exchange, on what, and which regulation it serves."""
    for verdict in record.verdicts:
        where = f"{verdict.stage}:{verdict.channel}"
        spans = " ".join(map(str, verdict.spans))
        notes = (
            "not enforced" if verdict.mode == "shadow" else None,
            f"set aside by {verdict.excepted_by}" if verdict.excepted_by is not None else None,
            "confirmed" if verdict.rule_id in record.confirmed else None,
            "a condition could not be decided" if verdict.undecided else None,
            str(verdict.recited) if verdict.recited is not None else None,
            f"severity {verdict.severity}" if verdict.severity is not None else None,
            f"{short(str(verdict.latency_ms))} ms" if str(verdict.latency_ms) != "0" else None,
            f"by {verdict.model}" if verdict.model else None,
            verdict.regulation,
            verdict.citation,
        )
        found = " ".join((where, spans, *verdict.triggers)).replace("  ", " ")
        line = f"{verdict.rule_id} of {verdict.policy}@{verdict.version} -> {verdict.action}: {found}"
        print(safe("  " + "; ".join((line.rstrip(), *filter(None, notes)))))
