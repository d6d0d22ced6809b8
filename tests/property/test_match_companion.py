"""Laws of the companion: it accepts exactly the beginnings of what its pattern matches."""

from __future__ import annotations

from hypothesis import given, settings

from checkstream.core.match.patterns import compile_regex
from checkstream.core.match.syntax import parse
from checkstream.core.match.tree import companion, render, width
from tests.chance import examples
from tests.property.match_strategies import bounded_regexes, is_live, open_regexes, texts


@given(bounded_regexes | open_regexes, texts)
@settings(max_examples=examples(300))
def test_the_companion_finds_the_leftmost_beginning_of_a_match(regex: str, text: str) -> None:
    tree = parse(regex)
    hit = compile_regex(f"(?:{companion(tree)})\\z").search(text)
    assert hit is not None
    expected = next((start for start in range(len(text)) if is_live(tree, text, start)), len(text))
    assert hit.start() == expected


@given(bounded_regexes, texts)
@settings(max_examples=examples(200))
def test_canonical_text_means_what_the_pattern_means(regex: str, text: str) -> None:
    ours, theirs = compile_regex(render(parse(regex))).search(text), compile_regex(regex).search(text)
    assert (ours and (ours.start(), ours.end())) == (theirs and (theirs.start(), theirs.end()))


@given(bounded_regexes, texts)
@settings(max_examples=examples(150))
def test_a_match_is_as_wide_as_its_pattern_says(regex: str, text: str) -> None:
    hit = compile_regex(regex).search(text)
    if hit is not None:
        least, greatest = width(parse(regex))
        assert greatest is not None
        assert least <= hit.end() - hit.start() <= greatest
