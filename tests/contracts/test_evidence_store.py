"""What every database does with evidence, SQLite and PostgreSQL: each piece once, and when it was erased, for good."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from functools import partial
from typing import Any, TypeVar

import msgspec
import pytest

from checkstream.api.evidence import ErasureAsked
from checkstream.api.telemetry import ExchangesAsked
from checkstream.audit.entries import ActEntry
from checkstream.config.servers import CALLER_CHARS
from checkstream.control.server.database import Database, Row, Session
from checkstream.control.server.evidence import Evidence, Kept
from checkstream.control.server.people import Asker
from checkstream.control.server.traffic import Filter, exchanges
from checkstream.control.telemetry.evidence import MOST_PARCEL, Parcel
from checkstream.control.telemetry.packing import packed
from checkstream.errors import ActConflicts, AuditError, Overloaded, RequestInvalid
from tests.evidence_stores import postgres
from tests.records import CHAIN, seal_all, stream
from tests.telemetry_store import AT, database, raw
from tests.telemetry_store import Kept as Telemetry

__all__ = ["database", "postgres"]
_T = TypeVar("_T")
ROB = Asker("rob", "risk_officer")
DAY_MS = 86_400_000


class Bench:
    def __init__(self, database: Database) -> None:
        self.telemetry = Telemetry(database)
        self.node = self.telemetry.node
        self.now_ms = AT
        self.acts: list[ActEntry] = []
        self.evidence = Evidence(database, self.acts.append, lambda: self.now_ms, keep_ms=30 * DAY_MS, most_bytes=1000)
        self.sealed = seal_all([msgspec.structs.replace(stream(n), stream=self.name(n)) for n in range(3)])

    def name(self, number: int) -> str:
        return f"{self.node}-{number}"

    def parcel(self, number: int = 0, size: int = 100, **more: object) -> Parcel:
        record = self.sealed[number]
        made = Parcel(
            chain=CHAIN, seq=record.seq, hash=record.hash, stream=self.name(number), route="chat", caller="app1",
            key="0f" * 8, at_ms=AT, sealed=bytes(range(100)) * (size // 100),
        )  # fmt: skip
        return msgspec.structs.replace(made, **more)

    def put(self, parcel: Parcel) -> Kept:
        return self.do(self.evidence.receive(self.node, packed(msgspec.json.encode(parcel))))

    def do(self, work: Coroutine[Any, Any, _T]) -> _T:
        async def here() -> _T:
            return await work

        return asyncio.run(here())

    def found(self, number: int = 0) -> list[tuple[str, Parcel]]:
        return [(each.node, each.parcel) for each in self.do(self.evidence.find(self.name(number)))]


@pytest.fixture
def bench(database: Database) -> Iterator[Bench]:
    yield Bench(database)
    held, summed = (
        {str(node): int(size) for node, size in database.at_once(partial(_rows, of)) if size}
        for of in ("select node, size from evidence_held", "select node, sum(size) from evidence group by node")
    )
    assert held == summed, "whatever a test has done, what a node's pieces take is known"


def _rows(statement: str, session: Session) -> list[Row]:
    return session.execute(statement)


def test_each_piece_is_kept_once_as_it_came(bench: Bench) -> None:
    assert bench.put(bench.parcel()) == Kept(kept=True)
    assert bench.put(bench.parcel(sealed=b"x" * 60)) == Kept(kept=False)
    assert bench.put(bench.parcel(1, caller=None)) == Kept(kept=True)
    assert bench.found() == [(bench.node, bench.parcel())]
    assert bench.found(1) == [(bench.node, bench.parcel(1, caller=None))]
    assert bench.found(2) == []


def test_evidence_of_another_record_than_the_one_that_is_known_is_refused(bench: Bench) -> None:
    bench.telemetry.send(bench.sealed)
    with pytest.raises(RequestInvalid, match=bench.sealed[0].hash):
        bench.put(bench.parcel(hash="ab" * 32))
    assert bench.put(bench.parcel()) == Kept(kept=True)


def test_how_the_record_of_a_piece_stands_is_told(bench: Bench, database: Database) -> None:
    def record() -> str:
        (found,) = bench.do(bench.evidence.find(bench.name(0)))
        return found.record

    bench.put(bench.parcel())
    assert record() == "unknown"
    bench.telemetry.send(bench.sealed[:1])
    assert record() == "unsigned"
    bench.telemetry.send(bench.sealed[1:], heads=raw(bench.sealed[2]))
    assert record() == "signed"
    database.at_once(lambda s: s.execute("update records set proven = 0 where node = ?", (bench.node,)))
    assert record() == "unproven"
    other = Bench(database)
    other.put(other.parcel(hash="ab" * 32))
    other.telemetry.send(other.sealed, heads=raw(other.sealed[2]))
    assert other.do(other.evidence.find(other.name(0)))[0].record == "unknown", "that is the hash of another record"


def test_no_node_hides_what_another_has_sent(bench: Bench, database: Database) -> None:
    wanted = bench.name(1)
    bench.telemetry.send(bench.sealed, heads=raw(bench.sealed[2]))
    for number in range(8):
        bench.put(bench.parcel(seq=100 + number, sealed=b"x" * 48, stream=wanted))
    bench.put(bench.parcel(1))
    liars = [Bench(database) for _ in range(15)]
    for liar in liars:
        for number in range(3):
            liar.put(liar.parcel(number, stream=wanted))
    found = bench.do(bench.evidence.find(wanted))
    assert (found[0].node, found[0].parcel.seq, found[0].record) == (bench.node, bench.sealed[1].seq, "signed")
    assert {one.node for one in found} == {bench.node, *(liar.node for liar in liars)}
    assert len(found) == 20


@pytest.mark.parametrize("by", ["stream", "caller"])
def test_what_was_erased_is_gone_on_record_and_does_not_come_back(bench: Bench, by: str) -> None:
    whose = f"{bench.node}-app"
    for number in (0, 1):
        bench.put(bench.parcel(number, caller=whose))
    bench.put(bench.parcel(2))
    asked = {"stream": "", "caller": "", by: bench.name(0) if by == "stream" else whose}
    erased = bench.do(bench.evidence.erase(ROB, reason="they ask", **asked))
    assert erased.pieces == (1 if by == "stream" else 2)
    assert bench.put(bench.parcel(0, caller=whose)) == Kept(kept=False)
    assert bench.found() == []
    assert len(bench.found(1)) == (1 if by == "stream" else 0)
    assert len(bench.found(2)) == 1
    (act,) = bench.acts
    assert (act.who, act.act, act.subject, act.reason) == ("rob", "erase", f"{by}:{asked[by]}", "they ask")
    (row,) = bench.telemetry.rows("evidence", "seq, stream, caller, size")[:1]
    assert row == (1, "", "", 0), "nothing but that it was there"


def test_callers_with_the_longest_names_are_told_apart(bench: Bench) -> None:
    """As tokens may name them: everywhere where a name is taken, kept, asked for or erased."""
    named = [f"jwt:{bench.node}{'a' * 255}"[: CALLER_CHARS - 1] + end for end in "xy"]
    for number, caller in enumerate(named):
        bench.put(bench.parcel(number, caller=caller))
    assert [bench.found(number)[0][1].caller for number in (0, 1)] == named
    asked = msgspec.convert({"caller": named[0]}, ErasureAsked)
    assert bench.do(bench.evidence.erase(ROB, stream="", caller=asked.caller, reason="")).pieces == 1
    assert (len(bench.found(0)), len(bench.found(1))) == (0, 1)
    records = [
        msgspec.structs.replace(stream(number), stream=bench.name(number), caller=caller)
        for number, caller in enumerate(named)
    ]
    bench.telemetry.send(seal_all(records))
    for caller in named:
        wanted = Filter(caller=msgspec.convert({"caller": caller}, ExchangesAsked).caller)
        page, _ = bench.telemetry.do(exchanges, wanted)
        assert [each.caller for each in page] == [caller]


def test_nothing_is_erased_that_can_not_be_put_on_record(bench: Bench) -> None:
    def refuse(_: ActEntry) -> None:
        raise AuditError("the disk is full")

    bench.put(bench.parcel())
    bench.evidence._record = refuse
    with pytest.raises(AuditError):
        bench.do(bench.evidence.erase(ROB, stream=bench.name(0), caller="", reason=""))
    assert len(bench.found()) == 1
    for both in ({"stream": "", "caller": ""}, {"stream": "a", "caller": "b"}):
        with pytest.raises(ActConflicts, match="either"):
            bench.do(bench.evidence.erase(ROB, reason="", **both))


def test_a_node_fills_its_own_room_and_nobody_elses(bench: Bench, database: Database) -> None:
    bench.put(bench.parcel(0, size=800))
    with pytest.raises(Overloaded, match="evidence_bytes"):
        bench.put(bench.parcel(1, size=300))
    other = Bench(database)
    assert other.put(other.parcel(size=800)) == Kept(kept=True)
    bench.do(bench.evidence.erase(ROB, stream=bench.name(0), caller="", reason=""))
    assert bench.put(bench.parcel(1, size=300)) == Kept(kept=True)


def test_it_goes_with_its_age_whatever_its_node_says_the_time_is(bench: Bench) -> None:
    bench.put(bench.parcel(0))
    bench.put(bench.parcel(1, at_ms=2**48))
    assert bench.put(bench.parcel(2, at_ms=1)) == Kept(kept=False)
    bench.now_ms = AT + 30 * DAY_MS + 1
    bench.do(bench.evidence.forget())
    assert (len(bench.found(0)), len(bench.found(1))) == (0, 1)
    bench.now_ms += DAY_MS
    bench.do(bench.evidence.forget())
    assert bench.found(1) == []


def test_what_is_no_parcel_is_refused(bench: Bench) -> None:
    whole = msgspec.to_builtins(bench.parcel())
    wrong: list[Any] = [
        {**whole, name: value}
        for name, value in (
            ("seq", 0), ("seq", -1), ("seq", 2**60), ("chain", "a" * 65), ("chain", "../x"), ("hash", "x"), ("key", ""),
            ("sealed", "!!"), ("sealed", ""), ("stream", ""), ("stream", "s" * 201), ("at_ms", -1), ("more", 1),
        )
    ]  # fmt: skip
    for body in (
        *map(msgspec.json.encode, (*wrong, [], None)),
        b"{",
        b"[" * 200_000,
        b"\xff",
        b" " * (MOST_PARCEL + 1),
    ):
        with pytest.raises(RequestInvalid):
            bench.do(bench.evidence.receive(bench.node, packed(body)))
    with pytest.raises(RequestInvalid, match="Zstandard"):
        bench.do(bench.evidence.receive(bench.node, b"no frame"))
    assert bench.put(bench.parcel(stream="a\x00'; drop table evidence; --")) == Kept(kept=True)
    (found,) = bench.do(bench.evidence.find("a\x00'; drop table evidence; --"))
    assert found.parcel.stream == "a\ufffd'; drop table evidence; --"
