"""Room and its shares: never more than there is, nothing lost whatever the order, and always something for the next."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.config import Quota
from checkstream.errors import Overloaded
from checkstream.listen import Admission, Visit, Who
from checkstream.listen.admission import PIECE_BYTES
from checkstream.listen.room import Room
from tests.chance import examples

PARTIES = ["a", "b", "c", "d"]
steps = st.lists(
    st.tuples(st.sampled_from(PARTIES), st.sampled_from(["take", "give"]), st.integers(1, 40)), max_size=60
)


@settings(max_examples=examples(300), deadline=None)
@given(steps, st.integers(1, 120), st.none() | st.integers(1, 60))
def test_g33_shares_are_never_more_than_there_is_and_come_back_whole(
    taken: list[tuple[str, str, int]], whole: int, most: int | None
) -> None:
    room, has = Room(whole), dict.fromkeys(PARTIES, 0)
    for party, what, amount in taken:
        if what == "take" and room.fits(party, amount, most):
            room.add(party, amount)
            has[party] += amount
        elif what == "give":
            room.give(party, min(amount, has[party]))
            has[party] -= min(amount, has[party])
        assert room.taken == sum(has.values()) <= whole
        assert [room.of(party) for party in PARTIES] == list(has.values())
        assert most is None or max(has.values()) <= most
    for party, left in has.items():
        room.give(party, left)
    assert room.taken == 0
    assert room._of == {}


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(4, 500), st.integers(1, 8))
def test_g33_however_many_take_what_they_can_something_is_left_for_the_next(whole: int, greedy: int) -> None:
    room = Room(whole)
    taking = True
    while taking:
        taking = False
        for number in range(greedy):
            if room.fits(f"greedy {number}"):
                room.add(f"greedy {number}")
                taking = True
    if greedy == 1:
        assert room.taken == whole * 3 // 4
    if whole > 4 * greedy:
        assert room.fits("next")
        assert room.whole - room.taken >= whole // (3 * greedy + 1)
        shares = [room.of(f"greedy {number}") for number in range(greedy)]
        assert max(shares) - min(shares) <= 1


OPERATIONS = st.lists(
    st.tuples(
        st.integers(0, 11),
        st.sampled_from(["begin", "enter", "upload", "hold", "let go", "leave"]),
        st.integers(1, 40_000),
    ),
    max_size=80,
)


def carry_out(visit: Visit, what: str, amount: int, of_route: Quota | None) -> None:
    """Do one thing with a request, where it means something."""
    running = visit._has["streams"] == 1
    if what == "begin" and not running and not visit._has["bodies"]:
        visit.begin([("r", of_route)])
    elif what == "enter" and not running:
        visit.enter("r", of_route)
    elif what == "hold" and running and visit.has_room(lambda: None):
        visit.hold(min(amount, PIECE_BYTES))
    elif what == "let go" and running:
        visit.hold(-min(amount, visit.held))
    elif what == "leave":
        visit.leave()


@settings(max_examples=examples(200), deadline=None)
@given(OPERATIONS, st.none() | st.builds(Quota, streams=st.integers(1, 4), per=st.sampled_from(["caller", "address"])))
def test_g22_whatever_comes_and_goes_nothing_is_left_over(
    operations: list[tuple[int, str, int]], of_route: Quota | None
) -> None:
    streams, held_bytes = 6, 400_000
    admission = Admission(streams=streams, held_bytes=held_bytes, quota=Quota())
    visits: dict[int, Visit] = {}
    for number, what, amount in operations:
        if number not in visits:
            visits[number] = admission.visit(Who(PARTIES[number % 3], f"192.0.2.{number % 2}"))
        with contextlib.suppress(Overloaded):
            carry_out(visits[number], what, amount, of_route)
        if what == "leave":
            del visits[number]
        assert admission.streams <= streams
        assert admission.held_bytes <= held_bytes // 2
        for rooms in (admission._rooms, *admission._of_routes.values()):
            assert all(room.taken <= room.whole for room in rooms.of.values())
        if of_route is not None and "r" in admission._of_routes:
            places = admission._of_routes["r"].of["streams"]
            parties = {visit._who.party(of_route.per) for visit in visits.values()}
            assert all(places.of(party) <= (of_route.streams or 0) for party in parties)
    for visit in visits.values():
        visit.leave()
        visit.leave()
    assert (admission.streams, admission.held_bytes, len(admission.answers_waiting)) == (0, 0, 0)
    for rooms in (admission._rooms, *admission._of_routes.values()):
        assert all(room.taken == 0 for room in rooms.of.values())


@pytest.mark.parametrize("streams", [4, 40, 400])
def test_g33_what_one_caller_holds_keeps_no_others_answer_waiting(streams: int) -> None:
    admission = Admission(streams=streams, held_bytes=streams * 400_000, quota=Quota())
    greedy: list[Visit] = []
    with contextlib.suppress(Overloaded):
        while True:
            visit = admission.visit(Who("greedy", "192.0.2.1"))
            visit.begin()
            visit.enter()
            greedy.append(visit)
    for visit in greedy:
        while visit.held < 1 << 24 and visit.has_room(lambda: None):
            visit.hold(PIECE_BYTES)
    assert len(greedy) == streams * 3 // 4
    other = admission.visit(Who("other", "192.0.2.2"))
    other.begin()
    other.enter()
    asked: list[bool] = []
    while other.held + PIECE_BYTES <= admission.own_bytes:
        assert other.has_room(lambda: asked.append(True))
        other.hold(PIECE_BYTES)
    assert admission.held_bytes <= streams * 200_000
    assert asked == []
