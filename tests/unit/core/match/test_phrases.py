"""Phrases: which are taken for such, which text begins one, what is found beside one another."""

from __future__ import annotations

import pytest

from checkstream.core.match.patterns import MAX_CAP_CHARS, Pattern, PatternSet
from checkstream.core.match.phrases import Phrase, PhraseIndex, phrase_refine, phrase_regex
from checkstream.core.match.scan import Scan
from checkstream.errors import PatternError


def compiled(*phrases: str) -> PatternSet:
    return PatternSet(
        [Pattern(signal=n, name=each, regex=phrase_regex(each), refine=phrase_refine) for n, each in enumerate(phrases)]
    )


def found(patterns: PatternSet, *pieces: str) -> list[tuple[int, int, int]]:
    state = Scan(patterns)
    everything = [finding for piece in pieces for finding in state.feed(piece)] + state.end()
    return [(each.span.start, each.span.end, each.signal) for each in everything]


def live(patterns: PatternSet, text: str) -> int:
    state = Scan(patterns)
    state.feed(text)
    return state.live


def test_a_phrase_is_left_to_the_index_and_nothing_else_is() -> None:
    regex = phrase_regex("zero risk")
    phrase = Pattern(signal=0, name="Zero  risk", regex=phrase_regex("Zero risk"), refine=phrase_refine)
    others = [
        Pattern(signal=1, name="zero", regex=regex, refine=phrase_refine),
        Pattern(signal=2, name="zero risk", regex=regex),
        Pattern(signal=3, name="zero risk", regex=regex, refine=phrase_refine, views=frozenset({"raw"})),
        Pattern(signal=4, name="zero risk", regex=regex, refine=phrase_refine, max_chars=50),
    ]
    table = PatternSet([phrase, *others]).tables["raw"]
    assert table.phrases is not None
    assert table.phrases.numbers == {0}
    assert [member.pattern for member in table.members] == others
    assert table.numbers == set(range(5))


@pytest.mark.parametrize("phrase", ["\ud800", "a " * MAX_CAP_CHARS])
def test_a_phrase_that_no_text_can_have_is_refused(phrase: str) -> None:
    with pytest.raises(PatternError, match=r"lone surrogate|is longer than"):
        compiled(phrase)


def test_all_phrases_that_stand_in_one_another_are_found() -> None:
    patterns = compiled("a", "a b", "a b c", "b c", "c", "b d")
    assert found(patterns, "a b c") == [(0, 1, 0), (0, 3, 1), (0, 5, 2), (2, 5, 3), (4, 5, 4)]


def test_phrases_that_differ_in_case_alone_are_each_found() -> None:
    assert found(compiled("Zero Risk", "zero risk"), "ZERO  risk") == [(0, 10, 0), (0, 10, 1)]


def test_a_phrase_does_not_overlap_itself() -> None:
    assert found(compiled("a b a"), "a b a b a b a") == [(0, 5, 0), (8, 13, 0)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it can", 3),
        ("it can'", 3),
        ("it can't", 3),
        ("it can't  ", 3),
        ("it can't los", 3),
        ("it can't lose", 3),
        ("it can't lose ", 14),
        ("it can't loser ", 15),
        ("it can lo ", 10),
        ("it toucan ", 10),
        ("it can't" + " " * 9, 17),
        ("pay $", 4),
        ("pay $1", 4),
        ("pay $293 ", 9),
    ],
)
def test_text_is_held_from_where_it_is_the_beginning_of_a_phrase(text: str, expected: int) -> None:
    assert live(compiled("can't lose", "$100 bonus"), text) == expected


def test_a_phrase_touches_nothing_only_where_a_letter_of_it_would() -> None:
    patterns = compiled("c++", "$100")
    assert found(patterns, "c++x") == [(0, 3, 0)]
    assert found(patterns, "xc++") == []
    assert found(patterns, "US$100") == [(2, 6, 1)]
    assert found(patterns, "$1000") == []


def test_the_index_knows_what_begins_with_a_text_and_what_a_text_begins_with() -> None:
    names = ["a", "a b", "a c", "b"]
    index = PhraseIndex([Phrase(n, n, words, 1024) for n, words in enumerate(names)])
    assert [index.keys[place] for place in index.begun("a")] == ["a", "a b", "a c"]
    assert [index.keys[place] for place in index.within("a c d")] == ["a c", "a"]
    assert [index.begins(shape) for shape in ("a", "a c", "a d", "c")] == [True, True, False, False]
    assert list(index.begun("c")) == []
    assert list(index.within("c")) == []


def test_what_is_live_further_left_wins_over_a_whole_phrase_at_the_end() -> None:
    patterns = compiled("risk", "zero risks", "zeros")
    assert live(patterns, "so zero risk") == 3
    assert live(patterns, "so zero risk ") == 13
    assert live(patterns, "so zeros") == 3
    assert found(patterns, "so zero risk", "s, zeros risk") == [(3, 13, 1), (15, 20, 2), (21, 25, 0)]


@pytest.mark.parametrize("text", ["na\u00efve zero  ri", "zero\u00a0ri", "\u201czero ri", "it\u2019s ZERO \n ri"])
def test_text_beyond_ascii_is_held_as_any_other(text: str) -> None:
    start = text.lower().index("zero")
    assert live(compiled("zero risk", "na\u00efve text"), text) == start
    assert found(compiled("zero risk"), text, "sk") == [(start, len(text) + 2, 0)]


def test_thousands_of_phrases_are_searched_without_the_regex_engine() -> None:
    patterns = compiled(*[f"word{n} other{n % 7}" for n in range(5000)])
    table = patterns.tables["raw"]
    assert (table.members, table.gates, table.companions) == ((), (), ())
    assert found(patterns, "so wo", "rd4999 oth", "er1 and word7 other1") == [(3, 18, 4999)]


def test_a_phrase_stuffed_with_what_does_not_show_is_taken_for_one_at_its_cap() -> None:
    stuffed = "zero" + "\u200b" * 3000 + "risk"
    assert found(compiled("zero risk", "zero sum"), stuffed[:-4]) == found(
        compiled("zero risk", "zero sum"), *stuffed[:-4]
    )


@pytest.mark.parametrize("tail", [".", " and that is all.", " and then zero risk"])
@pytest.mark.parametrize("size", [192, 252, 402])
def test_after_a_finding_in_a_long_piece_the_rest_is_read_in_its_place(size: int, tail: str) -> None:
    market = Pattern(signal=0, name="market", regex=r"\bmarkets?\b")
    risk = Pattern(signal=1, name="zero risk", regex=phrase_regex("zero risk"), refine=phrase_refine)
    patterns = PatternSet([market, risk])
    text = ("words " * 100)[:size] + "market" + tail
    expected = [(size, size + 6, 0)]
    if tail.endswith("zero risk"):
        expected.append((len(text) - 9, len(text), 1))
    assert found(patterns, text) == expected
    assert found(patterns, text, ".") == expected
    assert live(patterns, text) <= len(text) - len("zero risk") * tail.endswith("zero risk")
