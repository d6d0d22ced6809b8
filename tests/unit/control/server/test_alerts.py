"""Alerts of a real control server: a node falls silent, a real webhook is told, and told again when it is back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from checkstream.config import load_control
from checkstream.errors import ConfigError, NoticeUnsent
from checkstream.webhooks import sign
from tests.controlled import Server, asked, attestation

ATTEST = "/v1/attestations"
Call = tuple[Any, bytes]
"""Heads and body."""


def alerts(url: str) -> dict[str, Any]:
    receiver = {"webhook": {"url": url, "secret": {"file": "secret"}}, "least": "page"}
    return {"every_s": 1, "calm_s": 0, "to": {"ops": receiver}}


@pytest.fixture
async def calls() -> AsyncIterator[tuple[str, asyncio.Queue[Call]]]:
    got: asyncio.Queue[Call] = asyncio.Queue()

    async def answer(request: web.BaseRequest) -> web.Response:
        got.put_nowait((request.headers, await request.read()))
        return web.Response(status=204)

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/hook", got
    await runner.cleanup()


async def told(calls: asyncio.Queue[Call]) -> dict[str, Any]:
    headers, body = await asyncio.wait_for(calls.get(), 30)
    at_s = int(headers["webhook-timestamp"])
    assert headers["webhook-signature"] == sign(b"a secret of some length", headers["webhook-id"], at_s, body)
    said: dict[str, Any] = json.loads(body)
    return said


async def test_a_node_that_falls_silent_is_told_of_and_that_it_is_back(
    tmp_path: Path, calls: tuple[str, asyncio.Queue[Call]]
) -> None:
    url, got = calls
    (tmp_path / "secret").write_text("a secret of some length")
    server = Server(tmp_path, stale_s=5)
    server.written["alerts"] = alerts(url)
    async with server.serving():
        assert (await asked("POST", server.url, ATTEST, attestation(1), node=server.nodes["n1"]))[0] == 200
        fired = await told(got)
        assert (fired["type"], fired["data"]["key"]) == ("alert.fired", "node_stale:shop/n1")
        stands = (await asked("GET", server.url, "/v1/alerts", person="gus"))[1]
        assert [(each["key"], each["state"]) for each in stands["troubles"]] == [("node_stale:shop/n1", "firing")]
        assert (await asked("POST", server.url, ATTEST, attestation(2), node=server.nodes["n1"]))[0] == 200
        assert (await told(got))["type"] == "alert.recovered"
        assert (await asked("GET", server.url, "/v1/alerts", person="gus"))[1]["troubles"] == []


async def test_a_silence_is_begun_and_ended_by_people(tmp_path: Path) -> None:
    async with Server(tmp_path).serving() as server:
        url = server.url
        body = {"pattern": "node_stale:shop/*", "seconds": 60, "reason": "they move"}
        assert (await asked("POST", url, "/v1/silences", body))[0] == 401
        assert (await asked("POST", url, "/v1/silences", body, person="gus"))[0] == 403
        status, made = await asked("POST", url, "/v1/silences", body, person="ada")
        assert (status, made["by"], made["pattern"]) == (200, "ada", "node_stale:shop/*")
        shown = (await asked("GET", url, "/v1/alerts", person="gus"))[1]
        assert [each["id"] for each in shown["silences"]] == [made["id"]]
        assert (await asked("POST", url, "/v1/silences/end", {"id": made["id"]}, person="ada"))[0] == 200
        assert (await asked("POST", url, "/v1/silences/end", {"id": made["id"]}, person="ada"))[0] == 404
        for bad in ({**body, "seconds": 0}, {**body, "reason": ""}, {**body, "pattern": "x" * 201}, {**body, "a": 1}):
            assert (await asked("POST", url, "/v1/silences", bad, person="ada"))[0] == 400


@pytest.mark.parametrize(
    ("receiver", "fault"),
    [
        ("{}", "exactly one of"),
        ("{slack: {env: A}, webhook: {url: https://x/y, secret: {env: B}}}", "exactly one of"),
        ("{webhook: {url: http://pager.example/x, secret: {env: B}}}", "not encrypted"),
        ("{mail: {host: mail.example, security: none, sender: a@b.c, to: [a@b.c]}}", "in the clear"),
        ("{mail: {host: mail.example, sender: a@b.c, to: []}}", "to"),
        ('{mail: {host: mail.example, sender: "a@b.c\\nBcc: x@y.z", to: [a@b.c]}}', "sender"),
        ("{mail: {host: mail.example, user: a, sender: a@b.c, to: [a@b.c]}}", "belong together"),
    ],
)
def test_who_is_told_is_read_strictly(tmp_path: Path, receiver: str, fault: str) -> None:
    file = Server(tmp_path).config_file()
    file.write_text(f"{file.read_text()}\nalerts: {{to: {{ops: {receiver}}}}}\n")
    with pytest.raises(ConfigError, match=fault):
        load_control(file)


async def test_a_secret_that_holds_no_key_ends_the_start(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("whsec_")
    server = Server(tmp_path)
    server.written["alerts"] = alerts("http://127.0.0.1:1/")
    with pytest.raises(NoticeUnsent, match="no key in base64"):
        async with server.serving():
            pass


async def test_a_receiver_that_never_answers_keeps_no_other_waiting(
    tmp_path: Path, calls: tuple[str, asyncio.Queue[Call]]
) -> None:
    url, got = calls
    (tmp_path / "secret").write_text("a secret of some length")
    connected = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.set()
        await reader.read()
        writer.close()

    deaf = await asyncio.start_server(hang, "127.0.0.1", 0)
    server = Server(tmp_path)
    server.written["alerts"] = alerts(url)
    other = {"webhook": {"url": f"http://127.0.0.1:{deaf.sockets[0].getsockname()[1]}/", "secret": {"file": "secret"}}}
    server.written["alerts"]["to"] = {"deaf": other, **server.written["alerts"]["to"]}
    async with deaf, server.serving():
        for node in ("n1", "n2"):  # each is refused, one after the other
            refused = attestation(1, package="e" * 64)
            assert (await asked("POST", server.url, ATTEST, refused, node=server.nodes[node]))[0] == 403
        keys = {(await told(got))["data"]["key"] for _ in range(2)}
        assert keys == {"node_refused:shop/n1", "node_refused:shop/n2"}
        assert connected.is_set()
        waiting = (await asked("GET", server.url, "/v1/alerts", person="gus"))[1]["waiting"]
        assert waiting == [], "the deaf one has not even timed out once"
