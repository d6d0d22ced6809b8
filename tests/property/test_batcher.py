"""Law: a batch, the dropped and the rest part the queue, in order and within the budget."""

from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.scoring.batcher import Entry, next_batch
from checkstream.scoring.session import Window

NOW = 100.0

entries = st.lists(
    st.builds(
        Entry,
        window=st.builds(Window, text=st.just("x"), tokens=st.integers(1, 40)),
        deadline=st.sampled_from([NOW - 1, NOW, NOW + 0.001, NOW + 1]),
        abandoned=st.booleans(),
    ),
    max_size=30,
)


def dead(entry: Entry) -> bool:
    return entry.abandoned or entry.deadline <= NOW


@settings(max_examples=200)
@given(queue=entries, budget=st.integers(1, 120), cap=st.integers(1, 10))
def test_a_batch_parts_the_queue_without_loss_and_in_order(queue: list[Entry], budget: int, cap: int) -> None:
    formed = next_batch(queue, budget, NOW, cap)
    looked_at = queue[: len(queue) - len(formed.rest)]
    assert queue[len(looked_at) :] == formed.rest
    assert [entry for entry in looked_at if dead(entry)] == formed.dropped
    assert [entry for entry in looked_at if not dead(entry)] == formed.batch
    assert len(formed.batch) <= cap
    padded = len(formed.batch) * max((entry.window.tokens for entry in formed.batch), default=0)
    assert padded <= budget or len(formed.batch) == 1


@settings(max_examples=200)
@given(queue=entries, budget=st.integers(1, 120), cap=st.integers(1, 10))
def test_a_batch_is_as_large_as_it_may_be(queue: list[Entry], budget: int, cap: int) -> None:
    formed = next_batch(queue, budget, NOW, cap)
    if formed.rest:
        first = formed.rest[0]
        assert not dead(first)
        widest = max(first.window.tokens, *(entry.window.tokens for entry in formed.batch))
        assert len(formed.batch) == cap or widest * (len(formed.batch) + 1) > budget


@given(queue=entries, budget=st.integers(1, 120))
def test_forming_batches_empties_the_queue_and_serves_every_live_entry_once(queue: list[Entry], budget: int) -> None:
    served: list[Entry] = []
    rest = queue
    while rest:
        formed = next_batch(rest, budget, NOW)
        assert formed.batch or not formed.rest
        served += formed.batch
        rest = formed.rest
    assert served == [entry for entry in queue if not dead(entry)]
