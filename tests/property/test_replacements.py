"""Laws of replacements: cut anywhere they say the same (G3), and no insertion is lost or sent twice."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.channel.replacements import Replacement, Replacements
from checkstream.core.terms import Span

TEXT = "abcdefghijklmnop"
SPANS = st.tuples(st.integers(0, 15), st.integers(0, 16)).map(sorted)


def original(span: Span) -> str:
    return TEXT[span.start : span.end]


def numbered(spans: list[list[int]], rewritten: list[bool]) -> list[Replacement]:
    """Return replacements of spans, each with a text that tells it from the others."""
    return [
        Replacement(start, end, f"<{place}>", rewritten=start < end and rewritten[place % len(rewritten)])
        for place, (start, end) in enumerate(spans)
        if start < len(TEXT)
    ]


@given(
    spans=st.lists(SPANS, max_size=8),
    rewritten=st.lists(st.booleans(), min_size=1, max_size=4),
    cuts=st.lists(st.integers(0, 16), max_size=5),
)
def test_g03_pieces_say_what_the_whole_says_and_no_insertion_is_lost(
    spans: list[list[int]], rewritten: list[bool], cuts: list[int]
) -> None:
    replacements = Replacements()
    items = numbered(spans, rewritten)
    for item in items:
        replacements.add(item, 0)
    whole = replacements.render(0, len(TEXT), original)
    edges = [0, *sorted(cuts), len(TEXT)]
    assert "".join(replacements.render(a, b, original) for a, b in pairwise(edges)) == whole
    for a, b in pairwise(edges):
        assert replacements.touch(a, b) or replacements.render(a, b, original) == TEXT[a:b]
    for item in items:
        if item.start == item.end:
            assert whole.count(item.text) == 1
        else:
            # Later edits may cover it; nothing of what it covers is ever sent.
            assert whole.count(item.text) <= 1
            assert not set(TEXT[item.start : item.end]) & set(whole)
    placed = list(replacements)
    assert all(one.end <= two.start for one, two in pairwise(placed))


@given(spans=st.lists(SPANS, max_size=8), order=st.lists(st.integers(0, 16), max_size=8))
def test_g02_edits_between_releases_change_nothing_that_has_been_sent(spans: list[list[int]], order: list[int]) -> None:
    replacements = Replacements()
    sent, text = 0, ""
    for item, to in zip(numbered(spans, [False]), [*sorted(order), *[len(TEXT)] * len(spans)], strict=False):
        if item.start >= sent or item.start == item.end:
            replacements.add(item, sent)
        end = max(sent, replacements.whole(to))
        text += replacements.render(sent, end, original)
        sent = end
        assert replacements.render(0, sent, original) == text
    for item in replacements:
        if item.start == item.end < sent:
            assert text.count(item.text) == 1
