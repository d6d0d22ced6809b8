from __future__ import annotations

import pytest

from checkstream.core.policy.carets import point
from checkstream.core.policy.nodes import MappingNode, Place, Placed, ScalarNode, Source, open_source, read_nodes


def scalar(content: str) -> tuple[Source, Placed[str]]:
    source = open_source("f.yaml", content)
    root = read_nodes(source)
    assert isinstance(root, MappingNode)
    value = root.entries[0][1]
    assert isinstance(value, ScalarNode)
    return source, Placed(value.value, value.at)


@pytest.mark.parametrize(
    "written",
    [
        "plain text with x in it",
        "'single quotes with x in it'",
        '"double quotes with x in it"',
        "|\n    a block\n      with x in it\n",
        "|-\n\n    after a blank line x\n",
        ">\n    folded into\n    one line x\n",
        "plain over\n  two lines x\n",
        "'quoted over\n\n  lines x'\n",
        "'it''s later than x'",
        '"\\"quoted\\" with \\\\ before x"',
    ],
)
def test_a_place_within_a_text_is_the_character_that_the_file_shows(written: str) -> None:
    source, text = scalar(f"key: {written}")
    at = point(source, text, text.value.index("x"))
    shown_there = source.line(at.line)[at.column - 1 :][:1]
    assert shown_there == "x"


def test_the_end_of_a_text_has_a_place() -> None:
    source, text = scalar("key: 'a =='")
    assert point(source, text, 4) == Place(1, 11)


def test_a_text_that_the_file_shows_otherwise_is_pointed_at_where_it_begins() -> None:
    source, text = scalar('key: "\\x41\\x42"')
    assert text.value == "AB"
    assert point(source, text, 1) == Place(1, 6)
