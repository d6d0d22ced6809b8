"""Whatever is sent by whom and how often, each record of a log arrives once, and what was changed is found out."""

from __future__ import annotations

import copy
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.audit.chain import GENESIS, Sealed, read, seal
from checkstream.audit.entries import AnyEntry, RotateEntry
from checkstream.audit.segments import segment_name
from checkstream.control.telemetry.composing import Composed, Composer
from checkstream.control.telemetry.minutes import Minutes, minute_of
from checkstream.control.telemetry.privacy import Privacy
from checkstream.control.telemetry.records import exchange_of
from tests.received import Receiver
from tests.records import KEY, TIME, head, start, stream

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

    def __init__(self, folder: Path) -> None:
        self.log = Log(folder)
        self.receiver = Receiver(KEY)
        self.kept = copy.deepcopy(self.receiver)
        self.known: list[dict[str, Any]] = [{}, {}]
        self.senders = [self._sender(), self._sender()]
        self.sent: list[tuple[int, Composed]] = []
        self.number = 0

    def _sender(self) -> Composer:
        return Composer(self.log.folder, PRIVACY, (), spool_bytes=1 << 40)

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
            case "restore":
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


@given(STEPS)
@settings(max_examples=60, deadline=None)
def test_each_record_arrives_once_whatever_is_lost_repeated_forgotten_or_restored(
    steps: list[tuple[str, Any, Any]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        world.log.append("c1", start())
        for step in steps:
            world.step(*step)
        world.finish()
        receiver, lines = world.receiver, world.log.lines()
        assert receiver.records.keys() == lines.keys()
        assert (receiver.flaws, receiver.gaps) == ([], [])
        expected = Minutes()
        for key, item in receiver.records.items():
            assert item.proven
            record = read(lines[key])
            exchange = exchange_of(record)
            whole = exchange is None or exchange.route == "chat"
            assert item.line == (lines[key] if whole else None)
            assert item.hash == record.hash
            if exchange is not None and exchange.route == "sums":
                expected.add(minute_of(record.time) or 0, exchange)
        assert receiver.counts == Counter({(m, r, n): count for m, r, n, count in expected})


@given(st.data(), st.integers(2, 8))
@settings(max_examples=80, deadline=None)
def test_a_log_in_which_any_byte_was_changed_or_any_line_moved_is_never_taken_for_sound(
    data: st.DataObject, count: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Log(Path(folder))
        for number in range(count):
            log.append("c1", stream(number, route=data.draw(st.sampled_from(ROUTES))))
        log.sign("c1")
        file = Path(folder) / segment_name("c1", 1)
        sound = file.read_bytes()
        lines = sound.splitlines(keepends=True)
        how = data.draw(st.sampled_from(["byte", "drop", "double", "swap", "cut"]))
        place = data.draw(st.integers(0, count - 1))
        if how == "byte":
            at = data.draw(st.integers(0, len(sound) - 2))
            other = data.draw(st.integers(0, 255).filter(lambda byte: byte != sound[at]))
            changed = sound[:at] + bytes([other]) + sound[at + 1 :]
        else:
            if how == "drop":
                del lines[place]
            elif how == "double":
                lines.insert(data.draw(st.integers(0, count)), lines[place])
            elif how == "swap":
                other = data.draw(st.integers(0, count - 1).filter(lambda it: it != place))
                lines[place], lines[other] = lines[other], lines[place]
            else:
                del lines[place:]
            changed = b"".join(lines)
        file.write_bytes(changed)
        receiver = Receiver(KEY)
        composer = Composer(Path(folder), PRIVACY, (), spool_bytes=1 << 40)
        for number in range(50):
            composed = composer.compose(
                receiver.positions, number=number, time_ms=NOW_MS, most_bytes=1 << 20, most_records=3
            )
            if not composed.delivery.runs:
                break
            composer.taken(composed, receiver.receive(composed.delivery).positions)
        else:
            raise AssertionError("it never ends")
        assert receiver.flaws or receiver.gaps
