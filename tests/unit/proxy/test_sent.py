"""What the path reads of a request's head besides its body."""

from __future__ import annotations

import pytest

from checkstream.errors import RequestInvalid
from checkstream.proxy.sent import one_of, readable

HEADERS = pytest.mark.parametrize(
    ("name", "most"), [("x-checkstream-context", 8192), ("x-checkstream-conversation", 512)]
)


@HEADERS
def test_a_header_to_policies_is_handed_on_as_it_came(name: str, most: int) -> None:
    assert one_of(name, []) is None
    for value in ("", '{"a": "é"}', "not json", "x" * most):
        assert one_of(name, [value]) == value


@HEADERS
def test_g22_a_header_to_policies_is_bounded_and_single(name: str, most: int) -> None:
    for values, message in (
        (["x" * (most + 1)], f"{most + 1} bytes"),
        (["é" * (most // 2 + 1)], f"{most + 2} bytes"),
        (["{}", "{}"], "2 times"),
        (["\udcff"], "not UTF-8"),
    ):
        with pytest.raises(RequestInvalid, match=message):
            one_of(name, values)


@pytest.mark.parametrize(
    ("body", "size"),
    [
        (b'{"a":"text"}', 12),
        (b'{"url":"data:image/png;base64,AAAA","text":"hi"}', 48 - len(b";base64,AAAA")),
        (b'{"a":";base64,AA","b":";base64,BBBB"}', 37 - len(b";base64,AA;base64,BBBB")),
        (b"data:image/png;base64,AAAA", 26),
        (b'";base64,"' * 1000, 10_000 - 64 * 8),
    ],
)
def test_pictures_are_not_reckoned_as_text_to_be_read(body: bytes, size: int) -> None:
    assert readable(body) == size
