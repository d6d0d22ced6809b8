"""Which texts say when, and nothing besides."""

from __future__ import annotations

import pytest

from checkstream.core.wire.moments import is_moment


@pytest.mark.parametrize(
    "text",
    ["2026-11-23T13:45:23Z", "2026-11-23T13:45:23.123456789Z", "2026-11-23T13:45:23.5+02:00", "2026-11-23T13:45:23"],
)
def test_moments_are_told(text: str) -> None:
    assert is_moment(text)


@pytest.mark.parametrize(
    "text",
    [
        "4111-11-11T11:11:11.111111111Z",
        "1999-12-31T23:59:59Z",
        "2026-13-41T00:00:00Z",
        "2026-11-23T13:45:23.4111111111Z",
        "2026-11-23",
        "4111111111111111",
        7,
    ],
)
def test_g34_what_could_be_a_number_of_something_else_is_none(text: object) -> None:
    assert not is_moment(text)
