from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.match.model_entities import Found, ModelEntities
from checkstream.core.terms import Span

TEXT = "When Mary Ann Evans, of Nuneaton, wrote to mary@example.com in 1857, nobody knew of George Eliot yet."
END = len(TEXT)


def found(*known: tuple[str, str] | tuple[str, str, float]) -> list[Found]:
    return [
        Found(name, Span(TEXT.index(text), TEXT.index(text) + len(text)), (*score, 0.9)[0])
        for name, text, *score in known
    ]


def decided(
    *known: tuple[str, str] | tuple[str, str, float],
    exact: Sequence[tuple[str, str]] = (),
    gone: int = 0,
    end: int = END,
    begun: int = 0,
) -> tuple[list[tuple[str, str]], int]:
    entities = ModelEntities(lambda span: TEXT[span.start : span.end])
    for name, text in exact:
        entities.note(Span(TEXT.index(text), TEXT.index(text) + len(text)), name)
    items, let_go = entities.decide(found(*known), gone, end, begun)
    return [(item.name, TEXT[item.span.start : item.span.end]) for item in items], let_go


def test_what_stands_before_the_end_is_decided_in_the_order_of_the_text() -> None:
    items, end = decided(("PERSON", "George Eliot"), ("PERSON", "Mary Ann Evans"), ("LOCATION", "Nuneaton"))
    assert items == [("PERSON", "Mary Ann Evans"), ("LOCATION", "Nuneaton"), ("PERSON", "George Eliot")]
    assert end == END


@pytest.mark.parametrize(
    ("end", "begun", "items", "let_go"),
    [
        (TEXT.index("Ann"), 0, [], TEXT.index("Mary")),
        (TEXT.index("Ann"), TEXT.index("Mary"), [], TEXT.index("Mary")),
        (TEXT.index("Ann"), TEXT.index("Mary") + 1, [("PERSON", "Mary Ann Evans")], TEXT.index("Ann")),
        (TEXT.index("Mary"), 0, [], TEXT.index("Mary")),
        (TEXT.index(", of"), 0, [("PERSON", "Mary Ann Evans")], TEXT.index(", of")),
    ],
)
def test_what_goes_on_behind_the_end_waits_unless_it_began_too_long_ago(
    end: int, begun: int, items: list[tuple[str, str]], let_go: int
) -> None:
    assert decided(("PERSON", "Mary Ann Evans"), end=end, begun=begun) == (items, let_go)


def test_g10_what_is_decided_is_not_decided_again() -> None:
    entities = ModelEntities(lambda span: TEXT[span.start : span.end])
    known = found(("PERSON", "Mary Ann Evans"), ("PERSON", "George Eliot"))
    assert [item.span.start for item in entities.decide(known, 0, 40, 0)[0]] == [5]
    assert [item.span.start for item in entities.decide(known, 40, END, 0)[0]] == [TEXT.index("George")]
    assert entities.decide(known, END, END, 0)[0] == []


@pytest.mark.parametrize(
    ("gone", "text"),
    [("Ann Evans", "Ann Evans"), (" Ann", "Ann Evans"), ("vans", "vans"), (", of", None)],
)
def test_of_what_has_begun_in_text_that_is_gone_the_rest_counts(gone: str, text: str | None) -> None:
    items, _ = decided(("PERSON", "Mary Ann Evans"), gone=TEXT.index(gone))
    assert items == ([] if text is None else [("PERSON", text)])


@pytest.mark.parametrize(
    ("known", "exact", "items"),
    [
        (("PERSON", "mary"), ("EMAIL", "mary@example.com"), []),
        (("PERSON", "to mary@example.com"), ("EMAIL", "mary@example.com"), [("PERSON", "to")]),
        (
            ("PERSON", "mary@example.com in 1857, nobody"),
            ("EMAIL", "mary@example.com"),
            [("PERSON", "in 1857, nobody")],
        ),
        (
            ("PERSON", "to mary@example.com in"),
            ("EMAIL", "mary@example.com"),
            [("PERSON", "to"), ("PERSON", "in")],
        ),
        (("EMAIL", "to mary"), ("EMAIL", "mary@example.com"), [("EMAIL", "to mary@example.com")]),
        (("EMAIL", "mary"), ("EMAIL", "mary@example.com"), []),
        (("PERSON", "Mary Ann"), ("EMAIL", "mary@example.com"), [("PERSON", "Mary Ann")]),
        (("PERSON", " in"), ("EMAIL", "mary@example.com"), [("PERSON", " in")]),
    ],
)
def test_beside_what_a_validator_has_found(
    known: tuple[str, str], exact: tuple[str, str], items: list[tuple[str, str]]
) -> None:
    assert decided(known, exact=[exact])[0] == items


def test_of_spans_that_overlap_the_longer_then_the_surer_stands() -> None:
    assert decided(("PERSON", "Mary Ann"), ("LOCATION", "Ann Evans, of"))[0] == [("LOCATION", "Ann Evans, of")]
    assert decided(("PERSON", "Mary Ann", 0.8), ("WORK", "Mary Ann", 0.7))[0] == [("PERSON", "Mary Ann")]
    assert decided(("PERSON", "Mary Ann"), ("PERSON", "Ann Evans"))[0] == [("PERSON", "Mary Ann Evans")]


def test_where_no_word_is_left_nothing_is_found() -> None:
    assert decided(("PERSON", ", "), ("PERSON", "."))[0] == []


def work(size: int) -> int:
    """Return how many calls it takes to decide `size` spans beside as many that validators have found."""
    entities = ModelEntities(lambda span: "x" * (span.end - span.start))
    for number in range(size):
        entities.note(Span(number * 10, number * 10 + 4), "EMAIL")
    known = [Found("PERSON", Span(number * 10 + 2, number * 10 + 8), 0.9) for number in range(size)]
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        items, _ = entities.decide(known, 0, size * 10, 0)
    finally:
        sys.setprofile(None)
    assert [item.span for item in items[:2]] == [Span(4, 8), Span(14, 18)]
    assert len(items) == size
    return calls


def test_g10_twice_the_spans_are_twice_the_work() -> None:
    assert work(1000) < 2.2 * work(500)


SPANS = st.lists(
    st.builds(
        lambda name, start, size: (name, Span(start, min(start + size, END))),
        st.sampled_from(["PERSON", "LOCATION"]),
        st.integers(0, END - 1),
        st.integers(1, 30),
    ),
    max_size=12,
)


@given(SPANS, SPANS, st.lists(st.integers(0, END), max_size=6), st.integers(0, 20))
def test_g10_no_character_is_decided_twice_and_none_before_its_time(
    spans: list[tuple[str, Span]], exact: list[tuple[str, Span]], ends: list[int], room: int
) -> None:
    entities = ModelEntities(lambda span: TEXT[span.start : span.end])
    known = [Found(name, span, 0.9) for name, span in spans]
    for name, span in sorted(exact, key=lambda item: item[1]):
        entities.note(span, name)
    last = cleared = 0
    for end in [*sorted(ends), END]:
        items, let_go = entities.decide(known, cleared, max(end, cleared), max(end - room, 0))
        assert cleared <= max(let_go, cleared) <= max(end, cleared)
        for item in items:
            assert item.span.start >= last
            assert item.span.start < max(let_go, 1)
            assert any(char.isalnum() for char in TEXT[item.span.start : item.span.end])
            last = item.span.end
        cleared = max(cleared, let_go)
    assert entities.decide(known, cleared, END, 0)[0] == []
