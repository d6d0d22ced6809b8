"""Phrases are found without the regex engine, and are what their expressions say (one for each, as the oracle)."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from checkstream.core.match.patterns import Pattern, PatternSet
from checkstream.core.match.phrases import phrase_refine, phrase_regex
from checkstream.core.match.scan import Scan
from checkstream.core.terms import Finding
from tests.chance import examples
from tests.property.match_strategies import cuts, pieces

WORDS = st.sampled_from(
    ["a", "b", "ab", "aba", "B", "can't", "c++", "#a", "$", "a.", "-b", "1", "_", "k", "s"]
) | st.sampled_from(["\u00e9", "e\u0301", "\u212a", "\u017f", "\u65e5\u672c", "\u1e9e", "\u00df"])
PHRASES = st.lists(st.lists(WORDS, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=12, unique=True)
GAPS = st.sampled_from(
    [" ", " ", " ", "  ", "\n", "\u00a0", " " * 8, " " * 9, "\x1c", "\u2003 ", "", "-", ", ", "\u200b"]
)
EVADED = st.sampled_from(
    ["a b a b", "\\u0061", "&#97;", "%61", "4", "0", "\u0430", "YSBiIGEgYiBhIGIgYSBiIGEgYg==", "."]
)
TEXTS = st.lists(st.tuples(WORDS | WORDS | EVADED, GAPS).map("".join), max_size=14).map("".join)


def own_refine(text: str, start: int, end: int) -> Sequence[tuple[int, int]]:
    """Do what a phrase's own does, so that only the expression finds it."""
    return phrase_refine(text, start, end)


def compiled(phrases: Sequence[str], *, literal: bool) -> PatternSet:
    """Compile phrases as such, or as expressions like any other."""
    refine = phrase_refine if literal else own_refine
    made = PatternSet(
        [Pattern(signal=n, name=each, regex=phrase_regex(each), refine=refine) for n, each in enumerate(phrases)]
    )
    assert bool(made.tables["raw"].members) != literal
    return made


def scanned(patterns: PatternSet, cut: Sequence[str]) -> tuple[list[Finding], list[int]]:
    """Return every finding, in order, and `live` after each piece."""
    scan = Scan(patterns)
    found, lives = [], []
    for piece in cut:
        found += scan.feed(piece)
        lives.append(scan.live)
    return sorted(found + scan.end(), key=lambda f: (f.span.start, f.span.end, f.signal)), lives


@given(PHRASES, TEXTS, cuts)
@example(["a b a"], "a b a b a b a", [2, 5, 9])
@example(["ab c", "b"], "a b c ab c", [])
@settings(max_examples=examples(400))
def test_g03_phrases_are_found_where_their_expressions_match_however_the_text_is_cut(
    phrases: list[str], text: str, at: list[int]
) -> None:
    cut = pieces(text, at)
    slow, slow_lives = scanned(compiled(phrases, literal=False), cut)
    found, lives = scanned(compiled(phrases, literal=True), cut)
    assert found == slow
    # what begins within a word is no phrase: it need not be held, as the expression alone would
    assert all(live >= slow_live for live, slow_live in zip(lives, slow_lives, strict=True))


@given(PHRASES, TEXTS, cuts)
@settings(max_examples=examples(200))
def test_g03_what_of_phrases_is_held_does_not_depend_on_the_cut(phrases: list[str], text: str, at: list[int]) -> None:
    patterns = compiled(phrases, literal=True)
    cut = pieces(text, at)
    lives: dict[int, int] = {}
    for pieced in (cut, list(text)):
        scan, size = Scan(patterns), 0
        for piece in pieced:
            scan.feed(piece)
            size += len(piece)
            assert lives.setdefault(size, scan.live) == scan.live


@given(PHRASES, TEXTS, TEXTS)
@settings(max_examples=examples(200))
def test_g04_no_phrase_starts_before_what_was_live(phrases: list[str], text: str, more: str) -> None:
    scan = Scan(compiled(phrases, literal=True))
    scan.feed(text)
    live = scan.live
    assert all(finding.span.start >= live for finding in scan.feed(more) + scan.end())
