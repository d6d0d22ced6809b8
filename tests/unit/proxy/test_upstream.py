from __future__ import annotations

from checkstream.proxy.upstream import request_headers, response_headers

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
