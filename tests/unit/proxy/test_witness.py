"""Evidence of exchanges: kept for their records, sealed before it is written, within its bounds."""

from __future__ import annotations

import datetime as dt
import gc
import shutil
from pathlib import Path

import pytest

from checkstream.audit.chain import Sealed
from checkstream.core.commands import AnyCommand, Record, Score
from checkstream.core.events import AnyEvent, RequestReceived, Scored, UpstreamBytes, UpstreamOpened
from checkstream.core.exchange.machine import machine_for
from checkstream.core.transcript import decode
from checkstream.proxy import recorder, witness
from checkstream.proxy.trail import ExchangeTrail
from checkstream.proxy.witness import ENDING, Outcome, Seal, Witness, Witnessed
from tests.playbook import digest
from tests.recordings import CHAT, request, say, streamed
from tests.unit.proxy.test_recorder import PLAN

NOW = dt.datetime(2026, 11, 22, 5, 0, tzinfo=dt.UTC)
CANARY = "canary-7f3a"
KEEP = dt.timedelta(days=7)


class Ledger(ExchangeTrail):
    """Only who it is: nothing is written."""

    def __init__(self, stream: str, route: str = "chat", caller: str | None = "app1") -> None:
        self.stream, self.route, self.caller, self.witness = stream, route, caller, None


class Told:
    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.errors: list[BaseException | None] = []

    def evidence(self, outcome: Outcome, stream: str, error: BaseException | None = None) -> None:
        self.heard.append((outcome, stream))
        self.errors.append(error)


class Bench:
    """A witness that seals by turning bytes over, and remembers what it was given."""

    def __init__(self, folder: Path, most_bytes: int = 1 << 20, seal: Seal | None = None) -> None:
        self.folder = folder
        self.told = Told()
        self.found: list[Witnessed] = []

        def turned(found: Witnessed) -> bytes:
            self.found.append(found)
            return bytes(255 - byte for byte in found.transcript + found.released)

        def sealer(route: str, caller: str | None) -> Seal | None:
            assert route == "chat"
            return None if caller == "shy" else seal or turned

        self.witness = Witness(folder, most_bytes, KEEP, sealer, self.told, now=lambda: NOW)

    def run(self, ledger: Ledger, text: str = f"All is {CANARY}.", *, placed: bool = True) -> None:
        guard = machine_for(CHAT, PLAN, digest, stream=ledger.stream)
        followed = self.witness.follow(guard, CHAT, PLAN, ledger=ledger)
        events: list[AnyEvent] = [request(f"Tell me of {CANARY}."), *streamed(say([text]))]
        now = 1.0
        while events:
            commands: list[AnyCommand] = followed.receive(events.pop(0), now)
            now += 0.01
            events[:0] = [Scored(c.ticket, {"toy.alpha": 0.0}) for c in commands if isinstance(c, Score)]
            if placed and ledger.witness is not None and any(isinstance(c, Record) for c in commands):
                ledger.witness("c1", Sealed(7, "ab" * 32, b""))

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("[!.]*"))


def test_what_was_asked_and_sent_is_sealed_for_the_record_and_stands_nowhere_else(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "out")
    bench.run(Ledger("s1"))
    bench.witness.close()
    (found,) = bench.found
    assert (found.stream, found.route, found.caller, found.chain, found.seq) == ("s1", "chat", "app1", "c1", 7)
    assert found.hash == "ab" * 32
    assert CANARY.encode() in found.released
    transcript = decode(found.transcript)
    assert (transcript.header.route, transcript.header.outcome) == ("chat", "complete")
    assert CANARY.encode() in b"".join(x.event.body for x in transcript.lines if isinstance(x.event, RequestReceived))
    (file,) = bench.files()
    assert file.name.endswith(f"s1{ENDING}")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert CANARY.encode() not in file.read_bytes()
    assert bench.told.heard == [("sealed", "s1")]


def test_nothing_is_kept_of_those_who_want_none(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    ledger = Ledger("s1", caller="shy")
    bench.run(ledger)
    bench.witness.close()
    assert ledger.witness is None
    assert (bench.files(), bench.told.heard) == ([], [])


def test_without_a_record_there_is_no_evidence_and_the_room_is_given_back(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.run(Ledger("s1"), placed=False)
    bench.run(Ledger("s2"))
    bench.witness.close()
    gc.collect()
    assert bench.told.heard == [("sealed", "s2")]
    assert bench.witness._held == 0


def test_a_long_exchange_and_one_for_which_there_is_no_room_are_counted_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    monkeypatch.setattr(recorder, "_EXCHANGE_BYTES", 2000)
    bench.run(Ledger("s1"), text="long " * 1000)
    monkeypatch.setattr(recorder, "_EXCHANGE_BYTES", 1 << 20)
    monkeypatch.setattr(witness, "HELD_BYTES", 300)
    bench.run(Ledger("s2"), text="long " * 1000)
    monkeypatch.setattr(witness, "HELD_BYTES", 1 << 20)
    bench.run(Ledger("s3"))
    bench.witness.close()
    assert bench.told.heard == [("too_large", "s1"), ("overload", "s2"), ("sealed", "s3")]
    assert len(bench.files()) == 1


@pytest.mark.parametrize(("room", "refused"), [(1 << 20, False), (1500, True)])
def test_what_is_not_kept_takes_no_room_while_its_stream_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int, *, refused: bool
) -> None:
    monkeypatch.setattr(recorder, "_EXCHANGE_BYTES", 2000)
    monkeypatch.setattr(witness, "HELD_BYTES", room)
    bench = Bench(tmp_path)
    ledger = Ledger("s1")
    guard = machine_for(CHAT, PLAN, digest, stream=ledger.stream)
    still_open = bench.witness.follow(guard, CHAT, PLAN, ledger=ledger)
    still_open.receive(request("Hello."), 1.0)
    assert bench.witness._held > 0
    still_open.receive(UpstreamOpened(200, streaming=True), 1.0)
    for _ in range(30):
        still_open.receive(UpstreamBytes(b": " + b"x" * 100 + b"\n\n"), 1.0)
    assert isinstance(still_open, witness._Kept)
    assert (still_open.too_large, still_open.refused, bench.witness._held) == (True, refused, 0)
    bench.run(Ledger("s2"))
    del still_open
    bench.witness.close()
    gc.collect()
    assert (bench.told.heard, bench.witness._held) == ([("sealed", "s2")], 0)


def test_the_oldest_goes_to_make_room_and_is_counted(tmp_path: Path) -> None:
    bench = Bench(tmp_path, most_bytes=3000)
    for number in range(6):
        bench.run(Ledger(f"s{number}"))
    bench.witness.close()
    heard = [outcome for outcome, _ in bench.told.heard]
    assert heard.count("sealed") == 6
    assert 0 < len(bench.files()) == 6 - heard.count("dropped")
    assert sum(path.stat().st_size for path in bench.files()) <= 3000
    assert bench.files()[-1].name.endswith(f"s5{ENDING}")


def test_an_exchange_that_outlives_the_thread_ends_as_ever(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.witness.close()
    bench.run(Ledger("s1"))
    assert (bench.told.heard, bench.files()) == ([("dropped", "s1")], [])


def test_what_can_not_be_sealed_or_written_is_counted_and_costs_nobody_anything(tmp_path: Path) -> None:
    def broken(_: Witnessed) -> bytes:
        raise RuntimeError(CANARY)

    for seal, outcome in ((broken, "crashed"), (lambda _: None, "too_large")):
        bench = Bench(tmp_path / outcome, seal=seal)
        bench.run(Ledger("s1"))
        bench.witness.close()
        assert (bench.told.heard, bench.files()) == ([(outcome, "s1")], [])
    bench = Bench(tmp_path / "gone")
    shutil.rmtree(tmp_path / "gone")
    (tmp_path / "gone").write_text("a file")
    bench.run(Ledger("s1"))
    bench.witness.close()
    assert bench.told.heard == [("unwritable", "s1")]
