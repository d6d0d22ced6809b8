"""Laws of the entities in a stream: how the text is cut changes no finding and releases no part of one."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.match.entities import ENTITIES
from checkstream.core.match.patterns import Pattern, PatternSet
from checkstream.core.match.scan import Scan
from checkstream.core.policy.link import pattern_of
from checkstream.core.policy.signals import entity_signal
from tests.chance import examples
from tests.property.test_entities import NAMES, hostile, of

EVERY_SPLIT_CHARS = 60
"""Up to this length an example is cut at every place; a longer one at this many places."""


@cache
def patterns(name: str) -> PatternSet:
    entity = ENTITIES[name]
    pattern = Pattern(
        signal=0,
        name=name,
        regex=entity.regex,
        max_chars=entity.max_chars,
        refine=entity.refine,
        views=frozenset({"raw"}),
    )
    return PatternSet([pattern])


def scan(name: str, *chunks: str) -> tuple[tuple[int, int], ...]:
    machine = Scan(patterns(name))
    findings = [finding for chunk in chunks for finding in machine.feed(chunk)]
    findings += machine.end()
    return tuple((finding.span.start, finding.span.end) for finding in findings)


@pytest.mark.parametrize("name", NAMES)
def test_g03_an_example_cut_anywhere_finds_the_same(name: str) -> None:
    for _, text, spans in of(name):
        assert scan(name, text) == spans
        step = max(1, len(text) // EVERY_SPLIT_CHARS)
        for cut in range(1, len(text), step):
            assert scan(name, text[:cut], text[cut:]) == spans


@pytest.mark.parametrize("name", NAMES)
def test_g04_no_character_of_a_span_is_decided_before_the_span(name: str) -> None:
    for _, text, spans in of(name):
        machine = Scan(patterns(name))
        found: set[tuple[int, int]] = set()
        for char in text:
            found |= {(finding.span.start, finding.span.end) for finding in machine.feed(char)}
            assert all(machine.live <= start for start, end in spans if (start, end) not in found)
        found |= {(finding.span.start, finding.span.end) for finding in machine.end()}
        assert found == set(spans)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(15), deadline=None)
@given(data=st.data())
def test_examples_side_by_side_cut_anywhere_find_the_same(name: str, data: st.DataObject) -> None:
    text = data.draw(hostile(name))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert scan(name, *chunks) == scan(name, text)


MARKS = [
    "<b>",
    "</i>",
    "**",
    "_",
    "\u200b",
    "\u00ad",
    " ",
    "\n",
    "%40",
    "&#64;",
    "\\u0040",
    '" + "',
    "(",
    "-",
    ".",
    "/",
    "@",
]


@cache
def together(names: tuple[str, ...]) -> PatternSet:
    """Return the patterns of some entities, in all views in which policies read them."""
    return PatternSet([pattern_of(number, entity_signal(name)) for number, name in enumerate(names)])


def found(names: tuple[str, ...], *chunks: str) -> list[tuple[int, int, int]]:
    machine = Scan(together(names))
    findings = [finding for chunk in chunks for finding in machine.feed(chunk)] + machine.end()
    return sorted((finding.signal, finding.span.start, finding.span.end) for finding in findings)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(15), deadline=None)
@given(data=st.data())
def test_g03_entities_side_by_side_and_marks_among_them_cut_anywhere_find_the_same(
    name: str, data: st.DataObject
) -> None:
    """One of them may wake a view in which another is read on."""
    names = (name, NAMES[(NAMES.index(name) + data.draw(st.sampled_from([1, 7, 16]))) % len(NAMES)])
    text = ""
    for each in data.draw(st.lists(st.sampled_from(names).flatmap(hostile), min_size=1, max_size=3)):
        at = data.draw(st.integers(0, len(each)))
        text += each[:at] + data.draw(st.sampled_from(MARKS)) + each[at:]
    assert found(names, *text) == found(names, text)


def test_g03_what_a_view_passes_by_another_that_wakes_later_passes_by() -> None:
    names, text = ("EMAIL", "PHONE_LOOSE"), "d(1-070040.om<b>ca"
    assert found(names, *text) == found(names, text) == []
