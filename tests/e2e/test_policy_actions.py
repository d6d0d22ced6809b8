"""What rules ask of requests and answers, as the upstream and the real openai SDK see it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.e2e.harness import Llm, Proxy, config, http, running

POLICY = """
pack: {name: actions, version: 1.0.0}
policies:
  - name: few_tools
    id: TOOLS-1
    stage: ingress
    phrases: [only safe tools]
    actions: [{type: constrain_tools, allow: [look_up, "read_*"], message: "[That tool is not allowed.]"}]
  - name: careful
    id: SAFE-1
    stage: ingress
    conditions: ['has(context.user) && has(context.user.vulnerable) && context.user.vulnerable']
    actions:
      - type: safe_mode
        temperature: 0.3
        bad_words: [casino]
        logit_bias: {"7": -100}
        instruction: Be careful.
  - name: kind
    id: TONE-1
    stage: ingress
    conditions: ['has(context.user) && has(context.user.name)']
    actions: [{type: adapt_tone, instruction: "Speak kindly to {context.user.name}."}]
  - name: cool
    id: TEMP-1
    stage: ingress
    conditions: ['has(request.temperature) && request.temperature > 0.8']
    actions: [{type: lower_temp, temperature: 0.5}]
  - name: form
    id: FORM-1
    stage: ingress
    phrases: [as a form]
    actions:
      - type: allow_constrained
        json_schema: {type: object, properties: {answer: {type: string}}, required: [answer]}
  - name: sources
    id: SRC-1
    stage: ingress
    phrases: [say where from]
    actions: [{type: attribute_sources, text: "From: {sources}.", max_sources: 2}]
  - name: risk_notice
    id: RISK-1
    stage: midstream
    channels: [content]
    phrases: [guaranteed returns]
    actions: [{type: require_disclaimer, text: "Capital at risk."}]
  - name: no_guide
    id: PAST-1
    stage: midstream
    channels: [content]
    phrases: [doubled last year]
    actions: [{type: inject_disclaimer, text: "Past performance is no guide.", position: after_sentence}]
  - name: threats
    id: STOP-1
    stage: midstream
    phrases: [launch the missiles]
    actions: [{type: stop, status: 503, message: this answer was blocked}]
  - {name: mail, id: HASH-1, stage: midstream, entities: [EMAIL], actions: [{type: redact, style: hash}]}
  - name: card
    id: CARD-1
    stage: midstream
    entities: [CREDIT_CARD]
    actions: [{type: redact, style: mask}]
  - name: slang
    id: EDIT-1
    stage: midstream
    channels: [content]
    phrases: [cheap crap]
    actions: [{type: rewrite_span, words: {cheap crap: inexpensive goods}, scope: span}]
"""
CAN = ["continue", "bad_words", "logit_bias", "json_schema"]


@pytest.fixture(scope="module")
def proxy(llm: Llm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("actions")
    (folder / "policy.yaml").write_text(POLICY)
    settings = config(llm.url, folder, ["policy.yaml"], upstream={"can": CAN}, chat_only=True)
    with running(Proxy(settings, folder)) as server:
        yield server


@pytest.fixture
def client(proxy: Proxy) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{proxy.url}/v1", api_key="k", max_retries=2) as client:
        yield client


def user(text: str) -> Any:
    return [{"role": "user", "content": text}]


def tools(*names: str) -> Any:
    return [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in names]


def said(client: OpenAI, model: str, *, streamed: bool, prompt: str = "Go on.", **fields: Any) -> str:
    """Return the content of an answer, joined from its chunks when it is streamed."""
    if not streamed:
        answer = client.chat.completions.create(model=model, messages=user(prompt), **fields)
        return answer.choices[0].message.content or ""
    with client.chat.completions.create(model=model, messages=user(prompt), stream=True, **fields) as stream:
        return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


def body(llm: Llm, model: str) -> dict[str, Any]:
    """Return the latest request that the upstream got for a scenario."""
    found: dict[str, Any] = llm.requests(model)[-1]["body"]
    return found


CALL = {"name": "delete_all", "arguments": ['{"wh', 'at": "eve', 'rything"}']}
READ = {"name": "read_mail", "arguments": ['{"fol', 'der": "inbox"}']}


def test_a_call_of_a_tool_that_is_not_allowed_never_reaches_the_sdk(llm: Llm, client: OpenAI) -> None:
    model = llm.put("tools-refused", {"choices": [{"content": "Let me see. ", "tool_calls": [READ, CALL]}]})
    asked: Any = {"model": model, "messages": user("Use only safe tools."), "tools": tools("read_mail", "delete_all")}
    events, filtered = [], False
    try:
        with client.chat.completions.stream(**asked) as stream:
            for event in stream:
                events.append(event)  # noqa: PERF402 - what came before the error counts
            stream.get_final_completion()
    except openai.ContentFilterFinishReasonError:
        filtered = True
    assert filtered
    pieces = [event.arguments_delta for event in events if event.type == "tool_calls.function.arguments.delta"]
    assert "".join(pieces) == '{"folder": "inbox"}'
    assert "delete_all" not in repr(events)
    assert "everything" not in repr(events)
    assert [tool["function"]["name"] for tool in body(llm, model)["tools"]] == ["read_mail"]

    whole = client.chat.completions.create(**asked).choices[0]
    assert whole.finish_reason == "content_filter"
    assert whole.message.content == "Let me see. [That tool is not allowed.]"
    assert [call.function.name for call in whole.message.tool_calls or [] if call.type == "function"] == ["read_mail"]


def test_an_allowed_call_comes_as_it_was_streamed(llm: Llm, client: OpenAI) -> None:
    model = llm.put("tools-allowed", {"choices": [{"tool_calls": [READ]}]})
    with client.chat.completions.stream(
        model=model, messages=user("Use only safe tools."), tools=tools("look_up", "read_mail", "delete_all")
    ) as stream:
        pieces = [event.arguments_delta for event in stream if event.type == "tool_calls.function.arguments.delta"]
        message = stream.get_final_completion().choices[0].message
    assert [piece for piece in pieces if piece] == READ["arguments"]
    assert [call.function.name for call in message.tool_calls or []] == ["read_mail"]
    assert [tool["function"]["name"] for tool in body(llm, model)["tools"]] == ["look_up", "read_mail"]


def test_without_an_allowed_tool_the_request_has_none(llm: Llm, client: OpenAI) -> None:
    model = llm.put("tools-none", {"choices": [{"content": "Fine."}]})
    forced: Any = {"type": "function", "function": {"name": "delete_all"}}
    said(client, model, streamed=True, prompt="only safe tools", tools=tools("delete_all"), tool_choice=forced)
    assert {"tools", "tool_choice"}.isdisjoint(body(llm, model))
    said(client, model, streamed=True, tools=tools("delete_all"), tool_choice=forced)
    assert body(llm, model)["tool_choice"] == forced


@pytest.mark.parametrize("streamed", [True, False])
def test_what_the_context_says_shapes_the_request(llm: Llm, client: OpenAI, streamed: bool) -> None:
    model = llm.put("shaped", {"choices": [{"content": "Fine."}]})
    asked: Any = {"streamed": streamed, "temperature": 1.2, "logit_bias": {"7": 5, "8": 1}}
    said(client, model, **asked)
    plain = body(llm, model)
    assert (plain["temperature"], plain["logit_bias"]) == (0.5, {"7": 5, "8": 1})
    assert [message["role"] for message in plain["messages"]] == ["user"]

    person = {"user": {"name": "Ann", "vulnerable": True}}
    said(client, model, **asked, extra_body={"checkstream": {"context": person}})
    safe = body(llm, model)
    assert (safe["temperature"], safe["logit_bias"], safe["bad_words"]) == (0.3, {"7": -100, "8": 1}, ["casino"])
    told = [message["content"] for message in safe["messages"] if message["role"] == "system"]
    assert sorted(told) == ["Be careful.", "Speak kindly to Ann."]
    assert "checkstream" not in safe


def test_a_temperature_below_the_limit_stays(llm: Llm, client: OpenAI) -> None:
    model = llm.put("cool", {"choices": [{"content": "Fine."}]})
    person = {"checkstream": {"context": {"user": {"vulnerable": True}}}}
    said(client, model, streamed=True, temperature=0.1, extra_body=person)
    assert body(llm, model)["temperature"] == 0.1
    said(client, model, streamed=True, extra_body=person)
    assert body(llm, model)["temperature"] == 0.3


def test_an_answer_of_a_fixed_form_is_asked_for_and_nothing_is_added_to_it(llm: Llm, client: OpenAI) -> None:
    model = llm.put("form", {"choices": [{"content": '{"answer": "guaranteed returns"}'}]})
    assert said(client, model, streamed=True, prompt="Answer as a form.") == '{"answer": "guaranteed returns"}'
    form = body(llm, model)["response_format"]
    assert (form["type"], form["json_schema"]["schema"]["required"]) == ("json_schema", ["answer"])
    assert form["json_schema"]["strict"] is True


@pytest.mark.parametrize("streamed", [True, False])
def test_sources_are_those_of_the_request(llm: Llm, client: OpenAI, streamed: bool) -> None:
    model = llm.put("sources", {"choices": [{"content": "The moon does it."}]})
    documents = ["no name", {"text": "tides", "title": "The Moon", "url": "https://moon.example/a"}, {"text": "x"}]
    given = {"checkstream": {"documents": documents}}
    text = said(client, model, streamed=streamed, prompt="Why? Say where from.", extra_body=given)
    assert text == "The moon does it.\n\nFrom: document 1, The Moon (https://moon.example/a)."
    assert said(client, model, streamed=streamed, prompt="Why?", extra_body=given) == "The moon does it."
    assert said(client, model, streamed=streamed, prompt="Say where from.") == "The moon does it."
    assert "tides" not in json.dumps(llm.requests(model)), "documents are for policies; the model has its own copy"


@pytest.mark.parametrize("streamed", [True, False])
def test_a_required_disclaimer_is_added_only_where_it_is_missing(llm: Llm, client: OpenAI, streamed: bool) -> None:
    missing = llm.put("risk-missing", {"choices": [{"content": "We give guaranteed returns to all."}]})
    there = llm.put("risk-there", {"choices": [{"content": "Guaranteed returns! CAPITAL at risk. Call us."}]})
    assert said(client, missing, streamed=streamed) == "We give guaranteed returns to all.\n\nCapital at risk."
    assert said(client, there, streamed=streamed) == "Guaranteed returns! CAPITAL at risk. Call us."


@pytest.mark.parametrize("streamed", [True, False])
def test_texts_are_put_behind_their_sentence_and_words_replaced(llm: Llm, client: OpenAI, streamed: bool) -> None:
    script = {"choices": [{"content": "It doubled last year. It is cheap crap, really. Buy it."}]}
    model = llm.put("sentences", script | {"split": {"by": "chars", "size": 3}})
    expected = "It doubled last year. Past performance is no guide. It is inexpensive goods, really. Buy it."
    assert said(client, model, streamed=streamed) == expected


def test_g20_a_whole_answer_that_is_blocked_with_a_status_is_the_sdks_error_and_not_retried(
    llm: Llm, client: OpenAI
) -> None:
    model = llm.put("blocked", {"choices": [{"content": "Now launch the missiles at once."}]})
    with pytest.raises(openai.InternalServerError) as raised:
        said(client, model, streamed=False)
    error = raised.value
    assert (error.status_code, error.type, error.code) == (503, "response_blocked", "response_blocked")
    assert isinstance(error.body, dict)
    assert (error.body["rule_id"], error.body["message"]) == ("STOP-1", "this answer was blocked (rule STOP-1)")
    assert error.response.headers["x-should-retry"] == "false"
    assert len(llm.requests(model)) == 1, "the SDK, which retries a 503 by itself, has not"
    # what has begun can't become an error: the stream ends as filtered
    with client.chat.completions.create(model=model, messages=user("Go on."), stream=True) as stream:
        chunks = [chunk.choices[0] for chunk in stream]
    assert "".join(chunk.delta.content or "" for chunk in chunks) == "Now this answer was blocked"
    assert [chunk.finish_reason for chunk in chunks if chunk.finish_reason] == ["content_filter"]


MAIL = "Ask maria.lindstrom@example.com or bob@example.org or maria.lindstrom@example.com, card 4242 4242 4242 4242."


def test_a_hash_is_the_same_for_the_same_text_over_answers_and_restarts(llm: Llm, tmp_path: Path) -> None:
    model = llm.put("hashes", {"choices": [{"content": MAIL}]})
    settings = config(llm.url, tmp_path, ["policy.yaml"], upstream={"can": CAN}, chat_only=True)
    (tmp_path / "policy.yaml").write_text(POLICY)
    answers = []
    for _ in range(2):
        with running(Proxy(settings, tmp_path)) as proxy, OpenAI(base_url=f"{proxy.url}/v1", api_key="k") as client:
            answers += [said(client, model, streamed=streamed) for streamed in (True, False)]
    assert len(set(answers)) == 1
    assert "lindstrom" not in answers[0]
    assert "4242" not in answers[0]
    assert answers[0].endswith("card **** **** **** ****.")
    labels = [word.strip(",.") for word in answers[0].split() if word.startswith("[EMAIL")]
    assert len(labels) == 3
    assert labels[0] == labels[2] != labels[1]
    other = tmp_path / "other"
    other.mkdir()
    (other / "policy.yaml").write_text(POLICY)
    elsewhere = config(llm.url, other, ["policy.yaml"], upstream={"can": CAN}, chat_only=True)
    with running(Proxy(elsewhere, other)) as proxy, OpenAI(base_url=f"{proxy.url}/v1", api_key="k") as client:
        assert labels[0] not in said(client, model, streamed=True), "another key gives another digest"


def test_the_header_says_which_action_was_the_strictest(llm: Llm, proxy: Proxy) -> None:
    model = llm.put("strictest", {"choices": [{"content": f"It doubled last year. {MAIL}"}]})
    asked = {"model": model, "messages": user("Go on.")}
    _, headers, _ = http("POST", f"{proxy.url}/v1/chat/completions", asked)
    assert headers["x-checkstream-action"] == "redact"
    record = proxy.record(headers["x-checkstream-stream"])["body"]["record"]
    assert record["action"] == "redact"
    assert {verdict["rule_id"] for verdict in record["verdicts"]} == {"PAST-1", "HASH-1", "CARD-1"}
