"""Findings that people look at, and what they say of them."""

from __future__ import annotations

from checkstream.control.server.migrations.change import Migration

FIRST = Migration(
    number=4,
    name="reviews",
    statements=(
        """create table review_items(
             id text primary key, queue text not null, share {real} not null, node text not null, stream text not null,
             route text not null, rule text not null, policy text not null, action text not null, stage text not null,
             probability {real} not null, at_ms {int} not null, taken_ms {int} not null, settled {int} not null
           )""",
        "create index review_items_by_age on review_items(settled, at_ms, id)",
        "create index review_items_by_time on review_items(at_ms)",
        """create table review_labels(
             item text not null, who text not null, word text not null, at_ms {int} not null, primary key(item, who)
           )""",
        "alter table decisions add column drawn {int} not null default 0",
        "create index decisions_not_drawn on decisions(node, chain, seq, place) where drawn = 0",
    ),
)
"""`decisions.drawn`: it has been decided whether people look at it."""
