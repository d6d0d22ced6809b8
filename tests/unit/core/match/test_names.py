"""Names as they are compared: which are the same, and among which words they are found."""

from __future__ import annotations

import pytest

from checkstream.core.match.names import APART, name_key, pieces, tells, told, words_of


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Write to Anna Schmidt, please", "ANNA  SCHMIDT"),
        ("Write to Anna Schmidt, please", "Anna"),
        ("Write to Anna Schmidt, please", "Schmidt's"),
        ("Anna's car", "Anna"),
        ("Anna\u2019s car", "anna's"),
        ("the Schmidts' house", "Schmidts"),
        ("anna_schmidt@x.example", "Anna Schmidt"),
        ("Anna-Maria", "anna maria"),
        ("Anna\nSchmidt", "Anna\u00a0Schmidt"),
        ("An\u00adna Sch\u200bmidt", "Anna Schmidt"),
        ("\uff21nna", "Anna"),
        ("Jose\u0301", "Jos\u00e9"),
        ("STRASSE", "stra\u00dfe"),
        ("l'ONU", "ONU"),
        ("O\u2019Brien", "o'brien"),
        ("\u8bf7\u95ee\u5f20\u4f1f\u662f\u8c01", "\u5f20\u4f1f"),
        ("\uae40\ubbfc\uc218\ub294", "\uae40\ubbfc\uc218"),
        ("\u30a2\u30f3\u30ca\u3055\u3093", "\u30a2\u30f3\u30ca"),
        ("\u0905\u0928\u093f\u0924\u093e \u091c\u0940", "\u0905\u0928\u093f\u0924\u093e"),
        ("lone \ud800 Anna", "anna"),
    ],
)
def test_a_name_is_told_by_its_words(text: str, name: str) -> None:
    assert tells(told([words_of(text)]), name_key(name))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Annabel", "Anna"),
        ("Hanna", "Anna"),
        ("Anna", "Anna Schmidt"),
        ("Schmidt, Anna", "Anna Schmidt"),
        ("Anna and Bert Schmidt", "Anna Schmidt"),
        ("Jose", "Jos\u00e9"),
        ("J. Smith", "John Smith"),
        ("Anna2", "Anna"),
        ("\u30a2\u30f3\u30ca\u3055\u3093", "\u30a2\u30f3"),
        ("\u5f20\u4e09\u4f1f", "\u5f20\u4f1f"),
        ("anything", "..."),
        ("anything", ""),
        ("", "Anna"),
    ],
)
def test_what_only_looks_like_it_is_not(text: str, name: str) -> None:
    assert not tells(told([words_of(text)]), name_key(name))


def test_no_name_is_put_together_from_two_texts() -> None:
    words = told([words_of("ask Anna"), APART, words_of("Schmidt says")])
    assert tells(words, "anna")
    assert tells(words, "schmidt")
    assert not tells(words, name_key("Anna\nSchmidt"))


@pytest.mark.parametrize("sign", [" ", ",", "\n", "\u00fc ", "\u5f20", "a", "\u0338<"])
def test_a_long_text_is_read_in_pieces_of_the_same_words(sign: str) -> None:
    text = "".join(f"Name{number}{sign}" for number in range(900))
    parts = list(pieces(text))
    assert "".join(parts) == text
    assert len(parts) > 4
    if sign not in ("a", "\u5f20"):
        assert " ".join(map(words_of, parts)).split() == words_of(text).split()
