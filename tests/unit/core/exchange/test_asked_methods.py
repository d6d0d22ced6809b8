"""What was asked of a server of tools stands in the record under few names, whatever callers write."""

from __future__ import annotations

import pytest

from tests import mcp
from tests.mcp import call, notice, request, result


@pytest.mark.parametrize(
    ("sent", "verb", "method"),
    [
        (call(), "POST", "tools/call"),
        (request("tools/list"), "POST", "tools/list"),
        (notice("notifications/initialized"), "POST", "notifications/initialized"),
        (request("books/burn"), "POST", "other"),
        (result(3, action="accept"), "POST", "answer"),
        (b"no message", "POST", "other"),
        (b"", "GET", "GET"),
        (b"", "DELETE", "DELETE"),
    ],
)
def test_a_method_is_one_of_a_few(sent: bytes, verb: str, method: str) -> None:
    record = mcp.whole(sent, b"", method=verb, status=202).record
    assert record is not None
    assert record.method == method
