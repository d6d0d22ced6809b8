"""Budgets of errors out of counts by minute and hour, against what adding up plainly gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from checkstream.control.server.budgets import budgets_of

NOW = 29_000_017
"""Within an hour."""
_NAMES = st.sampled_from(
    [
        "rescored",
        "violated",
        "unjudged",
        "cutoff:0",
        "cutoff:500",
        "cutoff:1000",
        "cutoff:inf",
        "scored:rag",
        "high:rag",
    ]
)


@given(st.lists(st.tuples(st.integers(0, 80 * 60), _NAMES, st.integers(1, 9)), max_size=40))
def test_each_time_has_what_was_counted_in_it(counted: list[tuple[int, str, int]]) -> None:
    minutes = [(NOW - back, name, count) for back, name, count in counted if back <= 60]
    hours = [((NOW - back) // 60 * 60, name, count) for back, name, count in counted]

    def within(name: str, back: int) -> int:
        rows = minutes if back <= 60 else hours
        return sum(count for minute, each, count in rows if each == name and minute > NOW - back)

    found = {budget.of: budget for budget in budgets_of("shop", minutes, hours, NOW)}
    again = within("rescored", 72 * 60) > 0
    bad, every = ("violated", "rescored") if again else ("high:rag", "scored:rag")
    cut = ("cutoff:0", "cutoff:500", "cutoff:1000", "cutoff:inf")
    assert ("violations" in found) is (within(every, 72 * 60) > 0)
    assert ("cutoff" in found) is any(within(name, 72 * 60) for name in cut)
    if (budget := found.get("violations")) is not None:
        assert budget.source == ("rescored" if again else "grounding")
        spent = (budget.minutes5, budget.minutes30, budget.hour, budget.hours6, budget.days3)
        assert [(each.bad, each.all) for each in spent] == [
            (within(bad, back), within(every, back)) for back in (5, 30, 60, 360, 72 * 60)
        ]
    if (budget := found.get("cutoff")) is not None:
        assert budget.days3.bad == sum(within(name, 72 * 60) for name in cut[2:])
        assert budget.days3.all == sum(within(name, 72 * 60) for name in cut)


def test_a_bound_that_a_node_has_made_up_is_late_and_breaks_nothing() -> None:
    odd = ["cutoff:", "cutoff:-1", "cutoff:\u0663", "cutoff:1e3", f"cutoff:{'9' * 5000}", "cutoff:nan"]
    (budget,) = budgets_of("shop", [], [(NOW, name, 1) for name in odd], NOW)
    assert (budget.of, budget.days3.bad, budget.days3.all) == ("cutoff", len(odd), len(odd))
