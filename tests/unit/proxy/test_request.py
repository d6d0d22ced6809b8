"""What the path reads of a request's head besides its body."""

from __future__ import annotations

import pytest

from checkstream.errors import RequestInvalid
from checkstream.proxy.request import _context, readable


def test_the_context_header_is_handed_on_as_it_came() -> None:
    assert _context([]) is None
    for value in ("", '{"a": "é"}', "not json", "x" * 8192):
        assert _context([value]) == value


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["x" * 8193], "8193 bytes"),
        (["é" * 4097], "8194 bytes"),
        (["{}", "{}"], "2 times"),
        (["\udcff"], "not UTF-8"),
    ],
)
def test_g22_a_context_header_is_bounded_and_single(values: list[str], message: str) -> None:
    with pytest.raises(RequestInvalid, match=message):
        _context(values)


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
