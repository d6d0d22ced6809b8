"""Laws of the queue: nothing is lost or doubled, who waits has its turn, and a batch is as large as it may be."""

from collections import Counter

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.scoring.batcher import Entry, Queue
from checkstream.scoring.session import Window
from tests.chance import examples


class Asker(msgspec.Struct, frozen=True, eq=False):
    """Somebody who waits."""

    name: int
    share: str


Put = tuple[int, int]
"""Who asks, and tokens."""

puts = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 40)), max_size=40)
SHARES = "aaabbc"
"""Of each asker: one share has three of them, one has two, one has one."""


def queued(given: list[Put]) -> tuple[Queue[Asker], dict[Asker, list[Window]]]:
    askers = [Asker(name, share) for name, share in enumerate(SHARES)]
    queue: Queue[Asker] = Queue()
    windows: dict[Asker, list[Window]] = {asker: [] for asker in askers}
    for name, tokens in given:
        window = Window("x", tokens)
        windows[askers[name]].append(window)
        queue.put(askers[name], window)
    return queue, windows


def emptied(queue: Queue[Asker], budget: int, cap: int) -> list[list[Entry[Asker]]]:
    batches = []
    while batch := queue.take(entries=cap, tokens=budget):
        batches.append(batch)
    return batches


def taken(queue: Queue[Asker], budget: int, cap: int) -> list[Entry[Asker]]:
    return [entry for batch in emptied(queue, budget, cap) for entry in batch]


@settings(max_examples=examples(200))
@given(given=puts, budget=st.integers(1, 120), cap=st.integers(1, 10))
def test_every_window_is_taken_once_and_in_order(given: list[Put], budget: int, cap: int) -> None:
    queue, windows = queued(given)
    assert queue.tokens == sum(tokens for _, tokens in given)
    assert queue.shares == len({SHARES[name] for name, _ in given})
    assert set(queue.askers()) == {asker for asker, asked in windows.items() if asked}
    entries = taken(queue, budget, cap)
    for asker, asked in windows.items():
        assert [id(entry.window) for entry in entries if entry.asker is asker] == [*map(id, asked)]
    assert not queue
    assert queue.tokens == queue.shares == 0


@settings(max_examples=examples(200))
@given(given=puts, budget=st.integers(1, 120), cap=st.integers(1, 10))
def test_g32_no_share_is_served_twice_while_another_waits(given: list[Put], budget: int, cap: int) -> None:
    queue, windows = queued(given)
    left = Counter({share: sum(len(asked) for a, asked in windows.items() if a.share == share) for share in "abc"})
    since: dict[str, set[str]] = {share: set() for share in left}
    for entry in taken(queue, budget, cap):
        for share, served in since.items():
            if share != entry.asker.share and left[share]:
                assert entry.asker.share not in served
                served.add(entry.asker.share)
        since[entry.asker.share].clear()
        left[entry.asker.share] -= 1


@settings(max_examples=examples(200))
@given(given=puts, budget=st.integers(1, 120), cap=st.integers(1, 10))
def test_nobody_is_served_twice_while_another_of_its_share_waits(given: list[Put], budget: int, cap: int) -> None:
    queue, windows = queued(given)
    left = Counter({asker: len(asked) for asker, asked in windows.items()})
    since: dict[Asker, set[Asker]] = {asker: set() for asker in windows}
    for entry in taken(queue, budget, cap):
        for asker, served in since.items():
            if asker is not entry.asker and asker.share == entry.asker.share and left[asker]:
                assert entry.asker not in served
                served.add(entry.asker)
        since[entry.asker].clear()
        left[entry.asker] -= 1


@settings(max_examples=examples(200))
@given(given=puts, extra=st.integers(1, 500), others=st.integers(1, 20))
def test_g32_however_much_one_share_adds_another_waits_for_as_many_of_its_windows_as_it_has_itself(
    given: list[Put], extra: int, others: int
) -> None:
    queue, windows = queued(given)
    own = sum(len(asked) for asker, asked in windows.items() if asker.share == "c")
    greedy = [Asker(100 + n, "a") for n in range(others)]
    for n in range(extra):
        queue.put(greedy[n % others], Window("x", 1))
    shares = [entry.asker.share for entry in taken(queue, 1, 1)]
    last = max((at for at, share in enumerate(shares) if share == "c"), default=-1)
    assert shares[: last + 1].count("a") <= own
    assert shares[: last + 1].count("b") <= own


@settings(max_examples=examples(200))
@given(given=puts, budget=st.integers(1, 120), cap=st.integers(1, 10))
def test_a_batch_is_within_its_bounds_and_as_large_as_it_may_be(given: list[Put], budget: int, cap: int) -> None:
    queue, _ = queued(given)
    batches = emptied(queue, budget, cap)
    for at, batch in enumerate(batches):
        widest = max(entry.window.tokens for entry in batch)
        assert len(batch) <= cap
        assert widest * len(batch) <= budget or len(batch) == 1
        if at + 1 < len(batches) and len(batch) < cap:
            wider = max(widest, batches[at + 1][0].window.tokens)
            assert wider * (len(batch) + 1) > budget


@settings(max_examples=examples(200))
@given(given=puts, budget=st.integers(1, 120), cap=st.integers(1, 10), before=st.integers(0, 10))
def test_what_is_put_back_comes_next_and_in_its_order(given: list[Put], budget: int, cap: int, before: int) -> None:
    queue, windows = queued(given)
    read = [entry for _ in range(before) for entry in queue.take(entries=1, tokens=1)]
    tokens = queue.tokens
    batch = queue.take(entries=cap, tokens=budget)
    queue.put_back(batch)
    assert queue.tokens == tokens
    rest = taken(queue, 1, 1)
    if batch:
        assert rest[0].window is batch[0].window
    for asker, asked in windows.items():
        assert [id(entry.window) for entry in [*read, *rest] if entry.asker is asker] == [*map(id, asked)]


@given(given=puts, gone=st.integers(0, 5))
def test_who_leaves_is_forgotten_with_all_that_waits(given: list[Put], gone: int) -> None:
    queue, windows = queued(given)
    left = next(asker for asker in windows if asker.name == gone)
    for _ in range(2):
        queue.drop(left)
        assert queue.tokens == sum(tokens for name, tokens in given if name != gone)
    assert all(entry.asker is not left for entry in taken(queue, 100, 8))
