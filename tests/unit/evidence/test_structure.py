"""Sections of a document."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from checkstream.evidence.structure import MAX_HEADING_CHARS, sections


def shown(text: str) -> list[tuple[tuple[str, ...], str]]:
    return [(section.headings, text[section.start : section.end].strip()) for section in sections(text)]


def test_a_section_has_the_path_of_its_headings() -> None:
    text = "before\n# A\none\n## B ##\ntwo\n### C\nthree\n## D\nfour\n"
    assert shown(text) == [
        ((), "before"),
        (("A",), "# A\none"),
        (("A", "B"), "## B ##\ntwo"),
        (("A", "B", "C"), "### C\nthree"),
        (("A", "D"), "## D\nfour"),
    ]


def test_what_only_looks_like_a_heading_is_none() -> None:
    text = "#hashtag\n####### seven\n    # indented code\n```sh\n# a comment\n```\n~~~\n# another\n```\n~~~\ntext"
    assert shown(text) == [((), text)]


def test_a_fence_that_is_never_closed_reaches_to_the_end() -> None:
    assert shown("# A\n```\n# b\n# c") == [(("A",), "# A\n```\n# b\n# c")]


def test_a_heading_without_end_is_cut() -> None:
    assert len(sections("# " + "x" * 10_000)[0].headings[0]) == MAX_HEADING_CHARS


@given(
    st.lists(st.sampled_from(["# A\n", "## B\n", "text\n", "\n", "```\n", "#\n", " # x\n", "\u2028", "a b. c"])).map(
        "".join
    )
)
def test_sections_are_the_whole_text_in_order(text: str) -> None:
    found = sections(text)
    assert "".join(text[section.start : section.end] for section in found) == text
