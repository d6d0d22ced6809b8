"""What a machine says of its board, what others come to, and what becomes of it when the store is away."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.config import FleetSettings, Quota, Secret
from checkstream.core.commands import ConfirmationWanted, Reply
from checkstream.errors import NotReady, Overloaded, VaultFailed
from checkstream.listen import Admission, Who, board
from checkstream.listen.board import ELSEWHERE, Board, Pages
from checkstream.processes import fleet as fleets
from checkstream.processes.fleet import Fleet, heard, open_fleet, told
from checkstream.processes.fleet_store import FleetStore
from checkstream.proxy.confirm import CONFIRM, Asked, Confirmations
from checkstream.sealed.sealing import Owner, Seal
from checkstream.telemetry.logs import open_log
from tests.redis_server import RedisServer

SECRET = b"s" * 32
AMOUNT = st.integers(1, 2**62)
TOTALS = st.dictionaries(AMOUNT, st.integers(0, 2**48), max_size=20)
ASKED = Asked(caller="a", route="r", program="p", context=None, body=b"{}")


@given(st.lists(TOTALS, max_size=5))
def test_amounts_add_up_over_machines(machines: list[dict[int, int]]) -> None:
    found = heard([told(totals, 0) for totals in machines], 0)
    assert found == {
        key: total
        for key in {key for totals in machines for key in totals}
        if (total := sum(totals.get(key, 0) for totals in machines))
    }


@given(AMOUNT, st.lists(st.tuples(st.integers(0, 2**40), st.integers(-5000, 5000)), min_size=1, max_size=5))
def test_of_moments_the_last_counts_on_whatever_clock_each_machine_has(
    key: int, machines: list[tuple[int, int]]
) -> None:
    said = [told({-key: clock + ahead}, clock) for clock, ahead in machines]
    last = max(ahead for _, ahead in machines)
    assert heard(said, 7_000) == ({-key: 7_000 + last} if last > 0 else {})


def test_a_key_that_says_that_a_place_is_empty_is_not_kept() -> None:
    assert heard([{0: 7, 1: 1}, {0: 7}], 0) == {1: 1}


def test_more_than_a_page_has_room_for_is_not_said_and_not_kept() -> None:
    many = dict.fromkeys(range(1, 10_000), 1)
    assert len(told(many, 0)) == board.PLACES - 2
    assert len(heard([dict.fromkeys(range(at, at + 3000), 1) for at in (1, 3001)], 0)) == board.PLACES - 2


@pytest.fixture
def shared() -> Iterator[int]:
    descriptor = board.make()
    yield descriptor
    os.close(descriptor)


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


class Machine:
    """One of a fleet, with the boards of two processes."""

    def __init__(self, server: RedisServer, secret: bytes = SECRET, name: str = "f") -> None:
        self.fleet = Fleet(FleetStore(server.url, name), secret)
        descriptor = board.make()
        pages = Pages(descriptor, 0)
        self.one, self.other = (self.fleet.board(descriptor, pages.take()) for _ in range(2))
        self.logged, self.shown = io.BytesIO(), list[int]()
        log = open_log("json", self.logged, terminal=False)
        self.serving = asyncio.ensure_future(self.fleet.serve(self.fleet.board(descriptor), log, self.shown.append))
        os.close(descriptor)

    def events(self) -> list[str]:
        return [msgspec.json.decode(line)["event"] for line in self.logged.getvalue().splitlines()]

    async def end(self) -> None:
        self.serving.cancel()
        await asyncio.gather(self.serving, return_exceptions=True)
        self.fleet.close()


async def until(holds: Callable[[], bool], timeout_s: float = 8.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not holds():  # noqa: ASYNC110 - what is waited for is told to nobody
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def answering(answer: Callable[[bytes], bytes]) -> AsyncIterator[str]:
    """Serve what Redis never would, and yield where."""

    writers, ended = list[asyncio.StreamWriter](), list[asyncio.Event]()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        ended.append(over := asyncio.Event())
        with contextlib.suppress(ConnectionError):
            while question := await reader.read(65_536):
                writer.write(answer(question))
        writer.close()
        over.set()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in writers:
            writer.close()
        for each in ended:
            await each.wait()


def listed(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


async def test_what_processes_of_a_machine_have_is_seen_by_those_of_all_others(
    server: RedisServer, shared: int
) -> None:
    machines = [Machine(server, name="seen") for _ in range(3)]
    first, second, _ = machines
    key, moment = first.one.key("streams", "", "a"), first.one.key_of_moment("shed", "chat")
    assert key == second.other.key("streams", "", "a") != Board(shared, 0, b"o" * 32).key("streams", "", "a")
    first.one.write(key, 2)
    first.other.write(key, 3)
    second.one.write(key, 10)
    until_ms = round(time.monotonic() * 1000) + 60_000
    first.one.write(moment, until_ms)
    await until(lambda: [each.one.elsewhere(key) for each in machines] == [13, 5, 15])
    assert [each.other.elsewhere(key) for each in machines] == [12, 15, 15]
    assert abs(second.one.highest_elsewhere(moment) - until_ms) < 1000
    first.one.write(key, 0)
    await until(lambda: machines[2].one.elsewhere(key) == 13)
    await second.end()
    await until(lambda: first.shown[-1] == 2)
    assert first.other.elsewhere(key) == 0
    for each in (first, machines[2]):
        await each.end()


async def test_g22_quotas_and_refusals_of_a_route_are_those_of_all_machines(server: RedisServer) -> None:
    machines = [Machine(server, name="quotas") for _ in range(2)]
    quota, who = Quota(streams=2, held_bytes=4096), Who("a")
    one, other = (Admission(streams=100, held_bytes=1_000_000, quota=quota, board=each.one) for each in machines)
    visits = [one.visit(who) for _ in range(2)]
    for visit in visits:
        visit.enter()
    await visits[0].upload(2000)
    place = other.place("streams", who)
    await until(lambda: place.has == 2)
    with pytest.raises(Overloaded, match="you have 2 streams"):
        other.visit(who).enter()
    other.visit(Who("b")).enter()
    waits = other.visit(who)
    waiting = asyncio.ensure_future(waits.upload(1000))
    await asyncio.sleep(0.3)
    assert not waiting.done(), "the other machine holds the bytes of this caller"
    visits[0].leave()
    await asyncio.wait_for(waiting, 3)
    one.shed("chat")
    key = machines[1].one.key_of_moment("shed", "chat")
    await until(lambda: machines[1].one.highest_elsewhere(key) > 0)
    with pytest.raises(Overloaded, match="checks take longer"):
        other.look_whether_shed("chat")
    other.look_whether_shed("another route")
    await asyncio.sleep(1.1)
    other.look_whether_shed("chat")
    for each in machines:
        await each.end()


async def test_who_has_another_secret_is_no_machine_of_this_fleet(server: RedisServer) -> None:
    ours, strangers = Machine(server, name="one name"), Machine(server, b"o" * 32, name="one name")
    strangers.one.write(ours.one.key("k"), 5)
    await until(lambda: len(ours.shown) > 4 and len(strangers.shown) > 4)
    assert set(ours.shown[1:]) == set(strangers.shown[1:]) == {1}
    assert ours.one.elsewhere(ours.one.key("k")) == 0
    for each in (ours, strangers):
        await each.end()


async def test_pages_that_are_ours_and_make_no_sense_are_passed_over(server: RedisServer) -> None:
    machine = Machine(server, name="no sense")
    store = FleetStore(server.url, "no sense")
    for at, content in enumerate((b"", b"\xc1", b"[1]", {"a": 1}, {1: -1}, {1: 2**60}, {2**64 - 1: 1}, {1: 1.5})):
        body = content if isinstance(content, bytes) else msgspec.msgpack.encode(content)
        sealed = Seal(machine.fleet.secret_of("pages")).sealed(Owner(f"n{at}", "", "what callers have"), body)
        await asyncio.to_thread(store.exchange, f"n{at}", sealed, 60.0)
    await until(lambda: len(machine.shown) > 3)
    assert set(machine.shown) == {1}
    assert machine.one.elsewhere(1) == 0
    await machine.end()
    store.close()


async def test_what_is_too_old_is_given_up_also_where_the_store_only_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleets, "_KEEP_S", 0.3)
    with RedisServer() as server:
        machine, other = Machine(server), Machine(server)
        key = machine.one.key("k")
        other.one.write(key, 7)
        await until(lambda: machine.one.elsewhere(key) == 7)
        assert machine.events() == ["fleet.joined"]
        known = Confirmations(together=machine.fleet.together(machine.one))
        token = (
            known.open(ASKED, ())
            .respond(Reply(409, b'{"error":{}}', confirm=ConfirmationWanted(("R-1",), 60, "p")), {})
            .headers[CONFIRM]
        )
        os.kill(server.process_id, 19)
        await until(lambda: machine.one.elsewhere(key) == 0, 0.9)
        await until(lambda: machine.shown[-1] == 0)
        with pytest.raises(NotReady):
            await asyncio.to_thread(known.open, ASKED, (token,))
        os.kill(server.process_id, 18)
        await until(lambda: machine.one.elsewhere(key) == 7)
        await until(lambda: machine.shown[-1] == 2)
        assert machine.events() == ["fleet.joined", "fleet.away", "fleet.joined"]
        await asyncio.sleep(1.1)
        at_other = Confirmations(together=other.fleet.together(other.other))
        assert (await asyncio.to_thread(at_other.open, ASKED, (token,))).rules == ("R-1",), "the same server goes on"
        assert (await asyncio.to_thread(known.open, ASKED, (token,))).rules == ()
        for each in (machine, other):
            await each.end()


async def test_who_begins_while_the_store_is_away_joins_when_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleets, "_KEEP_S", 0.3)
    with RedisServer() as server:
        server.kill()
        machine = Machine(server)
        await until(lambda: machine.events() == ["fleet.away"])
        known = Confirmations(together=machine.fleet.together(machine.one))
        wanted = Reply(409, b'{"error":{}}', confirm=ConfirmationWanted(("R-1",), 60, "p"))
        early = known.open(ASKED, ()).respond(wanted, {}).headers[CONFIRM]
        with pytest.raises(NotReady):
            await asyncio.to_thread(known.open, ASKED, (early,))
        server.start()
        await until(lambda: machine.events() == ["fleet.away", "fleet.joined"])
        opened = await asyncio.to_thread(known.open, ASKED, (early,))
        assert opened.rules == (), "nobody knew then what would remember it"
        later = opened.respond(wanted, {}).headers[CONFIRM]
        assert (await asyncio.to_thread(known.open, ASKED, (later,))).rules == ("R-1",)
        await machine.end()


@pytest.mark.parametrize(
    "answer", [b":1\r\n", b"*1\r\n:1\r\n", b"*3\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\nx\r\n", b"HTTP/1.1 400\r\n"]
)
async def test_a_server_that_answers_what_redis_never_does_is_away_and_leaves_nothing_old(
    shared: int, answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleets, "_KEEP_S", 0.2)

    async with answering(lambda _: answer) as url:
        fleet = Fleet(FleetStore(url, "f"), SECRET)
        elsewhere, own = fleet.board(shared), fleet.board(shared, Pages(shared, 0).take())
        elsewhere.write(5, 9)
        logged = io.BytesIO()
        log = open_log("json", logged, terminal=False)
        serving = asyncio.ensure_future(fleet.serve(elsewhere, log, lambda _: None))
        await until(lambda: own.elsewhere(5) == 0)
        await until(lambda: b"fleet.away" in logged.getvalue())
        assert not serving.done()
        serving.cancel()
        await asyncio.to_thread(fleet.close)


@pytest.mark.parametrize(
    "said",
    [
        (b"1", b"0"),
        (b"1", b"-5"),
        (b"1", b"1000000000000000000"),
        (b"1", b"9" * 30),
        (b"0", b"5"),
        (b"-1", b"5"),
        (b"100000000000000", b"5"),
        (b"9" * 30, b"5"),
        (b"1.5", b"5"),
        (b"1",),
    ],
)
async def test_a_time_or_a_number_that_no_store_has_is_refused(said: tuple[bytes, ...]) -> None:
    async with answering(lambda _: listed(*said)) as url:
        store = FleetStore(url, "f")
        with pytest.raises(VaultFailed):
            await asyncio.to_thread(store.exchange, "a", b"", 3.0)
        store.close()


@pytest.mark.parametrize(
    "told",
    [
        b":1\r\n",
        b"$-1\r\n",
        b"*1\r\n*-1\r\n",
        b"$21\r\nmaxmemory:abc\r\na:b=c,\r\n",
        b"$13\r\nmaxmemory:a=b\r\n",
        b"$9\r\nmaxmemory:abc\r\na:b=c,\r\n",
        b"$3\r\n\xff\xfe:\r\n",
        b"-ERR no\r\n",
        b"rubbish\r\n",
    ],
)
async def test_a_store_that_says_odd_things_of_its_settings_is_used_all_the_same(shared: int, told: bytes) -> None:
    def answer(question: bytes) -> bytes:
        if b"$4\r\nINFO" in question:
            return told
        return b"+OK\r\n" if b"CLIENT" in question else listed(b"1700000000000", b"5")

    async with answering(answer) as url:
        fleet, logged, shown = Fleet(FleetStore(url, "f"), SECRET), io.BytesIO(), list[int]()
        log = open_log("json", logged, terminal=False)
        serving = asyncio.ensure_future(fleet.serve(fleet.board(shared), log, shown.append))
        await until(lambda: len(shown) > 2)
        assert set(shown) == {1}
        assert not serving.done()
        assert b"fleet.joined" in logged.getvalue()
        assert b"fleet.away" not in logged.getvalue()
        serving.cancel()
        await asyncio.to_thread(fleet.close)


async def test_more_than_machines_can_tell_each_other_is_logged_once(server: RedisServer) -> None:
    machine = Machine(server, name="full")
    await until(lambda: machine.events() == ["fleet.joined"])
    keys = range(1, 4097)
    for at in range(1, len(keys), 2):  # on two pages: each has room for it
        assert machine.one.write(keys[at - 1], 1)
        assert machine.other.write(keys[at], 1)
    await until(lambda: "fleet.full" in machine.events())
    turns = len(machine.shown)
    await until(lambda: len(machine.shown) > turns + 3)
    assert machine.events() == ["fleet.joined", "fleet.full"]
    await machine.end()


async def test_confirmations_wait_while_another_parent_speaks_to_another_store_or_with_another_secret(
    server: RedisServer, shared: int
) -> None:
    """What it knows of its own store is not taken for what this one would say."""
    elder = Fleet(FleetStore(server.url, "elder"), SECRET)
    spoken = io.BytesIO()
    log = open_log("json", spoken, terminal=False)
    serving = asyncio.ensure_future(elder.serve(elder.board(shared), log, lambda _: None))
    own = Pages(shared, 1).take()
    await until(lambda: elder.together(elder.board(shared, own)).is_known())
    elder.warn_if_unknown(shared, log)
    assert b"fleet.waits" not in spoken.getvalue()
    wanted = Reply(409, b'{"error":{}}', confirm=ConfirmationWanted(("R-1",), 60, "p"))
    with RedisServer() as moved:
        for heir in (
            Fleet(FleetStore(server.url, "heir"), b"o" * 32, elder.machine),
            Fleet(FleetStore(moved.url, "elder"), SECRET, elder.machine),
        ):
            known = Confirmations(together=heir.together(heir.board(shared, own)))
            token = known.open(ASKED, ()).respond(wanted, {}).headers[CONFIRM]
            with pytest.raises(NotReady):
                await asyncio.to_thread(known.open, ASKED, (token,))
            assert known.open(ASKED, ("x" * 80,)).rules == (), "rubbish is none, whatever is known"
            logged = io.BytesIO()
            heir.warn_if_unknown(shared, open_log("json", logged, terminal=False))
            assert b"fleet.waits" in logged.getvalue()
            heir.close()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        heir = Fleet(FleetStore(moved.url, "elder"), SECRET, elder.machine)
        serving = asyncio.ensure_future(heir.serve(heir.board(shared), log, lambda _: None))
        known = Confirmations(together=heir.together(heir.board(shared, own)))
        await until(lambda: heir.together(heir.board(shared, own)).is_known())
        token = known.open(ASKED, ()).respond(wanted, {}).headers[CONFIRM]
        assert (await asyncio.to_thread(known.open, ASKED, (token,))).rules == ("R-1",)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        for each in (elder, heir):
            each.close()


def test_a_page_of_other_machines_is_replaced_as_a_whole(shared: int) -> None:
    elsewhere, own = Board(shared, ELSEWHERE, SECRET), Board(shared, Pages(shared, 0).take(), SECRET)
    elsewhere.replace({1: 1, 4097: 2, -3: 3})
    assert [own.elsewhere(key) for key in (1, 4097, -3)] == [1, 2, 3]
    elsewhere.replace({4097: 5})
    assert [own.elsewhere(key) for key in (1, 4097, -3)] == [0, 5, 0]
    assert elsewhere.replace(dict.fromkeys(range(10_000, 14_000), 1))
    assert not elsewhere.replace(dict.fromkeys(range(10_000, 15_000), 1))
    assert sum(own.elsewhere(key) for key in range(10_000, 15_000)) == board.PLACES
    assert elsewhere.replace({1: 1})
    assert own.elsewhere(1) == 1


def test_a_fleet_is_named_by_its_secret_and_wants_a_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEET", "x" * 31)
    settings = FleetSettings(store="redis://h", secret=Secret(env="FLEET"))
    with pytest.raises(VaultFailed, match="secret of `fleet` has 31 bytes"):
        open_fleet(settings)
    assert open_fleet(None) is None
    prefixes = set()
    for secret in ("x" * 32, "y" * 32):
        monkeypatch.setenv("FLEET", secret)
        fleet = open_fleet(settings, "n")
        assert fleet is not None
        assert fleet.machine == "n"
        prefixes.add(fleet._store._prefix)
        assert secret not in fleet._store._prefix
        fleet.close()
    assert len(prefixes) == 2
