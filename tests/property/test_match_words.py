"""Laws of words that are looked up: the scan finds the same, and holds the same, as if it had searched each of them."""

from __future__ import annotations

from functools import cache

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bench.policies import with_classifiers
from checkstream.bench.scenario import TEXTS
from checkstream.core.match.patterns import ALL_VIEWS, Pattern, PatternSet
from checkstream.core.match.phrases import phrase_refine, phrase_regex
from checkstream.core.match.scan import Scan
from checkstream.core.match.words import Word, Words
from checkstream.core.policy.compile import compile_sources
from checkstream.core.terms import Finding, Stage
from tests.chance import examples
from tests.property.match_strategies import cuts, pattern_lists, pieces
from tests.property.test_match_scan import EVADED, SNIPPETS

OVER_SPACES = PatternSet(
    [
        Pattern(signal=0, name="spoken", regex=r"(?i)[a-z0-9]{1,20}(?: ?@ ?| at )[a-z]{1,20}(?:\.| dot )[a-z]{2,9}"),
        Pattern(signal=1, name="short", regex=r"\b[A-Za-z]{0,3} ?[0-9]{5}"),
        Pattern(signal=2, name="is", regex=r" is [^ ]{6,40}"),
        Pattern(signal=3, name="line", regex=r"(?m)^ ?[A-Z][a-z]{2,9}:"),
        Pattern(signal=4, name="within", regex=r"\Bing\b"),
        Pattern(signal=5, name="the wood", regex=phrase_regex("the wood"), refine=phrase_refine),
        Pattern(signal=6, name="tower", regex=phrase_regex("tower"), refine=phrase_refine),
        Pattern(signal=7, name="don't tell", regex=phrase_regex("don't tell"), refine=phrase_refine),
        Pattern(signal=8, name="twice", regex=r"\b(?:go ){2}", views=ALL_VIEWS - {"leet"}),
        Pattern(signal=10, name="a key", regex=phrase_regex("a key"), refine=phrase_refine),
        Pattern(signal=9, name="long", regex=r"key[ a-z]+!", max_chars=80),
    ]
)
WORDS = st.sampled_from(
    [
        *[
            " the",
            " wood",
            " tower",
            " Tower,",
            " a",
            " I",
            " i",
            " is",
            " at",
            " dot",
            " it's",
            " don't",
            " tell",
            " don",
            " go",
            " goi",
            " walk",
            " key",
            " sword",
            " AB",
            " e",
        ],
        *[
            "ng",
            "ing",
            ",",
            ".",
            ":",
            "@",
            "fe",
            "s",
            "r",
            "e",
            "co",
            "n",
            "p",
            "!",
            "\n",
            "\n\n",
            "́",
            " ",
            "  ",
            " 12345",
            " 1",
            " x-y",
            " well-known",
            " john",
            " example",
            " @",
            " @x",
        ],
        *[
            " Line:",
            " **bold**",
            " <b",
            " b> ",
            " _",
            " café",
            " by",
            " &",
            " %41",
            " \\",
            " be",
            " fed",
            " ca",
            " gh",
            " x.org",
            " go go",
            " a b c d",
        ],
        " the wood is at the tower",
        " aaaaaaaaaaaaaaaaaaaaaaaa",
    ]
)
SAID = st.lists(st.one_of(WORDS, WORDS, WORDS, SNIPPETS), max_size=24)


@cache
def _defaults() -> list[PatternSet]:
    """Return what the default policies search an answer for."""
    program = compile_sources([("default.yaml", with_classifiers())])
    scopes = [program.scope(stage, "content") for stage in (Stage.MIDSTREAM, Stage.EGRESS)]
    return [found for scope in scopes for found in (scope.hold, scope.watch) if len(found)]


def _alike(patterns: PatternSet, said: list[str]) -> int:
    """Hold a scan that looks words up to one that does not, piece by piece; return how many pieces were looked up."""
    fast, slow = Scan(patterns), Scan(patterns, by_words=False)
    known = 0
    for place, piece in enumerate(said):
        assert (fast.feed(piece), fast.live) == (slow.feed(piece), slow.live), (place, piece)
        known += fast.by_words
    assert fast.end() == slow.end()
    return known


@pytest.mark.parametrize("patterns", [OVER_SPACES, EVADED], ids=["over spaces", "evaded"])
@given(SAID)
@settings(max_examples=examples(400))
@example([" the", " tower", " is", " at", " x.org"])
@example(["zz", " a", " is", " b", " c", " d", " e"])
@example(["so", " it's", " a", " b", " c"])
@example(["so", " the", " a", " tower", " is", " a", " be", " c", " d", " e"])
@example(["so", " the", " a", " go go", " I", " to", "wer", " x", " key", "!"])
def test_g03_g04_words_that_are_looked_up_are_found_and_held_as_if_searched(
    patterns: PatternSet, said: list[str]
) -> None:
    _alike(patterns, said)


@given(pattern_lists(ALL_VIEWS), st.lists(WORDS, max_size=16))
@settings(max_examples=examples(300))
def test_g03_g04_words_are_looked_up_for_any_patterns(drawn: list[Pattern], said: list[str]) -> None:
    uncapped = [msgspec.structs.replace(each, max_chars=each.max_chars and 99) for each in drawn]
    _alike(PatternSet(uncapped), said)


@given(SAID)
@settings(max_examples=examples(100))
def test_g03_g04_words_are_looked_up_for_the_default_policies(said: list[str]) -> None:
    for patterns in _defaults():
        _alike(patterns, said)


@pytest.mark.parametrize("name", sorted(each.name for each in TEXTS.iterdir() if each.suffix == ".txt"))
def test_g03_g04_words_of_real_texts_are_found_and_held_as_if_searched(name: str) -> None:
    text = (TEXTS / name).read_text("utf-8")[:6000]
    for patterns in _defaults():
        _alike(patterns, [f" {word}" for word in text.split(" ")])


@given(st.text(alphabet="ab ,.'-", max_size=60), cuts)
@settings(max_examples=examples(200))
def test_g03_words_are_looked_up_however_the_text_is_cut(text: str, at: list[int]) -> None:
    _alike(OVER_SPACES, pieces(f"So {text}", at))


def test_g10_most_words_of_prose_are_looked_up() -> None:
    text = (TEXTS / "benign.txt").read_text("utf-8")
    said = [f" {word}" for word in " ".join(text.split()).split(" ")]
    for patterns in _defaults():
        assert _alike(patterns, said) > 0.9 * len(said)


def test_g33_of_the_new_words_of_a_piece_few_are_found_out_about_at_a_time() -> None:
    """Each may take the engine a millisecond, since it builds the states of its automata as it needs them."""
    asked = list[str]()
    found = Word(live=1, unread=(0,), asks=0, open=0, apart=True)

    def find_out(word: str) -> Word:
        asked.append(word)
        return found

    words, text, rounds = Words(find_out), " a dozen words of which nothing at all is known here yet", 0
    while words.last(text) is None and rounds < 9:
        rounds += 1
        before = len(asked)
        words.last(text)
        assert len(asked) - before <= 4
    assert rounds <= 4
    assert sorted(asked) == sorted({f" {word}" for word in text[1:].split(" ") if word})


def test_g11_no_number_is_remembered_and_no_more_words_than_there_is_room_for() -> None:
    asked: list[str] = []
    words = Words(asked.append)
    for word in (
        " 4111",
        " a1",
        " caf\u00e9",
        " a_b",
        "word",
        " two words",
        " ",
        " aaaaaaaaaaaaaaaaaaaaaaaa",
        " \u0661\u0662",
        " x=",
    ):
        assert words.get(word) is None
    assert not asked
    for number in range(1 << 14):
        words.get(" " + "".join(chr(97 + number // 26**place % 26) for place in range(4)))
    assert words.size <= 1 << 14
    words.get(" another")
    assert words.size == 1


def test_what_is_found_before_the_end_of_words_is_in_order() -> None:
    found: list[Finding] = []
    scan = Scan(OVER_SPACES)
    for piece in ("We", " write", " to", " john", " at", " example", " dot", " org", " now", " and", " then", " rest"):
        found += scan.feed(piece)
    assert [(each.signal, each.span.start, each.span.end) for each in found] == [(0, 12, 35)]
