"""How the tables of the control server came to be as they are, one change after the other.

A change that has been released is never altered: what has to be different is another change. Each topic has a file, and
a line in `MIGRATIONS`; numbers only grow. Statements are for SQLite and PostgreSQL alike, with `{id}`, `{int}`,
`{real}` and `{bytes}` where the two call a type otherwise.
"""

from __future__ import annotations

from checkstream.control.server.migrations import (
    alerts,
    chains,
    console,
    decisions,
    drafts,
    evidence,
    fleets,
    reviews,
    telemetry,
)
from checkstream.control.server.migrations.change import Migration

MIGRATIONS: tuple[Migration, ...] = (
    fleets.FIRST,
    telemetry.FIRST,
    alerts.FIRST,
    reviews.FIRST,
    console.FIRST,
    decisions.LATENCY,
    drafts.FIRST,
    evidence.FIRST,
    chains.GONE,
    evidence.BY_NODE,
    chains.ARRIVED,
    evidence.HELD,
)
"""In their order."""
