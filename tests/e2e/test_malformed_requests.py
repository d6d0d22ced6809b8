"""Ten thousand requests that no client should send leave the process serving, and nothing of them behind (G19, G22)."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
from openai import OpenAI

from tests.e2e.harness import Llm, Open, Proxy, http, until
from tests.fuzz.mutate import Mutator

REQUESTS = 10_000
AT_ONCE = 60
GLANCE_S = 0.1
SLOW = 30
"""Callers that begin a request and then say nothing, until they are cut off."""
CHAT = b"/v1/chat/completions"
BODY = b'{"model": "clean", "stream": true, "messages": [{"role": "user", "content": "hi"}]}'
HEAD = b"host: localhost\r\ncontent-type: application/json\r\n"
GOOD = b"POST " + CHAT + b" HTTP/1.1\r\n" + HEAD + b"content-length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKED = b"POST " + CHAT + b" HTTP/1.1\r\n" + HEAD + b"transfer-encoding: chunked\r\n\r\n"
BODIES = (
    b"", b" ", b"{", b"[]", b"null", b"1", b'"x"', b"\xff\xfe{}", b"\x00" * 50, b"{" * 5000, b'{"a":' * 5000,
    b"[" * 9000, b'{"model": "clean"}', b'{"model": 1, "messages": []}', b'{"model": "clean", "messages": {}}',
    b"data: {}\n\n", b'{"model": "clean", "messages": [{"role": "user", "content": 7}]}', b"a=b&c=d",
    b"\xef\xbb\xbf{}", b"NaN", b'{"model": "clean", "model": "clean", "messages": [{"role": "user", "content": "x"}]}',
    b'{"model": "\\ud800"}', b'{"model": "clean", "Messages": [], "messages": [{"role": "user", "content": "x"}]}',
    b'{"n": 1e999}', b"x" * 70_000,
    b'{"model": "clean", "messages": [{"role": "user", "content": "x"}], "surprise": 1}', b'{"stream": "yes"}',
)  # fmt: skip
LINES = (
    b"", b"\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"hello\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1 x\r\n\r\n",
    b"GET  / HTTP/1.1\r\n\r\n", b"G\x00T / HTTP/1.1\r\n\r\n", b"POST " + b"/a" * 20_000 + b" HTTP/1.1\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n", b"\n" * 500, b"\xff" * 300,
    b"CONNECT example.com:443 HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"GET http://evil/ HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"GET /%00%ff%zz?\xe9=%u0041 HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"GET /../../etc/passwd HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"POST //v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}",
    b"GET http://[::1 HTTP/1.1\r\n\r\n", b"POST /v1/chat/completions/ HTTP/1.0\r\ncontent-length: 2\r\n\r\n{}",
    b"GET /v1/models HTTP/1.1\nhost: localhost\n\n",
)  # fmt: skip
HEADERS = (
    b"content-length: -1", b"content-length: 1, 2", b"content-length: 5\r\ncontent-length: 6", b"content-length: 0x10",
    b"content-length: 99999999999999999999", b"content-length: 2\r\ntransfer-encoding: chunked", b"content-length: +3",
    b"transfer-encoding: gzip, chunked", b"transfer-encoding: chunked, chunked", b"transfer-encoding: \x0bchunked",
    b"content-encoding: gzip\r\ncontent-length: 4", b"content-encoding: br\r\ncontent-length: 4", b"no colon here",
    b": empty name", b"a b: c", b"x: " + b"y" * 40_000, b"\r\n".join(b"x%d: y" % n for n in range(3000)), b"x: \x00",
    b"x: y\r\n z: folded", b"upgrade: websocket\r\nconnection: upgrade", b"expect: 100-continue\r\ncontent-length: 4",
    b"expect: the impossible\r\ncontent-length: 0", b"content-type: text/plain\r\ncontent-length: 4",
    b"host: \r\nhost: y", b"content-type: multipart/form-data; boundary=b\r\ncontent-length: 4",
    b"authorization: Basic \xff\xfe", b"\xc3\xa4: x", b"x-checkstream-context: {{{\r\ncontent-length: 2",
    b"content-type: application/json; charset=utf-16\r\ncontent-length: 4", b"cookie: " + b"a=b; " * 5000,
    b"connection: close, keep-alive, \x01", b"content-encoding: deflate\r\ncontent-length: 2",
)  # fmt: skip
CHUNKS = (
    b"zz\r\n{}\r\n0\r\n\r\n", b"-1\r\n{}\r\n", b"2\r\n{}0\r\n\r\n", b"2;" + b"x" * 30_000 + b"\r\n{}\r\n0\r\n\r\n",
    b"2\r\n{}", b"ffffffffffffffff\r\n{}", b"2\r\n{}\r\n0\r\nx: " + b"y" * 40_000 + b"\r\n\r\n", b"2\n{}\n0\n\n",
    b"0\r\n\r\n", b"\r\n", b"2\r", b"0x2\r\n{}\r\n0\r\n\r\n", b"2 \r\n{}\r\n0\r\n\r\n", b"1\r\n{\r\n" * 500,
    b"5\r\n{}\r\n0\r\n\r\n", b"+2\r\n{}\r\n0\r\n\r\n",
)  # fmt: skip
GOING = ("glance", "fin", "fin", "leave", "reset")


class Case(msgspec.Struct, frozen=True):
    """What one hostile caller sends, and how it goes away."""

    data: bytes
    end: str
    """`read` (waits for the answer), `glance` (waits a little), `fin` (says that it has ended, which the proxy takes
    for leaving, and reads), `leave` or `reset` (at once)."""


def posted(body: bytes, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return b"POST " + CHAT + b" HTTP/1.1\r\n" + HEAD + b"content-length: %d\r\n\r\n" % size + body


def draw(dice: random.Random, mutator: Mutator) -> Case:
    """Return the next case; kinds that can wait for more bytes are not waited for."""
    kind = dice.randrange(10)
    if kind == 0:
        return Case(dice.choice(LINES), dice.choice(GOING))
    if kind in (1, 2):
        line = dice.choice((b"POST " + CHAT, b"GET " + CHAT, b"DELETE /v1/models", b"POST /v1/embeddings"))
        return Case(
            line + b" HTTP/1.1\r\nhost: localhost\r\n" + dice.choice(HEADERS) + b"\r\n\r\n{}{}", dice.choice(GOING)
        )
    if kind == 3:
        return Case(CHUNKED + dice.choice(CHUNKS), dice.choice(GOING))
    if kind in (4, 5):
        return Case(posted(dice.choice(BODIES)), "read")
    if kind == 6:  # less than was promised
        return Case(posted(BODY[: dice.randrange(len(BODY))], len(BODY)), dice.choice(GOING))
    if kind == 7:  # pipelined: good ones, broken ones, half ones
        parts = [dice.choice((GOOD, posted(b"{}"), dice.choice(LINES), GOOD[:40])) for _ in range(dice.randint(2, 5))]
        return Case(b"".join(parts), dice.choice(GOING))
    return Case(mutator.draw(), dice.choice(GOING))


class Callers:
    """Sends cases from many connections at once and looks at every answer."""

    def __init__(self, url: str) -> None:
        host, port = url.removeprefix("http://").split(":")
        self.host, self.port = host, int(port)
        self.statuses: Counter[int] = Counter()
        self.unanswered = 0

    async def run(self, cases: list[Case]) -> None:
        waiting = iter(cases)

        async def work() -> None:
            for case in waiting:
                try:
                    await asyncio.wait_for(self.one(case), 15)
                except TimeoutError:
                    raise AssertionError(f"no end of {case.data[:300]!r} ({case.end})") from None

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))

    async def one(self, case: Case) -> None:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            writer.write(case.data)
            if case.end in ("fin", "read"):
                await self._hear(reader, writer, case)
            elif case.end == "glance":
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(GLANCE_S):
                        await self._hear(reader, writer, case)
            elif case.end == "reset":
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        except ConnectionError:
            self.unanswered += 1  # it has been cut off, which is an answer, too
        finally:
            writer.transport.abort()

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, case: Case) -> None:
        if case.end == "fin":
            writer.write_eof()
        head = await reader.read(65536)
        if not head:
            self.unanswered += 1
            return
        assert head.startswith(b"HTTP/"), head[:200]  # 0.9 is answered as 0.9
        status = int(head[9:12])
        assert status not in (500, 502, 504), (status, case, head)
        assert b"Traceback" not in head
        self.statuses[status] += 1


def test_g22_ten_thousand_malformed_requests_leave_the_process_serving(llm: Llm, start: Callable[..., Proxy]) -> None:
    proxy = start(server={"limits": {"header_timeout_ms": 2000, "body_bytes": 65_536}})
    good(proxy)
    pid, before = proxy.popen.pid, Open.of(proxy, llm)
    dice = random.Random("malformed 1")
    mutator = Mutator("chat_request", [GOOD, CHUNKED + b"%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n"], dice)
    slow = [begin(proxy, dice) for _ in range(SLOW)]
    callers = Callers(proxy.url)
    told = [Case(line + b" HTTP/1.1\r\n" + HEAD + b"\r\n", "read") for line in (b"DELETE /v1/models", b"GET /nowhere")]
    asyncio.run(callers.run([*told, *(draw(dice, mutator) for _ in range(REQUESTS))]))
    assert callers.statuses[400] > REQUESTS / 20, callers.statuses
    assert {404, 405, 413} < callers.statuses.keys(), callers.statuses
    for caller in slow:
        with caller:
            assert ended(caller)

    good(proxy)
    assert proxy.popen.poll() is None
    assert proxy.popen.pid == pid
    assert "Traceback" not in proxy.text
    assert not errors(proxy), errors(proxy)[:5]
    until(lambda: Open.of(proxy, llm) <= before, what=f"the end of what is open: {before}, {Open.of(proxy, llm)}")
    assert b"\ncheckstream_streams 0.0" in http("GET", f"{proxy.admin_url}/metrics")[2]


def errors(proxy: Proxy) -> list[str]:
    """Return the log lines that say that something failed: a caller's fault is none of ours."""
    return [line for line in proxy.output if '"level":"error"' in line or '"level":"critical"' in line]


def good(proxy: Proxy) -> None:
    """Stream one answer with the real client."""
    with OpenAI(base_url=f"{proxy.url}/v1", api_key="k", max_retries=0) as client:
        ask: Any = [{"role": "user", "content": "hello"}]
        with client.chat.completions.create(model="pii", messages=ask, stream=True) as stream:
            chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert "[EMAIL]" in text
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices[0].finish_reason] == ["stop"]


def begin(proxy: Proxy, dice: random.Random) -> socket.socket:
    """Send the beginning of a request."""
    host, port = proxy.url.removeprefix("http://").split(":")
    caller = socket.create_connection((host, int(port)), timeout=20)
    caller.sendall(GOOD[: dice.randint(1, GOOD.find(b"\r\n\r\n"))])
    return caller


def ended(caller: socket.socket) -> bool:
    """Read a caller's connection to its end."""
    try:
        while caller.recv(65536):
            pass
    except ConnectionError:
        pass
    return True
