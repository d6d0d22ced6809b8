"""What one request has of the process's room, and what it is told when there is none."""

from __future__ import annotations

import asyncio

import pytest

from checkstream.config import Quota
from checkstream.errors import BodyTooLarge, Overloaded
from checkstream.listen import Admission, Visit, Who
from checkstream.listen.callers import network_of

A, B = Who("a", "192.0.2.1"), Who("b", "192.0.2.1")


def running(admission: Admission, who: Who, quota: Quota | None = None) -> Visit:
    visit = admission.visit(who)
    visit.begin([("r", quota)])
    visit.enter("r", quota)
    return visit


async def test_places_are_counted_and_refused() -> None:
    admission = Admission(streams=2, held_bytes=1000)
    with (
        running(admission, A),
        running(admission, A),
        pytest.raises(Overloaded, match="2 streams run, which is the limit"),
    ):
        running(admission, A)
    assert (admission.streams, admission.held_bytes) == (0, 0)


async def test_who_waits_for_the_last_exchange_is_told_of_its_end() -> None:
    told: list[int] = []
    admission = Admission(streams=2, held_bytes=1000, when_idle=lambda: told.append(admission.streams))
    with running(admission, A):
        with running(admission, B):
            pass
        assert told == []
    assert told == [0]
    await admission.wait_idle(0.01)


async def test_g33_one_caller_has_its_share_and_another_still_finds_a_place() -> None:
    admission = Admission(streams=8, held_bytes=1000, quota=Quota())
    taken = [running(admission, A) for _ in range(6)]
    with pytest.raises(Overloaded, match="you have 6 streams, which is your share of 8"):
        running(admission, A)
    running(admission, B)
    taken[0].leave()
    with pytest.raises(Overloaded):  # B has some of it now, so there is less for one
        running(admission, A)


async def test_a_route_allows_less_and_by_address() -> None:
    admission = Admission(streams=8, held_bytes=1000, quota=Quota())
    quota = Quota(streams=1, per="address")
    with running(admission, A, quota):
        with pytest.raises(Overloaded, match="you have 1 streams, and your quota is 1"):
            running(admission, B, quota)
        running(admission, B).leave()
    running(admission, B, quota).leave()


async def test_g33_sockets_that_send_only_a_head_hold_no_place_of_a_stream() -> None:
    admission = Admission(streams=8, held_bytes=1000, quota=Quota())
    waiting = [admission.visit(A) for _ in range(6)]
    for visit in waiting:
        visit.begin()
    with pytest.raises(Overloaded, match="bodies are still to come"):
        admission.visit(A).begin()
    assert admission.streams == 0
    with running(admission, B):
        assert admission.streams == 1


async def test_g22_a_body_waits_for_room_and_gets_it_when_there_is() -> None:
    admission = Admission(streams=8, held_bytes=2000, quota=Quota())
    first, second, other = admission.visit(A), admission.visit(A), admission.visit(B)
    await first.upload(700)
    waiting = asyncio.create_task(second.upload(200))
    await asyncio.sleep(0)
    assert not waiting.done()
    await other.upload(200)
    assert admission.held_bytes == 900
    first.leave()
    await asyncio.wait_for(waiting, 1)
    second.leave()
    other.leave()
    assert admission.held_bytes == 0


async def test_g22_a_body_that_finds_no_room_in_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkstream.listen.admission._WAIT_S", 0.01)
    admission = Admission(streams=8, held_bytes=2000, quota=Quota(held_bytes=2048))
    first = admission.visit(A)
    await first.upload(700)
    with pytest.raises(Overloaded, match="700 bytes of request bodies"):
        await admission.visit(A).upload(700)
    with pytest.raises(BodyTooLarge, match="room"):
        await admission.visit(B).upload(1001)


async def test_an_answer_reads_on_when_another_lets_go() -> None:
    admission = Admission(streams=4, held_bytes=1 << 20, quota=Quota())
    one, two = running(admission, A), running(admission, A)
    asked: list[str] = []
    for visit in (one, two):
        while visit.has_room(lambda: asked.append("again")):
            visit.hold(16_384)
    assert asked == []
    one.hold(-one.held)
    assert asked
    assert two.has_room(lambda: None)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_g33_an_ipv6_network_is_one_address(address: str, network: str) -> None:
    assert network_of(address) == network
