"""Laws of admission: running answers have what they need, callers have fair shares, an idle process refuses nobody."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.errors import Overloaded
from checkstream.proxy.capacity import FOR_MODEST, GUESS, STEADY_BYTES_PER_S, Capacity, Load
from tests.chance import examples

EVERY_S = 0.25


class Machine:
    """A process that can do so much: answers bring text at their rate, as far as it is read."""

    def __init__(self, need: float, rate: float = 10_000.0, limit: float = 0.9) -> None:
        self.capacity = Capacity(limit)
        self.need = need
        self.rate = rate
        self.running: list[Load] = []
        self.refused = 0
        self.waits: list[int] = []
        """What those heard that were refused: when to come back, seconds."""
        self.worst = 0.0

    def ask(self, count: int, caller: str = "") -> int:
        """Ask for places; return how many were admitted."""
        admitted = 0
        for _ in range(count):
            try:
                self.running.append(self.capacity.admit(caller))
                admitted += 1
            except Overloaded as error:
                self.waits.append(error.retry_after_s)
                self.refused += 1
        return admitted

    def tick(self, *, answering: int | None = None) -> None:
        """Let a quarter of a second pass, in which some of those that run bring text."""
        bring = self.running[:answering]
        wanted = self.need * len(bring)
        self.worst = max(self.worst, wanted)
        share = min(1.0, 1.0 / wanted) if wanted else 1.0
        for load in bring:
            load.took(max(1, int(self.rate * EVERY_S * share)))
        self.capacity.measure(EVERY_S, min(wanted, 1.0))

    def learn(self) -> None:
        """Find out what an answer needs, and be idle again."""
        self.ask(math.ceil(0.3 / self.need))
        for _ in range(20):
            self.tick()
        assert self.capacity.need == pytest.approx(self.need, rel=0.01)
        self.end(len(self.running))
        self.worst, self.refused = 0.0, 0

    def end(self, count: int) -> None:
        for load in self.running[:count]:
            load.end()
        del self.running[:count]


@settings(max_examples=examples(25))
@given(need=st.floats(0.005, 0.025), turnover=st.floats(0.01, 0.2))
def test_g32_offered_three_times_what_it_can_do_it_takes_nine_tenths_and_never_too_much(
    need: float, turnover: float
) -> None:
    machine = Machine(need)
    most = 1 / need
    machine.learn()
    taken: list[float] = []
    machine.ask(3 * math.ceil(most))
    for _ in range(80):
        machine.end(max(1, round(len(machine.running) * turnover)))
        machine.ask(3 * math.ceil(most * turnover))
        machine.tick()
        taken.append(len(machine.running) / most)
    assert machine.worst <= 1.0
    assert sum(taken) / len(taken) >= 0.9 * 0.9 - need
    assert machine.refused


@given(need=st.floats(0.01, 0.025))
def test_g32_a_burst_is_admitted_by_what_it_will_need_before_any_of_it_brings_text(need: float) -> None:
    machine = Machine(need)
    machine.learn()
    admitted = machine.ask(200)
    for _ in range(4):
        machine.tick()
    assert machine.worst <= 0.9 + 1e-9
    assert admitted >= 0.85 / need - 1


@given(read=st.integers(0, 12), turns=st.integers(1, 15))
def test_g32_the_fewer_are_read_where_there_is_too_much_the_more_are_not_admitted(read: int, turns: int) -> None:
    machine = Machine(0.02)
    machine.learn()
    machine.ask(45)
    for _ in range(4):
        machine.tick()
    for turn in range(turns):  # others take the core: of those that run, few get so far as to bring anything
        for at in range(read):
            machine.running[(turn * read + at) % len(machine.running)].took(2500)
        machine.capacity.measure(EVERY_S, 1.0)
        assert machine.ask(40) == 0
        machine.end(1)


def test_g32_answers_whose_upstream_is_silent_keep_nobody_out() -> None:
    machine = Machine(0.02)
    machine.learn()
    assert 44 <= machine.ask(60) <= 45
    for _ in range(4):
        machine.tick()
    assert machine.ask(60) <= 1
    for _ in range(6):
        machine.tick(answering=10)
    assert machine.ask(40) >= 20


@given(noise=st.lists(st.floats(-0.2, 0.2), min_size=4, max_size=60))
def test_g32_what_little_a_moment_needs_is_no_room_for_more(noise: list[float]) -> None:
    machine = Machine(0.02)
    machine.learn()
    machine.ask(45)
    for _ in range(8):
        machine.tick()
    even = sum(noise) / len(noise)
    for each in noise:
        for load in machine.running:
            load.took(2500)
        machine.capacity.measure(EVERY_S, 0.9 + 0.4 * (each - even))
        machine.ask(10)
    assert len(machine.running) * 0.02 <= 0.9 + 0.1


def test_an_idle_process_admits_whatever_it_has_learnt() -> None:
    machine = Machine(5.0, limit=0.001)
    machine.ask(1)
    for _ in range(50):
        machine.tick()
    assert machine.ask(1) == 0
    machine.end(1)
    assert machine.ask(1) == 1


@pytest.mark.parametrize("rate", [100.0, 10_000.0, 1_000_000.0])
def test_g32_a_few_are_never_refused_however_slow_the_machine_or_short_the_answers(rate: float) -> None:
    machine = Machine(need=1.0, rate=rate)
    for turn in range(40):
        assert machine.ask(24 - len(machine.running)) == 24 - (0 if turn == 0 else 12)
        machine.tick()
        for load in machine.running[:12]:
            load.took(500)  # it ends before the next look
        machine.end(12)


def test_g32_an_upstream_at_full_speed_takes_what_is_there_and_keeps_nobody_out() -> None:
    machine = Machine(need=1.0, rate=100 * STEADY_BYTES_PER_S)
    for count in (4, 8, 16, 24):
        assert machine.ask(count) == count
        for _ in range(10):
            machine.tick()
        machine.end(count)


@given(need=st.floats(0.004, 0.02), limit=st.floats(0.5, 0.99), greedy=st.integers(1, 100), others=st.integers(1, 40))
def test_g32_whatever_is_fair_no_more_is_taken_on_than_there_is(
    need: float, limit: float, greedy: int, others: int
) -> None:
    machine = Machine(need, limit=limit)
    machine.learn()
    machine.ask(greedy, "greedy")
    for number in range(others):
        machine.ask(1, f"other {number}")
    machine.tick()
    assert machine.worst <= 1.0 + FOR_MODEST


@given(greedy=st.integers(1, 100), others=st.integers(1, 4))
def test_g32_a_burst_of_one_caller_leaves_room_for_another(greedy: int, others: int) -> None:
    machine = Machine(0.02)
    machine.learn()
    machine.ask(greedy, "greedy")
    machine.tick()
    assert [machine.ask(1, f"other {number}") for number in range(others)] == [1] * others
    machine.tick()
    assert machine.worst <= 1.0


@settings(max_examples=examples(60))
@given(asks=st.lists(st.sampled_from("abbbbbbb"), min_size=1, max_size=400))
def test_g32_who_is_within_its_fair_share_is_refused_only_after_who_is_not(asks: list[str]) -> None:
    machine = Machine(0.02)
    machine.learn()
    capacity = machine.capacity
    had: Counter[str] = Counter()
    for caller in asks:
        before = capacity.expected
        fair = (had[caller] + 1) * capacity.need * len(had.keys() | {caller}) <= 0.9
        admitted = machine.ask(1, caller)
        had[caller] += admitted
        had += Counter()
        if not admitted:
            assert before + capacity.need > 0.9
            assert not fair or before + capacity.need > 0.9 * 1.1


def test_a_limit_of_one_refuses_nothing() -> None:
    machine = Machine(0.5, limit=1.0)
    assert machine.ask(1_000) == 1_000


def test_until_something_is_measured_a_guess_counts() -> None:
    machine = Machine(0.5)
    assert machine.ask(1_000) == int(0.9 / GUESS)


def test_a_prompt_that_would_wait_for_too_long_is_refused_until_then() -> None:
    capacity = Capacity(0.9)
    load = capacity.admit(wait_s=100.0, most_s=15.0)  # alone it may wait for itself
    with pytest.raises(Overloaded) as caught:
        capacity.admit(wait_s=20.5, most_s=15.0)
    assert caught.value.retry_after_s == 6
    capacity.admit(wait_s=14.0, most_s=15.0)
    load.end()
    load.end()
    assert len(capacity) == 1


def test_a_caller_is_told_to_come_back_the_later_the_more_are_refused() -> None:
    machine = Machine(0.025)
    machine.learn()
    machine.ask(20)
    waits = []
    for count in (10, 50, 200):
        machine.ask(count)
        machine.end(1)
        machine.tick()
        machine.ask(100)
        waits.append(machine.waits[-1])
    assert waits == sorted(waits)
    assert 1 <= waits[0] < waits[-1] <= 30


@pytest.mark.parametrize("rate", [10_000.0, STEADY_BYTES_PER_S * 20])
@pytest.mark.parametrize("greedy", [30, 60, 400])
def test_g32_one_callers_long_answers_keep_nobody_else_out(greedy: int, rate: float) -> None:
    machine = Machine(1 / 30, rate)
    machine.ask(greedy, "greedy")
    for _ in range(40):
        machine.tick()
        for caller in ("first", "second"):
            assert machine.ask(1, caller) == 1
            machine.running.pop().end()
        assert machine.ask(1, "greedy") == 0 or rate > STEADY_BYTES_PER_S


@given(st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=200), st.floats(1 / 200, 1 / 27))
def test_g32_what_is_taken_on_for_those_who_have_little_is_little(asks: list[str], need: float) -> None:
    machine = Machine(need)
    machine.ask(200, "greedy")
    machine.tick()
    before = len(machine.capacity)
    for caller in asks:
        machine.ask(1, caller)
    taken = (len(machine.capacity) - before) * machine.capacity.need
    assert taken <= FOR_MODEST or machine.capacity.expected <= 0.99 + FOR_MODEST
