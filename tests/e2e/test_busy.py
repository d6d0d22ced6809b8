"""A detector that is slow is not broken: text waits and comes whole. One that hangs meets the fail mode (G32)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.e2e.harness import Llm, Proxy, config, http, running

POLICY = """
pack: {name: busy, version: 1.0.0}
policies:
  - name: injection
    id: INJ-001
    stage: [ingress]
    classifiers: [{name: lexicon.injection}]
    actions: [{type: reject, message: refused}]
  - name: toxic
    id: TOX-001
    stage: [midstream]
    classifiers: [{name: lexicon.toxicity}]
    actions: [{type: stop, message: "[withheld]"}]
"""
WORDS = " ".join(f"word{number}" for number in range(120))
BURST = {"choices": [{"content": WORDS}]}


def serving(llm: Llm, folder: Path, fault: str, **route: Any) -> Proxy:
    (folder / "policy.yaml").write_text(POLICY)
    return Proxy.with_faulty_models(config(llm.url, folder, ["policy.yaml"], **route), folder, fault)


@pytest.fixture(params=["sleepy", "busy"], scope="module")
def slow(llm: Llm, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("slow")
    with running(serving(llm, folder, request.param)) as proxy:
        yield proxy


def said(proxy: Proxy, model: str, *, stream: bool, prompt: str = "hello") -> tuple[int, str, str | None]:
    """Return status, text and finish reason."""
    body = {"model": model, "messages": [{"role": "user", "content": prompt}], "stream": stream}
    status, _, data = http("POST", f"{proxy.url}/v1/chat/completions", body, timeout_s=60)
    if not stream or status != 200:
        choices = json.loads(data).get("choices", [])
        return (
            (status, choices[0]["message"]["content"], choices[0]["finish_reason"]) if choices else (status, "", None)
        )
    events = [json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: {")]
    assert all("choices" in event for event in events), events
    choices = [choice for event in events for choice in event["choices"]]
    finish = [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]
    assert len(finish) == 1
    return status, "".join(choice["delta"].get("content") or "" for choice in choices), finish[0]


@pytest.mark.parametrize("stream", [True, False])
def test_g32_a_burst_that_ends_while_its_checks_wait_comes_whole(llm: Llm, slow: Proxy, stream: bool) -> None:
    assert said(slow, llm.put("burst", BURST), stream=stream) == (200, WORDS, "stop")


def test_g32_many_answers_behind_a_slow_detector_come_whole_and_nothing_is_degraded(llm: Llm, slow: Proxy) -> None:
    model = llm.put("many", BURST)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: said(slow, model, stream=True), range(8)))
    assert found == [(200, WORDS, "stop")] * 8
    for entry in slow.records():
        record = entry["body"].get("record")
        if record is not None:
            assert record["outcome"] == "complete"
            assert set(record["degradations"]) <= {"check_over_budget", "ingress_over_budget"}


def test_g32_a_long_prompt_is_checked_whole_however_slow_the_detector(llm: Llm, slow: Proxy) -> None:
    model = llm.put("long", {"choices": [{"content": "fine"}]})
    assert said(slow, model, stream=False, prompt=WORDS * 20) == (200, "fine", "stop")


def test_g32_what_waits_too_long_ends_as_overloaded_and_never_as_a_moderation(llm: Llm, tmp_path: Path) -> None:
    model = llm.put("stuck", BURST)
    settings = {"holdback": {"max_hold_ms": 300}, "fail_mode": "open"}
    with (
        running(serving(llm, tmp_path, "asleep", **settings)) as proxy,
        OpenAI(base_url=f"{proxy.url}/v1", api_key="k", max_retries=0) as client,
    ):
        ask: Any = {"model": model, "messages": [{"role": "user", "content": "hello"}]}
        with pytest.raises(openai.InternalServerError) as caught:
            client.chat.completions.create(**ask)
        assert (caught.value.status_code, caught.value.code) == (503, "overloaded")
        assert int(caught.value.response.headers["retry-after"]) >= 1
        assert caught.value.response.headers["x-checkstream-action"] == "overloaded"
        assert not llm.requests(model)
        assert [entry["body"]["record"]["outcome"] for entry in proxy.records() if "record" in entry["body"]] == [
            "overloaded"
        ]
        metrics = http("GET", f"{proxy.admin_url}/metrics")[2].decode()
        assert 'checkstream_exchanges_total{outcome="overloaded",route="chat"} 1.0' in metrics


def test_g32_a_stream_whose_text_waits_too_long_raises_and_is_retried_by_no_verdict(llm: Llm, tmp_path: Path) -> None:
    model = llm.put("stuck-stream", BURST)
    policy = POLICY[: POLICY.index("  - name: injection")] + POLICY[POLICY.index("  - name: toxic") :]
    (tmp_path / "policy.yaml").write_text(policy)
    settings = config(llm.url, tmp_path, ["policy.yaml"], holdback={"max_hold_ms": 300})
    with (
        running(Proxy.with_faulty_models(settings, tmp_path, "asleep")) as proxy,
        OpenAI(base_url=f"{proxy.url}/v1", api_key="k", max_retries=0) as client,
    ):
        ask: Any = {"model": model, "messages": [{"role": "user", "content": "hello"}], "stream": True}
        chunks: list[Any] = []
        with pytest.raises(openai.APIError) as caught:
            chunks.extend(client.chat.completions.create(**ask))
        assert caught.value.code == "overloaded"
        record = proxy.records()[-1]["body"]["record"]
        assert (record["outcome"], record["action"], record["upstream_failure"]) == ("overloaded", "allow", None)


def test_g32_more_than_can_be_checked_is_refused_unasked_and_what_runs_comes_whole(llm: Llm, tmp_path: Path) -> None:
    model = llm.put("crowd", {**BURST, "timing": {"token_ms": 5}})
    (tmp_path / "policy.yaml").write_text(POLICY)
    settings = config(llm.url, tmp_path, ["policy.yaml"])
    settings["server"]["limits"] = {"load": 0.05}
    with running(Proxy(settings, tmp_path)) as proxy, ThreadPoolExecutor(40) as pool:
        found = list(pool.map(lambda _: said(proxy, model, stream=True), range(40)))
        assert {status for status, _, _ in found} == {200, 429}
        admitted = [each for each in found if each[0] == 200]
        assert admitted == [(200, WORDS, "stop")] * len(admitted)
        assert len(llm.requests(model)) == len(admitted)
        assert said(proxy, model, stream=True) == (200, WORDS, "stop")  # when nothing runs, everything is admitted


def test_g32_a_refusal_for_want_of_time_is_one_that_sdks_understand(llm: Llm, tmp_path: Path) -> None:
    model = llm.put("crowd-of-two", {**BURST, "timing": {"token_ms": 20}})
    (tmp_path / "policy.yaml").write_text(POLICY)
    settings = config(llm.url, tmp_path, ["policy.yaml"])
    settings["server"]["limits"] = {"load": 0.001}
    ask: Any = {"model": model, "messages": [{"role": "user", "content": "hello"}], "stream": True}
    with (
        running(Proxy(settings, tmp_path)) as proxy,
        OpenAI(base_url=f"{proxy.url}/v1", api_key="k", max_retries=0) as client,
        client.chat.completions.create(**ask) as first,
    ):
        with pytest.raises(openai.RateLimitError) as caught:
            client.chat.completions.create(**ask)
        assert caught.value.code == "overloaded"
        assert int(caught.value.response.headers["retry-after"]) >= 1
        assert caught.value.response.headers["x-checkstream-action"] == "overloaded"
        assert "".join(chunk.choices[0].delta.content or "" for chunk in first) == WORDS
