"""A classifier that is late, crashes or answers garbage, in the running process, against each fail mode (G23)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.e2e.harness import Llm, Proxy, config, http, running

POLICY = """
pack: {name: late, version: 1.0.0}
policies:
  - name: toxic
    id: TOX-001
    stage: [midstream]
    classifiers: [{name: lexicon.toxicity}]
    actions: [{type: stop, message: "[withheld]"}]
  - name: mail
    id: PII-001
    stage: [midstream]
    entities: [EMAIL]
    actions: [{type: redact}]
"""
INGRESS = """
pack: {name: late, version: 1.0.0}
policies:
  - name: injection
    id: INJ-001
    stage: [ingress]
    classifiers: [{name: lexicon.injection}]
    actions: [{type: reject, message: refused}]
"""
NEVER = {"ingress_ms": 0.001, "check_ms": 0.001}
ASK: Any = [{"role": "user", "content": "hello there"}]
SAID = {"choices": [{"content": "some words first, then joe@example.com, and words to the very end of it"}]}


def _answer(proxy: Proxy, model: str, *, stream: bool) -> tuple[str, str | None, str]:
    """Return text, finish reason and stream id."""
    with OpenAI(base_url=f"{proxy.url}/v1", api_key="k", max_retries=0) as client:
        if not stream:
            raw = client.chat.completions.with_raw_response.create(model=model, messages=ASK)
            choice = raw.parse().choices[0]
            return choice.message.content or "", choice.finish_reason, raw.headers["x-checkstream-stream"]
        text, finish = "", None
        with client.chat.completions.create(model=model, messages=ASK, stream=True) as events:
            for chunk in events:
                text += chunk.choices[0].delta.content or ""
                finish = chunk.choices[0].finish_reason or finish
            return text, finish, events.response.headers["x-checkstream-stream"]


def _failed(proxy: Proxy, model: str, *, stream: bool) -> None:
    """Ask, and see that nothing unchecked comes and that the SDK, the record and the metric tell why."""
    with pytest.raises(openai.APIError) as caught:
        _answer(proxy, model, stream=stream)
    assert caught.value.code == "detector_failed"
    assert "TOX-001" in str(caught.value)
    assert "some words" not in str(caught.value)
    if isinstance(caught.value, openai.APIStatusError):
        assert caught.value.status_code == 503
        assert caught.value.response.headers["x-checkstream-action"] == "detector_failed"
        assert not stream
    record = proxy.records()[-1]["body"]["record"]
    assert (record["outcome"], record["verdicts"]) == ("detector_failed", [])
    metrics = http("GET", f"{proxy.admin_url}/metrics")[2].decode()
    assert 'checkstream_exchanges_total{outcome="detector_failed",route="chat"}' in metrics


@pytest.mark.parametrize("stream", [True, False])
def test_g23_closed_lets_no_unchecked_text_out(llm: Llm, start: Callable[..., Proxy], stream: bool) -> None:
    proxy = start(POLICY, deadline=NEVER, fail_mode="closed")
    _failed(proxy, llm.put("late", SAID), stream=stream)
    assert "deadline" in json.dumps(proxy.records()[-1]["body"]["record"]["degradations"])


@pytest.mark.parametrize("stream", [True, False])
def test_g23_open_goes_on_with_the_other_detectors(llm: Llm, start: Callable[..., Proxy], stream: bool) -> None:
    proxy = start(POLICY, deadline=NEVER, fail_mode="open")
    text, finish, stream_id = _answer(proxy, llm.put("late", SAID), stream=stream)
    assert text == "some words first, then [EMAIL], and words to the very end of it"
    assert finish == "stop"
    assert "deadline" in json.dumps(proxy.record(stream_id)["body"]["record"]["degradations"])


def test_g23_a_prompt_that_could_not_be_checked_is_not_forwarded_when_closed(
    llm: Llm, start: Callable[..., Proxy]
) -> None:
    proxy = start(INGRESS, deadline=NEVER, fail_mode="closed")
    model = llm.put("late-prompt-closed", SAID)
    with pytest.raises(openai.InternalServerError) as caught:
        _answer(proxy, model, stream=True)
    assert caught.value.status_code == 503
    assert caught.value.response.json()["rule_id"] == "INJ-001"
    assert caught.value.code == "detector_failed"
    assert not llm.requests(model)


def test_g23_a_prompt_that_could_not_be_checked_is_forwarded_when_open(llm: Llm, start: Callable[..., Proxy]) -> None:
    proxy = start(INGRESS, deadline=NEVER, fail_mode="open")
    text, _, stream_id = _answer(proxy, llm.put("late-prompt-open", SAID), stream=True)
    assert "joe@example.com" in text
    assert "deadline" in json.dumps(proxy.record(stream_id)["body"]["record"]["degradations"])


@pytest.mark.parametrize(
    ("fault", "mode"),
    [
        ("crash", "closed"),
        ("nan", "closed"),
        ("range", "closed"),
        ("shape", "closed"),
        ("hang", "closed"),
        ("crash", "open"),
        ("hang", "open"),
    ],
)
def test_g23_a_classifier_that_crashes_or_answers_garbage_meets_the_fail_mode(
    llm: Llm, tmp_path: Path, fault: str, mode: str
) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    settings = config(llm.url, tmp_path, ["policy.yaml"], fail_mode=mode, deadline={"check_ms": 100})
    reason = {"crash": "crash", "hang": "deadline"}.get(fault, "garbage")
    with running(Proxy.with_faulty_models(settings, tmp_path, fault)) as proxy:
        for stream in (True, False):
            model = llm.put(f"faulty-{fault}-{mode}", SAID)
            if mode == "closed":
                _failed(proxy, model, stream=stream)
            else:
                text, finish, _ = _answer(proxy, model, stream=stream)
                assert finish == "stop"
                assert "some words" in text
                assert "joe@example.com" not in text
            degradations = proxy.records()[-1]["body"]["record"]["degradations"]
            # Failures in a row open the detector's breaker, which then refuses at once.
            assert f"lexicon:{reason}" in degradations or "lexicon:rested" in degradations
