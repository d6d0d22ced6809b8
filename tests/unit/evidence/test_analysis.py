"""Terms of a keyword index."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.evidence.analysis import MAX_QUERY_TERMS, MAX_TERM_CHARS, query_terms, terms


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The refund's 30-day limit, 4.2%", ["the", "refund", "s", "30", "day", "limit", "4", "2"]),
        ("os.path.join()", ["os", "path", "join"]),
        ("Größe CAFÉ", ["grosse", "cafe"]),
        ("ﬁnance ²", ["finance", "2"]),
        ("שָׁלוֹם", ["שלום"]),
        ("公司成立于1998年", ["公司", "司成", "成立", "立于", "1998", "年"]),
        ("สวัส", ["สว", "วส"]),
        ("iPhone手机", ["iphone", "手机"]),
        ("한국어 서울", ["한국어", "서울"]),
        ("", []),
        ('" OR NEAR(*) -^:{}', ["or", "near"]),
    ],
)
def test_words_are_folded_and_scripts_without_spaces_are_cut_in_pairs(text: str, found: list[str]) -> None:
    assert terms(text) == found


def test_a_word_of_two_letters_is_found_in_a_phrase_without_spaces() -> None:
    assert set(terms("北京")) <= set(terms("他住在北京市"))


def test_a_run_without_end_is_cut() -> None:
    assert terms("a" * 10_000) == ["a" * MAX_TERM_CHARS]


def test_a_query_asks_for_each_term_once_and_not_for_more_than_the_cap() -> None:
    assert query_terms("to be or not to be") == ["to", "be", "or", "not"]
    assert len(query_terms(" ".join(f"w{number}" for number in range(100_000)))) == MAX_QUERY_TERMS


@given(st.text())
def test_a_term_holds_nothing_at_which_an_index_would_cut_it(text: str) -> None:
    found = terms(text)
    assert " ".join(found).split() == found
    assert all(term and '"' not in term and "\x00" not in term for term in found)


@given(st.text(max_size=200))
def test_any_text_is_found_by_any_of_its_terms_in_fts5(text: str) -> None:
    found = query_terms(text)
    db = sqlite3.connect(":memory:")
    db.execute("create virtual table t using fts5(words, content='', tokenize='ascii')")
    db.execute("insert into t(rowid, words) values(1, ?)", (" ".join(terms(text)),))
    for term in found:
        assert db.execute("select rowid from t where t match ?", (f'"{term}"',)).fetchall() == [(1,)]
    db.close()
