"""What is sent in place of parts of a text: overlaps, insertions, rewritten text, a cut."""

from __future__ import annotations

import pytest

from checkstream.core.channel.replacements import Replacement, Replacements
from checkstream.core.terms import Span

TEXT = "0123456789"


def original(span: Span) -> str:
    return TEXT[span.start : span.end]


def made(*items: Replacement, sent: int = 0) -> Replacements:
    replacements = Replacements()
    for item in items:
        replacements.add(item, sent)
    return replacements


def sent(*items: Replacement) -> str:
    return made(*items).render(0, len(TEXT), original)


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([Replacement(2, 4, "A")], "01A456789"),
        ([Replacement(2, 4, "A"), Replacement(1, 6, "B")], "0B6789"),
        ([Replacement(2, 6, "A"), Replacement(4, 8, "B")], "01AB89"),
        ([Replacement(4, 8, "A"), Replacement(2, 6, "B")], "01BA89"),
        ([Replacement(2, 8, "A"), Replacement(3, 5, "B")], "01A89"),
        ([Replacement(2, 4, "A"), Replacement(5, 6, "B"), Replacement(3, 9, "C")], "01AC9"),
    ],
)
def test_the_later_one_decides_what_it_covers_whole_and_takes_only_what_is_free_of_the_rest(
    items: list[Replacement], text: str
) -> None:
    assert sent(*items) == text


@pytest.mark.parametrize("late", [Replacement(3, 5, "B"), Replacement(6, 9, "B"), Replacement(1, 3, "B")])
def test_g04_rewritten_text_gives_way_whole_to_a_later_edit_of_a_part_of_it(late: Replacement) -> None:
    rewritten = Replacement(2, 8, "still says 34", rewritten=True)
    assert "still" not in sent(rewritten, late)
    assert "B" in sent(rewritten, late)
    assert sent(rewritten, Replacement(8, 9, "B")) == "01still says 34B9", "the one beside it leaves it alone"


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([Replacement(4, 4, "+")], "0123+456789"),
        ([Replacement(4, 4, "+"), Replacement(4, 4, "-")], "0123+-456789"),
        ([Replacement(4, 4, "+"), Replacement(2, 6, "A")], "01A+6789"),
        ([Replacement(2, 6, "A"), Replacement(4, 4, "+")], "01A+6789"),
        ([Replacement(2, 6, "A"), Replacement(4, 4, "+"), Replacement(1, 8, "B")], "0B+89"),
        ([Replacement(3, 3, "+"), Replacement(5, 5, "-"), Replacement(2, 6, "A")], "01A+-6789"),
        ([Replacement(2, 4, "A"), Replacement(4, 4, "+"), Replacement(4, 6, "B")], "01A+B6789"),
        ([Replacement(2, 4, "A"), Replacement(4, 6, "B"), Replacement(4, 4, "+")], "01A+B6789"),
        ([Replacement(4, 4, "+"), Replacement(2, 4, "A")], "01A+456789"),
        ([Replacement(4, 4, "+"), Replacement(4, 6, "A")], "0123+A6789"),
    ],
)
def test_an_insertion_stands_between_what_it_parts_and_behind_what_covers_it(
    items: list[Replacement], text: str
) -> None:
    assert sent(*items) == text


def test_an_insertion_leaves_once_with_the_character_behind_it() -> None:
    replacements = made(Replacement(4, 4, "+"))
    assert [replacements.render(a, b, original) for a, b in ((0, 4), (4, 4), (4, 7), (7, 10))] == [
        "0123",
        "",
        "+456",
        "789",
    ]
    assert [replacements.touch(a, b) for a, b in ((0, 4), (4, 4), (4, 7), (5, 7))] == [False, False, True, False]


def test_an_insertion_that_comes_late_stands_where_the_sent_text_ends() -> None:
    assert made(Replacement(2, 2, "+"), sent=5).render(5, 10, original) == "+56789"


def test_a_cut_drops_what_starts_behind_it_and_keeps_what_is_inserted_there() -> None:
    replacements = made(Replacement(1, 2, "A"), Replacement(4, 4, "+"), Replacement(4, 6, "B"), Replacement(5, 5, "-"))
    replacements.cut(4)
    assert [item.text for item in replacements] == ["A", "+"]
    assert replacements.render(2, 4, original) == "23"
    assert replacements.render(2, 4, original, cut=True) == "23+"
    assert replacements.render(4, 4, original, cut=True) == "+"


def test_a_replaced_span_is_sent_all_at_once() -> None:
    replacements = made(Replacement(1, 3, "A"), Replacement(4, 8, "B"), Replacement(9, 9, "+"))
    assert [replacements.whole(position) for position in range(11)] == [0, 1, 1, 3, 4, 4, 4, 4, 8, 9, 10]


def test_edits_in_a_span_or_over_its_bounds_are_told_and_those_that_touch_it_are_not() -> None:
    items = [Replacement(0, 2, "A"), Replacement(2, 2, "+"), Replacement(3, 5, "B"), Replacement(6, 8, "C")]
    replacements = made(*items)
    assert replacements.within(Span(2, 6)) == [items[2]]
    assert replacements.within(Span(1, 7)) == items
    assert replacements.within(Span(8, 10)) == []


def test_what_has_been_sent_is_forgotten() -> None:
    replacements = made(Replacement(1, 2, "A"), Replacement(4, 6, "B"))
    replacements.forget(5)
    assert [item.text for item in replacements] == ["B"]


def test_many_that_have_been_sent_are_forgotten_some_at_a_time() -> None:
    replacements = made(*(Replacement(at, at + 1, "A") for at in range(0, 10_000, 2)))
    steps = 1
    while replacements.forget(9_000):
        steps += 1
    assert 4 <= steps <= 10
    assert [item.start for item in replacements] == list(range(9_000, 10_000, 2))
