"""Who did what, and why: acts as the audit chain has them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from checkstream.console.tail import Entry

_WORDS = {
    "rollout": "asked for a rollout",
    "approve": "approved of a rollout",
    "promote": "had a rollout go on",
    "rollback": "took a rollout back",
    "advance": "had a rollout go on",
    "allow": "put on the list",
    "disallow": "took off the list",
    "silence": "muted alerts",
    "speak": "ended a silence",
}


class ActRow(msgspec.Struct, frozen=True, kw_only=True):
    """An act."""

    time: str
    who: str
    role: str
    """Theirs at that time; empty: the server itself."""
    did: str
    fleet: str
    subject: str
    reason: str
    detail: tuple[tuple[str, str], ...]
    place: str
    """Chain and number of the record."""


def act_rows(entries: Iterable[Entry]) -> tuple[ActRow, ...]:
    """Return the rows of acts."""
    return tuple(_row(each) for each in entries)


def _row(entry: Entry) -> ActRow:
    record, body = entry.record, entry.body
    hidden = body.subject  # a rollout's digest, which its version says better
    named = body.detail.get("version") if body.act in ("rollout", "approve", "promote", "rollback", "advance") else None
    left = ("version", "ring") if named else ()
    return ActRow(
        time=record.time,
        who=body.who,
        role=body.role,
        did=_WORDS.get(body.act, body.act),
        fleet=body.fleet,
        subject=f"{named} ({hidden[:8]})" if named else hidden,
        reason=body.reason,
        detail=tuple(
            sorted((name, _short(value)) for name, value in body.detail.items() if value and name not in left)
        ),
        place=f"{record.chain} {record.seq}",
    )


def _short(value: str) -> str:
    """Return a digest's beginning, and all else as it is."""
    return value[:12] if len(value) == 64 and not value.strip("0123456789abcdef") else value
