"""A receiver of telemetry that remembers everything in plain dictionaries: what databases are held to."""

from __future__ import annotations

from collections import Counter

from checkstream.audit.keys import AuditKey, PublicKey
from checkstream.control.server.ingest import Flaw, Gap, Item, take
from checkstream.control.telemetry.delivery import At, Delivery, Received, read_delivery
from checkstream.control.telemetry.packing import packed, unpacked
from tests.records import KEY


class Receiver:
    def __init__(self, *keys: AuditKey) -> None:
        self.keys: dict[str, PublicKey] = {key.public.name: key.public for key in keys or (KEY,)}
        self.number = -1
        self.positions: dict[str, At] = {}
        self.records: dict[tuple[str, int], Item] = {}
        self.flaws: list[tuple[str, Flaw]] = []
        self.gaps: list[tuple[str, Gap]] = []
        self.signed: dict[str, int] = {}
        self.counts: Counter[tuple[int, str, str]] = Counter()

    def receive(self, delivery: Delivery) -> Received:
        """Take a delivery as it comes over the wire."""
        import msgspec

        delivery = read_delivery(unpacked(packed(msgspec.json.encode(delivery)), 1 << 24))
        if delivery.number > self.number:
            self.number = delivery.number
            for run in delivery.runs:
                position = self.positions.get(run.chain, At())
                taken = take(run, position, self.keys, lambda seq, run=run: self._hash(run.chain, seq))  # type: ignore[misc]
                if taken is None:
                    continue
                self.positions[run.chain] = taken.position
                for item in taken.items:
                    assert (run.chain, item.seq) not in self.records
                    self.records[run.chain, item.seq] = item
                self.flaws += [(run.chain, flaw) for flaw in taken.flaws]
                if taken.gap is not None:
                    self.gaps.append((run.chain, taken.gap))
                if taken.signed is not None:
                    self.signed[run.chain] = taken.signed.seq
                for count in taken.counts:
                    self.counts[count.minute, count.route, count.name] += count.count
        return Received(number=self.number, positions=dict(self.positions))

    def _hash(self, chain: str, seq: int) -> str | None:
        item = self.records.get((chain, seq))
        return None if item is None else item.hash

    def reasons(self, chain: str) -> set[str]:
        return {flaw.reason for name, flaw in self.flaws if name == chain}
