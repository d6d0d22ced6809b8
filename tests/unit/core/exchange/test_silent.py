"""Short texts in which nothing is found: what looks finds what is found at all, wherever in the text it stands."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.exchange.meter import Meter
from checkstream.core.exchange.silent import SHORT_CHARS, Look, finding_nothing
from checkstream.core.match.patterns import PatternSet
from checkstream.core.match.scan import Scan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.terms import Stage
from tests.chance import examples

RULES = """
pack: {name: t, version: 1.0.0}
policies:
  - {name: mail, id: M-1, stage: [midstream], entities: [EMAIL, CREDIT_CARD], actions: [{type: redact}]}
  - {name: halt, id: H-1, stage: [midstream], phrases: [sword], actions: [{type: stop}]}
"""
PATTERNS = compile_sources([("t.yaml", RULES)]).scope(Stage.MIDSTREAM, "content").hold
WORDS = st.sampled_from([
    "the keeper walks ", "home along the shore ", "sword ", "s\u00adword ", "ann@northwind.example ", "4111 1111 ",
    "1111 1111 ", "YW5uQG5vcnRod2luZC5leGFtcGxl ", "\\u0073word ", "x" * 40, "12 34 ", ". ",
])  # fmt: skip


def _finds(patterns: PatternSet, text: str) -> bool:
    scan = Scan(patterns)
    return bool(scan.feed(text) + scan.end())


def _looks(text: str) -> bool:
    steps = finding_nothing(PATTERNS, text, Meter(turn=0, budget=0))
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return not end.value


@settings(max_examples=examples(200))
@given(st.lists(WORDS, max_size=40).map(lambda words: "".join(words)[:SHORT_CHARS]))
def test_g01_a_text_has_something_if_a_search_finds_something(text: str) -> None:
    assert _looks(text) == _finds(PATTERNS, text)


@pytest.mark.parametrize("late", [True, False])
@settings(max_examples=examples(100))
@given(st.lists(WORDS, min_size=1, max_size=60))
def test_g01_what_was_found_stays_found_whatever_follows(late: bool, pieces: list[str]) -> None:
    look = Look(PATTERNS, late=late)
    for piece in pieces:
        look.feed(piece)
    assert look.end() == _finds(PATTERNS, "".join(pieces))
