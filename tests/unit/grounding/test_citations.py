"""Citations: what counts as one, and which ids it names."""

from __future__ import annotations

import pytest

from checkstream.grounding.citations import CitationStyle, citations, styles


def ids(text: str, known: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    return [citation.ids for citation in citations(text, known)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yes [S0].", ("S0",)),
        ("Yes [S1, S2].", ("S1", "S2")),
        ("Yes [S1; S1].", ("S1",)),
        ("Yes [1].", ("1",)),
        ("Yes [2-4].", ("2", "3", "4")),
        ("Yes [^7].", ("7",)),
        ("Yes [doc 3].", ("doc 3",)),
        ("Yes 【3†source】.", ("3",)),
        ("Yes [Source: 1].", ("1",)),
        ("Yes [Sources: 1, 2].", ("1", "2")),
        ("Yes (Source: AAPL 10-Q 2023).", ("AAPL 10-Q 2023",)),
        ("כן [מקור: 2].", ("2",)),
        ("Ja (Quelle: S4).", ("S4",)),
        ("Sí [Fuente: S4].", ("S4",)),
        ("It is free (see [S0]).", ("S0",)),
        ("It is free ([1, 2]).", ("1", "2")),
        ("Sales (in dollars [S1]) grew.", ("S1",)),
        ("Yes [S0-S2].", ("S0", "S1", "S2")),
        ("Yes [S3–5].", ("S3", "S4", "S5")),
        ("Yes (Source: [S0]).", ("S0",)),
    ],
)
def test_a_citation_names_its_ids(text: str, expected: tuple[str, ...]) -> None:
    assert ids(text) == [expected]


@pytest.mark.parametrize(
    "text",
    ["in [2023] it", "an aside [see below]", "(1)", "(S0)", "[COVID]", "[]", "[ ]", "[1", "[[", "[a\nb 1]", "[4-2, x]"],
)
def test_asides_years_and_code_are_no_citations(text: str) -> None:
    assert ids(text) == []


def test_a_long_range_is_one_id() -> None:
    assert ids("[1-999]") == [("1-999",)]
    assert ids("[S1-D3]") == [("S1-D3",)]


def test_a_known_id_counts_however_it_is_written() -> None:
    assert ids("so [handbook, p. 3] and [terms]", ("handbook, p. 3", "terms")) == [("handbook, p. 3",), ("terms",)]
    assert ids("so [terms]") == []


def test_places_are_code_points_of_the_text() -> None:
    text = "ש\U0001f600 [S0]"
    (found,) = citations(text)
    assert text[found.start : found.end] == "[S0]"


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("According to AAPL it rose.", CitationStyle.ACCORDING_TO),
        ("לפי הדוח, כן.", CitationStyle.ACCORDING_TO),
        ("It rose per the filing.", CitationStyle.PER_FILING),
        ("It rose, as said in the 10-Q filing.", CitationStyle.IN_FILING),
        ("It rose [Source: 1].", CitationStyle.BRACKETS),
        ("It rose (Source: 1).", CitationStyle.PARENTHESES),
        ("It rose [1].", CitationStyle.MARK),
    ],
)
def test_each_style_is_told(text: str, style: CitationStyle) -> None:
    assert styles(text, citations(text)) == {style}
