"""What an upstream writes beside its answers never becomes the answer to another request."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from checkstream.config import Upstream
from checkstream.errors import UpstreamError
from checkstream.proxy import pool
from checkstream.proxy.headers import JSON
from checkstream.proxy.outgoing import Outgoing
from checkstream.proxy.upstream import UpstreamClient

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
FIRST, SECOND, EVIL = b'{"answer": "for A"}', b'{"answer": "for B"}', b'{"answer": "of A, for B"}'
Script = Sequence[bytes | float]
"""Bytes to write and seconds to wait."""


def sized(body: bytes) -> bytes:
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


def chunked(body: bytes, trailers: bytes = b"") -> bytes:
    return HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n%b\r\n" % (len(body), body, trailers)


class Server:
    """Answers each first request of a connection as scripted, and the others truthfully."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.connections = 0
        self.socket = -1

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.socket = writer.get_extra_info("socket").fileno()
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
                body = await reader.readexactly(int(length.split(b":")[1]))
                for each in self.script if body == b"A" else [sized(SECOND)]:
                    if isinstance(each, bytes):
                        writer.write(each)
                        await writer.drain()
                    else:
                        await asyncio.sleep(each)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def upstream(script: Script) -> AsyncIterator[tuple[Server, UpstreamClient]]:
    server = Server(script)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    client = UpstreamClient("m", Upstream(url=f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"), {})
    try:
        yield server, client
    finally:
        await client.close()
        listening.close()


async def ask(client: UpstreamClient, who: bytes, party: str = "") -> bytes:
    asking = client.send(Outgoing("/", (), None, content_type=JSON, party=party), who)
    async with asyncio.timeout(5), asking as answer:
        read = b""
        while data := await answer.read():
            read += data
        return read


EXTRA = {
    "a whole answer": sized(EVIL),
    "a whole answer in chunks": chunked(EVIL),
    "the beginning of a head": sized(EVIL)[:20],
    "a head": HEAD + b"Content-Length: 25\r\n\r\n",
    "an empty line": b"\r\n\r\n",
    "one byte": b"H",
    "an interim answer": b"HTTP/1.1 100 Continue\r\n\r\n",
    "a chunk's end": b"0\r\n\r\n",
}
ANSWERS = {
    "sized": sized(FIRST),
    "chunked": chunked(FIRST),
    "trailers": chunked(FIRST, b"X-More: 1\r\n"),
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "not modified": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 25\r\n\r\n",
    "interim before": b"HTTP/1.1 103 Early Hints\r\n\r\n" + sized(FIRST),
}


def timings(answer: bytes, extra: bytes) -> dict[str, Script]:
    middle = len(answer) - 3
    return {
        "in one write": [answer + extra],
        "with the last bytes": [answer[:middle], 0.01, answer[middle:] + extra],
        "right behind": [answer, extra],
        "while it lies in the pool": [answer, 0.02, extra],
        "in two halves": [answer, extra[: len(extra) // 2], 0.02, extra[len(extra) // 2 :]],
    }


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("extra", EXTRA)
async def test_g36_bytes_behind_an_answer_are_no_other_callers(answer: str, extra: str) -> None:
    for script in timings(ANSWERS[answer], EXTRA[extra]).values():
        async with upstream(script) as (server, client):
            with contextlib.suppress(UpstreamError):  # where it is no HTTP at all
                assert await ask(client, b"A", "a") in {FIRST, b""}
            assert await ask(client, b"B", "b") == SECOND
            assert server.connections == 2


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("extra", EXTRA)
async def test_g36_a_connection_that_has_come_to_more_than_its_answer_is_closed(answer: str, extra: str) -> None:
    for when, script in timings(ANSWERS[answer], EXTRA[extra]).items():
        async with upstream(script) as (server, client):
            with contextlib.suppress(UpstreamError):
                assert await ask(client, b"A") in {FIRST, b""}
            if when not in {"in one write", "with the last bytes"}:
                await asyncio.sleep(0.03)
            assert await ask(client, b"B") == SECOND
            assert server.connections == 2


@pytest.mark.parametrize("answer", ["sized", "chunked", "no content", "not modified"])
async def test_a_connection_whose_answer_ended_where_it_said_is_used_again(answer: str) -> None:
    whole = ANSWERS[answer]
    for cut in (1, len(whole) // 2, len(whole) - 2, len(whole)):
        async with upstream([whole[:cut], 0.005, whole[cut:]]) as (server, client):
            for _ in range(2):
                await ask(client, b"A")
                assert await ask(client, b"B") == SECOND
            assert server.connections == 1
            assert len(client.idle) == 1


async def test_g22_of_many_parties_the_ones_that_were_there_last_keep_their_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool, "_MOST_PARTIES", 2)
    async with upstream([sized(FIRST)]) as (server, client):
        for party in ("a", "b", "c", "b"):
            assert await ask(client, b"B", party) == SECOND
        assert server.connections == 3
        assert len(client.idle) == 2
        assert await ask(client, b"B", "a") == SECOND
        assert (server.connections, len(client.idle)) == (4, 2)


async def test_g36_bytes_before_the_question_are_no_answer_to_it() -> None:
    async with upstream([sized(FIRST)]) as (server, client):
        await ask(client, b"A")
        os.write(server.socket, sized(EVIL))  # the loop has not come to it when the next one asks
        assert await ask(client, b"B") == SECOND
        assert server.connections == 2


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 19\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 19\r\n",
        b"Content-Length: 19\r\nContent-Length: 25\r\n",
        b"Content-Length: 19\r\nContent-Length: 19\r\n",
        b"Content-Length: +19\r\n",
        b"Content-Length: 19, 25\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    ],
)
async def test_g36_an_answer_of_two_lengths_is_none(head: bytes) -> None:
    async with upstream([HEAD + head + b"\r\n13\r\n" + FIRST + b"\r\n0\r\n\r\n"]) as (_, client):
        with pytest.raises(UpstreamError) as caught:
            await ask(client, b"A")
        assert caught.value.kind == "protocol"
        assert await ask(client, b"B") == SECOND


async def test_an_upstream_that_would_speak_another_protocol_is_refused() -> None:
    switching = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n" + EVIL
    async with upstream([switching]) as (_, client):
        with pytest.raises(UpstreamError, match="another protocol"):
            await ask(client, b"A")
        assert await ask(client, b"B") == SECOND


def certified(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return what a server on this machine proves itself with, and what its client believes."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "both.pem").write_bytes(secret + pem)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(folder / "both.pem")
    return server, ssl.create_default_context(cadata=pem.decode())


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_server_behind_tls_is_read_as_any_other_and_believed_only_if_it_proves_itself(
    loop: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof, believed = certified(tmp_path)
    long = bytes(range(256)) * 4000

    async def run() -> None:
        server = Server([chunked(long)])
        listening = await asyncio.start_server(server.serve, "localhost", 0, ssl=proof)
        url = f"https://localhost:{listening.sockets[0].getsockname()[1]}"
        try:
            stranger = UpstreamClient("m", Upstream(url=url, retries=0), {})
            with pytest.raises(UpstreamError, match="no connection") as caught:
                await ask(stranger, b"A")
            assert isinstance(caught.value.__cause__, ssl.SSLCertVerificationError)
            monkeypatch.setattr("checkstream.proxy.pool.tls", lambda: believed)
            client = UpstreamClient("m", Upstream(url=url), {})
            connections = server.connections
            for _ in range(2):
                assert await ask(client, b"A") == long
                assert await ask(client, b"B") == SECOND
            assert server.connections == connections + 1
            await client.close()
        finally:
            listening.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())
