"""Which chains are gone on their nodes, so that where they stood can be let go of."""

from __future__ import annotations

from checkstream.control.server.migrations.change import Migration

GONE = Migration(
    number=9,
    name="chains",
    statements=("alter table chains add column gone {int} not null default 0",),
)
"""`gone`: its node has said that the files are not there any more."""
