"""A real control server over real sockets: who is heard, what is kept of it, and how fleets are shown."""

from __future__ import annotations

import asyncio
import io
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema
import msgspec
import openapi_spec_validator
import pytest
from blockbuster import blockbuster_ctx

from checkstream.app.control import serve_control
from checkstream.config import load_control
from checkstream.control.identity import NODE, SIGNATURE, NodeKey
from checkstream.errors import ConfigError
from checkstream.telemetry.logs import open_log
from tests.controlled import Server, asked, attestation, node_key

ATTEST = "/v1/attestations"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    with blockbuster_ctx("checkstream"):  # a blocking call of the server on its loop fails the test
        async with Server(tmp_path).serving() as made:
            yield made


async def test_a_node_attests_and_its_fleet_shows_what_it_said(server: Server) -> None:
    said = attestation(1, bundle="c" * 64, bundle_version="7")
    assert (await asked("POST", server.url, ATTEST, said, node=server.nodes["n1"]))[0] == 200
    status, fleet = await asked("GET", server.url, "/v1/fleets/shop", person="gus")
    assert status == 200
    one, two = fleet["nodes"]
    assert (one["node"], one["reported"], one["version"], one["stale"], one["why"]) == ("n1", "c" * 64, "7", False, "")
    assert two["stale"]
    assert two["why"] == "it has never been heard of"
    assert (await asked("GET", server.url, "/v1/fleets/none", person="gus"))[0] == 404
    assert (await asked("GET", server.url, "/v1/fleets/shop"))[0] == 401


async def test_an_attestation_counts_once(server: Server) -> None:
    node, said = server.nodes["n1"], attestation(5)
    assert (await asked("POST", server.url, ATTEST, said, node=node))[0] == 200
    for old in (said, attestation(4, package="d" * 64)):
        status, body = await asked("POST", server.url, ATTEST, old, node=node)
        assert (status, body["error"]["code"]) == (409, "conflict")
        assert "not newer than 5" in body["error"]["message"]
    events = (await asked("GET", server.url, "/v1/events", person="gus"))[1]["events"]
    assert [(each["kind"], each["node"]) for each in events] == [("attestation_replayed", "n1")]
    assert (await asked("POST", server.url, ATTEST, attestation(6), node=node))[0] == 200


async def test_who_is_not_known_is_not_heard(server: Server, tmp_path: Path) -> None:
    stranger, impostor = node_key("n9", tmp_path / "other"), node_key("n1", tmp_path / "other")
    status, body = await asked("POST", server.url, ATTEST, attestation(), node=stranger)
    assert (status, "not signed by a node `n9` that" in body["error"]["message"]) == (401, True)
    status, body = await asked("POST", server.url, ATTEST, attestation(), node=impostor)
    assert (status, "not signed by a node `n1` that" in body["error"]["message"]) == (401, True)
    assert (await asked("POST", server.url, ATTEST, attestation(), person="ada"))[0] == 401
    for headers in ({NODE: "n1"}, {NODE: "n1", SIGNATURE: "zz" * 64}, {NODE: "n1", SIGNATURE: "00" * 64}):
        assert (await asked("POST", server.url, ATTEST, attestation(), headers=headers))[0] == 401


async def test_a_body_that_no_node_has_signed_is_not_waited_for(server: Server, tmp_path: Path) -> None:
    impostor = node_key("n1", tmp_path / "other").headers("POST", ATTEST, b"{}")
    host, port = server.url.removeprefix("http://").split(":")
    head = "".join(f"{name}: {value}\r\n" for name, value in impostor.items())
    for _ in range(20):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"POST {ATTEST} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n{head}\r\n".encode())
        assert b" 401 " in await asyncio.wait_for(reader.readline(), 5)
        writer.close()


async def test_what_was_signed_for_another_place_or_altered_is_not_heard(server: Server) -> None:
    body = msgspec.json.encode(attestation())
    elsewhere = server.nodes["n1"].headers("POST", "/v1/telemetry", body)
    assert (await asked("POST", server.url, ATTEST, body, headers=elsewhere))[0] == 401
    signed = server.nodes["n1"].headers("POST", ATTEST, body)
    assert (await asked("POST", server.url, ATTEST, body + b" ", headers=signed))[0] == 401
    as_other = {**signed, NODE: "n2"}
    assert (await asked("POST", server.url, ATTEST, body, headers=as_other))[0] == 401


def with_candidate(**more: Any) -> bytes:
    """Return what a node could say that has a candidate beside its bundle."""
    said = msgspec.to_builtins(attestation(bundle="b" * 64))
    said["running"]["candidate"] = {"wanted": {"bundle": "c" * 64, "share": 10, "salt": "ab", **more}}
    return msgspec.json.encode(said)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[" * 100_000, 400),
        (b'{"sequence": 1}', 400),
        (b"\xff", 400),
        (msgspec.json.encode({**msgspec.to_builtins(attestation()), "more": 1}), 400),
        (msgspec.json.encode({**msgspec.to_builtins(attestation()), "sequence": 2**53}), 400),
        (msgspec.json.encode({**msgspec.to_builtins(attestation()), "error": "x" * 1001}), 400),
        (with_candidate(bundle="c" * 63), 400),
        (with_candidate(share=0), 400),
        (with_candidate(share=100), 400),
        (with_candidate(salt="AB"), 400),
        (with_candidate(salt="a" * 65), 400),
        (with_candidate(more=1), 400),
        (b" " * (1 << 21), 413),
    ],
)
async def test_what_is_no_attestation_is_refused_and_harms_nothing(server: Server, body: bytes, status: int) -> None:
    assert (await asked("POST", server.url, ATTEST, body, node=server.nodes["n1"]))[0] == status
    assert (await asked("POST", server.url, ATTEST, attestation(), node=server.nodes["n1"]))[0] == 200


async def test_a_body_without_end_is_cut_off(server: Server) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1 << 16
            yield b"[" * (1 << 16)

    async with aiohttp.ClientSession() as client:
        headers = server.nodes["n1"].headers("POST", ATTEST, b"")
        try:
            async with client.post(server.url + ATTEST, data=endless(), headers=headers) as response:
                assert response.status == 413
        except aiohttp.ClientOSError:  # it may be cut off while it is still being sent
            pass
    assert sent < 64 << 20
    assert (await asked("POST", server.url, ATTEST, attestation(), node=server.nodes["n1"]))[0] == 200


async def test_a_node_that_is_not_on_the_list_gets_no_bundle_and_is_an_event_once(server: Server) -> None:
    node: NodeKey = server.nodes["n2"]
    for sequence in (1, 2):
        status, body = await asked("POST", server.url, ATTEST, attestation(sequence, package="d" * 64), node=node)
        assert (status, body["error"]["code"]) == (403, "node_refused")
        assert f"`checkstream control allow shop package {'d' * 64}`" in body["error"]["message"]
    events = (await asked("GET", server.url, "/v1/events?fleet=shop", person="gus"))[1]["events"]
    assert [(each["kind"], each["node"]) for each in events] == [("node_refused", "n2")]
    shown = (await asked("GET", server.url, "/v1/fleets/shop", person="gus"))[1]["nodes"][1]
    assert (shown["refused"], "is not on the list" in shown["why"]) == (True, True)
    assert (await asked("POST", server.url, ATTEST, attestation(3), node=node))[0] == 200


async def test_the_api_describes_itself_and_answers_as_it_says(server: Server) -> None:
    status, told = await asked("GET", server.url, "/openapi.json")
    assert status == 200
    openapi_spec_validator.validate(told)
    assert told["info"]["title"] == "checkstream control API"
    await asked("POST", server.url, ATTEST, attestation(), node=server.nodes["n1"])
    for path, described in told["paths"].items():
        if "get" in described and "{stream}" not in path and "draft" not in path:  # there is none
            more = "?fleet=shop" if path == "/v1/rollouts" else ""
            status, body = await asked("GET", server.url, path.replace("{fleet}", "shop") + more, person="gus")
            assert status == 200
            schema = described["get"]["responses"]["200"]["content"]["application/json"]["schema"]
            jsonschema.validate(body, {**schema, "components": told["components"]})


def rings(*before: dict[str, Any]) -> dict[str, Any]:
    """Return a fleet with these rings before that of all."""
    fleet = {"bundle": "retail", "nodes": {"n1": "keys/n1.pub"}, "rings": [*before, {"name": "all", "percent": 100}]}
    return {"fleets": {"shop": fleet}}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"listen": "0.0.0.0:8100"}, "where keys would be sent in the clear"),
        ({"store": "mysql://x"}, "is no store"),
        ({"store": "sqlite:"}, "names no file"),
        ({"store": "sqlite:x.db", "password": {"env": "HOME"}}, "has no password"),
        ({"fleets": {"shop": {"bundle": "retail", "nodes": {"n1": "keys/none.pub"}}}}, "can't be read"),
        ({"fleets": {"a": {"bundle": "b", "nodes": {"n": "x"}}, "c": {"bundle": "b", "nodes": {"n": "x"}}}}, "in one"),
        ({"fleets": {"shop": {"bundle": "retail", "rings": [{"name": "all", "percent": 50}]}}}, "must have `percent"),
        (rings({"name": "a", "callers": 10}, {"name": "b", "percent": 50}), "ring `b` has no `callers`"),
        (rings({"name": "a", "callers": 10, "percent": 10}), "which are of every node; remove `nodes` and `percent`"),
        (rings({"name": "a", "callers": 10, "nodes": ["n1"]}), "which are of every node; remove `nodes` and `percent`"),
        (rings({"name": "a", "callers": 50}, {"name": "b", "callers": 50}), "`callers` must grow from ring to ring"),
        (rings({"name": "a", "callers": 50}, {"name": "b", "callers": 10}), "`callers` must grow from ring to ring"),
        (rings({"name": "a", "callers": 0}), "callers"),
        (rings({"name": "a", "callers": 100}), "callers"),
        (rings({"name": "a", "callers": "many"}), "callers"),
        ({"people": {"ann": {"role": "king", "key_sha256": "a" * 64}}}, "role"),
        ({"people": {"ann": {"role": "auditor"}}}, "either `key` or `key_sha256`"),
        ({"people": {n: {"role": "auditor", "key_sha256": "a" * 64} for n in "ab"}}, "key of somebody else"),
        ({"fleet": {}}, "fleet"),
    ],
)
async def test_a_file_that_is_wrong_says_what_to_do(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    made = Server(tmp_path)
    made.written |= change
    with pytest.raises(ConfigError, match=says):
        async with serve_control(load_control(made.config_file()), open_log("json", io.BytesIO())):
            pytest.fail("it serves")


async def test_who_asks_for_bundles_is_not_told_where_a_store_is_that_fails(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.written["repository"] = "public"
    async with server.serving():
        with sqlite3.connect(tmp_path / "var" / "control.db") as store:
            store.execute("drop table nodes")
        status, body = await asked("GET", server.url, "/bundles/timestamp.json", node=server.nodes["n1"])
    assert (status, body["error"]["code"]) == (503, "store_unavailable")
    assert "operator" in body["error"]["message"]
    assert "control.db" not in body["error"]["message"]
    store.close()


async def test_a_node_of_an_older_version_is_told_to_be_upgraded(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.written["repository"] = "public"
    node, path = server.nodes["n1"], "/bundles/timestamp.json"
    async with server.serving():
        assert (await asked("POST", server.url, "/v1/attestations", attestation(1), node=node))[0] == 200
        status, body = await asked("GET", server.url, path, headers=node.headers("GET", path, b""))
        newer = await asked("GET", server.url, path, node=node, sequence=1)
    assert (status, body["error"]["code"]) == (403, "node_refused")
    assert body["error"]["message"].endswith("; upgrade it")
    assert newer[0] == 404, "it may ask, and nothing is published"
