"""Troubles that stand, what nobody wants to hear of, and notices that wait to be sent."""

from __future__ import annotations

from checkstream.control.server.migrations.change import Migration

FIRST = Migration(
    number=3,
    name="alerts",
    statements=(
        "create table troubles(name text primary key, state text not null)",
        """create table silences(
             id {id}, pattern text not null, until_ms {int} not null, who text not null, reason text not null,
             at_ms {int} not null
           )""",
        """create table notices(
             id {id}, channel text not null, notice text not null, tries {int} not null, due_ms {int} not null,
             failure text not null
           )""",
        "create index notices_by_due on notices(due_ms)",
    ),
)
"""`troubles.name` is the key of a finding; `notices` empties as they are sent."""
