"""Laws of the companion: it accepts exactly the beginnings of what its pattern matches."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.match.engine import Behind, compile_regex
from checkstream.core.match.entities import ENTITIES
from checkstream.core.match.patterns import Pattern, PatternSet
from checkstream.core.match.syntax import parse
from checkstream.core.match.tree import companion, render, uncounted, width
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


COUNTING = st.builds(
    "{}{}{{{},{}}}{}".format,
    st.sampled_from(["", "a", "(?i:ab)", r"\b"]),
    st.sampled_from(["[ -~]", "[^b]", "[a-c ]", "."]),
    st.integers(0, 3),
    st.integers(16, 40),
    st.sampled_from(["", "b", "c{2,}", "(?:b c){1,2}", r"\b"]),
)


@given(bounded_regexes | open_regexes | COUNTING, texts | st.text("abc ", max_size=60), st.integers(0, 60))
@settings(max_examples=examples(400))
def test_what_is_not_counted_is_found_wherever_it_is_found_counted(regex: str, text: str, at: int) -> None:
    exact = compile_regex(f"(?:{companion(parse(regex))})\\z")
    cheap = compile_regex(f"(?:{companion(uncounted(parse(regex)))})\\z")
    behind, at = Behind(cheap, exact), min(at, len(text))
    for ask, same in ((behind.search, exact.search), (behind.match, exact.match)):
        for end in (len(text), (at + len(text)) // 2):
            hit, expected = ask(text, at, end), same(text, at, end)
            assert (hit and hit.start()) == (expected and expected.start())


def test_what_reads_far_back_over_prose_stands_behind_what_does_not() -> None:
    """From the end of a text back, one expression for private keys had states of its own for each of 160 characters."""
    entity = ENTITIES["PRIVATE_KEY"]
    key = Pattern(signal=0, name=entity.name, regex=entity.regex, max_chars=entity.max_chars, refine=entity.refine)
    (asked,) = PatternSet([key]).tables["raw"].companions
    assert isinstance(asked, Behind)
    prose = "So it was read: the end of any prose, however long, has nothing to do with a key"
    hit = asked._cheap.search(prose)
    assert hit is not None
    assert hit.start() == len(prose)
