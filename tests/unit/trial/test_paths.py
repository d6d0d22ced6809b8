from __future__ import annotations

import pytest

from checkstream.trial.paths import NOWHERE, follow, parse_path

BODY = {"messages": [{"role": "user", "content": "hi"}], "temperature": 0.5, "none": None}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("temperature", 0.5),
        ("messages[0].content", "hi"),
        ("none", None),
        ("messages[1]", NOWHERE),
        ("messages.content", NOWHERE),
        ("temperature[0]", NOWHERE),
        ("gone.deeper", NOWHERE),
    ],
)
def test_a_path_leads_to_a_value_or_nowhere(path: str, value: object) -> None:
    steps = parse_path(path)
    assert steps is not None
    assert follow(BODY, steps) == value


@pytest.mark.parametrize(
    "text", ["", ".", "a.", "[0]", "a[", "a[]", "a[x]", "a[-1]", "a[0]b", "a[123456]", "a[\u0661]"]
)
def test_what_is_no_path_is_none(text: str) -> None:
    assert parse_path(text) is None
