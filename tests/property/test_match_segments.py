"""Laws of words and sentences: any split finds the same (G3), a slow reading of the rules agrees, words nest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from checkstream.core.match import segments
from checkstream.core.match.segments import LINE_ENDS, Segments
from checkstream.core.terms import Span

CAP = 12
RUN = re.compile("[.!?…。！？][.!?…。！？\"'’”“»)\\]}」』）］｝】〕〉》]*\\Z")  # noqa: RUF001
GOES_ON = re.compile("[.!?…。！？\"'’”“»)\\]}」』）］｝】〕〉》]")  # noqa: RUF001
TEXTS = st.text(alphabet='ab.!?。！」") \n\u2028漢', max_size=60) | st.text(max_size=40)  # noqa: RUF001
Grain = Literal["word", "sentence"]


def slow(grain: Grain, text: str) -> list[Span]:
    """Return the segments of a whole text, each end searched for by the letter of the rules."""
    found: list[Span] = []
    at = 0
    while (start := next((i for i in range(at, len(text)) if not text[i].isspace()), None)) is not None:
        at = _end(grain, text, start)
        found.append(Span(start, at))
    return found


def _end(grain: Grain, text: str, start: int) -> int:
    for end in range(start + 1, min(len(text), start + CAP) + 1):
        rest = text[end:]
        white = rest[: len(rest) - len(rest.lstrip())]
        run = RUN.search(text[start:end])
        if run and re.search("[。！？]", run[0]) and not GOES_ON.match(rest):  # noqa: RUF001
            return end
        if text[end - 1].isspace() or (rest and not white):
            continue
        if grain == "word" or run or not rest.strip() or any(char in LINE_ENDS for char in white):
            return end
    ends = range(start + 1, min(len(text), start + CAP) + 1)
    words = [end for end in ends if not text[end - 1].isspace() and text[end : end + 1].isspace()]
    return words[-1] if words else start + CAP


def pieces(text: str, cuts: list[int]) -> list[str]:
    edges = [0, *sorted({cut % (len(text) + 1) for cut in cuts}), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


@pytest.fixture(autouse=True, scope="module")
def small_cap() -> Iterator[None]:
    """Let short texts reach the cap."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "MAX_SEGMENT_CHARS", CAP)
        yield


def complete(found: Segments) -> list[Span]:
    return [Span(*each) for each in zip(found._complete._starts, found._complete._ends, strict=True)]


@pytest.mark.parametrize("grain", ["word", "sentence"])
@given(text=TEXTS, cuts=st.lists(st.integers(0, 60), max_size=8))
def test_g03_any_split_finds_the_same_segments_and_they_are_those_of_the_rules(
    grain: Grain, text: str, cuts: list[int]
) -> None:
    found = Segments(grain)
    for piece in pieces(text, cuts):
        found.feed(piece)
    found.end()
    assert complete(found) == slow(grain, text)


@pytest.mark.parametrize("grain", ["word", "sentence"])
@given(text=TEXTS, start=st.integers(0, 60), size=st.integers(0, 20))
@example(text=" ?", start=1, size=0)
def test_g03_what_is_said_of_a_span_is_never_taken_back(grain: Grain, text: str, start: int, size: int) -> None:
    span = Span(min(start, len(text)), min(start + size, len(text)))
    found = Segments(grain)
    said: list[Span] = []
    floors: list[int] = []
    ends: list[tuple[int, int]] = []
    for place, char in enumerate(text, 1):
        found.feed(char)
        ends.append((found.floor(place), found.earliest_end))
        floors.append(found.floor(place))
        if place >= span.end and (around := found.around(span)) is not None:
            said.append(around)
    found.end()
    last = found.around(span)
    assert last is not None
    assert set(said) <= {last}
    assert last.start <= span.start <= span.end <= last.end
    for floor, earliest in ends:
        assert all(earliest <= each.end for each in complete(found) if each.start <= floor < each.end)
    inside = [each for each in complete(found) if any(each.start < floor < each.end for floor in floors)]
    assert not inside, "no part of a segment is let go before all of it is known"


@given(text=TEXTS)
def test_words_lie_inside_sentences(text: str) -> None:
    words, sentences = Segments("word"), Segments("sentence")
    for each in (words, sentences):
        each.feed(text)
        each.end()
    for word in complete(words):
        assert any(each.start <= word.start and word.end <= each.end for each in complete(sentences))
    covered = {place for each in complete(words) for place in range(each.start, each.end)}
    assert covered == {place for place, char in enumerate(text) if not char.isspace()}
