"""A request that a policy holds back goes through when it is sent again with its token: once, and as it was."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from openai import ConflictError, OpenAI

from tests.e2e.harness import Llm, Proxy, http

POLICY = """
pack: {name: e2e, version: 1.0.0}
policies:
  - name: confirm_transfers
    id: PAY-001
    stage: [ingress]
    phrases: [transfer all the money]
    conditions: ['!has(context.role) || context.role != "treasurer"']
    actions: [{type: require_confirmation, message: this looks like a transfer}]
"""
ASK = {"model": "clean", "messages": [{"role": "user", "content": "Please transfer all the money."}]}


@pytest.fixture
def proxy(start: Callable[..., Proxy]) -> Proxy:
    return start(POLICY)


def ask(proxy: Proxy, body: object = ASK, **headers: str) -> tuple[int, dict[str, str], bytes]:
    named = {f"x-checkstream-{name}": value for name, value in headers.items()}
    return http("POST", f"{proxy.url}/v1/chat/completions", body, headers=named)


def test_a_confirmed_request_goes_through_once_without_its_token(proxy: Proxy, llm: Llm) -> None:
    before = len(llm.requests("clean"))
    status, headers, raw = ask(proxy)
    error = json.loads(raw)["error"]
    assert (status, error["type"], error["rule_id"]) == (409, "request_needs_confirmation", "PAY-001")
    assert headers["x-should-retry"] == "false"
    token = headers["x-checkstream-confirm"]
    assert error["confirm"] == token
    assert len(llm.requests("clean")) == before, "the model has seen nothing"

    status, headers, _ = ask(proxy, confirm=token)
    assert status == 200
    record = proxy.record(headers["x-checkstream-stream"])["body"]["record"]
    assert (record["action"], record["confirmed"]) == ("allow", ["PAY-001"])
    assert [verdict["rule_id"] for verdict in record["verdicts"]] == ["PAY-001"]
    (sent,) = llm.requests("clean")[before:]
    assert not [name for name, _ in sent["headers"] if name.lower().startswith("x-checkstream")]
    status, _, raw = ask(proxy, confirm=token)
    assert status == 409
    assert "used before" in json.loads(raw)["error"]["message"]


def test_a_token_is_good_for_the_same_request_only(proxy: Proxy) -> None:
    token = ask(proxy)[1]["x-checkstream-confirm"]
    for body, headers in (
        (ASK | {"temperature": 1}, {}),
        (ASK | {"stream": True}, {}),
        (ASK, {"context": '{"a": 1}'}),
    ):
        status, _, raw = ask(proxy, body, confirm=token, **headers)
        assert status == 409
        assert "another request" in json.loads(raw)["error"]["message"]
    for altered in (token[:-1], "A" + token[1:] if token[0] != "A" else "B" + token[1:], "x"):
        assert ask(proxy, confirm=altered)[0] == 409
    assert ask(proxy, confirm=token)[0] == 200


def test_what_the_header_says_is_known_to_conditions_and_read_strictly(proxy: Proxy) -> None:
    assert ask(proxy, context='{"role": "treasurer"}')[0] == 200
    assert ask(proxy, context='{"role": "intern"}')[0] == 409
    assert ask(proxy, ASK | {"checkstream": {"context": {"role": "treasurer"}}})[0] == 200
    for context in ('{"role": "intern", "role": "treasurer"}', "[]", "{", '{"a": "' + "x" * 8192 + '"}'):
        status, _, raw = ask(proxy, context=context)
        assert (status, json.loads(raw)["error"]["type"]) == (400, "invalid_request_error")
    both = ASK | {"checkstream": {"context": {"role": "treasurer"}}}
    assert ask(proxy, both, context='{"role": "treasurer"}')[0] == 400


def test_g20_a_wanted_confirmation_is_the_sdks_conflict_and_is_not_retried(proxy: Proxy, llm: Llm) -> None:
    before = len(llm.requests("clean"))
    client = OpenAI(base_url=f"{proxy.url}/v1", api_key="k", max_retries=3)
    with pytest.raises(ConflictError) as raised:
        client.chat.completions.create(
            model="clean", messages=[{"role": "user", "content": "transfer all the money"}], stream=True
        )
    token = raised.value.response.headers["x-checkstream-confirm"]
    answer = client.chat.completions.create(
        model="clean",
        messages=[{"role": "user", "content": "transfer all the money"}],
        stream=True,
        extra_headers={"x-checkstream-confirm": token},
    )
    assert [chunk for chunk in answer if chunk.choices]
    assert len(llm.requests("clean")) == before + 1
