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
        """create table fleet_sums(
             fleet text not null, unit {int} not null, minute {int} not null, route text not null, name text not null,
             count {int} not null, primary key(fleet, unit, minute, route, name)
           )""",
        "create index fleet_sums_by_age on fleet_sums(minute)",
        """insert into fleet_sums(fleet, unit, minute, route, name, count)
             select n.fleet, 1, m.minute, m.route, m.name, sum(m.count) from minutes m join nodes n on n.node = m.node
             group by n.fleet, m.minute, m.route, m.name""",
        """insert into fleet_sums(fleet, unit, minute, route, name, count)
             select n.fleet, 60, h.hour * 60, h.route, h.name, sum(h.count) from hours h join nodes n on n.node = h.node
             group by n.fleet, h.hour, h.route, h.name""",
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
summed up, so that a week is read as quickly as a day. `fleet_sums`: the same minutes (`unit` 1) and hours (60) of all
nodes of a fleet together, so that a hundred nodes are read as quickly as one; `minute`: the first of each."""
