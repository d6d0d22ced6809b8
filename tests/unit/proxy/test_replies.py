from __future__ import annotations

from collections.abc import Iterator

import msgspec

from checkstream.core.commands import Reply
from checkstream.core.wire.surfaces import SURFACES
from checkstream.errors import CheckstreamError, MethodWrong, Overloaded, UpstreamError
from checkstream.proxy.replies import TABLE, error_response, guard_response, row

SHAPE = SURFACES["openai.chat"]


def descendants(parent: type[CheckstreamError]) -> Iterator[type[CheckstreamError]]:
    for child in parent.__subclasses__():
        yield child
        yield from descendants(child)


def test_every_error_class_has_a_row() -> None:
    for kind in descendants(CheckstreamError):
        found = next(parent for parent in kind.__mro__ if parent in TABLE)
        assert found is not CheckstreamError, f"{kind.__name__} needs a row of its own"
        assert 400 <= TABLE[found].status < 600, kind


def test_what_is_not_ours_tells_nothing() -> None:
    response = error_response(RuntimeError("sk-secret"), SHAPE, {})
    assert response.status == 500
    assert isinstance(response.body, bytes)
    assert b"sk-secret" not in response.body


def test_upstream_errors_do_not_show_their_detail() -> None:
    response = error_response(UpstreamError("http://internal:8000", kind="connect"), SHAPE, {})
    assert isinstance(response.body, bytes)
    assert response.status == 502
    assert b"internal" not in response.body


def test_overload_says_when_to_come_back() -> None:
    response = error_response(Overloaded("full"), SHAPE, {"x-checkstream-stream": "s"})
    assert (response.status, response.headers["retry-after"]) == (429, "1")
    assert response.headers["x-checkstream-stream"] == "s"
    assert isinstance(response.body, bytes)
    assert msgspec.json.decode(response.body)["error"]["type"] == "overloaded"


def test_a_wrong_method_lists_the_right_ones() -> None:
    response = error_response(MethodWrong("no", ["GET", "POST"]), SHAPE, {})
    assert (response.status, response.headers["allow"]) == (405, "GET, POST")


def test_verdicts_are_not_retried_by_sdks() -> None:
    response = guard_response(Reply(400, b"{}", action="reject", retry=False), {})
    assert response.headers["x-should-retry"] == "false"
    assert response.headers["x-checkstream-action"] == "reject"
    assert "x-should-retry" not in guard_response(Reply(200, b"{}"), {}).headers


def test_rows_follow_the_nearest_parent() -> None:
    class Stranger(Overloaded):
        pass

    assert row(Stranger("x")).status == 429
