"""What is refused before the upstream hears of it, and what the process survives."""

from __future__ import annotations

import json
import random
import re
import socket
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.harness import Llm, Proxy, RawCaller, http, until

CHAT = "/v1/chat/completions"
BODY = {"model": "clean", "messages": [{"role": "user", "content": "hello"}]}


def error(body: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(body)["error"]
    return found


def raw(url: str, data: bytes, *, wait_s: float = 5.0) -> bytes:
    """Send bytes on a fresh connection and return all that comes until it is closed."""
    host, port = url.removeprefix("http://").split(":")
    received = b""
    with socket.create_connection((host, int(port)), timeout=wait_s) as connection:
        connection.sendall(data)
        try:
            while piece := connection.recv(65536):
                received += piece
        except (TimeoutError, ConnectionResetError):
            pass
    return received


def test_what_no_route_names_is_not_found(proxy: Proxy) -> None:
    for path in ("/", "/v1/embeddings", f"{CHAT}/", "/V1/chat/completions", "/v1/chat%2Fcompletions", f"/x/..{CHAT}"):
        status, headers, body = http("POST", f"{proxy.url}{path}", BODY)
        assert (status, error(body)["type"]) == (404, "not_found"), path
        assert headers["x-checkstream-stream"]


def test_a_wrong_method_is_told_the_right_one(proxy: Proxy) -> None:
    status, headers, _ = http("GET", f"{proxy.url}{CHAT}")
    assert (status, headers["allow"]) == (405, "POST")


def test_callers_are_known_by_their_key(llm: Llm, start: Callable[..., Proxy], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP1_KEY", "k-app1")
    proxy = start(server={"callers": [{"name": "app1", "key": {"env": "APP1_KEY"}}]})
    model = llm.put("callers", {"choices": [{"content": "fine"}]})
    body = {**BODY, "model": model}
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic k-app1"}, {"x-api-key": "K-APP1"}):
        status, _, answer = http("POST", f"{proxy.url}{CHAT}", body, headers=headers)
        assert (status, error(answer)["type"]) == (401, "authentication_error")
    for headers in ({"authorization": "Bearer k-app1"}, {"x-api-key": "k-app1"}, {"api-key": "k-app1"}):
        status, sent, _ = http("POST", f"{proxy.url}{CHAT}", body, headers=headers)
        assert status == 200
        assert proxy.record(sent["x-checkstream-stream"])["body"]["caller"] == "app1"
    assert "k-app1" not in json.dumps(llm.requests(model)), "the key for the proxy goes no further"
    assert "k-app1" not in proxy.text


def test_g22_a_body_over_its_cap_is_refused_unread(llm: Llm, start: Callable[..., Proxy]) -> None:
    proxy = start(server={"limits": {"body_bytes": 4096}})
    model = llm.put("too_large", {"choices": [{"content": "fine"}]})
    large = {"model": model, "messages": [{"role": "user", "content": "x" * 5000}]}
    status, _, body = http("POST", f"{proxy.url}{CHAT}", large)
    assert (status, error(body)["type"]) == (413, "request_too_large")
    assert "4096 bytes, the limit (`server.limits.body_bytes`)" in error(body)["message"]
    head = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    chunk = b"1000\r\n" + b"x" * 4096 + b"\r\n"
    assert b" 413 " in raw(proxy.url, head + chunk * 3).split(b"\r\n", 1)[0]
    assert llm.requests(model) == []


def test_g22_streams_over_their_cap_are_told_to_come_back(llm: Llm, start: Callable[..., Proxy]) -> None:
    proxy = start(server={"limits": {"streams": 1}})
    model = llm.put("busy", {"choices": [{"content": "a b c"}], "fault": {"kind": "stall", "after_events": 1}})
    caller = RawCaller(proxy.url, {**BODY, "model": model, "stream": True})
    llm.opened(model)
    status, headers, body = http("POST", f"{proxy.url}{CHAT}", BODY)
    assert (status, error(body)["type"], headers["retry-after"]) == (429, "overloaded", "1")
    caller.leave()
    until(lambda: http("POST", f"{proxy.url}{CHAT}", BODY)[0] == 200, what="a free place")


def test_headers_and_bodies_that_never_come_are_given_up(start: Callable[..., Proxy]) -> None:
    proxy = start(server={"limits": {"header_timeout_ms": 200}})
    begun = time.monotonic()
    assert raw(proxy.url, b"") == b""
    assert raw(proxy.url, b"POST / HTTP/1.1\r\nhost:") == b""
    late = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{{".encode()
    assert b" 408 " in raw(proxy.url, late).split(b"\r\n", 1)[0]
    assert time.monotonic() - begun < 4


def test_a_body_may_be_announced_first(llm: Llm, proxy: Proxy) -> None:
    model = llm.put("announced", {"choices": [{"content": "fine"}]})
    data = json.dumps({**BODY, "model": model}).encode()
    head = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\nconnection: close"
    answer = raw(proxy.url, f"{head}\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data)
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")


def test_the_admin_listener_asks_for_its_token(start: Callable[..., Proxy], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADMIN_TOKEN", "t-1")
    proxy = start(server={"admin_token": {"env": "ADMIN_TOKEN"}})
    for method, path in (
        ("GET", "/metrics"),
        ("GET", "/admin/status"),
        ("GET", "/admin/audit"),
        ("POST", "/admin/reload"),
    ):
        assert http(method, f"{proxy.admin_url}{path}")[0] == 401
        assert http(method, f"{proxy.admin_url}{path}", headers={"authorization": "Bearer t-2"})[0] == 401
        assert http(method, f"{proxy.admin_url}{path}", headers={"authorization": "Bearer t-1"})[0] == 200
    assert http("GET", f"{proxy.admin_url}/livez")[0] == 200
    web_page = {"authorization": "Bearer t-1", "origin": "http://evil.example"}
    assert http("POST", f"{proxy.admin_url}/admin/reload", headers=web_page)[0] == 403


def test_a_reload_that_needs_a_restart_says_so(start: Callable[..., Proxy]) -> None:
    proxy = start()
    file = proxy.folder / "checkstream.yaml"
    settings = json.loads(file.read_text())
    settings["server"]["limits"] = {"streams": 7}
    file.write_text(json.dumps(settings))
    status, _, body = http("POST", f"{proxy.admin_url}/admin/reload")
    assert (status, "restart" in body.decode()) == (400, True)
    shown = json.loads(http("GET", f"{proxy.admin_url}/admin/status")[2])
    assert (shown["generation"], shown["reload"]["accepted"], shown["ready"]) == (1, False, True)


def test_malformed_requests_leave_the_process_serving(llm: Llm, proxy: Proxy) -> None:
    chance = random.Random(7)
    good = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{{}}".encode()
    for number in range(200):
        data = bytearray(good)
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if number % 5 == 0:
            data = bytearray(chance.randbytes(200))
        host, port = proxy.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
    model = llm.put("after_malformed", {"choices": [{"content": "fine"}]})
    assert http("POST", f"{proxy.url}{CHAT}", {**BODY, "model": model})[0] == 200

    def idle() -> bool:
        return bool(json.loads(http("GET", f"{proxy.admin_url}/admin/status")[2])["streams"] == 0)

    until(idle, what="no stream left")


def test_without_callers_a_foreign_name_or_page_is_refused_on_both_listeners(
    llm: Llm, start: Callable[..., Proxy]
) -> None:
    proxy = start(server={"hosts": ["gpu.internal"]})
    body = {**BODY, "model": llm.put("names", {"choices": [{"content": "fine"}]})}
    for headers, expected in (
        ({}, 200),
        ({"host": "gpu.internal:1"}, 200),
        ({"origin": "http://localhost:3000"}, 200),
        ({"host": "attacker.example"}, 421),
        ({"origin": "https://attacker.example", "content-type": "text/plain"}, 403),
    ):
        status, _, answer = http("POST", f"{proxy.url}{CHAT}", body, headers=headers)
        assert status == expected, answer
    assert http("POST", f"{proxy.admin_url}/admin/reload", {}, headers={"host": "attacker.example"})[0] == 421
    assert http("POST", f"{proxy.admin_url}/admin/reload", {}, headers={"origin": "https://attacker.example"})[0] == 403
    assert http("GET", f"{proxy.admin_url}/livez", headers={"host": "gpu.internal"})[0] == 200


def test_every_answer_is_counted_with_the_route_that_it_is_of(llm: Llm, start: Callable[..., Proxy]) -> None:
    page, foreign = "https://chat.example", "https://attacker.example"
    proxy = start(cors={"origins": [page]}, body_bytes=2048)
    chat, asks = f"{proxy.url}{CHAT}", {"access-control-request-method": "POST"}
    body = {**BODY, "model": llm.put("counted", {"choices": [{"content": "fine"}]})}
    asked: list[tuple[str, int, str, str, dict[str, str], Any]] = [
        ("chat", 200, "POST", chat, {}, body),
        ("chat", 400, "POST", chat, {}, b"{"),
        ("chat", 400, "POST", chat, {"x-checkstream-conversation": "x" * 600}, body),
        ("chat", 413, "POST", chat, {}, {**body, "more": "x" * 3000}),
        ("chat", 415, "POST", chat, {"content-type": "application/json; charset=utf-7"}, body),
        ("chat", 204, "OPTIONS", chat, {**asks, "origin": page}, None),
        ("-", 405, "GET", chat, {}, None),
        ("-", 404, "POST", f"{proxy.url}/v1/nothing", {}, body),
        ("-", 421, "POST", chat, {"host": "attacker.example"}, body),
        ("-", 403, "POST", chat, {"origin": foreign}, body),
        ("-", 403, "OPTIONS", chat, {**asks, "origin": foreign}, None),
    ]
    for _, status, method, url, headers, sent in asked:
        assert http(method, url, sent, headers=headers)[0] == status
    assert b" 400 " in raw(proxy.url, b"HELLO\r\n\r\n").split(b"\r\n", 1)[0]
    named = re.compile(r'checkstream_requests_total\{route="([^"]+)",status="(\d+)"\} ([\d.]+)')
    counted = {(route, int(status)): float(count) for route, status, count in named.findall(told(proxy))}
    expected = Counter([(route, status) for route, status, *_ in asked] + [("-", 400)])
    assert counted == expected
    kinds = {"host_not_allowed", "origin_not_allowed", "request_too_large", "not_found", "method_not_allowed"}
    until(lambda: kinds <= set(re.findall(r'"kind":"(\w+)"', proxy.text)), what="a line for each refusal")


def told(proxy: Proxy) -> str:
    """Return what a scrape of the proxy's metrics has."""
    return http("GET", f"{proxy.admin_url}/metrics")[2].decode()


def test_a_prompt_over_a_limit_is_refused_with_the_name_of_the_setting(llm: Llm, start: Callable[..., Proxy]) -> None:
    proxy = start(server={"limits": {"prompt_messages": 3, "prompt_chars": 100}})
    model = llm.put("limits", {"choices": [{"content": "fine"}]})
    for messages, expected, setting in (
        (["hi"] * 3, 200, None),
        (["hi"] * 4, 413, "`server.limits.prompt_messages`"),
        (["hi" * 60], 413, "`server.limits.prompt_chars`"),
    ):
        told = [{"role": "user", "content": text} for text in messages]
        status, _, answer = http("POST", f"{proxy.url}{CHAT}", {"model": model, "messages": told})
        assert status == expected, answer
        assert setting is None or setting in error(answer)["message"]


def test_a_listed_page_may_ask_and_read_answers_and_errors(llm: Llm, start: Callable[..., Proxy]) -> None:
    page = "https://chat.example"
    proxy = start(cors={"origins": [page]}, body_bytes=2048)
    model = llm.put("pages", {"choices": [{"content": "fine"}]})
    asked = {"origin": page, "access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    status, headers, _ = http("OPTIONS", f"{proxy.url}{CHAT}", headers=asked)
    assert (status, headers["access-control-allow-origin"]) == (204, page)
    for body, expected in (
        ({**BODY, "model": model}, 200),
        ({**BODY, "model": model, "stream": True}, 200),
        ({**BODY, "nothing": "x" * 3000}, 413),
        ({"model": model}, 400),
    ):
        status, headers, _ = http("POST", f"{proxy.url}{CHAT}", body, headers={"origin": page})
        assert (status, headers["access-control-allow-origin"]) == (expected, page)
        assert "x-checkstream-stream" in headers["access-control-expose-headers"]
    assert http("OPTIONS", f"{proxy.url}{CHAT}", headers={**asked, "origin": "https://attacker.example"})[0] == 403
