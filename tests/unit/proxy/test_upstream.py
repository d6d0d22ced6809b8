from __future__ import annotations

from types import SimpleNamespace
from typing import NoReturn, cast

import aiohttp
import pytest

from checkstream.config import Upstream
from checkstream.errors import UpstreamError
from checkstream.proxy.upstream import Answer, request_headers, response_headers

GIVEN = [
    ("Host", "proxy"),
    ("Authorization", "Bearer caller"),
    ("X-Api-Key", "k"),
    ("Connection", "keep-alive, X-Hop"),
    ("X-Hop", "1"),
    ("Transfer-Encoding", "chunked"),
    ("Content-Length", "3"),
    ("Content-Encoding", "gzip"),
    ("Accept-Encoding", "br"),
    ("Expect", "100-continue"),
    ("X-Checkstream-Context", "{}"),
    ("Content-Type", "application/json"),
    ("OpenAI-Beta", "a"),
]


def test_only_end_to_end_headers_go_on() -> None:
    headers = request_headers(GIVEN, replaced={}, key_header=None)
    assert dict(headers) == {
        "Authorization": "Bearer caller",
        "X-Api-Key": "k",
        "Content-Type": "application/json",
        "OpenAI-Beta": "a",
        "Accept-Encoding": "identity",
    }


def test_the_upstreams_own_key_replaces_every_key_of_the_caller() -> None:
    headers = request_headers(GIVEN, replaced={"authorization": "Bearer own"}, key_header=None)
    assert headers.getall("Authorization") == ["Bearer own"]
    assert "X-Api-Key" not in headers


def test_the_key_for_the_proxy_goes_no_further() -> None:
    headers = request_headers(GIVEN, replaced={}, key_header="x-api-key")
    assert "X-Api-Key" not in headers
    assert headers["Authorization"] == "Bearer caller"


def test_the_answers_framing_is_the_proxys_own() -> None:
    headers = response_headers(
        [
            ("Content-Type", "text/event-stream"),
            ("Transfer-Encoding", "chunked"),
            ("Connection", "close, x-hop"),
            ("X-Hop", "1"),
            ("X-Request-Id", "r"),
            ("Set-Cookie", "a=1"),
            ("Set-Cookie", "b=2"),
            ("X-Checkstream-Action", "allow"),
            ("Server", "uvicorn"),
        ]
    )
    assert list(headers.items()) == [("X-Request-Id", "r"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]


async def test_an_answer_that_broke_off_says_so_at_every_read_even_while_that_is_told() -> None:
    kept = aiohttp.ClientPayloadError("x")  # by the stream, which raises the same again

    async def broken(_most: int) -> NoReturn:
        raise kept

    response = SimpleNamespace(content=SimpleNamespace(read=broken), status=200, headers={}, connection=None)
    answer = Answer(cast("aiohttp.ClientResponse", response), Upstream(url="http://x"))
    with pytest.raises(UpstreamError):
        await answer.read()
    try:
        await answer.read()
    except UpstreamError:
        with pytest.raises(UpstreamError):  # whose context now is what it caused
            await answer.read()
    assert kept.__traceback__ is None or kept.__traceback__.tb_next is None
