"""Order holds within a choice; an item without choices is a barrier."""

from __future__ import annotations

from functools import partial
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.exchange.midstream.order import ChoiceQueue


def drain(queue: ChoiceQueue[str], ready: set[str]) -> str:
    out = ""
    while (item := queue.pop(lambda item: item in ready)) is not None:
        out += item
    return out


def test_one_choice_leaves_in_order() -> None:
    queue: ChoiceQueue[str] = ChoiceQueue()
    for item in "abc":
        queue.put(item, (0,))
    assert drain(queue, {"b", "c"}) == ""
    assert len(queue) == 3
    assert drain(queue, {"a", "b"}) == "ab"
    assert drain(queue, {"c"}) == "c"
    assert len(queue) == 0


def test_another_choice_overtakes_but_not_a_common_item() -> None:
    queue: ChoiceQueue[str] = ChoiceQueue()
    for item, choices in (("a", (0,)), ("b", (1,)), ("U", ()), ("c", (1,))):
        queue.put(item, choices)
    assert drain(queue, set("bUc")) == "b"
    assert drain(queue, set("aUc")) == "aUc"


def test_an_item_of_two_choices_waits_for_both_and_holds_both() -> None:
    queue: ChoiceQueue[str] = ChoiceQueue()
    for item, choices in (("a", (0,)), ("b", (0, 1)), ("c", (1,))):
        queue.put(item, choices)
    assert drain(queue, set("bc")) == ""
    assert drain(queue, set("abc")) == "abc"


def test_clear_drops_all() -> None:
    queue: ChoiceQueue[str] = ChoiceQueue()
    queue.put("a", (0,))
    queue.put("b", ())
    queue.clear()
    assert len(queue) == 0
    assert queue.pop(lambda _: True) is None


ROWS = st.lists(st.tuples(st.sets(st.integers(0, 2), max_size=2), st.booleans()), max_size=12)


@given(ROWS)
def test_it_does_what_a_slow_reading_of_the_rules_does(rows: list[tuple[set[int], bool]]) -> None:
    queue: ChoiceQueue[int] = ChoiceQueue()
    for number, (choices, _) in enumerate(rows):
        queue.put(number, tuple(sorted(choices)))
    expected = []
    blocked: set[int] = set()
    for number, (choices, ready) in enumerate(rows):
        if not choices and (not ready or blocked):
            break
        if not ready or blocked & choices:
            blocked |= choices
        else:
            expected.append(number)
    out = []
    while (item := queue.pop(lambda number: rows[number][1])) is not None:
        out.append(item)
    assert out == expected


@given(ROWS, st.integers(0, 4))
def test_what_is_taken_in_two_parts_comes_in_the_same_order(rows: list[tuple[set[int], bool]], some: int) -> None:
    orders = []
    for parts in ((some, len(rows)), (len(rows),)):
        queue: ChoiceQueue[int] = ChoiceQueue()
        for number, (choices, _) in enumerate(rows):
            queue.put(number, tuple(choices))
        order: list[int] = []
        for most in parts:
            queue.begin()
            order += islice(iter(partial(queue.pop, lambda number: rows[number][1]), None), most)
        orders.append(order)
    assert orders[0] == orders[1]


def test_an_item_asks_about_its_own_lines_alone() -> None:
    queue: ChoiceQueue[int] = ChoiceQueue()
    asked: list[int] = []
    for number in range(300):
        queue.put(number, (number,))
    queue.put(300, range(300))

    def ready(number: int) -> bool:
        asked.append(number)
        return True

    while queue.pop(ready) is not None:
        pass
    assert asked == list(range(301))
