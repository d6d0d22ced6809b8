"""F1 of spans, against counting by hand."""

from random import Random

import pytest

from models.training.ner.figures import Counts, count, interval
from models.training.ner.marked import Span


def test_exact_and_overlapping_spans_count_apart() -> None:
    found = [Span(0, 3, "PERSON"), Span(5, 9, "PERSON"), Span(20, 22, "PERSON"), Span(0, 3, "LOCATION")]
    marked = [Span(0, 3, "PERSON"), Span(5, 12, "PERSON"), Span(30, 33, "PERSON"), Span(40, 41, "PERSON")]
    counts = count(found, marked, "PERSON")
    assert counts == Counts(found=3, marked=4, strict=1, found_over=2, marked_over=2)
    assert counts.f1() == pytest.approx(2 * 1 / 7)
    assert counts.f1(overlap=True) == pytest.approx(2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4))


def test_nothing_found_where_nothing_is_marked_is_no_f1() -> None:
    assert Counts().f1() == 0.0
    assert Counts().f1(overlap=True) == 0.0


def test_touching_spans_do_not_overlap() -> None:
    assert count([Span(0, 3, "PERSON")], [Span(3, 5, "PERSON")], "PERSON").found_over == 0


def test_an_interval_holds_its_figure_and_narrows_with_more_texts() -> None:
    random = Random(1)
    texts = [Counts(1, 1, int(random.random() < 0.7)) for _ in range(2000)]
    few, many = interval(texts[:60], 2), interval(texts, 2)
    whole = sum(texts, Counts()).f1()
    assert many[0] < whole < many[1]
    assert many[1] - many[0] < few[1] - few[0]
