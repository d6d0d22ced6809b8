"""Nodes that tell a control server of exchanges, one chain each, by the wall clock."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from checkstream.audit.chain import GENESIS, Sealed, read, seal
from checkstream.audit.entries import AnyEntry, StreamEntry
from checkstream.audit.keys import AuditKey
from checkstream.control.telemetry.delivery import At, Delivery, Run
from checkstream.control.telemetry.packing import packed
from checkstream.control.telemetry.privacy import Privacy, run_of
from tests.controlled import Server, asked
from tests.records import head, record, verdict

DELIVER = "/v1/telemetry"


def exchange(stream: str, *, route: str = "chat", rules: tuple[str, ...] = ("PII-001",), **more: Any) -> StreamEntry:
    """Return an exchange in which some rules have fired; `more` is what its record says besides."""
    told = record(verdicts=tuple(verdict(rule) for rule in rules), action="redact" if rules else "allow")
    return StreamEntry(stream=stream, route=route, caller="app1", record=msgspec.structs.replace(told, **more))


class Teller:
    """A node with a chain."""

    def __init__(self, server: Server, node: str = "n1") -> None:
        self.server = server
        self.node = node
        self.chain = f"c{node}"
        self.key = AuditKey(hashlib.sha256(node.encode()).digest())
        self.sealed: list[Sealed] = []
        self.number = 0

    async def tell(self, *entries: AnyEntry, privacy: Privacy | None = None, signed: bool = True) -> list[Sealed]:
        """Tell of exchanges behind those before."""
        new, run = self.next(entries, privacy, signed=signed)
        await self.send(run)
        return new

    async def send(self, run: Run) -> None:
        """Send a run as it is."""
        content, node = self.packed(run), self.server.nodes[self.node]
        status, body = await asked("POST", self.server.url, DELIVER, content, node=node)
        assert status == 200, body

    def next(
        self, entries: Sequence[AnyEntry], privacy: Privacy | None = None, *, signed: bool = True
    ) -> tuple[list[Sealed], Run]:
        """Put exchanges behind those before, and return what tells of them."""
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        before = self.sealed[-1] if self.sealed else None
        new: list[Sealed] = []
        for entry in entries:
            prev = new[-1] if new else before
            seq, hash_ = (0, GENESIS) if prev is None else (prev.seq, prev.hash)
            new.append(seal(entry, chain=self.chain, seq=seq + 1, prev=hash_, process="p1", time=time))
        self.sealed += new
        after = At() if before is None else At(seq=before.seq, hash=before.hash)
        pairs = [(each.line[:-1], read(each.line[:-1])) for each in new]
        heads = (msgspec.Raw(head(new[-1], self.key, self.chain)[:-1]),) if signed else ()
        run = run_of(self.chain, after, pairs, privacy or Privacy())
        return new, msgspec.structs.replace(run, heads=heads)

    def packed(self, run: Run) -> bytes:
        """Return a run as the node's next delivery."""
        self.number += 1
        delivery = Delivery(
            number=self.number,
            time_ms=int(datetime.now(UTC).timestamp() * 1000),
            keys=(self.key.public.raw.hex(),),
            runs=(run,),
        )
        return packed(msgspec.json.encode(delivery))
