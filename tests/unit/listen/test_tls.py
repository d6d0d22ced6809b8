"""TLS of a listener: what it takes, what it refuses, and fresh certificates while callers are connected."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop
from aiohttp.web import BaseRequest, Response, StreamResponse

from checkstream.config import Address
from checkstream.config.identity import TlsSettings
from checkstream.errors import CertificateUnusable
from checkstream.listen import Listener, Times, connection_of, tls
from checkstream.listen.tls import ServerTls
from tests.certificates import Authority, put

TIMES = Times(header_s=0.5, write_s=1)
ASK = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


class Site:
    """A listener with TLS, and what it has told."""

    def __init__(self, folder: Path, **more: Any) -> None:
        self.folder, self.authority = folder, Authority()
        certificate, key = put(folder, "server", self.authority.issue("first"))
        self.settings = TlsSettings(certificate=certificate, key=key, **more)
        self.told: list[str] = []
        self.left = asyncio.Event()
        self.tls = ServerTls(self.settings, self.told.append)
        self.listener = Listener(self.respond, TIMES, tls=self.tls, sockets=16)

    async def respond(self, request: BaseRequest) -> StreamResponse:
        if request.path == "/wait":
            connection_of(request).watch(self.left.set, lambda: None)
            await asyncio.wait_for(self.left.wait(), 3)
        return Response(text="ok")

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Site]:
        await asyncio.to_thread(self.tls.open)
        await self.listener.open(Address("127.0.0.1", 0))
        try:
            yield self
        finally:
            await self.listener.close()

    def trusting(self, **more: Any) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.authority.pem().decode())
        for name, value in more.items():
            setattr(context, name, value)
        return context

    async def connect(self, context: ssl.SSLContext | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(
            self.listener.address.host, self.listener.address.port, ssl=context or self.trusting()
        )

    async def ask(self, context: ssl.SSLContext | None = None) -> tuple[str, str]:
        """Return the name of the server's certificate, and the answer's status line."""
        reader, writer = await self.connect(context)
        try:
            writer.write(ASK)
            line = await asyncio.wait_for(reader.readline(), 2)
            return named(writer), line.decode().strip()
        finally:
            writer.transport.abort()

    async def refuses(self, context: ssl.SSLContext) -> bool:
        """Tell whether nobody answers; in what words depends on who of the two is first."""
        try:
            return (await self.ask(context))[1] == ""
        except OSError:
            return True


def named(writer: asyncio.StreamWriter) -> str:
    return str(dict(part[0] for part in writer.get_extra_info("peercert")["subject"])["commonName"])


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_requests_are_answered_and_a_caller_that_leaves_is_heard_at_once(tmp_path: Path, loop: str) -> None:
    async def run() -> None:
        async with Site(tmp_path).serving() as site:
            assert await site.ask() == ("first", "HTTP/1.1 200 OK")
            reader, writer = await site.connect()
            assert writer.get_extra_info("ssl_object").version() == "TLSv1.3"
            writer.write(ASK * 3)
            for _ in range(3):
                assert b"200 OK" in await reader.readuntil(b"ok")
            for leave in (writer.transport.abort, writer.close):
                site.left.clear()
                _, writer = await site.connect()
                writer.write(ASK.replace(b"/ ", b"/wait "))
                await asyncio.sleep(0.05)
                writer.transport.abort() if leave is writer.transport.abort else writer.close()
                await asyncio.wait_for(site.left.wait(), 0.5)

    factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(run())


async def test_a_fresh_certificate_is_for_new_connections_and_a_broken_pair_is_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "LOOK_S", 0.0)
    async with Site(tmp_path).serving() as site:
        reader, writer = await site.connect()
        fresh = site.authority.issue("second")
        await asyncio.to_thread(Path(site.settings.certificate).write_bytes, fresh[0])  # not its key yet
        while not site.told:
            assert (await site.ask())[0] == "first"
        assert site.told[0].endswith("can't be used: the key is not that of the certificate")
        assert (await site.ask())[0] == "first"
        await asyncio.to_thread(Path(site.settings.key).write_bytes, fresh[1])
        while (await site.ask())[0] == "first":
            pass
        assert site.told[1:] == [""], "a broken pair is told of once"
        writer.write(ASK)
        assert b"200 OK" in await reader.readline(), "what was connected is still answered"
        assert named(writer) == "first"
        await asyncio.to_thread(Path(site.settings.key).unlink)
        while len(site.told) < 3:
            await site.ask()
        assert "no such file" in site.told[-1]
        assert (await site.ask())[0] == "second"
        writer.transport.abort()


async def test_old_versions_and_foreign_words_are_refused(tmp_path: Path) -> None:
    async with Site(tmp_path, minimum="1.3").serving() as site:
        assert await site.refuses(site.trusting(maximum_version=ssl.TLSVersion.TLSv1_2))
        for words in (ASK, b"\x16\x03\x01\xff\xff" + b"\0" * 100, b"\x80\x2e\x01\x00\x02", b"\0"):
            reader, writer = await asyncio.open_connection(site.listener.address.host, site.listener.address.port)
            writer.write(words)
            assert b"HTTP" not in await asyncio.wait_for(reader.read(), 2)
            writer.close()
        assert await site.ask() == ("first", "HTTP/1.1 200 OK")


async def test_g22_who_says_nothing_has_a_share_of_the_places_and_a_deadline(tmp_path: Path) -> None:
    async with Site(tmp_path).serving() as site:
        place = (site.listener.address.host, site.listener.address.port)
        silent = [await asyncio.open_connection(*place) for _ in range(30)]
        await asyncio.sleep(0)
        waiting = site.listener._waiting
        assert 0 < waiting.taken < 16, "others have some left"
        ended = await asyncio.wait_for(
            asyncio.gather(*(reader.read() for reader, _ in silent), return_exceptions=True), 3
        )
        assert len(ended) == 30
        for _, writer in silent:
            writer.close()
        async with asyncio.timeout(2):
            while waiting.taken:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
        assert await site.ask() == ("first", "HTTP/1.1 200 OK")


@pytest.mark.parametrize("clients", ["required", "optional"])
async def test_a_caller_shows_a_certificate_that_the_operator_trusts(tmp_path: Path, clients: Any) -> None:
    trusted, stranger = Authority("callers"), Authority("callers")
    (tmp_path / "ca.pem").write_bytes(trusted.pem())
    async with Site(tmp_path, client_ca=str(tmp_path / "ca.pem"), clients=clients).serving() as site:
        known, unknown = site.trusting(), site.trusting()
        known.load_cert_chain(*put(tmp_path, "known", trusted.issue("app")))
        unknown.load_cert_chain(*put(tmp_path, "unknown", stranger.issue("app")))
        assert (await site.ask(known))[1] == "HTTP/1.1 200 OK"
        assert await site.refuses(unknown)
        assert await site.refuses(site.trusting()) == (clients == "required")


def test_files_that_can_t_be_used_are_named(tmp_path: Path) -> None:
    authority = Authority()
    certificate, key = put(tmp_path, "a", authority.issue("a"))
    _, other = put(tmp_path, "b", authority.issue("b"))
    (tmp_path / "empty").write_bytes(b"")
    cases: tuple[dict[str, Any], ...] = (
        {"certificate": certificate, "key": other},
        {"certificate": certificate, "key": str(tmp_path / "none")},
        {"certificate": key, "key": key},
        {"certificate": str(tmp_path / "empty"), "key": key},
        {"certificate": certificate, "key": key, "client_ca": str(tmp_path / "empty")},
        {"certificate": certificate, "key": str(tmp_path)},
    )
    for wrong in cases:
        with pytest.raises(CertificateUnusable, match=r"`.*` can't be used: \w+"):
            ServerTls(TlsSettings(**wrong)).open()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_g33_no_step_of_a_handshake_runs_on_the_loop(tmp_path: Path, loop: str) -> None:
    stepping: list[int] = []

    class Watched(ssl.SSLObject):
        def do_handshake(self) -> None:
            stepping.append(threading.get_ident())
            super().do_handshake()

    async def run() -> None:
        async with Site(tmp_path).serving() as site:
            site.tls.context.sslobject_class = Watched
            older = site.trusting()
            older.maximum_version = ssl.TLSVersion.TLSv1_2
            for context in (site.trusting(), older):
                answers = await asyncio.gather(*(site.ask(context) for _ in range(8)))
                assert set(answers) == {("first", "HTTP/1.1 200 OK")}
            assert await site.refuses(ssl.create_default_context())
        assert len(stepping) >= 2 * 16, "each has two flights at least"
        assert threading.get_ident() not in stepping

    factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(run())


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_what_is_asked_together_with_the_end_of_a_handshake_is_answered_whole(tmp_path: Path, loop: str) -> None:
    async def run() -> None:
        async with Site(tmp_path).serving() as site:
            read, written = ssl.MemoryBIO(), ssl.MemoryBIO()
            caller = site.trusting().wrap_bio(read, written, server_hostname="localhost")
            with pytest.raises(ssl.SSLWantReadError):
                caller.do_handshake()
            place = (site.listener.address.host, site.listener.address.port)
            reader, writer = await asyncio.open_connection(*place)
            hello = written.read()
            for each in (hello[:7], hello[7:]):
                writer.write(each)
                await asyncio.sleep(0.01)
            while True:
                read.write(await asyncio.wait_for(reader.read(1 << 16), 2))
                try:
                    caller.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    continue
            body = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 200000\r\n\r\n" + b"x" * 200_000
            for _ in range(40):
                caller.write(ASK)
            for at in range(0, len(body), 1 << 14):
                caller.write(body[at : at + (1 << 14)])
            writer.write(written.read())
            answers = b""
            while answers.count(b"200 OK") < 41:
                read.write(await asyncio.wait_for(reader.read(1 << 16), 2))
                with contextlib.suppress(ssl.SSLWantReadError):
                    while True:
                        answers += caller.read(1 << 16)
            writer.close()

    factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(run())
