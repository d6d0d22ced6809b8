"""Which chains are gone on their nodes, so that where they stood can be let go of."""

from __future__ import annotations

from checkstream.control.server.migrations.change import Migration

GONE = Migration(
    number=9,
    name="chains",
    statements=("alter table chains add column gone {int} not null default 0",),
)
"""`gone`: its node has said that the files are not there any more."""

ARRIVED = Migration(
    number=11,
    name="records that have arrived",
    statements=(
        "create table totals(name text primary key, count {int} not null)",
        """insert into totals(name, count) select 'records', (select coalesce(sum(seq), 0) from chains)
             - (select coalesce(sum(last - first + 1), 0) from gaps)""",
    ),
)
"""What only grows, whatever is let go of."""
