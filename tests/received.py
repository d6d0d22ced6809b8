"""A receiver of telemetry that remembers everything in plain dictionaries: what databases are held to."""

from __future__ import annotations

import copy
from collections import Counter
from pathlib import Path
from typing import Any, Protocol

import msgspec
from hypothesis import strategies as st

from checkstream.audit.chain import GENESIS, Sealed, seal
from checkstream.audit.entries import AnyEntry, RotateEntry
from checkstream.audit.keys import AuditKey, PublicKey
from checkstream.audit.segments import segment_name
from checkstream.control.server.ingest import Flaw, Gap, Item, take
from checkstream.control.telemetry.composing import Composed, Composer
from checkstream.control.telemetry.delivery import At, Delivery, Received, read_delivery
from checkstream.control.telemetry.packing import packed, unpacked
from checkstream.control.telemetry.privacy import Privacy
from tests.records import KEY, TIME, head, stream


class Receives(Protocol):
    """Takes deliveries."""

    def receive(self, delivery: Delivery) -> Received: ...


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


CHAINS = ("c1", "c2")
NOW_MS = 4_000_000_000_000
PRIVACY = Privacy(routes={"sums": "aggregate", "secret": "none"})
ROUTES = ("chat", "sums", "secret")


class Log:
    """An audit directory as journals write it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sealed: dict[str, list[Sealed]] = {chain: [] for chain in CHAINS}
        self.number = dict.fromkeys(CHAINS, 1)

    def append(self, chain: str, entry: AnyEntry) -> None:
        before = self.sealed[chain]
        prev = before[-1].hash if before else GENESIS
        one = seal(entry, chain=chain, seq=len(before) + 1, prev=prev, process="p", time=TIME)
        before.append(one)
        with (self.folder / segment_name(chain, self.number[chain])).open("ab") as file:
            file.write(one.line)

    def rotate(self, chain: str) -> None:
        following = segment_name(chain, self.number[chain] + 1)
        (self.folder / following).touch()
        self.append(chain, RotateEntry(next=following))
        self.number[chain] += 1

    def sign(self, chain: str) -> None:
        if self.sealed[chain]:
            with (self.folder / f"{chain}.heads").open("ab") as file:
                file.write(head(self.sealed[chain][-1], chain=chain))

    def lines(self) -> dict[tuple[str, int], bytes]:
        return {(chain, one.seq): one.line[:-1] for chain in CHAINS for one in self.sealed[chain]}


_CHAIN = st.sampled_from(CHAINS)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), _CHAIN, st.sampled_from(ROUTES)),
        st.tuples(st.just("append"), _CHAIN, st.sampled_from(ROUTES)),
        st.tuples(st.just("rotate"), _CHAIN, st.none()),
        st.tuples(st.just("sign"), _CHAIN, st.none()),
        st.tuples(st.just("compose"), st.integers(0, 1), st.integers(1, 5)),
        st.tuples(st.just("deliver"), st.integers(0, 9), st.booleans()),
        st.tuples(st.just("restart"), st.integers(0, 1), st.none()),
        st.tuples(st.just("keep"), st.none(), st.none()),
        st.tuples(st.just("restore"), st.none(), st.none()),
    ),
    max_size=60,
)


class World:
    """A log, two that send it, deliveries on their way in any order, and who receives them."""

    def __init__(self, folder: Path, receiver: Receives, keys: tuple[str, ...] = ()) -> None:
        self.log = Log(folder)
        self.keys = keys
        self.receiver = receiver
        self.kept: Receives | None = None
        self.known: list[dict[str, Any]] = [{}, {}]
        self.senders = [self._sender(), self._sender()]
        self.sent: list[tuple[int, Composed]] = []
        self.number = 0

    def _sender(self) -> Composer:
        return Composer(self.log.folder, PRIVACY, self.keys, spool_bytes=1 << 40)

    def step(self, kind: str, what: Any, more: Any) -> None:
        match kind:
            case "append":
                self.log.append(what, stream(len(self.log.sealed[what]), route=more))
            case "rotate":
                self.log.rotate(what)
            case "sign":
                self.log.sign(what)
            case "compose":
                self.sent.append((what, self._compose(what, more)))
            case "deliver" if self.sent:
                self._deliver(*self.sent[what % len(self.sent)], answered=more)
            case "restart":
                self.senders[what], self.known[what] = self._sender(), {}
            case "keep":
                self.kept = copy.deepcopy(self.receiver)
            case "restore" if self.kept is not None:
                self.receiver = copy.deepcopy(self.kept)

    def _compose(self, who: int, most: int) -> Composed:
        self.number += 1
        return self.senders[who].compose(
            self.known[who], number=self.number, time_ms=NOW_MS, most_bytes=1 << 20, most_records=most
        )

    def _deliver(self, who: int, composed: Composed, *, answered: bool) -> None:
        answer = self.receiver.receive(composed.delivery)
        if answered:
            self.known[who] = dict(answer.positions)
            self.senders[who].taken(composed, answer.positions)

    def finish(self) -> None:
        for who in (0, 1):
            for _ in range(200):
                composed = self._compose(who, 7)
                self._deliver(who, composed, answered=True)
                if not composed.delivery.runs:
                    break
            else:
                raise AssertionError("it never ends")
