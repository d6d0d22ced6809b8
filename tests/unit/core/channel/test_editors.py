"""The lexicon editor: whole words, longest first, letter case kept, once over, in linear work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.channel import editors
from checkstream.core.channel.editors import LexiconEditor, editor_of
from checkstream.core.policy.action import RewriteSpan

LEXICON = LexiconEditor(
    [
        ("guaranteed", "expected"),
        ("risk free", "lower risk"),
        ("risk", "hazard"),
        ("you must", "you may"),
        ("C++", "Rust"),
        ("can't lose", "may lose"),
        ("$100", "a sum"),
        ("straße", "road"),
        ("expected", "WRONG"),
    ]
)


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("It is guaranteed.", "It is expected."),
        ("Guaranteed! GUARANTEED? gUARANTEED", "Expected! EXPECTED? expected"),
        ("a risk free and risk-free risk", "a lower risk and hazard-free hazard"),
        ("Risk  \n free, RISK FREE", "Lower risk, LOWER RISK"),
        ("unguaranteed guaranteed_x e\u0301guaranteed", "unguaranteed guaranteed_x e\u0301guaranteed"),
        ("C++, C+++ xC++ C++x", "Rust, Rust+ xC++ C++x"),
        ("You can't lose $100 or $1000", "You may lose a sum or $1000"),
        ("STRASSE Straße", "ROAD Road"),
        ("riskrisk", "riskrisk"),
        ("", ""),
        ("nothing here", "nothing here"),
    ],
)  # fmt: skip
def test_whole_words_are_replaced_in_the_case_of_what_was_there(text: str, edited: str) -> None:
    assert LEXICON.edit(text) == edited


def test_of_words_that_overlap_the_first_and_longest_counts() -> None:
    editor = LexiconEditor([("new york", "A"), ("york city", "B"), ("new york city hall", "C"), ("new", "D")])
    assert editor.edit("new york city") == "A city"
    assert editor.edit("new york city hall") == "C"
    assert editor.edit("new york city halls") == "A city halls"
    assert editor.edit("york city new") == "B D"


def test_what_has_been_put_in_is_not_replaced_again() -> None:
    assert LexiconEditor([("a", "b"), ("b", "a")]).edit("a b ab") == "b a ab"
    assert LexiconEditor([("x", "x x")]).edit("x x") == "x x x x"


def test_of_words_equal_but_for_letter_case_the_first_counts_and_white_space_is_no_word() -> None:
    assert LexiconEditor([("Foo", "1"), ("FOO", "2"), (" \n", "3"), ("", "4")]).edit("foo  bar") == "1  bar"


def test_an_empty_replacement_takes_the_word_out() -> None:
    assert LexiconEditor([("very", "")]).edit("very good, Very") == " good, "


WORDS = st.text(alphabet="abAB'+ é\u0301", min_size=1, max_size=6)


@given(words=st.lists(st.tuples(WORDS, st.sampled_from(["Ω", "ΩΩ", ""])), max_size=8), text=st.text("abAB'+ é\u0301"))
def test_what_is_not_in_the_lexicon_stays_as_it_is(words: list[tuple[str, str]], text: str) -> None:
    edited = LexiconEditor(words).edit(text)
    kept = edited.replace("Ω", "").replace("ω", "")
    at = 0
    for char in kept:
        at = text.index(char, at) + 1
    if not any(word.strip() and word.strip()[0].casefold() in text.casefold() for word, _ in words):
        assert edited == text


def test_the_work_is_linear_in_the_text_whatever_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    folded = editors._folded

    def counting(atom: str) -> str:
        nonlocal asked
        asked += 1
        return folded(atom)

    editor = LexiconEditor([("a " * size + "b", "x") for size in range(1, 60)])
    monkeypatch.setattr(editors, "_folded", counting)
    editor.edit("a " * 2000)
    short = asked
    editor.edit("a " * 4000)
    assert asked - short <= 2.1 * short


def test_an_action_has_one_editor() -> None:
    action = RewriteSpan(words=(("a", "b"),))
    assert editor_of(action) is editor_of(RewriteSpan(words=(("a", "b"),)))
    assert editor_of(action).edit("A a") == "B b"
