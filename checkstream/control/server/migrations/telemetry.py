"""What nodes tell of their audit chains: records, decisions, sums by minute, and how far each chain has come."""

from __future__ import annotations

from checkstream.control.server.migrations.change import Migration

FIRST = Migration(
    number=2,
    name="telemetry",
    statements=(
        """create table senders(
             node text primary key, number {int} not null, heard_ms {int} not null, skew_ms {int} not null,
             waiting {int} not null, silent {int} not null
           )""",
        """create table audit_keys(
             node text not null, name text not null, key text not null, since_ms {int} not null,
             primary key(node, name)
           )""",
        """create table chains(
             node text not null, chain text not null, seq {int} not null, hash text not null, signed {int} not null,
             signed_ms {int} not null, unsigned_ms {int} not null, heard_ms {int} not null, told {int} not null,
             primary key(node, chain)
           )""",
        """create table records(
             node text not null, chain text not null, seq {int} not null, hash text not null, digest text not null,
             proven {int} not null, at_ms {int} not null, kind text not null, stream text not null, route text not null,
             caller text, action text not null, outcome text not null, held_us {int} not null,
             checked_us {int} not null, content text,
             primary key(node, chain, seq)
           )""",
        "create index records_by_time on records(at_ms, node, chain, seq)",
        "create index records_by_stream on records(stream)",
        "create index records_by_route on records(route, at_ms)",
        "create index records_by_caller on records(caller, at_ms)",
        "create index records_by_action on records(action, at_ms)",
        "create index records_by_outcome on records(outcome, at_ms)",
        """create table decisions(
             node text not null, chain text not null, seq {int} not null, place {int} not null, at_ms {int} not null,
             stream text not null, route text not null, caller text, rule_id text not null, action text not null,
             mode text not null, stage text not null, policy text not null, confidence_ppm {int} not null,
             checked_us {int} not null, primary key(node, chain, seq, place)
           )""",
        "create index decisions_by_time on decisions(at_ms, node, chain, seq, place)",
        "create index decisions_by_rule on decisions(rule_id, at_ms)",
        "create index decisions_by_action on decisions(action, at_ms)",
        """create table minutes(
             node text not null, minute {int} not null, route text not null, name text not null, count {int} not null,
             primary key(node, minute, route, name)
           )""",
        "create index minutes_by_age on minutes(minute)",
        """create table gaps(
             node text not null, chain text not null, first {int} not null, last {int} not null, reason text not null,
             at_ms {int} not null, primary key(node, chain, first)
           )""",
        """create table flaws(
             node text not null, chain text not null, seq {int} not null, reason text not null, detail text not null,
             at_ms {int} not null, primary key(node, chain, seq, reason)
           )""",
    ),
)
"""`chains.unsigned_ms`: since when records have come that no signed head speaks of (0: none), `told`: that was said;
`senders.silent`: that was said; `records.content`: the line of the log, none where it stays on the node."""
