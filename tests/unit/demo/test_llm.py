from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from checkstream.demo.llm import Connection, ScriptedLlm
from checkstream.demo.scenario import built_in, read_folder, read_scenario

SCENARIOS = {
    "say": "choices: [{content: one two three}]",
    "slow": "choices: [{content: one two three}]\ntiming: {headers_ms: 60000}",
    "limited": "error: {status: 429, headers: {retry-after: '1'}}",
    "torn": "choices: [{content: one two three}]\nfault: {kind: reset, after_events: 2}",
    "shut": "choices: [{content: one two three}]\nfault: {kind: close, after_bytes: 300}",
    "cut": "choices: [{content: one two three}]\nfault: {kind: end, after_events: 2}",
    "still": "choices: [{content: one two three}]\nfault: {kind: stall, after_events: 2}",
    "pause": "choices: [{content: one two three}]\nfault: {kind: stall, after_events: 2, stall_ms: 5}",
    "endless": "choices: [{content: one two three}]\nfault: {kind: endless, after_events: 1}",
    "bytes": "choices: [{content: one two three}]\nwire: {cut: {by: fixed}}",
}


@pytest.fixture
async def llm() -> AsyncIterator[ScriptedLlm]:
    async with ScriptedLlm({name: read_scenario(name, text) for name, text in SCENARIOS.items()}) as server:
        yield server


@pytest.fixture
async def client(llm: ScriptedLlm) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(llm.url) as session:
        yield session


def _body(model: str, **fields: Any) -> dict[str, Any]:
    return {"model": model, "stream": True, "messages": [{"role": "user", "content": "hi"}], **fields}


async def _post(client: aiohttp.ClientSession, model: str, **fields: Any) -> bytes:
    async with client.post("/v1/chat/completions", json=_body(model, **fields)) as response:
        assert response.status == 200
        return await response.read()


async def _ended(llm: ScriptedLlm) -> Connection:
    """Wait until the last connection has ended."""
    async with asyncio.timeout(5):
        while not llm.connections or llm.connections[-1].ended_ms is None:  # noqa: ASYNC110 - a record signals nobody
            await asyncio.sleep(0.001)
    return llm.connections[-1]


async def test_a_stream_and_a_whole_answer(llm: ScriptedLlm, client: aiohttp.ClientSession) -> None:
    events = (await _post(client, "say")).decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    said = [json.loads(event.removeprefix("data: "))["choices"][0]["delta"].get("content", "") for event in events[:-2]]
    assert said == ["", "one", " two", " three", ""]
    body = json.loads(await _post(client, "say", stream=False))
    assert body["choices"][0]["message"]["content"] == "one two three"
    first, second = llm.connections
    assert (first.state, first.events_sent, first.bytes_sent) == ("complete", 6, sum(map(len, events)) + 2 * 6)
    assert (second.state, second.events_sent) == ("complete", 1)


async def test_what_was_received_is_shown(llm: ScriptedLlm, client: aiohttp.ClientSession) -> None:
    async with client.post(
        "/v1/chat/completions", json=_body("other"), headers={"X-Scenario": "say", "Authorization": "Bearer k"}
    ) as response:
        await response.read()
    async with client.get("/_scripted/requests", params={"scenario": "say"}) as response:
        (row,) = await response.json()
    assert row["body"] == _body("other")
    assert ["authorization", "Bearer k"] in row["headers"]
    assert (row["path"], row["scenario"], row["index"]) == ("/v1/chat/completions", "say", 0)
    async with client.get("/_scripted/connections") as response:
        assert [row["state"] for row in await response.json()] == ["complete"]
    async with client.delete("/_scripted/records") as response:
        assert response.status == 204
    assert not llm.requests
    assert not llm.connections


async def test_models_and_unknown_paths(client: aiohttp.ClientSession) -> None:
    async with client.get("/v1/models") as response:
        assert {row["id"] for row in (await response.json())["data"]} == set(SCENARIOS)
    async with client.post("/v1/images/generations", json={}) as response:
        assert response.status == 404
        assert (await response.json())["error"]["code"] == "unknown_url"


async def test_wrong_requests_get_the_error_object(client: aiohttp.ClientSession) -> None:
    async with client.post("/v1/chat/completions", data=b"{") as response:
        assert response.status == 400
        assert (await response.json())["error"]["type"] == "invalid_request_error"
    async with client.post("/v1/chat/completions", json=_body("x"), headers={"x-scenario": "nope"}) as response:
        assert response.status == 400
        assert "no scenario is named `nope`" in (await response.json())["error"]["message"]


async def test_an_error_scenario(llm: ScriptedLlm, client: aiohttp.ClientSession) -> None:
    async with client.post("/v1/chat/completions", json=_body("limited")) as response:
        assert (response.status, response.headers["retry-after"]) == (429, "1")
        assert (await response.json())["error"]["code"] == "rate_limit_exceeded"
    assert (await _ended(llm)).state == "failed"


async def test_a_reset_is_seen_as_one(llm: ScriptedLlm, client: aiohttp.ClientSession) -> None:
    async with client.post("/v1/chat/completions", json=_body("torn")) as response:
        with pytest.raises((aiohttp.ClientOSError, aiohttp.ClientPayloadError)):
            await response.read()
    assert (await _ended(llm)).state == "reset"


async def test_a_reset_is_an_rst_on_the_wire(llm: ScriptedLlm) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(llm.url.rsplit(":", 1)[1]))
    body = json.dumps(_body("torn")).encode()
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    with pytest.raises(ConnectionResetError):
        await reader.read(-1)
    writer.close()


async def test_a_close_tears_the_body_at_its_byte(llm: ScriptedLlm, client: aiohttp.ClientSession) -> None:
    for stream in (True, False):
        async with client.post("/v1/chat/completions", json=_body("shut", stream=stream)) as response:
            with pytest.raises(aiohttp.ClientPayloadError):
                await response.read()
        connection = await _ended(llm)
        assert (connection.state, connection.bytes_sent) == ("closed", 300)


async def test_an_early_end_is_complete_for_http(client: aiohttp.ClientSession) -> None:
    body = await _post(client, "cut")
    assert body.count(b"\n\n") == 2
    assert b"[DONE]" not in body


async def test_a_stall_that_ends(client: aiohttp.ClientSession) -> None:
    assert await _post(client, "pause") == (await _post(client, "say")).replace(b"say", b"pause")


@pytest.mark.parametrize("model", ["slow", "still", "endless"])
async def test_a_caller_that_goes_is_noticed_at_once(llm: ScriptedLlm, model: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(llm.url.rsplit(":", 1)[1]))
    body = json.dumps(_body(model)).encode()
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    if model == "slow":
        async with asyncio.timeout(5):
            while not llm.connections:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.001)
    else:
        seen = b""
        while seen.count(b"\n\n") < (1 if model == "endless" else 2):
            seen += await reader.read(65536)
    left_ms = time.monotonic() * 1000
    writer.close()
    connection = await _ended(llm)
    assert connection.state == "closed_by_client"
    assert connection.events_sent == {"slow": 0, "still": 2, "endless": 1}[model]
    assert connection.ended_ms is not None
    assert left_ms <= connection.ended_ms + 1
    assert connection.ended_ms - left_ms < 1000


async def test_byte_by_byte_says_the_same(client: aiohttp.ClientSession) -> None:
    assert await _post(client, "bytes") == (await _post(client, "say")).replace(b'"say"', b'"bytes"').replace(
        b"-say", b"-bytes"
    )


async def test_a_scenario_can_be_put_in(client: aiohttp.ClientSession) -> None:
    async with client.put("/_scripted/scenarios/new", data='{"choices": [{"content": "fresh"}]}') as response:
        assert response.status == 204
    assert b"fresh" in await _post(client, "new")
    async with client.put("/_scripted/scenarios/new", data="choices: 3") as response:
        assert response.status == 400
        assert "choices: expected a list" in (await response.json())["error"]["message"]
    assert b"fresh" in await _post(client, "new")


async def test_the_built_in_scenarios_run() -> None:
    found = read_folder(built_in())
    async with ScriptedLlm(found) as server, aiohttp.ClientSession(server.url) as client:
        for model in ("fallback", "tool"):
            assert (await _post(client, model)).endswith(b"data: [DONE]\n\n")


def test_the_command_says_where_it_listens_and_ends_on_sigterm(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("choices: [{content: x}]")
    command = [sys.executable, "-m", "checkstream.demo.llm", "--scenarios", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        assert said["event"] == "listening"
        assert said["url"].startswith("http://127.0.0.1:")
        process.terminate()
        assert process.wait(10) == 0


def test_the_command_refuses_a_wrong_folder(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("choices: 3")
    command = [sys.executable, "-m", "checkstream.demo.llm", "--scenarios", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 2
    assert "a.yaml:1:10: choices: expected a list" in done.stderr
