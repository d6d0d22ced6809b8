"""What evidence says, in the reply: the real proxy, the real openai SDK, documents that an answer contradicts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.e2e.conftest import POLICY
from tests.e2e.harness import Llm, Proxy, config, http, running, until

RULES = {"id": "rules", "title": "Returns", "text": "Goods can be returned within 30 days of delivery."}
WRONG = "Goods can be returned within 60 days of delivery."
SOUND = "Goods can be returned within 30 days of delivery."
ASK: Any = [{"role": "user", "content": "How long can goods be returned?"}]
DOCUMENTS: Any = {"checkstream": {"documents": [RULES]}}
VERIFY: Any = {"checkstream": {"documents": [RULES], "verify": True}}
PLAIN = {"id", "object", "created", "model", "choices", "usage", "system_fingerprint"}
INLINE: dict[str, Any] = {"sample": 0, "inline": True}


@pytest.fixture(autouse=True)
def _answers(llm: Llm) -> None:
    llm.put("wrong", {"choices": [{"content": WRONG}], "split": {"by": "chars", "size": 5}})
    llm.put("sound", {"choices": [{"content": SOUND}]})


def client(proxy: Proxy, key: str = "k") -> OpenAI:
    return OpenAI(base_url=f"{proxy.url}/v1", api_key=key, max_retries=2)


def test_the_sdk_reads_a_whole_answer_with_the_result(start: Callable[..., Proxy]) -> None:
    with client(start(grounding=INLINE)) as sdk:
        answer = sdk.chat.completions.create(model="wrong", messages=ASK, extra_body=DOCUMENTS)
        assert answer.choices[0].message.content == WRONG
        found: Any = answer.model_extra
        assert found["risk"]["signals"]["rag_contradiction"] is True
        (claim,) = found["checkstream"]["claims"]
        assert claim["verdict"] == "contradicted"
        assert claim["evidence"][0] == {**claim["evidence"][0], "id": "rules", "source": "Returns"}
        assert "60" in claim["reason"]
        sound: Any = sdk.chat.completions.create(model="sound", messages=ASK, extra_body=DOCUMENTS).model_extra
        assert sound["risk"]["risk_score"] == 0
        old: Any = sdk.completions.create(model="wrong", prompt="How long?", extra_body=DOCUMENTS).model_extra
        assert old["risk"]["risk_score"] == 35


def test_a_reply_is_read_by_the_model_where_that_is_asked_for(llm: Llm, tmp_path: Path) -> None:
    llm.put("other", {"choices": [{"content": "You may send goods back within 30 days of delivery."}]})
    (tmp_path / "policy.yaml").write_text(POLICY)
    settings = config(llm.url, tmp_path, ["policy.yaml"], grounding={**INLINE, "inline_ms": 30_000})
    with running(Proxy({**settings, "verifier": {"kind": "reader"}}, tmp_path)) as proxy, client(proxy) as sdk:
        told: Any = sdk.chat.completions.create(model="other", messages=ASK, extra_body=DOCUMENTS).model_extra
        (claim,) = told["checkstream"]["claims"]
        wrong: Any = sdk.chat.completions.create(model="wrong", messages=ASK, extra_body=DOCUMENTS).model_extra
        assert wrong["checkstream"]["claims"][0]["verdict"] == "contradicted"
    assert "read together, the evidence" in claim["reason"]


def test_the_sdk_reads_a_stream_whose_last_event_is_the_result(start: Callable[..., Proxy]) -> None:
    with client(start(grounding=INLINE)) as sdk:
        options: Any = {"include_usage": True}
        with sdk.chat.completions.create(
            model="wrong", messages=ASK, stream=True, stream_options=options, extra_body=DOCUMENTS
        ) as stream:
            *before, last = list(stream)
        assert "".join(choice.delta.content or "" for chunk in before for choice in chunk.choices) == WRONG
        assert before[-1].usage is not None
        assert not last.choices[0].delta.content
        found: Any = last.model_extra
        assert found["risk"]["risk_score"] == 35
        assert last.id == before[0].id
        with sdk.completions.create(model="wrong", prompt="How long?", stream=True, extra_body=DOCUMENTS) as old:
            assert [chunk.model_extra or {} for chunk in old][-1].keys() >= {"risk", "checkstream"}


def test_a_request_switches_it_on_and_off_and_the_model_sees_none_of_it(start: Callable[..., Proxy], llm: Llm) -> None:
    proxy = start()
    ask = {"model": "wrong", "messages": ASK}
    url = f"{proxy.url}/v1/chat/completions"
    for body, keys in (
        ({}, set()),
        (DOCUMENTS, set()),
        (VERIFY, {"risk", "checkstream"}),
        ({**DOCUMENTS, "enable_verification": True}, {"verification"}),
        ({**VERIFY, "enable_verification": True}, {"risk", "checkstream", "verification"}),
        ({**VERIFY, "enable_verification": False}, {"risk", "checkstream"}),
    ):
        status, _, reply = http("POST", url, {**ask, **body})
        assert status == 200
        assert json.loads(reply).keys() - PLAIN == keys, body
        forwarded = json.loads(json.dumps(llm.requests("wrong")[-1]))
        assert "enable_verification" not in json.dumps(forwarded)
        assert "Returns" not in json.dumps(forwarded)


def test_an_answer_of_high_risk_is_blocked_whole_and_recorded(start: Callable[..., Proxy]) -> None:
    proxy = start(grounding={**INLINE, "block": 35})
    with client(proxy) as sdk:
        with pytest.raises(openai.InternalServerError) as raised:
            sdk.chat.completions.create(
                model="wrong", messages=ASK, extra_body={"checkstream": {"documents": [RULES], "verify": False}}
            )
        error = raised.value
        assert error.status_code == 502
        assert error.body == {**dict(error.body or {}), "code": "response_blocked"}  # type: ignore[call-overload]
        assert "its risk is 35 of 100" in error.message
        assert "60 days" not in str(error.body)
        assert error.response.headers["x-checkstream-action"] == "stop"
        record = proxy.record(error.response.headers["x-checkstream-stream"])["body"]["record"]
        assert (record["outcome"], record["action"]) == ("stopped", "stop")
        assert float(record["risks"]["watchdog"]) == 35.0
        sound = sdk.chat.completions.create(model="sound", messages=ASK, extra_body=DOCUMENTS)
        assert sound.choices[0].message.content == SOUND


def test_callers_without_a_key_switch_nothing_on(
    start: Callable[..., Proxy], llm: Llm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APP_KEY", "the-key")
    proxy = start(server={"callers": [{"name": "app", "key": {"env": "APP_KEY"}}]})
    seen = len(llm.requests("wrong"))
    with client(proxy, "another") as sdk, pytest.raises(openai.AuthenticationError):
        sdk.chat.completions.create(model="wrong", messages=ASK, extra_body=VERIFY)
    assert len(llm.requests("wrong")) == seen
    with client(proxy, "the-key") as sdk:
        found: Any = sdk.chat.completions.create(model="wrong", messages=ASK, extra_body=VERIFY).model_extra
    assert found["risk"]["risk_score"] == 35


@pytest.mark.parametrize(
    "documents",
    [
        {"text": "no list"},
        [7],
        [None],
        [{"text": 1}],
        [{"text": ["a"]}],
        "text",
        [{"id": {}, "text": "a"}],
    ],
)
def test_documents_of_the_wrong_shape_are_refused_before_the_model_is_asked(proxy: Proxy, documents: Any) -> None:
    body = {"model": "wrong", "messages": ASK, "checkstream": {"documents": documents, "verify": True}}
    status, _, reply = http("POST", f"{proxy.url}/v1/chat/completions", body)
    assert (status, json.loads(reply)["error"]["type"]) == (400, "invalid_request_error")


def test_g22_a_huge_answer_and_a_huge_document_keep_nobody_else_waiting(start: Callable[..., Proxy], llm: Llm) -> None:
    claims = "".join(f"The tower number {number} is {number} metres high. " for number in range(5_000))
    llm.put("huge", {"choices": [{"content": claims}]})
    proxy = start(grounding={**INLINE, "profiles": ["watchdog", "rag", "budget"], "inline_ms": 300}, chat_only=True)
    body = {
        "model": "huge",
        "messages": ASK,
        "checkstream": {"documents": [{"text": claims[:150_000]}, {"text": ""}, {"title": "t"}]},
    }
    status, _, reply = http("POST", f"{proxy.url}/v1/chat/completions", body)
    assert status == 200
    read = json.loads(reply)
    assert {"risk", "verification", "hallucination_check"} <= read.keys()
    assert read["choices"][0]["message"]["content"] == claims

    def sound() -> bool:
        small = {"model": "sound", "messages": ASK, **DOCUMENTS}
        found = json.loads(http("POST", f"{proxy.url}/v1/chat/completions", small)[2])
        assert found["choices"][0]["message"]["content"] == SOUND
        return bool(found["risk"]) and found["risk"]["risk_score"] == 0

    until(sound, what="the thread to be free again", timeout_s=60)
