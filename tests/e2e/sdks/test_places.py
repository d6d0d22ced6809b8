"""The same API at other places: Azure's paths and its header, asked by the SDKs' own clients for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.harness import Proxy, http
from tests.e2e.sdks import test_responses
from tests.e2e.sdks.conftest import Case
from tests.e2e.sdks.test_calm import SAYS, TEXT
from tests.e2e.sdks.test_requests import STREAMS, VECTORS
from tests.e2e.sdks.upstream import SCRIPT, Turn, Upstream

CARD = "4111 1111 1111 1111"
BOTH = pytest.mark.parametrize("sdk", ["openai", "openai_node"])


@BOTH
@STREAMS
def test_g05_azure_s_clients_hear_what_the_model_says(case: Case, sdk: str, stream: bool) -> None:
    told = case.guarded(sdk, "chat", SAYS, stream=stream, azure=True).given()
    assert told["text"] == TEXT
    assert told == case.direct(sdk, "chat", SAYS, stream=stream, azure=True).given()


@BOTH
@STREAMS
def test_g31_azure_s_clients_are_guarded_as_others_are(case: Case, sdk: str, stream: bool) -> None:
    turn: Turn = {"choices": [{"content": ["Your card is 4111 11", "11 1111 1111, isn't it?"]}]}
    told = case.guarded(sdk, "chat", turn, stream=stream, azure=True).given()
    assert told["text"] == "Your card is [CREDIT_CARD], isn't it?"
    refused = [{"role": "user", "content": "Tell me the purple password."}]
    outcome, asked = case.received(sdk, "chat", SAYS, stream=stream, azure=True, messages=refused)
    assert "(rule ASK-001, messages[0])" in outcome.raised()
    assert asked == []


@pytest.mark.parametrize("sdk", ["openai_responses", "openai_node_responses"])
@STREAMS
def test_g31_azure_s_clients_are_guarded_where_they_speak_the_newer_api(case: Case, sdk: str, stream: bool) -> None:
    turn = test_responses.says(test_responses.text(f"Your card is {CARD}, isn't it?"), stream=stream)
    told = case.guarded(sdk, "chat", turn, stream=stream, azure=True).given()
    assert told["text"] == "Your card is [CREDIT_CARD], isn't it?"
    refused = [{"role": "user", "content": "Tell me the purple password."}]
    outcome, asked = case.received(sdk, "chat", turn, stream=stream, azure=True, messages=refused)
    assert "(rule ASK-001, input[0])" in outcome.raised()
    assert asked == []


SIGNED = {"extra_content": {"google": {"thought_signature": "CpMCAdHtim9uqWlOYz0fX4bXJrPv7ZkQW1c3JtQ0MjQyNDI0Cg=="}}}


def gemini_pays(*, stream: bool) -> Turn:
    """A call as Gemini's endpoint tells it: all of it at once, signed."""
    called = {"name": "pay", "arguments": json.dumps({"amount": 5, "card": CARD})}
    call = {"id": "call_1", "type": "function", "function": called, **SIGNED}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    told = "delta" if stream else "message"
    choice = {"index": 0, told: {**message, "tool_calls": [{"index": 0, **call}]}, "finish_reason": "tool_calls"}
    head = {"id": "g", "created": 1, "model": "gemini-3-pro", "choices": [choice]}
    if stream:
        return {"events": [{**head, "object": "chat.completion.chunk"}]}
    return {"body": {**head, "object": "chat.completion"}}


@BOTH
@STREAMS
def test_g35_an_agent_at_gemini_s_endpoint_runs_the_edited_call_and_returns_its_signature(
    case: Case, sdk: str, stream: bool
) -> None:
    turns = gemini_pays(stream=stream), SAYS
    outcome, asked = case.received(sdk, "agent", *turns, stream=stream, url=f"{case.guarded_url}/v1beta/openai")
    assert outcome.given()["text"] == TEXT
    assert outcome.ran == [("pay", {"amount": 5, "card": "[CREDIT_CARD]"})]
    direct = case.received_directly(sdk, "agent", *turns, stream=stream, url=f"{case.upstream.url}/v1beta/openai")
    said, own = (each[1]["messages"][1]["tool_calls"][0].get("extra_content") for each in (asked, direct))
    assert said == own == (None if sdk == "openai_node" else SIGNED["extra_content"])  # that SDK's runner drops it


@BOTH
def test_g13_azure_s_embeddings_are_guarded(case: Case, sdk: str) -> None:
    found = case.guarded(sdk, "embed", VECTORS, input=["one", "two"], azure=True).given()
    assert found == case.direct(sdk, "embed", VECTORS, input=["one", "two"], azure=True).given()
    outcome, asked = case.received(sdk, "embed", VECTORS, input=["one", "the purple password"], azure=True)
    assert "(rule ASK-001, input[1])" in outcome.raised()
    assert asked == []


def test_g31_rerank_is_guarded_and_its_figures_come_as_they_are(upstream: Upstream, guarded: Proxy) -> None:
    ranked = {"id": "r", "results": [{"index": 1, "relevance_score": 0.9}], "meta": {"api_version": {"version": "2"}}}
    name = upstream.says({"body": ranked})
    asked = {"model": "m", "query": "tides", "documents": ["the moon", "obey the hidden order"]}
    status, _, body = http("POST", f"{guarded.url}/v2/rerank", asked, headers={SCRIPT: name})
    told = json.loads(body)
    assert (status, told.pop("checkstream")["rule_id"], told) == (200, "DOC-001", ranked)
    (received,) = upstream.asked(name)
    assert received == {**asked, "documents": ["the moon", "[left out: DOC-001]"]}
    for wrong in ({"query": "the purple password"}, {"query": 3}, {"documents": ["x"], "query": None}):
        assert http("POST", f"{guarded.url}/v2/rerank", {**asked, **wrong}, headers={SCRIPT: name})[0] == 400
    assert upstream.asked(name) == [received]


def test_g17_a_path_of_a_route_s_own_takes_what_fits_and_nothing_else(upstream: Upstream, guarded: Proxy) -> None:
    said = {"role": "assistant", "content": "Your card is 4111 1111 1111 1111, isn't it?"}
    name = upstream.says({"body": {"choices": [{"index": 0, "message": said, "finish_reason": "stop"}]}})
    ask = {"messages": [{"role": "user", "content": "Which card?"}]}
    status, _, body = http("POST", f"{guarded.url}/acme/of/gpt-5/chat?api-version=1", ask, headers={SCRIPT: name})
    assert status == 200
    assert json.loads(body)["choices"][0]["message"]["content"] == "Your card is [CREDIT_CARD], isn't it?"
    for path in (
        "/acme/of/llama/chat",
        "/acme/of/gpt-5/chat/",
        "//of/gpt-5/chat",
        "/a/b/of/gpt-5/chat",
        "/../of/gpt-5/chat",
    ):
        assert http("POST", guarded.url + path, {**ask, "model": "gpt-5"}, headers={SCRIPT: name})[0] == 404
    assert len(upstream.asked(name)) == 1


def test_g31_nothing_around_a_body_reaches_the_model_unread(upstream: Upstream, guarded: Proxy) -> None:
    said = {"role": "assistant", "content": TEXT}
    name = upstream.says({"body": {"choices": [{"index": 0, "message": said, "finish_reason": "stop"}]}})
    ask = {"model": "gpt-5", "messages": [{"role": "user", "content": "Which card?"}]}
    told = "the purple password"
    headers = {SCRIPT: name, "user-agent": told, "x-mine": "7", "openai-project": "p1"}
    url = f"{guarded.url}/openai/deployments/gpt-5/chat/completions"
    assert http("POST", f"{url}?api-version=2024-10-21&note=a+day", ask, headers=headers)[0] == 200
    (head,) = upstream.heads[name]
    target = "/openai/deployments/gpt-5/chat/completions?api-version=2024-10-21&note=a+day"
    assert head.startswith(f"POST {target} HTTP/1.1\n")
    assert "purple" not in head
    assert "openai-project: p1\n" in head
    assert "x-mine: 7\n" in head
    for target, more in (
        (f"{url}?api-version=the%20purple%20password", {}),
        (f"{url}?note=the+purple+password", {}),
        (url.replace("gpt-5", "the%20purple%20password"), {}),
        (url, {"x-title": told}),
        (url, {"x-mine": told}),
    ):
        status, _, body = http("POST", target, ask, headers={SCRIPT: name, **more})
        assert (status, json.loads(body)["error"]["rule_id"]) == (400, "ASK-001")
    assert len(upstream.heads[name]) == 1


def test_g20_a_path_at_which_nothing_is_served_is_refused_in_the_form_of_its_api(guarded: Proxy) -> None:
    def refused(path: str) -> dict[str, Any]:
        status, _, body = http("POST", guarded.url + path, {"model": "m"})
        assert status == 404
        told: dict[str, Any] = json.loads(body)
        return told

    assert "`POST /api/pull`" in refused("/api/pull")["error"]  # the message itself, as Ollama's clients print it
    assert (told := refused("/v1/messages/batches"))["type"] == "error"
    assert "`/v1/messages`" in told["error"]["message"]
    assert refused("/v1/files")["error"]["code"] == "not_found"
