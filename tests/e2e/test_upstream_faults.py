"""An upstream that fails in each way that a server can, seen through the real openai SDK."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.e2e.harness import Llm, Proxy, http

ASK: Any = [{"role": "user", "content": "hello there"}]
SAID = {"choices": [{"content": "one two three four five six"}]}


@pytest.fixture
def guarded(proxy: Proxy) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{proxy.url}/v1", api_key="k", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("kind", ["reset", "close"])
def test_g20_a_stream_that_breaks_off_raises_and_is_never_a_silent_end(
    llm: Llm, proxy: Proxy, guarded: OpenAI, kind: str
) -> None:
    model = llm.put(f"broken-{kind}", {**SAID, "fault": {"kind": kind, "after_events": 4}, "timing": {"token_ms": 5}})
    said: list[str] = []
    with guarded.chat.completions.create(model=model, messages=ASK, stream=True) as stream:
        stream_id = stream.response.headers["x-checkstream-stream"]
        with pytest.raises(openai.APIError) as caught:
            said.extend(chunk.choices[0].delta.content or "" for chunk in stream)
    assert not isinstance(caught.value, openai.APIConnectionError)  # an error event, not a torn connection
    assert caught.value.body is not None
    assert "upstream_failed" in json.dumps(proxy.record(stream_id))


@pytest.mark.parametrize("kind", ["reset", "close"])
def test_g20_a_whole_answer_that_breaks_off_is_a_bad_gateway(llm: Llm, guarded: OpenAI, kind: str) -> None:
    model = llm.put(f"broken-whole-{kind}", {**SAID, "fault": {"kind": kind, "after_bytes": 100}})
    with pytest.raises(openai.InternalServerError) as caught:
        guarded.chat.completions.create(model=model, messages=ASK)
    assert caught.value.status_code == 502


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_an_upstreams_error_reaches_the_caller_as_it_is(
    llm: Llm, guarded: OpenAI, status: int, error: type[openai.APIStatusError], stream: bool
) -> None:
    model = llm.put(
        f"error-{status}", {"error": {"status": status, "message": "as it is", "headers": {"retry-after": "0"}}}
    )
    with pytest.raises(error) as caught:
        guarded.chat.completions.create(model=model, messages=ASK, stream=stream)
    assert caught.value.status_code == status
    assert "as it is" in str(caught.value)
    assert caught.value.response.headers["retry-after"] == "0"


def test_an_upstream_that_is_not_there_is_a_bad_gateway(start: Callable[..., Proxy]) -> None:
    proxy = start(upstream={"url": "http://127.0.0.1:1", "retries": 1})
    status, _, body = http("POST", f"{proxy.url}/v1/chat/completions", {"model": "m", "messages": ASK})
    assert status == 502
    assert json.loads(body)["error"]["type"] == "upstream_error"


@pytest.mark.parametrize("stream", [True, False])
def test_an_upstream_that_never_begins_is_a_gateway_timeout(
    llm: Llm, start: Callable[..., Proxy], stream: bool
) -> None:
    proxy = start(upstream={"first_byte_ms": 200})
    model = llm.put("late", {**SAID, "timing": {"headers_ms": 60_000}})
    body = {"model": model, "messages": ASK, "stream": stream}
    status, _, reply = http("POST", f"{proxy.url}/v1/chat/completions", body)
    assert (status, json.loads(reply)["error"]["type"]) == (504, "upstream_error")
    assert llm.ended(model)["state"] == "closed_by_client"


def test_an_upstream_that_falls_silent_ends_in_an_error_event(llm: Llm, start: Callable[..., Proxy]) -> None:
    proxy = start(upstream={"idle_ms": 200})
    model = llm.put("silent", {**SAID, "fault": {"kind": "stall", "after_events": 3}})
    body = {"model": model, "messages": ASK, "stream": True}
    status, _, reply = http("POST", f"{proxy.url}/v1/chat/completions", body)
    events = [json.loads(line[6:]) for line in reply.decode().splitlines() if line.startswith("data: {")]
    assert status == 200
    assert "error" in events[-1]
    assert llm.ended(model)["state"] == "closed_by_client"


def test_g19_an_event_that_is_not_json_meets_the_fail_mode(llm: Llm, guarded: OpenAI) -> None:
    model = llm.put("malformed", {**SAID, "insert": [{"after_events": 3, "data": '{"choices": [{"delta": '}]})
    with (
        guarded.chat.completions.create(model=model, messages=ASK, stream=True) as stream,
        pytest.raises(openai.APIError),
    ):
        list(stream)
    # the process goes on as if nothing had been
    assert guarded.chat.completions.create(model=llm.put("said", SAID), messages=ASK).choices[0].message.content


def test_g22_an_event_that_never_ends_meets_its_cap(llm: Llm, proxy: Proxy, guarded: OpenAI) -> None:
    model = llm.put("endless", {**SAID, "fault": {"kind": "endless", "after_events": 2}})
    with (
        guarded.chat.completions.create(model=model, messages=ASK, stream=True) as stream,
        pytest.raises(openai.APIError),
    ):
        list(stream)
    connection = llm.ended(model)
    assert connection["state"] == "closed_by_client"
    assert connection["bytes_sent"] < 32 * 1024 * 1024  # the cap of 1 MiB, and what sockets hold
    assert proxy.popen.poll() is None


def test_an_upstream_that_ends_early_is_told_of_by_an_error(llm: Llm, guarded: OpenAI) -> None:
    model = llm.put("early", {**SAID, "fault": {"kind": "end", "after_events": 4}})
    said: list[str] = []
    with guarded.chat.completions.create(model=model, messages=ASK, stream=True) as stream:
        with pytest.raises(openai.APIError, match="before the answer was over"):
            said.extend(chunk.choices[0].delta.content or "" for chunk in stream)
        assert "one two three".startswith("".join(said))
