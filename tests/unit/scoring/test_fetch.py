"""Files from a folder, the web and the hub: within bounds, hashed, and from no place but the one that was named."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from checkstream.config import ModelSource
from checkstream.errors import ModelError
from checkstream.scoring.fetch import Fetched, _next_place, fetch

REVISION = "0123456789abcdef0123456789abcdef01234567"
DATA = b"\x08\x0a some bytes" * 1_000
SHA256 = hashlib.sha256(DATA).hexdigest()
Respond = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(respond: Respond) -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(respond))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    try:
        yield f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/"  # type: ignore[attr-defined]
    finally:
        await runner.cleanup()


def saying(
    body: bytes = DATA,
    status: int = 200,
    headers: dict[str, str] | None = None,
    heard: list[web.BaseRequest] | None = None,
) -> Respond:
    async def respond(request: web.BaseRequest) -> web.StreamResponse:
        if heard is not None:
            heard.append(request)
        return web.Response(body=body, status=status, headers=headers)

    return respond


def from_web(url: str) -> ModelSource:
    return ModelSource(url=url, sha256={"model.onnx": SHA256})


async def bring(source: ModelSource, tmp_path: Path, name: str = "model.onnx", limit: int = 1 << 20) -> Fetched:
    return await fetch(source, tmp_path, name, tmp_path / "fetched", limit=limit, told=lambda _, __: None)


async def refusal(source: ModelSource, tmp_path: Path, name: str = "model.onnx", limit: int = 1 << 20) -> str:
    with pytest.raises(ModelError) as caught:
        await bring(source, tmp_path, name, limit)
    return str(caught.value)


async def test_a_file_of_a_folder_and_of_the_web_comes_whole_with_its_hash(tmp_path: Path) -> None:
    (tmp_path / "own" / "onnx").mkdir(parents=True)
    (tmp_path / "own" / "onnx" / "model.onnx").write_bytes(DATA)
    told: list[int] = []
    found = await fetch(
        ModelSource(path="own"),
        tmp_path,
        "onnx/model.onnx",
        tmp_path / "a",
        limit=len(DATA),
        told=lambda _, n: told.append(n),
    )
    assert (found.sha256, found.bytes, told[-1]) == (SHA256, len(DATA), len(DATA))
    assert (tmp_path / "a").read_bytes() == DATA
    heard: list[web.BaseRequest] = []
    async with serving(saying(heard=heard)) as url:
        found = await bring(from_web(url), tmp_path, "onnx/model.onnx")
    assert (found.sha256, found.path.read_bytes()) == (SHA256, DATA)
    assert heard[0].path == "/onnx/model.onnx"


async def test_g22_what_is_larger_than_its_cap_is_broken_off(tmp_path: Path) -> None:
    sent = 0

    async def endless(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while sent < 1 << 30:
            await response.write(b"0" * 65_536)
            sent += 65_536
        return response

    async with serving(endless) as url:
        assert "more than the 100000 bytes" in await refusal(from_web(url), tmp_path, limit=100_000)
    assert sent < 1 << 26
    (tmp_path / "large.onnx").write_bytes(b"0" * 101)
    (tmp_path / "fetched").unlink()
    assert "more than the 100 bytes" in await refusal(ModelSource(path="."), tmp_path, "large.onnx", limit=100)


async def test_g22_what_is_packed_is_not_unpacked(tmp_path: Path) -> None:
    bomb = gzip.compress(b"0" * 50_000_000)
    async with serving(saying(bomb, headers={"content-encoding": "gzip"})) as url:
        found = await bring(from_web(url), tmp_path, limit=len(bomb))
    assert found.bytes == len(bomb)


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 206, 204])
async def test_an_answer_that_is_not_the_file_is_refused(tmp_path: Path, status: int) -> None:
    async with serving(saying(b"", status)) as url:
        assert f"answered {status};" in await refusal(from_web(url), tmp_path)


@pytest.mark.parametrize(
    "to", ["http://192.0.2.1/x", "file:///etc/passwd", "ftp://127.0.0.1/x", "http://u:p@127.0.0.1/x", ""]
)
async def test_no_redirect_leads_to_another_kind_of_place(tmp_path: Path, to: str) -> None:
    async with serving(saying(b"", 302, {"location": to})) as url:
        words = await refusal(from_web(url), tmp_path)
    assert "redirects" in words


def test_no_redirect_leads_from_https_to_http_not_even_on_this_machine() -> None:
    for to in ("http://127.0.0.1:8090/x", "http://localhost/x?signature=secret"):
        with pytest.raises(ModelError, match="must stay https") as caught:
            _next_place("https://models.example/a", to)
        assert "secret" not in str(caught.value)
    assert _next_place("https://models.example/a", "//127.0.0.1/x") == "https://127.0.0.1/x"


async def test_redirects_are_followed_and_end(tmp_path: Path) -> None:
    async with (
        serving(saying()) as storage,
        serving(saying(b"", 302, {"location": f"{storage}blob?signature=secret"})) as url,
    ):
        assert (await bring(from_web(url), tmp_path)).sha256 == SHA256
    (tmp_path / "fetched").unlink()
    async with serving(saying(b"", 302, {"location": "/again"})) as url:
        assert "more than 5 times" in await refusal(from_web(url), tmp_path)


async def test_a_signature_is_not_told(tmp_path: Path) -> None:
    async with (
        serving(saying(b"", 500)) as storage,
        serving(saying(b"", 302, {"location": f"{storage}blob?signature=secret"})) as url,
    ):
        assert "secret" not in await refusal(from_web(url), tmp_path)


async def test_a_server_that_breaks_off_or_is_not_there_is_told(tmp_path: Path) -> None:
    async def broken(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-length": "1000000"})
        await response.prepare(request)
        await response.write(DATA)
        assert request.transport
        request.transport.abort()
        return response

    async with serving(broken) as url:
        assert "can't be had" in await refusal(from_web(url), tmp_path)
    (tmp_path / "fetched").unlink()
    assert "can't be had" in await refusal(from_web("http://127.0.0.1:1/"), tmp_path)


async def test_nothing_outside_a_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "link.json").symlink_to(tmp_path / "secret.json")
    assert "outside its folder" in await refusal(ModelSource(path="own"), tmp_path, "link.json")
    (tmp_path / "fetched").unlink()
    assert "there is no file" in await refusal(ModelSource(path="own"), tmp_path, "none.json")


async def test_the_hub_is_asked_for_a_commit_and_its_token_goes_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub.constants

    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub: list[web.BaseRequest] = []
    stored: list[web.BaseRequest] = []
    source = ModelSource(hub="owner/name", revision=REVISION)
    async with (
        serving(saying(heard=stored)) as storage,
        serving(saying(b"", 302, {"location": f"{storage}blob"}, hub)) as url,
    ):
        monkeypatch.setattr(
            huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "{repo_id}/resolve/{revision}/{filename}"
        )
        assert (await bring(source, tmp_path, "onnx/model.onnx")).sha256 == SHA256
    assert hub[0].path == f"/owner/name/resolve/{REVISION}/onnx/model.onnx"
    assert hub[0].headers["authorization"] == "Bearer hf_secret"
    assert "authorization" not in stored[0].headers
    monkeypatch.setattr(
        huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", "http://hub/{repo_id}{revision}{filename}"
    )
    (tmp_path / "fetched").unlink()
    assert "not encrypted" in await refusal(source, tmp_path)


async def test_without_the_hubs_library_a_clear_word_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    assert "needs the package" in await refusal(ModelSource(hub="owner/name", revision=REVISION), tmp_path)
