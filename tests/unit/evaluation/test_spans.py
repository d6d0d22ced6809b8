"""Spans that were found against spans that people marked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.evaluation.spans import Marked, SpanCounts

SPANS = st.lists(
    st.tuples(st.integers(0, 8), st.integers(1, 4), st.sampled_from("AB")).map(lambda s: (s[0], s[0] + s[1], s[2])),
    max_size=6,
)


def test_strictly_and_by_overlap_are_counted_apart() -> None:
    counts = SpanCounts()
    counts.add([(0, 4, "A"), (10, 14, "A"), (20, 24, "B")], [(0, 4, "A"), (11, 20, "A"), (20, 24, "A")])
    a, b, every = counts.figures()
    assert (a.kind, a.gold, a.found) == ("A", 2, 3)
    assert [a.strict_precision, a.strict_recall, a.strict_f1] == pytest.approx([1 / 3, 1 / 2, 0.4])
    assert [a.overlap_precision, a.overlap_recall] == pytest.approx([2 / 3, 1])
    assert (b.gold, b.found, b.strict_f1, b.overlap_f1) == (1, 0, 0.0, 0.0)
    assert (every.gold, every.found) == (3, 3)
    assert every.strict_recall == pytest.approx(1 / 3)


def test_kinds_that_nobody_marked_are_not_judged() -> None:
    counts = SpanCounts()
    counts.add([(0, 4, "A")], [(0, 4, "A"), (5, 9, "C")])
    assert [(each.kind, each.strict_precision) for each in counts.figures()] == [("A", 1.0), ("all", 1.0)]


def test_spans_that_only_touch_do_not_overlap() -> None:
    counts = SpanCounts()
    counts.add([(0, 4, "A")], [(4, 8, "A")])
    assert counts.figures()[0].overlap_f1 == 0.0


@given(SPANS, SPANS)
def test_what_agrees_strictly_overlaps_and_turning_it_round_swaps_precision_and_recall(
    gold: list[Marked], found: list[Marked]
) -> None:
    forth, back = SpanCounts(), SpanCounts()
    forth.add(gold, found)
    back.add(found, gold)
    there = {each.kind: each for each in forth.figures()}
    for each in back.figures():
        if each.kind in there and each.kind != "all":
            other = there[each.kind]
            assert (each.strict_precision, each.overlap_precision) == (other.strict_recall, other.overlap_recall)
            assert other.strict_f1 <= other.overlap_f1 <= 1
