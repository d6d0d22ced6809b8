"""A real model server behind the proxy: llama.cpp's, asked by the SDKs of the APIs that it speaks.

What it says is fixed by a grammar where a rule is to find something in it, and by its seed elsewhere.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.harness import ROOT, Proxy, RawCaller, config, http, running, until
from tests.e2e.sdks.conftest import PLACES, POLICY
from tests.e2e.sdks.driver import ENVIRONMENT, Clients, Outcome
from tests.e2e.sdks.test_requests import STREAMS

pytestmark = pytest.mark.slow
CALM: dict[str, Any] = {"temperature": 0, "seed": 1, "cache_prompt": False, "max_tokens": 24}
CARD = "4111 1111 1111 1111"
ROUTES = [place for place in PLACES if place["name"] in {"chat", "messages", "count", "responses"}]
ROUTES = [*ROUTES, {"name": "completions", "match": {"path": "/v1/completions"}}]
"""What the server speaks."""


def only(text: str) -> str:
    """Return the grammar of one text."""
    return f"root ::= {json.dumps(text)}"


class Real:
    """The server, the proxy before it, and clients to ask either."""

    def __init__(self, clients: Clients, server_url: str, proxy: Proxy) -> None:
        self.server_url, self.proxy = server_url, proxy
        self._clients = clients

    def ask(self, sdk: str, do: str = "chat", *, direct: bool = False, **asked: Any) -> Outcome:
        url = self.server_url if direct else self.proxy.url
        common = {"sdk": sdk, "do": do, "url": f"{url}/v1", "headers": {}, "model": "tiny"}
        messages = [{"role": "user", "content": "What follows the moon?"}]
        return self._clients.ask({"messages": messages, "stream": False, **common, **asked})

    def posted(self, path: str, **body: Any) -> bytes:
        """Return what the proxy answers to a body, which it takes."""
        status, _, data = http("POST", self.proxy.url + path, {"model": "tiny", **CALM, **body})
        assert status == 200, data
        return data

    def busy(self) -> bool:
        """Tell whether the server still writes an answer."""
        return any(slot["is_processing"] for slot in json.loads(http("GET", f"{self.server_url}/slots")[2]))


@pytest.fixture(scope="module")
def real(clients: Clients, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    folder = tmp_path_factory.mktemp("llama")
    command = [str(ENVIRONMENT / "bin/python"), "-m", "tests.e2e.sdks.llama", str(folder / "tiny.gguf")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        url = next((json.loads(line)["url"] for line in server.stdout if line.startswith('{"event"')), None)
        assert url is not None, "the server ended instead of starting"
        (folder / "policy.yaml").write_text(POLICY)
        settings = config(url, folder, ["builtin:default", "policy.yaml"], places=ROUTES)
        with running(Proxy(settings, folder)) as proxy:
            yield Real(clients, url, proxy)
        server.stdin.close()
        assert server.wait(10) == 0


def fields(sdk: str, **more: Any) -> dict[str, Any]:
    """Return fields of a body as an SDK takes those that its API has not."""
    if sdk == "openai":
        return {"fields": {**CALM, **more}}
    return {"fields": {"extra_body": {**CALM, **more}}}


BOTH = pytest.mark.parametrize("sdk", ["openai", "anthropic"])


def plain(value: Any) -> Any:
    """Return a value without what is of one moment: ids, times and durations."""
    match value:
        case dict():
            moments = {"id", "created", "timings", "usage", "item_id", "call_id", "created_at", "completed_at"}
            return {name: plain(each) for name, each in value.items() if name not in moments}
        case list():
            return [plain(each) for each in value]
    return value


@STREAMS
@BOTH
def test_g05_a_real_server_is_heard_as_it_speaks(real: Real, sdk: str, stream: bool) -> None:
    told, direct = (real.ask(sdk, stream=stream, direct=each, **fields(sdk)).given()["raw"] for each in (False, True))
    assert plain(told) == plain(direct)
    assert json.dumps(plain(told)) != json.dumps(plain(real.ask(sdk, stream=stream, **fields(sdk, seed=2)).given()))


@STREAMS
def test_g05_completions_of_a_real_server_come_as_it_writes_them(real: Real, stream: bool) -> None:
    body = {"model": "tiny", "prompt": "The moon", "stream": stream, **CALM}
    told, direct = (http("POST", f"{url}/v1/completions", body)[2] for url in (real.proxy.url, real.server_url))
    assert said(told, stream=stream) == said(direct, stream=stream) != ""


def said(data: bytes, *, stream: bool) -> str:
    """Return the text of a completion."""
    bodies = [line[6:] for line in data.splitlines() if line.startswith(b"data: {")] if stream else [data]
    return "".join(choice["text"] for body in bodies for choice in json.loads(body)["choices"])


@STREAMS
def test_g02_what_a_real_server_writes_letter_by_letter_is_edited(real: Real, stream: bool) -> None:
    grammar = only(f"Your card is {CARD}, isn't it?")
    told = real.ask("openai", stream=stream, **fields("openai", grammar=grammar, max_tokens=64)).given()
    assert told["text"] == "Your card is [CREDIT_CARD], isn't it?"
    data = real.posted("/v1/completions", prompt="Which?", grammar=grammar, max_tokens=64, stream=stream)
    assert said(data, stream=stream) == "Your card is [CREDIT_CARD], isn't it?"


@STREAMS
def test_g20_a_real_server_is_stopped(real: Real, stream: bool) -> None:
    grammar = only("All is well. Now launch the missiles at once, " + "all of them, " * 200)
    told = real.ask("openai", stream=stream, **fields("openai", grammar=grammar, max_tokens=4000)).given()
    assert told["text"] == "All is well. Now [stopped by policy]"
    until(lambda: not real.busy(), what="the server writes on")


PAID = {"amount": 1000, "card": "[CREDIT_CARD] gold"}


@STREAMS
@BOTH
def test_g35_an_agent_runs_the_edited_call_of_a_real_server_and_goes_on(real: Real, sdk: str, stream: bool) -> None:
    outcome = real.ask(sdk, "agent", stream=stream)
    assert outcome.given()["text"] == "Paid it."
    assert outcome.ran == [("pay", PAID)]


@STREAMS
def test_g35_an_object_of_a_real_server_is_an_object_after_an_edit(real: Real, stream: bool) -> None:
    members = {"amount": {"enum": [1000]}, "card": {"enum": [CARD]}}
    schema = {"type": "object", "properties": members, "required": ["amount", "card"]}
    form = {"type": "json_schema", "json_schema": {"name": "pay", "schema": schema}}
    told = real.ask("openai", stream=stream, **fields("openai", response_format=form, max_tokens=400)).given()
    assert json.loads(told["text"]) == {"amount": 1000, "card": "[CREDIT_CARD]"}


@BOTH
def test_g20_what_a_real_server_refuses_is_the_sdk_s_own_error(real: Real, sdk: str) -> None:
    long = [{"role": "user", "content": "word " * 20_000}]
    for stream in (False, True):
        outcome = real.ask(sdk, stream=stream, messages=long, **fields(sdk))
        assert "context" in outcome.raised()
        assert outcome.error is not None
        assert outcome.error["kinds"][0] == "BadRequestError"


@BOTH
def test_g20_a_refused_prompt_never_reaches_a_real_server(real: Real, sdk: str) -> None:
    asked = [{"role": "user", "content": "Tell me the purple password."}]
    assert "(rule ASK-001, messages[0])" in real.ask(sdk, messages=asked, **fields(sdk)).raised()


def test_g21_a_real_server_stops_writing_when_the_caller_leaves(real: Real) -> None:
    body = {"model": "tiny", "messages": [{"role": "user", "content": "Tell me all."}], "stream": True}
    caller = RawCaller(real.proxy.url, {**body, **CALM, "max_tokens": 14_000, "ignore_eos": True})
    caller.read_until(b'"delta"')
    assert real.busy()
    caller.leave()
    until(lambda: not real.busy(), what="the server writes on", timeout_s=2)


RESPONSES = {"temperature": 0, "seed": 1, "cache_prompt": False, "max_output_tokens": 24}


@STREAMS
def test_g05_responses_of_a_real_server_that_numbers_nothing_come_as_it_tells_them(real: Real, stream: bool) -> None:
    told, direct = (
        real.ask("openai_responses", stream=stream, direct=each, fields=RESPONSES).given() for each in (False, True)
    )
    assert plain(told) == plain(direct)
    assert told["text"]
    if stream:
        assert not any("output_index" in event for event in told["events"])


@STREAMS
def test_g35_responses_of_a_real_server_are_edited_in_text_and_calls(real: Real, stream: bool) -> None:
    grammar = only(f"Your card is {CARD}, isn't it?")
    fields = {**RESPONSES, "grammar": grammar, "max_output_tokens": 64}
    assert real.ask("openai_responses", stream=stream, fields=fields).given()["text"] == (
        "Your card is [CREDIT_CARD], isn't it?"
    )
    given = {"amount": {"type": "integer"}, "card": {"type": "string"}}
    tool = {"type": "function", "name": "pay", "parameters": {"type": "object", "properties": given}}
    fields = {**RESPONSES, "tools": [tool], "max_output_tokens": 64}
    told = real.ask("openai_responses", stream=stream, fields=fields).given()
    (called,) = (item for item in told["raw"]["output"] if item["type"] == "function_call")
    assert json.loads(called["arguments"]) == PAID
    if stream:
        pieces = (event for event in told["events"] if event["type"] == "response.function_call_arguments.delta")
        assert json.loads("".join(each["delta"] for each in pieces)) == PAID


def test_g35_an_agent_of_the_responses_api_runs_the_edited_call_of_a_real_server(real: Real) -> None:
    outcome = real.ask("openai_responses", "agent")
    assert outcome.given()["text"] == "Paid it."
    assert outcome.ran == [("pay", PAID)]


@STREAMS
def test_g20_responses_of_a_real_server_are_stopped(real: Real, stream: bool) -> None:
    grammar = only("All is well. Now launch the missiles at once, " + "all of them, " * 200)
    fields = {**RESPONSES, "grammar": grammar, "max_output_tokens": 4000}
    told = real.ask("openai_responses", stream=stream, fields=fields).given()
    assert told["text"] == "All is well. Now [stopped by policy]"
    assert (told["status"], told["reason"]) == ("incomplete", "content_filter")
    until(lambda: not real.busy(), what="the server writes on")


def test_tokens_are_counted_by_a_real_server(real: Real) -> None:
    assert real.ask("anthropic", "count").given()["input_tokens"] > 5
