"""Bedrock by its wire format: the real AWS client against a server that speaks it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
import pytest_asyncio
from aiohttp import web

from checkstream.app.evidence import evidence_embedder
from checkstream.errors import ChatError, GateError, ScoringError
from checkstream.gate.bedrock import TITAN, BedrockChat, TitanEmbedder, client
from checkstream.gate.opening import Connections
from checkstream.grounding.embedded import EmbeddedVerifier
from tests.gate_models import DOCUMENTS, fill, settings

MODEL = "anthropic.claude-3-sonnet-20240229-v1:0"


class Bedrock:
    """What the server was asked, and what it says."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.status = 200
        self.answer: object = {
            "output": {"message": {"role": "assistant", "content": [{"text": "Within "}, {"text": "30 days."}]}},
            "stopReason": "end_turn",
            "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
            "metrics": {"latencyMs": 1},
        }

    async def respond(self, request: web.Request) -> web.Response:
        assert request.headers["authorization"].startswith("AWS4-HMAC-SHA256")
        self.asked.append((unquote(request.rel_url.raw_path), await request.json()))
        return web.json_response(self.answer, status=self.status)


@pytest_asyncio.fixture
async def bedrock(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bedrock]:
    served = Bedrock()
    app = web.Application()
    app.router.add_post("/{path:.*}", served.respond)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    try:
        yield served
    finally:
        await runner.cleanup()


async def test_a_model_is_asked_by_converse(bedrock: Bedrock) -> None:
    reply = await BedrockChat(client(5), MODEL).ask("How long?", system="You are a shop.", max_tokens=64)
    assert reply.text == "Within 30 days."
    ((path, body),) = bedrock.asked
    assert path == f"/model/{MODEL}/converse"
    assert body == {
        "messages": [{"role": "user", "content": [{"text": "How long?"}]}],
        "system": [{"text": "You are a shop."}],
        "inferenceConfig": {"maxTokens": 64, "temperature": 0.0},
    }


async def test_a_refusal_is_told_and_nothing_is_tried_again(bedrock: Bedrock) -> None:
    user = "arn:aws:iam::123456789012:user/svc"
    bedrock.status, bedrock.answer = 403, {"__type": "AccessDeniedException", "message": f"User: {user} has no rights"}
    with pytest.raises(ChatError, match="bedrock refused") as refused:
        await BedrockChat(client(5), MODEL).ask("How long?", max_tokens=64)
    assert refused.value.reason == "refused"
    assert "AccessDeniedException" in str(refused.value)
    assert user not in str(refused.value)  # callers read it too
    assert len(bedrock.asked) == 1


@pytest.mark.parametrize("answer", [{}, {"output": {}}, {"output": {"message": {"role": "assistant"}}}])
async def test_an_answer_of_another_form_is_told(bedrock: Bedrock, answer: object) -> None:
    bedrock.answer = answer
    with pytest.raises(ChatError, match="of another form"):
        await BedrockChat(client(5), MODEL).ask("How long?", max_tokens=64)


async def test_titan_vectors_have_length_1_and_nothing_has_none(bedrock: Bedrock) -> None:
    bedrock.answer = {"embedding": [2.0, *[0.0] * 1023], "inputTextTokenCount": 3}
    found = await TitanEmbedder(client(5)).embed(["refunds", "  "])
    assert found.shape == (2, 1024)
    assert found.dtype == np.float32
    assert [float(np.linalg.norm(row)) for row in found] == [1.0, 0.0]
    ((path, body),) = bedrock.asked
    assert path == f"/model/{TITAN}/invoke"
    assert body == {"inputText": "refunds", "dimensions": 1024, "normalize": True}


async def test_a_gate_searches_with_titan_where_its_configuration_says_so(bedrock: Bedrock, tmp_path: Path) -> None:
    bedrock.answer = {"embedding": [1.0, *[0.0] * 1023], "inputTextTokenCount": 3}
    await fill(str(tmp_path / "evidence.db"), evidence_embedder("titan"))
    asked = settings("http://127.0.0.1:1", evidence={"store": "sqlite:evidence.db", "embedder": "titan"})
    async with Connections(tmp_path, {}, evidence_embedder, EmbeddedVerifier).open(asked) as opened:
        _, found = await opened.world.search("anything")
    assert {passage.source for passage in found} == set(DOCUMENTS)
    assert bedrock.asked[-1] == (
        f"/model/{TITAN}/invoke",
        {"inputText": "anything", "dimensions": 1024, "normalize": True},
    )


@pytest.mark.parametrize(
    "answer", [{}, {"embedding": "x"}, {"embedding": [1.0]}, {"embedding": [0.0] * 1024}, {"embedding": [1e300] * 1024}]
)
async def test_a_vector_of_another_form_is_refused(bedrock: Bedrock, answer: object) -> None:
    bedrock.answer = answer
    with pytest.raises(ScoringError):
        await TitanEmbedder(client(5)).embed(["refunds"])
    assert json.dumps(bedrock.asked)


def test_a_missing_region_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    with pytest.raises(GateError, match="set AWS_DEFAULT_REGION"):
        client(5)
