"""The words of a text, as recitals are compared, are the same however it is cut."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.match.plain_words import MAX_RUN_CHARS, MAX_WORD_CHARS, PlainWords, Word, number_of, numbers_of
from tests.chance import examples
from tests.property.match_strategies import cuts, pieces

TEXTS = st.lists(
    st.sampled_from(
        [*"abcn \\%&.-_1\n", "\u6f22", "\u5b57", "\u200b", "\u0301", "\x01", "\ufffd", "\ud83d", "\x1b", "["]
    )
    | st.sampled_from(
        [
            "\\n",
            "%20",
            "&amp;",
            "\\u0041",
            "&#",
            "x" * 30,
            "y" * 64,
            "\u200b" * 70,
            "\u200b" * 250,
            "\ufb01",
            "\u0e01\u0e34",
            "\xa0",
        ]
    )
    | st.text(max_size=3),
    max_size=40,
).map("".join)


def read(cut: list[str]) -> tuple[list[Word], list[int]]:
    """Return the words of a text that comes so, and what is known after each piece."""
    words, found, ats = PlainWords(), list[Word](), list[int]()
    for piece in cut:
        new = words.feed(piece)
        assert all(each.start >= (ats[-1] if ats else 0) for each in new)
        found += new
        ats.append(words.at)
    return found + words.end(), ats


@given(TEXTS, cuts)
@settings(max_examples=examples(500))
def test_g03_words_are_the_same_however_the_text_is_cut(text: str, at: list[int]) -> None:
    whole, _ = read([text])
    assert read(pieces(text, at))[0] == whole
    assert read(list(text))[0] == whole
    places = [place for word in whole for place in (word.start, word.end)]
    assert places == sorted(places)
    assert all(0 <= word.start < word.end <= len(text) for word in whole)


@given(TEXTS, cuts)
@settings(max_examples=examples(200))
def test_g03_what_waits_is_the_same_however_the_text_is_cut(text: str, at: list[int]) -> None:
    cut = pieces(text, at)
    _, ats = read(cut)
    end = 0
    for piece, known in zip(cut, ats, strict=True):
        end += len(piece)
        assert known == read([text[:end]])[1][0]
        assert end - known <= 768 + MAX_RUN_CHARS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's THE end.", ["it", "s", "the", "end"]),
        ("for (int i=0; i<n; i++)", ["for", "int", "i", "0", "i", "n", "i"]),
        ("snake_case camelCase", ["snake_case", "camelcase"]),
        ("\u6211\u8aaa abc\u6f22", ["\u6211", "\u8aaa", "abc", "\u6f22"]),
        ("a\\nb%20c&nbsp;d\\\\ne", ["a", "b", "c", "d", "e"]),
        ("w\u200bo\u00adrd \ufb01ne \uff21", ["word", "fine", "a"]),
        ("cafe\u0301", [unicodedata.normalize("NFC", "cafe\u0301")]),
        ("\u200b \x01 -- !", []),
    ],
)
def test_a_word_has_one_form(text: str, words: list[str]) -> None:
    assert numbers_of(text) == [number_of(word) for word in words]


def test_a_run_that_is_too_long_is_no_word() -> None:
    assert numbers_of("a " + "x" * (MAX_WORD_CHARS + 1) + " b") == [number_of("a"), None, number_of("b")]
    words = PlainWords()
    words.feed("x" * 10_000)
    assert words.at == 10_000
