"""Evidence of exchanges, which the server can't read."""

from __future__ import annotations

from checkstream.control.server.migrations.change import Migration

FIRST = Migration(
    number=8,
    name="evidence",
    statements=(
        """create table evidence(
             node text not null, chain text not null, seq {int} not null, hash text not null, stream text not null,
             route text not null, caller text not null, key text not null, at_ms {int} not null, size {int} not null,
             erased {int} not null, sealed {bytes} not null, primary key(node, chain, seq)
           )""",
        "create index evidence_by_time on evidence(at_ms, node, chain, seq)",
        "create index evidence_by_stream on evidence(stream)",
        "create index evidence_by_caller on evidence(caller)",
        "create index evidence_by_size on evidence(node, size)",
    ),
)
"""`caller` is empty where callers have no names; `key` is the name of the key that opens it. `erased`: that it was
there is all that is kept, so that a node that sends it again doesn't bring it back."""

BY_NODE = Migration(
    number=10,
    name="evidence of an exchange by node",
    statements=(
        "drop index evidence_by_stream",
        "create index evidence_by_stream on evidence(stream, node, chain, seq)",
    ),
)
"""So that what one node has sent of an exchange need not be read through to come to the next."""

HELD = Migration(
    number=12,
    name="room that evidence takes",
    statements=(
        "create table evidence_held(node text primary key, size {int} not null)",
        "insert into evidence_held(node, size) select node, sum(size) from evidence group by node",
        "drop index evidence_by_size",
    ),
)
"""Of each node the sum of its pieces, which each that comes would have to be summed for otherwise."""
