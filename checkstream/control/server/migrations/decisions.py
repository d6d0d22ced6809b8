"""How long each decision took, in place of its exchange's longest answer, and which model has scored."""

from __future__ import annotations

from checkstream.control.server.migrations.change import Migration

LATENCY = Migration(
    number=6,
    name="decisions",
    statements=(
        "alter table decisions rename column checked_us to latency_us",
        "alter table decisions add column model text not null default ''",
    ),
)
"""`latency_us` of rows from before is what the column told until now."""
