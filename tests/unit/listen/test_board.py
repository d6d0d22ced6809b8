"""What processes write down for each other to see."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.config import Quota
from checkstream.errors import Overloaded
from checkstream.listen import Admission, Who, board
from checkstream.listen.board import ELSEWHERE, NEAR, PAGES, Board, Pages

SECRET = b"s" * 32


@pytest.fixture
def shared() -> Iterator[int]:
    descriptor = board.make()
    yield descriptor
    os.close(descriptor)


def boards(descriptor: int, count: int) -> list[Board]:
    pages = Pages(descriptor, 0)
    return [Board(descriptor, pages.take(), SECRET) for _ in range(count)]


def admissions(
    descriptor: int, count: int, streams: int | None = None, held_bytes: int | None = None
) -> list[Admission]:
    quota = Quota(streams=streams, held_bytes=held_bytes)
    return [Admission(streams=100, held_bytes=1_000_000, quota=quota, board=each) for each in boards(descriptor, count)]


def test_each_sees_what_the_others_have_written_and_the_sum_of_it(shared: int) -> None:
    one, other, third = boards(shared, 3)
    key = one.key("streams", "", "caller a")
    assert key == other.key("streams", "", "caller a") != one.key("streams", "", "caller b")
    assert one.elsewhere(key) == 0
    assert other.write(key, 3)
    assert third.write(key, 4)
    assert [each.elsewhere(key) for each in (one, other, third)] == [7, 4, 3]
    assert one.highest_elsewhere(key) == 4
    assert other.write(key, 0)
    assert one.elsewhere(key) == 4


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from([1, 2, 4097, 8193, -1, -2, -4097]), st.integers(0, 99)),
        max_size=30,
    )
)
def test_what_stands_on_all_pages_are_sums_of_amounts_and_the_last_of_moments(
    written: list[tuple[int, int, int]],
) -> None:
    descriptor = board.make()
    processes, elsewhere = boards(descriptor, 3), Board(descriptor, ELSEWHERE, SECRET)
    os.close(descriptor)
    elsewhere.write(1, 1000)  # of other machines: none of ours
    model: dict[int, dict[int, int]] = {}
    for process, key, value in written:
        assert processes[process].write(key, value)
        model.setdefault(key, {})[process] = value
    joined = {key: (sum if key > 0 else max)(values.values()) for key, values in model.items()}
    assert elsewhere.totals() == {key: value for key, value in joined.items() if value}


def test_keys_say_by_their_sign_whether_they_are_of_amounts_or_of_moments(shared: int) -> None:
    (one,) = boards(shared, 1)
    for number in range(1000):
        assert 0 < one.key(str(number)) == -one.key_of_moment(str(number)) < 2**63


def test_a_board_of_a_parent_that_knew_no_other_machines_is_used(shared: int) -> None:
    os.ftruncate(shared, 8 * (PAGES + PAGES * 2 * board.PLACES))
    one, other = boards(shared, 2)
    Board(shared, ELSEWHERE, SECRET).write(5, 7)
    other.write(5, 1)
    assert one.elsewhere(5) == 8


def test_what_an_ended_process_had_is_given_up(shared: int) -> None:
    pages = Pages(shared, 0)
    page = pages.take()
    one, dead = Board(shared, pages.take(), SECRET), Board(shared, page, SECRET)
    key = one.key("k")
    dead.write(key, 5)
    pages.give(page)
    assert one.elsewhere(key) == 0
    assert pages.take() == page
    assert one.elsewhere(key) == 0


def test_parents_that_follow_each_other_give_out_other_pages(shared: int) -> None:
    elder, heir = Pages(shared, 0), Pages(shared, 1)
    taken = [elder.take() for _ in range(PAGES // 2)] + [heir.take() for _ in range(PAGES // 2)]
    assert sorted(taken) == list(range(PAGES))
    assert elder.take() == heir.take() == -1


@pytest.mark.parametrize("first", [1, 4096 + 4000, 4095])
def test_a_key_that_finds_no_room_is_told_and_has_it_when_another_is_over(shared: int, first: int) -> None:
    """Keys that want the same place: nobody outside can choose them, since they are hashes."""
    one, other = boards(shared, 2)
    keys = [first + 4096 * number for number in range(NEAR)]
    more = first + 4096 * NEAR
    assert all(one.write(key, number + 1) for number, key in enumerate(keys))
    assert not one.write(more, 1)
    assert one.write(more, 0), "nothing is nothing"
    assert other.elsewhere(more) == 0
    assert one.write(keys[7], 0)
    assert one.write(more, 9)
    assert [other.elsewhere(key) for key in (more, *keys)] == [9, 1, 2, 3, 4, 5, 6, 7, 0, *range(9, NEAR + 1)]


def test_a_page_has_room_for_two_thousand_callers(shared: int) -> None:
    one, other = boards(shared, 2)
    for day in range(5):  # whoever was there the days before
        keys = [one.key(str(day), str(number)) for number in range(2000)]
        assert all(one.write(key, number + 1) for number, key in enumerate(keys))
        assert [other.elsewhere(key) for key in keys] == list(range(1, 2001))
        assert all(one.write(key, 0) for key in keys)
    assert other.totals() == {}


KEYS = [*(1 + 4096 * number for number in range(70)), *(4095 + 4096 * number for number in range(70)), 2, 30, 65, 4090]


@given(st.lists(st.tuples(st.sampled_from([*KEYS, *(-key for key in KEYS)]), st.integers(0, 2)), max_size=300))
def test_a_page_says_what_a_table_of_python_says_of_all_that_it_had_room_for(written: list[tuple[int, int]]) -> None:
    descriptor = board.make()
    one, other = boards(descriptor, 2)
    os.close(descriptor)
    model: dict[int, int] = {}
    for key, value in written:
        if one.write(key, value):
            model[key] = value
        else:
            assert value, "nothing is nothing"
            assert not model.get(key), "who is there has room"
    assert {key: other.elsewhere(key) for key in model} == model
    assert other.totals() == {key: value for key, value in model.items() if value}


class Watched:
    """The words of a board, with a count of those that are read, and a look after each that is written."""

    def __init__(self, words: memoryview) -> None:
        self.words = words
        self.read = 0
        self.look: Callable[[], None] = lambda: None

    def __getitem__(self, at: int | slice) -> Any:
        got = self.words[at]
        self.read += len(got) if isinstance(got, memoryview) else 1
        return got

    def __setitem__(self, at: int, value: int) -> None:
        self.words[at] = value
        self.look()


def watched(each: Board) -> Watched:
    words = Watched(each._words)
    each._words = cast("memoryview", words)
    return words


def test_g33_a_look_at_a_page_costs_the_same_whoever_was_there_before(shared: int) -> None:
    own, elsewhere = *boards(shared, 1), Board(shared, ELSEWHERE, SECRET)
    words, counted = watched(own), []
    for turn in range(600):  # 36,000 callers of other machines, and as many of this process
        elsewhere.replace({elsewhere.key("far", str(turn), str(number)): 1 for number in range(60)})
        for number in range(60):
            key = own.key("near", str(turn), str(number))
            assert own.write(key, 1)
            assert own.write(key, 0)
        words.read = 0
        assert own.elsewhere(own.key("never", str(turn))) == 0
        assert own.write(own.key("new", str(turn)), 1)
        own.write(own.key("new", str(turn)), 0)
        counted.append(words.read)
    assert max(counted) <= PAGES + 4 * (NEAR + 4)


@given(
    *[st.dictionaries(st.sampled_from(KEYS[::2]), st.integers(1, 9), max_size=60) for _ in range(2)],
)
def test_who_looks_while_a_page_is_replaced_finds_all_that_stays(before: dict[int, int], after: dict[int, int]) -> None:
    descriptor = board.make()
    elsewhere, (own,) = Board(descriptor, ELSEWHERE, SECRET), boards(descriptor, 1)
    os.close(descriptor)
    elsewhere.replace(dict.fromkeys(KEYS, 1))  # others were there, and are gone
    elsewhere.replace(before)
    words = watched(elsewhere)

    def look() -> None:
        for key in before.keys() & after.keys():
            assert own.elsewhere(key) in (before[key], after[key])

    words.look = look
    assert elsewhere.replace(after)
    assert {key: own.elsewhere(key) for key in KEYS} == {key: after.get(key, 0) for key in KEYS}


def test_g22_a_quota_counts_over_all_processes(shared: int) -> None:
    one, other = admissions(shared, 2, streams=3)
    who = Who("app1")
    visits = []
    for admission in (one, other, other):
        visits.append(admission.visit(who))
        visits[-1].enter()
    for admission in (one, other):
        with pytest.raises(Overloaded, match="you have 3 streams"):
            admission.visit(who).enter()
        admission.visit(Who("app2")).enter()  # another's is another's
    visits[1].leave()
    again = one.visit(who)
    again.enter()
    with pytest.raises(Overloaded):
        other.visit(who).enter()


def test_g22_two_that_take_the_last_at_the_same_moment_never_both_get_it(shared: int) -> None:
    """Each writes first and looks then; here the other has written between the two."""
    one, other = admissions(shared, 2, streams=1)
    places = [each.place("streams", Who("a")) for each in (one, other)]
    for place in places:
        assert place.add(1)
    assert not any(place.fits(0) for place in places)
    places[0].give(1)
    assert places[1].fits(0)


def test_what_is_given_out_without_a_quota_is_each_process_s_own(shared: int) -> None:
    one, other = admissions(shared, 2)
    for _ in range(60):
        one.visit(Who("a")).enter()
    other.visit(Who("a")).enter()


async def test_a_route_that_one_sheds_the_others_shed_too(shared: int) -> None:
    one, other = admissions(shared, 2)
    one.shed("chat")
    for each in (one, other):
        with pytest.raises(Overloaded):
            each.look_whether_shed("chat")
        each.look_whether_shed("else")


async def test_a_body_that_waits_for_what_another_process_has_is_let_in_when_that_gives_it_back(shared: int) -> None:
    one, other = admissions(shared, 2, held_bytes=4096)
    has, waits = one.visit(Who("a")), other.visit(Who("a"))
    await has.upload(2000)
    waiting = asyncio.create_task(waits.upload(1000))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    has.leave()
    await asyncio.wait_for(waiting, 2)
    assert waits.uploaded == 1000


def test_who_got_no_page_takes_nothing_that_counts_and_writes_on_nobodys() -> None:
    descriptor = board.make()
    pages = Pages(descriptor, 1)
    given = [pages.take() for _ in range(PAGES // 2)]
    assert pages.take() == -1
    last, none = Board(descriptor, given[-1], SECRET), Board(descriptor, -1, SECRET)
    for number in range(200):
        key = last.key("streams", str(number))
        assert last.write(key, 1)
        assert not none.write(key, 1)
        assert none.write(key, 0)
        assert (none.elsewhere(key), last.elsewhere(key)) == (1, 0)
    os.close(descriptor)
