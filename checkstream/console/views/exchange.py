"""Exchanges in a list, and one with all that is known of it. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from checkstream.audit.bodies import Body, StreamTold, VerdictTold, body_of, short
from checkstream.audit.chain import Record, read
from checkstream.errors import AuditError


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """An exchange in a list."""

    time: str
    chain: str
    seq: int
    stream: str
    route: str
    action: str
    outcome: str
    rules: tuple[str, ...]
    held_ms: str
    notes: tuple[str, ...]
    node: str = ""
    """Whose; empty: this one's."""


def row_of(record: Record, body: Body, node: str = "") -> Row:
    """Return a record as a row: an exchange, or what passed unread."""
    told = body.record
    notes = [f"{len(told.unscanned)} not read"] if told.unscanned else []
    notes += list(told.degradations)
    if record.kind == "pass":
        notes.append(f"{body.method} {body.path}: passed on unread")
    return Row(
        time=record.time,
        chain=record.chain,
        seq=record.seq,
        stream=body.stream,
        route=body.route,
        action=told.action or record.kind,
        outcome=told.outcome or str(body.status),
        rules=told.rules,
        held_ms=short(str(told.held_ms)) if record.kind == "stream" else "",
        notes=tuple(notes),
        node=node,
    )


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """Where in a text a rule fired, in thousandths of its length."""

    start: int
    width: int
    action: str


class Strip(msgspec.Struct, frozen=True, kw_only=True):
    """A text as a strip, with what fired in it."""

    name: str
    chars: int
    marks: tuple[Mark, ...]


def strips_of(told: StreamTold) -> tuple[Strip, ...]:
    """Return the texts in which rules fired. Of how long each is only the sum is known, so its end is a guess."""
    found: dict[str, list[VerdictTold]] = {}
    for verdict in told.verdicts:
        if verdict.spans:
            found.setdefault(f"{verdict.stage}:{verdict.channel}", []).append(verdict)
    return tuple(_strip(name, verdicts, told) for name, verdicts in list(found.items())[:12])


def _strip(name: str, verdicts: Sequence[VerdictTold], told: StreamTold) -> Strip:
    whole = told.prompt_chars if name.startswith("ingress") else told.answer_chars
    spans = [(span, verdict.action) for verdict in verdicts for span in verdict.spans][:200]
    chars = max(whole, *(span.end for span, _ in spans), 1)
    marks = tuple(
        Mark(
            start=min(span.start * 1000 // chars, 996),
            width=max(min(span.end - span.start, chars) * 1000 // chars, 4),
            action=action,
        )
        for span, action in spans
    )
    return Strip(name=name, chars=chars, marks=marks)


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange with all that is known of it."""

    row: Row
    body: Body
    strips: tuple[Strip, ...]
    raw: str
    """The record as it stands in the log, for people: indented, cut where it is very long."""


RAW_CHARS = 200_000


def exchange_of(record: Record, body: Body) -> Exchange:
    """Return the view of a record."""
    raw = json.dumps(msgspec.to_builtins(record), indent=2, ensure_ascii=False)
    return Exchange(row=row_of(record, body), body=body, strips=strips_of(body.record), raw=raw[:RAW_CHARS])


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a log, whatever it is."""

    view: Exchange | None
    """None: it is no record."""
    fault: str
    """Why it is none."""
    raw: str


def line_of(line: bytes) -> Line:
    """Return the view of a line as it stands in a log."""
    raw = line.decode("utf-8", "replace")[:RAW_CHARS]
    try:
        record = read(line)
        return Line(view=exchange_of(record, body_of(record)), fault="", raw=raw)
    except AuditError as error:
        return Line(view=None, fault=str(error), raw=raw)
