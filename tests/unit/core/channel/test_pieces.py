"""The text of a channel is kept in pieces: where one ends is seen nowhere."""

from __future__ import annotations

from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.channel import holdback
from checkstream.core.channel.checks import HoldSettings
from checkstream.core.channel.holdback import Holdback
from checkstream.core.match.patterns import PatternSet
from checkstream.core.terms import Span

TEXT = "".join(chr(ord("a") + number % 26) for number in range(6000))


@given(
    sizes=st.lists(st.integers(1, 900), min_size=1, max_size=12),
    spans=st.lists(st.tuples(st.integers(0, 6000), st.integers(0, 6000)), max_size=12),
    kept=st.integers(1, 700),
)
def test_any_span_of_a_text_in_pieces_is_what_has_come(
    sizes: list[int], spans: list[tuple[int, int]], kept: int
) -> None:
    with mock.patch.object(holdback, "_PIECE_CHARS", kept):
        held = Holdback(PatternSet([]), checks=False, settings=HoldSettings())
        at = 0
        for size in sizes:
            held.feed(TEXT[at : at + size])
            at = min(at + size, len(TEXT))
        said = TEXT[:at]
        for start, end in spans:
            assert held.text(Span(start, end)) == said[start : min(end, at)]
            assert held.end_of(start + 1) == said[-start - 1 :]
        for released in range(0, at, 450):
            held.release(released)
            assert held.text(Span(released, at)) == said[released:]
            assert held.render(released, at) == said[released:]
