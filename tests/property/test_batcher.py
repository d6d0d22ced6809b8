"""Laws of the queue: nothing is lost or doubled, who waits has its turn, and a batch is as large as it may be."""

from collections import Counter

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.scoring.batcher import Entry, Queue
from checkstream.scoring.session import Window

NOW = 100.0


class Asker(msgspec.Struct, frozen=True, eq=False):
    """Somebody who waits."""

    name: int
    deadline: float


Put = tuple[int, int]
"""Who asks, and tokens."""

puts = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 40)), max_size=40)
deadlines = st.lists(st.sampled_from([NOW - 1, NOW, NOW + 0.001, NOW + 1]), min_size=5, max_size=5)


def queued(given: list[Put], deadlines: list[float]) -> tuple[Queue[Asker], dict[Asker, list[Window]]]:
    askers = [Asker(name, deadline) for name, deadline in enumerate(deadlines)]
    queue: Queue[Asker] = Queue()
    windows: dict[Asker, list[Window]] = {asker: [] for asker in askers}
    for name, tokens in given:
        window = Window("x", tokens)
        windows[askers[name]].append(window)
        queue.put(askers[name], window)
    return queue, windows


def emptied(queue: Queue[Asker], budget: int, cap: int) -> list[list[Entry[Asker]]]:
    batches = []
    while batch := queue.take(NOW, entries=cap, tokens=budget):
        batches.append(batch)
    return batches


@settings(max_examples=200)
@given(given=puts, deadlines=deadlines, budget=st.integers(1, 120), cap=st.integers(1, 10))
def test_every_window_of_who_still_waits_is_taken_once_and_in_order(
    given: list[Put], deadlines: list[float], budget: int, cap: int
) -> None:
    queue, windows = queued(given, deadlines)
    assert queue.tokens == sum(tokens for _, tokens in given)
    taken = [entry for batch in emptied(queue, budget, cap) for entry in batch]
    for asker, asked in windows.items():
        got = [entry.window for entry in taken if entry.asker is asker]
        assert [*map(id, got)] == ([*map(id, asked)] if asker.deadline > NOW else [])
    assert not queue
    assert queue.tokens == 0


@settings(max_examples=200)
@given(given=puts, budget=st.integers(1, 120), cap=st.integers(1, 10))
def test_nobody_is_served_twice_while_another_waits(given: list[Put], budget: int, cap: int) -> None:
    queue, windows = queued(given, [NOW + 1] * 5)
    left = Counter({asker: len(asked) for asker, asked in windows.items()})
    since: dict[Asker, set[Asker]] = {asker: set() for asker in windows}
    for entry in (entry for batch in emptied(queue, budget, cap) for entry in batch):
        for asker, served in since.items():
            if asker is not entry.asker and left[asker]:
                assert entry.asker not in served
                served.add(entry.asker)
        since[entry.asker].clear()
        left[entry.asker] -= 1


@settings(max_examples=200)
@given(given=puts, budget=st.integers(1, 120), cap=st.integers(1, 10))
def test_a_batch_is_within_its_bounds_and_as_large_as_it_may_be(given: list[Put], budget: int, cap: int) -> None:
    queue, _ = queued(given, [NOW + 1] * 5)
    batches = emptied(queue, budget, cap)
    for at, batch in enumerate(batches):
        widest = max(entry.window.tokens for entry in batch)
        assert len(batch) <= cap
        assert widest * len(batch) <= budget or len(batch) == 1
        if at + 1 < len(batches) and len(batch) < cap:
            wider = max(widest, batches[at + 1][0].window.tokens)
            assert wider * (len(batch) + 1) > budget


@given(given=puts, gone=st.integers(0, 4))
def test_who_leaves_is_forgotten_with_all_that_waits(given: list[Put], gone: int) -> None:
    queue, windows = queued(given, [NOW + 1] * 5)
    left = next(asker for asker in windows if asker.name == gone)
    for _ in range(2):
        queue.drop(left)
        assert queue.tokens == sum(tokens for name, tokens in given if name != gone)
    assert all(entry.asker is not left for batch in emptied(queue, 100, 8) for entry in batch)
