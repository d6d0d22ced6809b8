"""Values come back wherever an answer says what stands for them: in fields that nobody knows, in names, said again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkstream.core.wire.surfaces import SURFACES
from tests import messages, responses
from tests.guarded import CHAT, DONE, ends, event, plan, request, says
from tests.playbook import Played, play

PLAN = plan("  - {name: p, id: PSN-1, entities: [EMAIL, CREDIT_CARD], actions: [{type: pseudonymise}]}\n")
PROMPT = "Write to ann@x.io and bob@y.io."
STRANGE = {"to": "email 1", "<EMAIL_2>": [{"url": "mailto:%3CEMAIL_1%3E", "n": 1, "not": "<EMAIL_3>"}]}
READ = {"to": "ann@x.io", "bob@y.io": [{"url": "mailto:ann%40x.io", "n": 1, "not": "<EMAIL_3>"}]}
NOTE = {"type": "url_citation", "url": "mailto:<EMAIL_1>", "title": "Mail EMAIL_2", "start_index": 0, "end_index": 3}
NOTED = NOTE | {"url": "mailto:ann@x.io", "title": "Mail bob@y.io"}
STREAMS = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


def bodies(out: Played) -> list[dict[str, Any]]:
    data = out.reply.body if out.reply is not None else out.joined
    lines = [line.removeprefix(b"data: ") for line in data.split(b"\n")]
    return [json.loads(line) for line in lines if line.startswith(b"{")]


@STREAMS
def test_g38_values_come_back_in_fields_that_nobody_knows(stream: bool) -> None:
    message = {"role": "assistant", "content": "Hi.", "annotations": [NOTE], "parsed": STRANGE, "strange": ["EMAIL_1"]}
    if stream:
        pieces = [event((0, message, None)), ends(), DONE]
    else:
        reply = {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "more": STRANGE}
        pieces = [json.dumps(reply).encode()]
    told = bodies(play(CHAT, PLAN, request(PROMPT, stream=stream), pieces, streaming=stream))[0]
    read = told["choices"][0]["delta" if stream else "message"]
    assert (read["annotations"], read["parsed"], read["strange"]) == ([NOTED], READ, ["ann@x.io"])
    assert stream or told["more"] == READ


@pytest.mark.parametrize("at", range(1, len("<EMAIL_1>")))
def test_g38_values_come_back_in_fields_that_nobody_knows_over_any_cut(at: int) -> None:
    pieces = [event((0, {"strange": text}, None)) for text in ("<EMAIL_1>"[:at], "<EMAIL_1>"[at:])]
    told = bodies(play(CHAT, PLAN, request(PROMPT), [says("Hi."), *pieces, ends(), DONE]))
    deltas = [choice["delta"] for each in told for choice in each["choices"]]
    assert "".join(delta.get("strange", "") for delta in deltas) == "ann@x.io"


@STREAMS
@pytest.mark.parametrize("at", [1, 9, 30])
def test_g38_a_tool_is_called_by_the_name_that_its_caller_knows(stream: bool, at: int) -> None:
    name = "pay-4929123456789015"
    tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}]
    asked = request(PROMPT, stream=stream, tools=tools)
    sent = play(CHAT, PLAN, asked, []).forwarded
    assert sent is not None
    known = json.loads(sent)["tools"][0]["function"]["name"]
    assert known == "pay-CREDIT_CARD_1"  # servers take no brackets in names
    calls: list[dict[str, Any]] = [
        {"index": 0, "id": "c", "type": "function", "function": {"name": known[:at], "arguments": ""}},
        {"index": 0, "function": {"name": known[at:]}},
        {"index": 0, "function": {"arguments": '{"EMAIL_1": "<CREDIT_CARD_1>"}'}},
    ]
    if stream:
        pieces = [event((0, {"tool_calls": [call]}, None)) for call in calls] + [ends(reason="tool_calls"), DONE]
    else:
        whole = calls[0] | {"function": {"name": known, **calls[2]["function"]}}
        message = {"role": "assistant", "content": None, "tool_calls": [whole]}
        reply = {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
        pieces = [json.dumps(reply).encode()]
    told = bodies(play(CHAT, PLAN, asked, pieces, streaming=stream))
    said = [choice["delta" if stream else "message"] for each in told for choice in each["choices"]]
    functions = [call["function"] for each in said for call in each.get("tool_calls", ())]
    assert "".join(each.get("name", "") for each in functions) == name
    assert json.loads("".join(each.get("arguments", "") for each in functions)) == {"ann@x.io": "4929123456789015"}


@STREAMS
def test_g38_responses_say_again_what_was_sent(stream: bool) -> None:
    item = responses.message("See <EMAIL_1>.")
    item["content"][0]["annotations"] = [NOTE]
    answer = responses.answer(item, pieces=5) if stream else responses.whole(item)
    repeated = b'"instructions": null', b'"instructions": "You help <EMAIL_2>"'
    asked = json.loads(responses.request(PROMPT, stream=stream)) | {"instructions": "You help bob@y.io"}
    out = play(responses.RESPONSES, PLAN, json.dumps(asked).encode(), [answer.replace(*repeated)], streaming=stream)
    if stream:
        reader = responses.Reader()  # holds what was streamed against each snapshot
        for each in responses.events(out.joined):
            reader.take(each)
        told = reader.response
    else:
        told = bodies(out)[0]
    (part,) = told["output"][0]["content"]
    assert (part["text"], part["annotations"]) == ("See ann@x.io.", [NOTED])
    assert told["instructions"] == "You help bob@y.io"


@STREAMS
def test_g38_messages_cite_what_was_asked_about(stream: bool) -> None:
    cited = {"type": "char_location", "cited_text": "<EMAIL_1>", "document_index": 0, "document_title": "EMAIL_2"}
    cited |= {"start_char_index": 0, "end_char_index": 4}
    asked = messages.request(PROMPT, stream=stream)
    if stream:
        *said, over = messages.text(0, "See.")
        answer = messages.answer([*said, messages.delta(0, "citations_delta", citation=cited), over])
    else:
        answer = messages.whole({"type": "text", "text": "See.", "citations": [cited]})
    out = play(SURFACES["anthropic.messages"], PLAN, asked, [answer], streaming=stream)
    read = cited | {"cited_text": "ann@x.io", "document_title": "bob@y.io"}
    if stream:
        deltas = [each["delta"] for each in bodies(out) if each.get("type") == "content_block_delta"]
        assert [each["citation"] for each in deltas if each["type"] == "citations_delta"] == [read]
    else:
        assert bodies(out)[0]["content"][0]["citations"] == [read]


def test_g38_what_was_asked_about_comes_back_where_answers_are_figures() -> None:
    def asked(surface: str, body: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
        out = play(SURFACES[surface], PLAN, json.dumps(body).encode(), [json.dumps(answer).encode()], streaming=False)
        assert b".io" not in (out.forwarded or b".io")
        return bodies(out)[0]

    ranked = {"model": "m", "query": PROMPT, "documents": ["of bob@y.io", {"text": "eve@z.io"}]}
    results = [{"index": 1, "document": {"text": "<EMAIL_3>"}}, {"index": 0, "document": {"text": "of <EMAIL_2>"}}]
    told = asked("cohere.rerank", ranked, {"id": "1", "results": results})
    assert [each["document"]["text"] for each in told["results"]] == ["eve@z.io", "of bob@y.io"]
    said = {"object": "list", "data": [{"index": 0, "embedding": [0.5], "text": "<EMAIL_1>"}]}
    assert asked("openai.embeddings", {"model": "m", "input": [PROMPT]}, said)["data"][0]["text"] == "ann@x.io"
    flagged = {"id": "m", "results": [{"flagged": False, "input": "email 2"}]}
    assert asked("openai.moderations", {"model": "m", "input": PROMPT}, flagged)["results"][0]["input"] == "bob@y.io"


def test_g38_a_model_that_is_called_as_placeholders_are_keeps_its_name() -> None:
    asked = json.dumps({"model": "email-1", "messages": [{"role": "user", "content": PROMPT}]}).encode()
    message = {"role": "assistant", "content": "<EMAIL_1>, <EMAIL_2>"}
    reply = {"id": "x", "model": "email-1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    told = bodies(play(CHAT, PLAN, asked, [json.dumps(reply).encode()], streaming=False))[0]
    assert (told["model"], told["choices"][0]["message"]["content"]) == ("email-1", "<EMAIL_1>, ann@x.io")
