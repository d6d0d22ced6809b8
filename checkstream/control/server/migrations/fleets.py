"""Nodes, what they say of themselves, rollouts, and what happened."""

from __future__ import annotations

from checkstream.control.server.migrations.change import Migration

FIRST = Migration(
    number=1,
    name="fleets",
    statements=(
        """create table nodes(
             node text primary key, fleet text not null, sequence {int} not null, heard_ms {int} not null,
             attestation text not null, refused text not null, since_ms {int} not null
           )""",
        """create table counts(
             fleet text not null, digest text not null, slot_ms {int} not null, figures text not null,
             primary key(fleet, digest, slot_ms)
           )""",
        """create table rollouts(
             id {id}, fleet text not null, begun_ms {int} not null, running {int} not null, state text not null
           )""",
        "create index rollouts_by_fleet on rollouts(fleet, id)",
        """create table allowances(
             fleet text not null, kind text not null, value text not null, who text not null, at_ms {int} not null,
             primary key(fleet, kind, value)
           )""",
        """create table events(
             id {id}, at_ms {int} not null, kind text not null, fleet text not null, node text not null,
             reason text not null
           )""",
        "create index events_by_fleet on events(fleet, id)",
        "create index events_by_node on events(node, kind, id)",
    ),
)
"""`counts`: what all nodes of a fleet have counted under a bundle, by the beginning of some minutes. `nodes.since_ms`:
since when a node says the same of what it has in force; `refused`: why it is given no bundle."""
