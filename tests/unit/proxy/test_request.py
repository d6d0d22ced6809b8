"""What the path reads of a request's head besides its body."""

from __future__ import annotations

import pytest

from checkstream.errors import RequestInvalid
from checkstream.proxy.request import _context
from checkstream.proxy.upstream import request_headers, response_headers


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


def test_what_is_between_caller_and_proxy_goes_no_further() -> None:
    own = [("X-Checkstream-Context", "{}"), ("x-checkstream-confirm", "t"), ("X-CHECKSTREAM-STREAM", "s")]
    sent = request_headers([*own, ("accept", "*/*")], replaced={}, key_header=None)
    assert [name.lower() for name in sent] == ["accept", "accept-encoding"]
    assert list(response_headers([*own, ("x-request-id", "r")])) == ["x-request-id"]
