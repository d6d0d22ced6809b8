"""Pages fetched over the network: from where an operator allowed and nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from checkstream.errors import DocumentUnreadable, SourceRefused
from checkstream.evidence import web as fetching
from checkstream.evidence.web import Web

LIMIT = 1 << 20


@pytest.fixture
async def server() -> AsyncIterator[TestServer]:
    async def page(request: web.Request) -> web.StreamResponse:
        match request.path:
            case "/ok":
                return web.Response(text="<p>hello</p>", content_type="text/html")
            case "/hop":
                raise web.HTTPFound("/ok")
            case "/loop":
                raise web.HTTPFound("/loop")
            case "/away":
                raise web.HTTPFound(request.query["to"])
            case "/nowhere":
                return web.Response(status=302)
            case "/packed":
                return web.Response(body=b"x", headers={"content-encoding": "gzip"})
            case "/endless":
                response = web.StreamResponse()
                await response.prepare(request)
                while True:
                    await response.write(b"x" * 65_536)
                    await asyncio.sleep(0)
            case _:
                return web.Response(status=404)

    app = web.Application()
    app.router.add_get("/{path:.*}", page)
    running = TestServer(app)
    async with running:
        yield running


def address(server: TestServer, path: str) -> str:
    return f"http://127.0.0.1:{server.port}{path}"


def inside() -> Web:
    return Web(private_hosts=["127.0.0.1"])


@pytest.mark.parametrize("path", ["/ok", "/hop"])
async def test_a_page_of_an_allowed_host_comes_with_its_type(server: TestServer, path: str) -> None:
    assert await inside().fetch(address(server, path), LIMIT) == (b"<p>hello</p>", "text/html; charset=utf-8")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/missing", "answered 404"),
        ("/loop", "redirects more than 5 times"),
        ("/packed", "packs"),
        ("/endless", "1048576"),
    ],
)
async def test_what_can_not_be_had_whole_is_told(server: TestServer, path: str, reason: str) -> None:
    with pytest.raises(DocumentUnreadable, match=reason):
        await inside().fetch(address(server, path), LIMIT)


@pytest.mark.parametrize(
    "to",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://localhost/",
        "http://127.0.0.2/",
        "http://[::1]/",
        "//evil.example/",
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "gopher://127.0.0.1/",
        "http://127.0.0.1@evil.example/",
        "http://user:pass@127.0.0.1/",
        "http://127.0.0.1:0/",
        "http://127.0.0.1\\@evil.example/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://127.1/",
        "",
    ],
)
async def test_a_redirect_leads_nowhere_else(server: TestServer, to: str) -> None:
    with pytest.raises((SourceRefused, DocumentUnreadable)):
        await inside().fetch(address(server, "/away") + "?to=" + to.replace("\\", "%5C"), LIMIT)


@pytest.mark.parametrize(
    "url",
    [
        "https://other.example/",
        "https://docs.example.com.evil.example/",
        "https://evil.example/docs.example.com",
        "https://",
    ],
)
async def test_a_host_that_is_not_named_is_not_asked(url: str) -> None:
    with pytest.raises(SourceRefused):
        await Web(["docs.example.com"]).fetch(url, LIMIT)


async def test_a_public_host_is_asked_over_https_alone() -> None:
    with pytest.raises(SourceRefused, match="without encryption"):
        await Web(["docs.example.com"]).fetch("http://docs.example.com/", LIMIT)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "[::1]", "[::]", "[fe80::1]", "[fc00::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
    ],
)  # fmt: skip
async def test_an_address_inside_is_not_asked_even_if_named_as_a_public_host(host: str) -> None:
    with pytest.raises(SourceRefused, match="no public address"):
        await Web([host.strip("[]")]).fetch(f"https://{host}/", LIMIT)


async def test_a_name_that_resolves_to_an_address_inside_is_not_asked() -> None:
    with pytest.raises(SourceRefused, match="leads inside"):
        await Web(["localhost"]).fetch("https://localhost:1/", LIMIT)


def test_names_are_compared_without_case_and_final_dot() -> None:
    Web(["Docs.Example.com"]).require_allowed("https://docs.example.COM./page")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # it would resolve names for us, unchecked
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    yield
    assert fetching.MAX_REDIRECTS == 5
