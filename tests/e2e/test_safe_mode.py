"""An answer that a rule turns: the upstream's first stream is cut off, a second one goes on from what was released."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.e2e.harness import Llm, Proxy, RawCaller, config, http, running, verify_audit

POLICY = """
pack: {name: turn, version: 1.0.0}
policies:
  - name: no_money_laundering
    id: SAFE-1
    stage: midstream
    channels: [content]
    phrases: [launder money]
    actions:
      - type: safe_mode
        temperature: 0.2
        bad_words: [launder]
        instruction: Speak of lawful ways only.
        message: "[The rest was withheld.]"
  - {name: mail, id: PII-1, stage: midstream, entities: [EMAIL], actions: [{type: redact}]}
"""
COMPLETIONS_POLICY = """
pack: {name: turn, version: 1.0.0}
policies:
  - name: no_money_laundering
    id: SAFE-2
    stage: midstream
    phrases: [launder money]
    actions: [{type: safe_mode, temperature: 0.2}]
"""
ASK: Any = [{"role": "user", "content": "How do I get it home?"}]
CHAT = "/v1/chat/completions"
CAN = ["continue", "bad_words"]
FIRST = "Write to joe@example.com. You could launder money"
STALE = " STALE" * 2000
WANTED = "Write to [EMAIL]. You could pay your taxes and sleep well."
SECOND: dict[str, Any] = {"choices": [{"content": "pay your taxes and sleep well."}]}
REFUSALS: dict[str, dict[str, Any]] = {
    "by status": {"error": {"status": 400, "message": "continue_final_message is not supported"}},
    "for now": {"error": {"status": 503}},
}
PROMISED_MS = 50.0


@pytest.fixture(scope="module")
def proxy(llm: Llm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("turn")
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "completions.yaml").write_text(COMPLETIONS_POLICY)
    settings = config(llm.url, folder, ["policy.yaml"], upstream={"can": CAN})
    settings["routes"][1]["policies"] = ["completions.yaml"]
    with running(Proxy(settings, folder)) as server:
        yield server


@pytest.fixture
def client(proxy: Proxy) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{proxy.url}/v1", api_key="k", max_retries=2) as client:
        yield client


def put(llm: Llm, name: str, second: dict[str, Any] = SECOND, **first: Any) -> str:
    """Put in a scenario and the one that goes on with it, `NAME-2`."""
    llm.put(f"{name}-2", second)
    return llm.put(name, {"choices": [{"content": FIRST + STALE}], "continued_by": f"{name}-2", **first})


def raw(proxy: Proxy, body: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, str], bytes]:
    """Return the events of a streamed answer, its headers, and its bytes."""
    status, headers, data = http("POST", proxy.url + CHAT, {"messages": ASK, "stream": True, **body})
    assert status == 200, data.decode()
    return [json.loads(line[6:]) for line in data.split(b"\n") if line.startswith(b"data: {")], headers, data


def said(events: list[dict[str, Any]]) -> str:
    return "".join(choice["delta"].get("content") or "" for event in events for choice in event["choices"])


def test_the_caller_sees_one_answer_and_the_upstream_two_requests(llm: Llm, client: OpenAI) -> None:
    model = put(llm, "turn-sdk", split={"by": "random", "size": 5, "seed": 1}, timing={"token_ms": 1})
    key = {"Idempotency-Key": "one", "x-trace": "7"}
    with client.chat.completions.stream(model=model, messages=ASK, temperature=1.0, extra_headers=key) as stream:
        deltas = [event.delta for event in stream if event.type == "content.delta"]
        final = stream.get_final_completion()
    message = final.choices[0].message
    assert (message.role, message.content) == ("assistant", WANTED)
    assert "".join(deltas) == WANTED
    assert final.choices[0].finish_reason == "stop"

    (sent,), (again,) = llm.requests(model), llm.requests(f"{model}-2")
    assert sent["body"]["temperature"] == 1.0
    assert "bad_words" not in sent["body"]
    assert again["body"]["messages"] == [
        {"role": "system", "content": "Speak of lawful ways only."},
        *ASK,
        {"role": "assistant", "content": "Write to [EMAIL]. You could "},
    ]
    body = again["body"]
    assert (body["temperature"], body["bad_words"]) == (0.2, ["launder"])
    assert (body["stream"], body["continue_final_message"], body["add_generation_prompt"]) == (True, True, False)
    assert (again["path"], again["method"]) == (sent["path"], sent["method"])
    assert ("idempotency-key", "one") in map(tuple, sent["headers"])
    own = {"content-length", "idempotency-key"}
    assert "idempotency-key" not in dict(again["headers"]), "or the server might give its first answer once more"
    assert dict(again["headers"])["x-trace"] == "7"
    assert [pair for pair in again["headers"] if pair[0] not in own] == [
        pair for pair in sent["headers"] if pair[0] not in own
    ]


def test_the_stream_is_seamless_byte_for_byte(llm: Llm, proxy: Proxy) -> None:
    model = put(llm, "turn-raw")
    events, headers, data = raw(proxy, {"model": model, "stream_options": {"include_usage": True}})
    assert said(events) == WANTED
    assert data.count(b'"role"') == 1
    assert data.count(b"[DONE]") == 1
    assert data.endswith(b"data: [DONE]\n\n")
    chunks = [event for event in events if event["choices"]]
    assert {event["object"] for event in events} == {"chat.completion.chunk"}
    assert len({event["id"] for event in events}) == 1, "an SDK or a log that joins by id must see one answer"
    assert [choice["finish_reason"] for event in chunks for choice in event["choices"] if choice["finish_reason"]] == [
        "stop"
    ]
    assert len([event for event in events if event.get("usage")]) == 1
    record = proxy.record(headers["x-checkstream-stream"])["body"]["record"]
    assert (record["action"], record["outcome"]) == ("safe_mode", "complete")
    assert [verdict["rule_id"] for verdict in record["verdicts"]] == ["PII-1", "SAFE-1"]


def test_g01_a_whole_answer_goes_on_to_the_same_text(llm: Llm, client: OpenAI) -> None:
    model = put(llm, "turn-whole")
    answer = client.chat.completions.with_raw_response.create(model=model, messages=ASK)
    whole = answer.parse()
    assert whole.choices[0].message.content == WANTED
    assert (whole.choices[0].message.role, whole.choices[0].finish_reason) == ("assistant", "stop")
    assert answer.headers["x-checkstream-action"] == "safe_mode"
    (again,) = llm.requests(f"{model}-2")
    assert again["body"]["messages"][-1] == {"role": "assistant", "content": "Write to [EMAIL]. You could "}
    assert not again["body"].get("stream")


@pytest.mark.parametrize("streamed", [True, False])
def test_a_completion_goes_on_from_its_prompt(llm: Llm, client: OpenAI, streamed: bool) -> None:
    # the second request's prompt ends with what was said, which is all that tells it from the first
    name = f"turn-legacy-{streamed}"
    llm.put(f"{name}-a", {"choices": [{"content": "in peace."}], "match": {"model": name, "contains": "Then live"}})
    llm.put(f"{name}-b", {"choices": [{"content": " Then live or launder money now"}], "match": {"model": name}})
    if streamed:
        with client.completions.create(model=name, prompt="What now?", stream=True) as stream:
            text = "".join(chunk.choices[0].text for chunk in stream if chunk.choices)
    else:
        text = client.completions.create(model=name, prompt="What now?").choices[0].text
    assert text == " Then live or in peace."
    (again,) = llm.requests(f"{name}-a")
    assert again["body"]["prompt"] == "What now? Then live or "
    assert again["body"]["temperature"] == 0.2


def test_what_helpers_of_the_sdk_join_is_refused_as_filtered_when_it_could_not_go_on(llm: Llm, client: OpenAI) -> None:
    model = put(llm, "turn-filtered", REFUSALS["by status"])
    with (
        pytest.raises(openai.ContentFilterFinishReasonError),
        client.chat.completions.stream(model=model, messages=ASK) as stream,
    ):
        stream.get_final_completion()


def test_g21_the_first_connection_is_closed_when_the_answer_turns(llm: Llm, proxy: Proxy) -> None:
    took = []
    for turn in range(3):
        model = put(llm, f"turn-close-{turn}", timing={"token_ms": 5})
        assert said(raw(proxy, {"model": model})[0]) == WANTED
        first, second = llm.ended(model), llm.ended(f"{model}-2")
        assert first["state"] == "closed_by_client"
        assert first["events_sent"] < 40, "it was cut off in its first words"
        assert second["state"] == "complete"
        took.append(first["ended_ms"] - llm.requests(f"{model}-2")[0]["at_ms"])
    sys.stdout.write(f"the first was closed {took} ms after the second had come\n")
    # one slow turn is the machine's; a path that leaves the first open is slow every time
    assert min(took) < PROMISED_MS


@pytest.mark.parametrize("reset", [False, True], ids=["fin", "rst"])
def test_g21_leaving_during_the_second_stream_cancels_it(llm: Llm, proxy: Proxy, reset: bool) -> None:
    took = []
    for turn in range(3):
        long = {"choices": [{"content": "calm " * 2000}], "timing": {"token_ms": 5}}
        model = put(llm, f"turn-leave-{reset}-{turn}", long, timing={"token_ms": 5})
        caller = RawCaller(proxy.url, {"model": model, "stream": True, "messages": ASK})
        caller.read_until(b"calm")
        left_ms = caller.leave(reset=reset)
        second = llm.ended(f"{model}-2")
        assert second["state"] == "closed_by_client"
        assert llm.ended(model)["state"] == "closed_by_client"
        took.append(second["ended_ms"] - left_ms)
    assert min(took) < PROMISED_MS


def test_g21_leaving_between_the_two_streams_cancels_the_second(llm: Llm, proxy: Proxy) -> None:
    model = put(llm, "turn-leave-between", {**SECOND, "timing": {"headers_ms": 60_000}})
    caller = RawCaller(proxy.url, {"model": model, "stream": True, "messages": ASK})
    caller.read_until(b"could")
    llm.opened(f"{model}-2")
    caller.leave()
    assert llm.ended(f"{model}-2")["state"] == "closed_by_client"


@pytest.mark.parametrize("how", REFUSALS)
@pytest.mark.parametrize("streamed", [True, False])
def test_an_upstream_that_will_not_go_on_stops_the_answer(
    llm: Llm, proxy: Proxy, client: OpenAI, how: str, streamed: bool
) -> None:
    model = put(llm, f"turn-refused-{how}-{streamed}".replace(" ", "-"), REFUSALS[how])
    if streamed:
        with client.chat.completions.create(model=model, messages=ASK, stream=True) as stream:
            chunks = [chunk.choices[0] for chunk in stream]
            headers = stream.response.headers
        content: str | None = "".join(choice.delta.content or "" for choice in chunks)
        finish: list[str | None] = [choice.finish_reason for choice in chunks if choice.finish_reason]
    else:
        whole = client.chat.completions.with_raw_response.create(model=model, messages=ASK)
        content, finish = whole.parse().choices[0].message.content, [whole.parse().choices[0].finish_reason]
        headers = whole.headers
    assert content == "Write to [EMAIL]. You could [The rest was withheld.]"
    assert finish == ["content_filter"]
    assert len(llm.requests(f"{model}-2")) == 1, "neither the proxy nor the SDK tries again"
    record = proxy.record(headers["x-checkstream-stream"])["body"]["record"]
    assert (record["action"], record["outcome"]) == ("stop", "stopped")
    assert "not_continued" in record["degradations"]


def test_g20_an_upstream_that_breaks_off_then_is_an_error_and_never_a_silent_end(llm: Llm, client: OpenAI) -> None:
    for kind in ("reset", "close"):
        model = put(llm, f"turn-{kind}", {**SECOND, "fault": {"kind": kind, "after_events": 2}})
        with pytest.raises(openai.APIError):
            _read(client, model)
        assert len(llm.requests(model)) == 1


def _read(client: OpenAI, model: str) -> str:
    with client.chat.completions.create(model=model, messages=ASK, stream=True) as stream:
        return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


def test_a_second_turn_stops_the_answer(llm: Llm, proxy: Proxy) -> None:
    model = put(llm, "turn-twice", {"choices": [{"content": "still launder money" + STALE}], "timing": {"token_ms": 5}})
    events, headers, data = raw(proxy, {"model": model})
    assert said(events) == "Write to [EMAIL]. You could still [The rest was withheld.]"
    assert data.count(b"content_filter") == 1
    assert llm.ended(f"{model}-2")["state"] == "closed_by_client"
    assert proxy.record(headers["x-checkstream-stream"])["body"]["record"]["outcome"] == "stopped"


def test_a_drain_during_the_second_stream_tells_the_caller(llm: Llm, start: Callable[..., Proxy]) -> None:
    proxy = start(POLICY, server={"drain_ms": 200}, upstream={"can": CAN}, chat_only=True)
    model = put(llm, "turn-drain", {"choices": [{"content": "calm " * 2000}], "timing": {"token_ms": 10}})
    caller = RawCaller(proxy.url, {"model": model, "stream": True, "messages": ASK}, path=CHAT)
    caller.read_until(b"calm")
    proxy.popen.send_signal(signal.SIGTERM)
    caller.read_until(b'"error"')
    assert b"server_shutting_down" in caller.received
    caller.leave()
    assert proxy.popen.wait(20) == 0
    assert llm.ended(f"{model}-2")["state"] == "closed_by_client"
    (row,) = [row for row in proxy.records() if row["kind"] == "stream"]
    assert row["body"]["record"]["outcome"] == "drained"
    assert verify_audit(proxy.audit_dir).returncode == 0


SCORED = """
pack: {name: turn, version: 1.0.0}
policies:
  - name: rude
    id: RUDE-1
    stage: midstream
    channels: [content]
    classifiers: [{name: lexicon.toxicity, threshold: 0.7}]
    actions: [{type: safe_mode, message: "[Withheld.]"}]
"""


def test_a_score_turns_an_answer_too(llm: Llm, start: Callable[..., Proxy]) -> None:
    # the deadline is none: a busy machine must not decide which rule fires
    proxy = start(SCORED, upstream={"can": CAN}, deadline={"ingress_ms": 60_000, "check_ms": 60_000})
    rude = "I have read your essay. " + "You are a worthless idiot and I hate you. " * 3 + "The end of it."
    llm.put("turn-scored-2", {"choices": [{"content": "I would begin with the figures."}]})
    model = llm.put("turn-scored", {"choices": [{"content": rude}], "continued_by": "turn-scored-2"})
    events, headers, data = raw(proxy, {"model": model})
    assert said(events).endswith("I would begin with the figures.")
    assert "idiot" not in said(events)
    assert "The end of it" not in said(events)
    assert data.count(b"[DONE]") == 1
    record = proxy.record(headers["x-checkstream-stream"])["body"]["record"]
    assert (record["action"], record["outcome"]) == ("safe_mode", "complete")
    whole = json.loads(http("POST", proxy.url + CHAT, {"model": model, "messages": ASK})[2])
    assert whole["choices"][0]["message"]["content"] == said(events)


def test_nothing_of_the_first_stream_stands_in_the_second(llm: Llm, proxy: Proxy) -> None:
    _turn_many(llm, proxy, 24)


@pytest.mark.nightly
def test_nothing_of_the_first_stream_stands_in_the_second_over_hundreds_of_turns(llm: Llm, proxy: Proxy) -> None:
    _turn_many(llm, proxy, 600)


def _turn_many(llm: Llm, proxy: Proxy, count: int) -> None:
    """Turn answers whose first stream comes as fast as it can, in all sorts of cuts, many at a time."""
    cuts: list[dict[str, Any]] = [
        {"by": "event"},
        {"by": "whole"},
        {"by": "random", "size": 300, "seed": 4},
        {"by": "fixed", "size": 16_384},
    ]
    models = [put(llm, f"turn-many-{at}", wire={"cut": cut}) for at, cut in enumerate(cuts)]
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda at: raw(proxy, {"model": models[at % len(models)]}), range(count)))
    for events, _, data in answers:
        assert said(events) == WANTED
        assert b"STALE" not in data
        assert data.count(b"[DONE]") == 1
