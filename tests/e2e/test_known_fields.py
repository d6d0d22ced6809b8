"""Whether the record and the log of a running proxy call fields unknown that every server sends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conftest import POLICY
from tests.e2e.harness import Llm, Proxy, config, http, running

SAID = {"choices": [{"content": "hello to you"}]}
PLACES: list[dict[str, Any]] = [
    {"name": "chat", "match": {"path": "/v1/chat/completions"}},
    {"name": "messages", "match": {"path": "/v1/messages"}},
]
STRICT: dict[str, Any] = {
    "name": "strict",
    "match": {"path": "/openai/v1/chat/completions"},
    "unknown_fields": "refuse",
}


@pytest.fixture
def proxy(llm: Llm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("known")
    (folder / "policy.yaml").write_text(POLICY)
    strict = {**STRICT, "known_fields": ["provider"]}
    with running(Proxy(config(llm.url, folder, ["policy.yaml"], places=[*PLACES, strict]), folder)) as started:
        yield started


def body(model: str, *, stream: bool) -> dict[str, Any]:
    return {"model": model, "max_tokens": 9, "stream": stream, "messages": [{"role": "user", "content": "hi"}]}


def test_g37_fields_that_servers_are_known_to_send_are_not_told_as_unknown(llm: Llm, proxy: Proxy) -> None:
    failed = llm.put("calm-error", {"error": {"status": 429, "message": "slow down: you ask too often"}})
    said = llm.put("calm-said", SAID)
    for place in PLACES:
        for model, stream in ((failed, False), (failed, True), (said, True), (said, False)):
            http("POST", proxy.url + place["match"]["path"], body(model, stream=stream))
    scanned = [row["body"]["record"]["scanned"] for row in proxy.records() if "record" in row["body"]]
    assert len(scanned) == 8
    assert not [name for names in scanned for name in names if name.count(":") > 1]
    assert not [row for row in proxy.logs("request.ended") if "unknown_fields" in row]
    odd = llm.put("odd", SAID | {"insert": [{"after_events": 2, "data": json.dumps({"usage": {"memo": "hi there"}})}]})
    _, told, _ = http("POST", f"{proxy.url}/v1/chat/completions", body(odd, stream=True))
    record = proxy.record(told["x-checkstream-stream"])["body"]["record"]
    assert [name for name in record["scanned"] if name.count(":") > 1] == ["midstream:extra:usage.memo"]


def test_g31_a_strict_route_takes_the_fields_that_its_operator_has_named(llm: Llm, proxy: Proxy) -> None:
    asked, url = body(llm.put("strict", SAID), stream=False), proxy.url + STRICT["match"]["path"]
    assert http("POST", url, {**asked, "provider": {"sort": "price"}})[0] == 200
    status, _, refusal = http("POST", url, {**asked, "providers": {"sort": "price"}})
    assert status == 400
    assert "`providers`" in json.loads(refusal)["error"]["message"]
