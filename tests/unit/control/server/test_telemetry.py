"""A real control server over real sockets: deliveries of nodes, and what people ask of them."""

from __future__ import annotations

import hashlib
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml

from checkstream.app.control import serve_control
from checkstream.audit.chain import read
from checkstream.config import load_control
from checkstream.control.identity import NodeKey
from checkstream.control.telemetry.delivery import MOST_BYTES, At, Delivery, Run
from checkstream.control.telemetry.packing import packed
from checkstream.control.telemetry.privacy import Privacy, run_of
from checkstream.telemetry.logs import open_log
from tests.controlled import asked, key_of, node_key
from tests.records import CHAIN, KEY, head, seal_all, start, stream

DELIVER = "/v1/telemetry"


class Server:
    """A control server with the nodes `n1` and `n2`."""

    def __init__(self, folder: Path) -> None:
        self.nodes: dict[str, NodeKey] = {name: node_key(name, folder / "keys") for name in ("n1", "n2")}
        self.url = ""
        self.file = folder / "control.yaml"
        nodes = {name: f"keys/{name}.pub" for name in self.nodes}
        gus = {"role": "auditor", "key_sha256": hashlib.sha256(key_of("gus").encode()).hexdigest()}
        written = {
            "listen": "127.0.0.1:0",
            "people": {"gus": gus},
            "fleets": {"shop": {"bundle": "retail", "nodes": nodes}},
        }
        self.file.write_text(yaml.safe_dump(written), encoding="utf-8")

    async def deliver(self, body: object, node: str = "n1") -> tuple[int, Any]:
        content = body if isinstance(body, bytes) else packed(msgspec.json.encode(body))
        return await asked("POST", self.url, DELIVER, content, node=self.nodes[node])

    async def told(self, path: str) -> Any:
        status, body = await asked("GET", self.url, path, person="gus")
        assert status == 200, body
        return body


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    made = Server(tmp_path)
    async with serve_control(load_control(made.file), open_log("json", io.BytesIO())) as address:
        made.url = f"http://{address}"
        yield made


def delivery(number: int = 1, **more: Any) -> Delivery:
    sealed = seal_all([start(), stream(1), stream(2)])
    run = run_of(CHAIN, At(), [(one.line[:-1], read(one.line[:-1])) for one in sealed], Privacy())
    run = msgspec.structs.replace(run, heads=(msgspec.Raw(head(sealed[-1])[:-1]),))
    return Delivery(number=number, time_ms=4, keys=(KEY.public.raw.hex(),), runs=(run,), **more)


async def test_what_a_node_delivers_is_told_to_people_with_its_proof(server: Server) -> None:
    status, answer = await server.deliver(delivery())
    assert (status, answer["number"], answer["positions"][CHAIN]["seq"]) == (200, 1, 3)
    assert (await server.deliver(delivery()))[1] == answer, "a second time nothing happens"
    page = await server.told("/v1/exchanges?node=n1&most=1")
    assert [one["stream"] for one in page["exchanges"]] == ["s2"]
    behind = await server.told(f"/v1/exchanges?node=n1&most=1&before={page['next']}")
    assert [one["stream"] for one in behind["exchanges"]] == ["s1"]
    ((proof,),) = (await server.told("/v1/exchanges/s1")).values()
    assert (proof["signed"], proof["exchange"]["proven"], proof["record"]["kind"]) == (True, True, "stream")
    (first, _) = (await server.told("/v1/decisions?rule=PII-001"))["decisions"]
    assert (first["stream"], first["action"], first["probability"]) == ("s2", "redact", 0.93)
    rates = await server.told("/v1/rates?node=n1")
    assert (rates["exchanges"], rates["refusals"], rates["p95_held_ms"]) == (2, 0, 15.0)
    assert rates["confidences"] == {"PII-001": [2, 1.86, 1.7298]}
    (chain,) = (await server.told("/v1/chains?node=n1"))["chains"]
    assert (chain["seq"], chain["signed"], chain["flaws"]) == (3, 3, [])
    described = await server.told("/openapi.json")
    schema = described["paths"]["/v1/exchanges/{stream}"]["get"]["responses"]["200"]["content"]["application/json"][
        "schema"
    ]
    jsonschema.validate({"records": [proof]}, {**schema, "components": described["components"]})
    assert "application/zstd" in described["paths"][DELIVER]["post"]["requestBody"]["content"]


async def test_nodes_keep_apart_though_their_chains_have_one_name(server: Server) -> None:
    assert (await server.deliver(delivery()))[0] == 200
    assert (await server.deliver(delivery(), "n2"))[1]["positions"][CHAIN]["seq"] == 3
    assert len((await server.told("/v1/chains"))["chains"]) == 2


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"", 400, "Zstandard"),
        (b"{}", 400, "Zstandard"),
        (packed(b"{}"), 400, "missing required field"),
        (packed(b"[" * 100_000), 400, "no delivery"),
        (packed(b"\xff"), 400, "no delivery"),
        (packed(b" " * (MOST_BYTES + 1)), 400, "longer than"),
        (packed(msgspec.json.encode(delivery()) + b"x"), 400, "no delivery"),
        (packed(msgspec.json.encode(delivery())[:-1] + b',"more":1}'), 400, "more"),
        (delivery(2**53), 400, "number"),
        (msgspec.structs.replace(delivery(), keys=("00",)), 400, "keys"),
        (msgspec.structs.replace(delivery(), time_ms=2**49), 400, "time_ms"),
        (Delivery(number=1, time_ms=4, runs=(Run(chain="../x", after=At()),)), 400, "chain"),
        (Delivery(number=1, time_ms=4, runs=(Run(chain="c", after=At(hash="x")),)), 400, "hash"),
        (bytes(1 << 21), 413, "more than"),
    ],
)
async def test_what_is_no_delivery_is_refused_and_harms_nothing(
    server: Server, body: object, status: int, says: str
) -> None:
    got, answer = await server.deliver(body)
    assert (got, says in answer["error"]["message"]) == (status, True), answer
    assert (await server.deliver(delivery()))[0] == 200


async def test_only_nodes_deliver_and_only_people_ask(server: Server, tmp_path: Path) -> None:
    body = packed(msgspec.json.encode(delivery()))
    impostor = node_key("n1", tmp_path / "other")
    for who in ({"person": "gus"}, {"node": impostor}, {}):
        assert (await asked("POST", server.url, DELIVER, body, **who))[0] == 401
    for path in ("/v1/exchanges", "/v1/exchanges/s1", "/v1/decisions", "/v1/chains"):
        assert (await asked("GET", server.url, path))[0] == 401
        assert (await asked("GET", server.url, path, node=server.nodes["n1"]))[0] == 401
    for query in ("most=0", "most=1001", "since_ms=-1", "rule=" + "x" * 201, "before=x", "no=1", "most=1&most=2"):
        assert (await asked("GET", server.url, f"/v1/exchanges?{query}", person="gus"))[0] == 400
    assert (await asked("GET", server.url, "/v1/exchanges/none", person="gus"))[0] == 404
