"""A node's way to its server over TLS, with certificates on both sides that are replaced under load."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import urllib3
from aiohttp import web
from tuf.api.exceptions import DownloadError

from checkstream.config import ControlSettings
from checkstream.control.bundles.fetching import Fetcher
from checkstream.control.client import ControlClient, opened_client
from checkstream.errors import ControlUnusable
from tests.certificates import Authority, put
from tests.controlled import node_key


class Server:
    """A server that asks for certificates and counts whose it gets."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority("servers")
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.context.load_cert_chain(*put(folder, "server", self.authority.issue("server")))
        (folder / "ca.pem").write_bytes(self.authority.pem())
        self.callers: Counter[str] = Counter()
        self.url = ""
        self.retry_after: str | None = None

    def trust(self, authority: Authority) -> None:
        self.context.load_verify_locations(cadata=authority.pem().decode())

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        async def answer(request: web.BaseRequest) -> web.Response:
            assert request.transport is not None
            peer = dict(part[0] for part in request.transport.get_extra_info("peercert")["subject"])
            self.callers[peer["commonName"]] += 1
            headers = {} if self.retry_after is None else {"retry-after": self.retry_after}
            return web.Response(body=await request.read(), headers=headers)

        runner = web.ServerRunner(web.Server(answer))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self.context)
        await site.start()
        self.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield
        finally:
            await runner.cleanup()


@asynccontextmanager
async def client_of(server: Server, folder: Path, **more: Any) -> AsyncIterator[ControlClient]:
    settings = ControlSettings(url=server.url, node="n1", key="unused", ca=str(folder / "ca.pem"), **more)
    async with opened_client(settings, node_key("n1", folder)) as client:
        yield client


async def test_certificates_are_replaced_under_load_and_no_request_is_lost(tmp_path: Path) -> None:
    server = Server(tmp_path)
    old, new = Authority("old"), Authority("new")
    server.trust(old)
    server.trust(new)
    certificate, key = put(tmp_path, "n1", old.issue("first"))
    async with server.serving(), client_of(server, tmp_path, certificate=certificate, certificate_key=key) as client:
        done = 0
        stop, came = asyncio.Event(), asyncio.Condition()

        async def load() -> None:
            nonlocal done
            while not stop.is_set():
                answer = await client.post("/v1/telemetry", b"x")
                assert (answer.status, answer.body) == (200, b"x")
                async with came:
                    done += 1
                    came.notify_all()

        async def more(count: int) -> None:
            target = done + count
            async with came:
                await came.wait_for(lambda: done >= target)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(4):
                tasks.create_task(load())
            await more(20)
            assert set(server.callers) == {"first"}
            fresh = new.issue("second")
            await asyncio.to_thread(Path(certificate).write_bytes, fresh[0])  # the key does not go with it yet
            await more(20)
            assert set(server.callers) == {"first"}
            await asyncio.to_thread(Path(key).write_bytes, fresh[1])
            while not server.callers["second"]:
                await more(1)
            await more(20)
            seen = server.callers["first"]
            await more(20)
            assert server.callers["first"] == seen, "what asks from now on has the new one"
            stop.set()


async def test_a_server_or_a_client_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    server, stranger = Server(tmp_path), Authority("stranger")
    certificate, key = put(tmp_path, "n1", stranger.issue("n1"))
    async with server.serving():
        for pair in ({}, {"certificate": certificate, "certificate_key": key}):
            async with client_of(server, tmp_path, **pair) as client:
                with pytest.raises(ControlUnusable, match="can't be reached"):
                    await client.post("/v1/telemetry", b"x")
        server.trust(stranger)
        (tmp_path / "ca.pem").write_bytes(stranger.pem())
        async with client_of(server, tmp_path, certificate=certificate, certificate_key=key) as client:
            with pytest.raises(ControlUnusable, match="certificate verify failed"):
                await client.post("/v1/telemetry", b"x")
            (tmp_path / "ca.pem").write_bytes(server.authority.pem())
            assert (await client.post("/v1/telemetry", b"x")).status == 200


async def test_bundles_are_read_with_the_same_certificate(tmp_path: Path) -> None:
    server, authority = Server(tmp_path), Authority()
    server.trust(authority)
    pair = put(tmp_path, "n1", authority.issue("n1"))

    def fetched(certificate: tuple[str, str] | None) -> bytes:
        return Fetcher(ca=str(tmp_path / "ca.pem"), certificate=certificate).download_bytes(
            server.url + "/bundles/x", 99
        )

    async with server.serving():
        assert await asyncio.to_thread(fetched, pair) == b""
        assert set(server.callers) == {"n1"}
        with pytest.raises((DownloadError, urllib3.exceptions.HTTPError)):
            await asyncio.to_thread(fetched, None)


async def test_certificates_that_can_t_be_used_are_named_at_the_start(tmp_path: Path) -> None:
    server, authority = Server(tmp_path), Authority()
    server.url = "https://127.0.0.1:1"
    certificate, key = put(tmp_path, "n1", authority.issue("n1"))
    _, other = put(tmp_path, "other", authority.issue("other"))
    for wrong in (
        {"certificate": certificate, "certificate_key": other},
        {"certificate": certificate, "certificate_key": str(tmp_path / "none")},
        {"certificate": key, "certificate_key": key},
    ):
        with pytest.raises(ControlUnusable, match=r"n1\.(pem|key)"):
            async with client_of(server, tmp_path, **wrong):
                pytest.fail("it opens")


@pytest.mark.parametrize(("said", "heard"), [(None, None), ("7", 7.0), ("soon", None), ("-1", None), ("9" * 20, None)])
async def test_when_to_ask_again_is_heard(tmp_path: Path, said: str | None, heard: float | None) -> None:
    server, authority = Server(tmp_path), Authority()
    server.trust(authority)
    server.retry_after = said
    certificate, key = put(tmp_path, "n1", authority.issue("n1"))
    async with server.serving(), client_of(server, tmp_path, certificate=certificate, certificate_key=key) as client:
        assert (await client.post("/v1/telemetry", b"x")).retry_after_s == heard
