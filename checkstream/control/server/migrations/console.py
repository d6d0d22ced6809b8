"""What the console shows: heads that prove records, sums by hour, notes of reviews, runs of the gate."""

from __future__ import annotations

from checkstream.control.server.migrations.change import Migration

FIRST = Migration(
    number=5,
    name="console",
    statements=(
        """create table heads(
             node text not null, chain text not null, seq {int} not null, line text not null, at_ms {int} not null,
             primary key(node, chain, seq)
           )""",
        "create index heads_by_age on heads(at_ms)",
        """create table hours(
             node text not null, hour {int} not null, route text not null, name text not null, count {int} not null,
             primary key(node, hour, route, name)
           )""",
        "create index hours_by_age on hours(hour)",
        """insert into hours(node, hour, route, name, count)
             select node, minute / 60, route, name, sum(count) from minutes group by node, minute / 60, route, name""",
        "alter table review_items add column model text not null default ''",
        "alter table review_labels add column note text not null default ''",
        """create table gate_runs(
             fleet text not null, run_id text not null, target text not null, verifier text not null,
             config_hash text not null, snapshot text not null, begun {real} not null, ended {real} not null,
             decision text not null, reason text not null, risk {real} not null, total_claims {int} not null,
             supported {int} not null, weakly_supported {int} not null, unsupported {int} not null, who text not null,
             told_ms {int} not null, primary key(fleet, run_id)
           )""",
        "create index gate_runs_by_time on gate_runs(begun, run_id)",
    ),
)
"""`heads`: signed heads that vouch for what has come, as they stand in their files. `hours`: the minutes of each hour
summed up, so that a week is read as quickly as a day."""
