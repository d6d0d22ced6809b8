"""Requests of the Messages API: what is read as which channel, what is refused, and what policies change of them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from checkstream.core.wire.surface import Shaping
from checkstream.core.wire.surfaces import SURFACES
from checkstream.errors import RequestInvalid, WireError
from tests.guarded import plan
from tests.messages import MESSAGES, request
from tests.playbook import play

COUNTING = SURFACES["anthropic.count_tokens"]
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {"q": "the sun"}}


def result(content: Any, of: str = "toolu_1") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": of, "content": content}


def body(*messages: Any, **more: Any) -> bytes:
    return json.dumps({"model": "claude", "max_tokens": 9, "messages": list(messages), **more}).encode()


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def spoken(raw: bytes) -> dict[str, list[str]]:
    """Return the texts that classifiers are asked about, by channel."""
    read = MESSAGES.read_request(raw)
    found: dict[str, list[str]] = {}
    for place, delta in enumerate(read.unit.deltas):
        if place not in read.quiet:
            found.setdefault(delta.channel.kind, []).append(delta.text)
    return found


def written(raw: bytes, texts: dict[int, str] | None = None, **shaping: Any) -> Any:
    read = MESSAGES.read_request(raw)
    return json.loads(MESSAGES.write_request(read, texts or {}, Shaping(**shaping) if shaping else None))


def test_g13_each_block_of_a_message_is_its_channel() -> None:
    page = {"type": "document", "source": {"type": "text", "data": "a page"}, "title": "T!"}
    part = {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "a part"}]}}
    hit = {
        "type": "search_result",
        "source": "https://h/s",
        "title": "a hit",
        "content": [{"type": "text", "text": "x y"}],
    }
    found = {"type": "web_search_result", "title": "the star", "url": "https://h/x", "encrypted_content": "ZW5j"}
    raw = body(
        {"role": "user", "content": "what is it?"},
        user({"type": "text", "text": "see here"}, page, part, hit),
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "let me see", "signature": "c2ln"}, CALL]},
        user(result("it shines"), result([{"type": "text", "text": "it is hot"}], "toolu_2")),
        {
            "role": "assistant",
            "content": [{"type": "web_search_tool_result", "tool_use_id": "s", "content": [found]}],
        },
        system=[{"type": "text", "text": "be brief"}],
        tools=[{"name": "look_up", "description": "looks it up", "input_schema": {"type": "object"}}],
    )
    texts = spoken(raw)
    assert texts["system"] == ["be brief", "looks it up"] or texts["system"] == ["be brief", "look_up", "looks it up"]
    assert texts["user"] == ["what is it?", "see here"]
    assert texts["assistant"] == ["let me see", "the sun"]
    assert texts["tool_result"][:2] == ["it shines", "it is hot"]
    assert "the star" in texts["tool_result"]
    assert {"a page", "T!", "a part", "a hit", "x y"} <= set(texts["document"])


def test_results_and_documents_are_judged_one_by_one() -> None:
    read = MESSAGES.read_request(body(user(result("one"), result("two", "toolu_2"))))
    channels = [delta.channel for delta in read.unit.deltas if delta.text in {"one", "two"}]
    assert [channel.kind for channel in channels] == ["tool_result"] * 2
    assert channels[0].choice != channels[1].choice


def test_a_file_of_text_is_read_and_a_picture_is_named() -> None:
    data = base64.b64encode(b"the quarterly figures are these").decode()
    file = {"type": "document", "source": {"type": "base64", "media_type": "text/plain", "data": data}}
    pdf = {"type": "document", "source": {"type": "base64", "data": base64.b64encode(b"%PDF-1.7 \0\1").decode()}}
    image = {"type": "image", "source": {"type": "url", "url": "https://h/i.png"}}
    read = MESSAGES.read_request(body(user(file, image)))
    asked = {i: delta for i, delta in enumerate(read.unit.deltas) if i not in read.quiet}
    assert [d.text for d in asked.values() if d.channel.kind == "document"] == ["the quarterly figures are these"]
    assert read.unit.unscanned == ("image",)
    assert MESSAGES.read_request(body(user(pdf))).unit.unscanned == ("document",)
    place = next(i for i, d in asked.items() if d.channel.kind == "document")
    sent = json.loads(MESSAGES.write_request(read, {place: "withheld"}))
    assert base64.b64decode(sent["messages"][0]["content"][0]["source"]["data"]) == b"withheld"


@pytest.mark.parametrize("fields", [{}, {"thinking": {"type": "enabled", "budget_tokens": 1024}}])
def test_what_is_known_of_a_request(fields: dict[str, Any]) -> None:
    tools = [{"name": "look_up", "input_schema": {}}, {"type": "web_search_20250305", "name": "web_search"}]
    raw = body(user(), stream=True, tools=tools, metadata={"user_id": "ann"}, temperature=0.5, **fields)
    read = MESSAGES.read_request(raw)
    assert (read.model, read.streaming, read.user, read.temperature) == ("claude", True, "ann", 0.5)
    assert (read.tools, read.unknown_fields, read.structured) == (("look_up", "web_search"), (), False)
    assert MESSAGES.read_request(body(user(), output_config={"format": {"type": "json_schema"}})).structured
    assert not MESSAGES.read_request(body(user(), output_config={"effort": "low"})).structured


@pytest.mark.parametrize(
    "wrong",
    [
        b"[]",
        b'{"messages": []}',
        b'{"messages": [7]}',
        b'{"messages": [{"content": "a"}]}',
        b'{"messages": [{"role": "user", "content": 7}]}',
        b'{"messages": [{"role": "user", "content": [7]}]}',
        b'{"messages": [{"role": "user", "content": [{"type": "text", "text": 7}]}]}',
        b'{"messages": [{"role": "user", "content": [{"type": "Text", "text": "a"}]}]}',
        b'{"messages": [{"role": "user", "content": "a", "content": "b"}]}',
        b'{"messages": [{"role": "user", "Content": "a"}]}',
        b'{"messages": [{"role": "user", "content": "a"}], "System": "b"}',
        b'{"messages": [{"role": "user", "content": "a"}], "stream": 1}',
        b'{"messages": [{"role": "user", "content": "a"}], "temperature": "1"}',
        b'{"messages": [{"role": "user", "content": "a"}], "model": 7}',
    ],
)
def test_g31_what_could_be_read_in_two_ways_is_refused(wrong: bytes) -> None:
    for surface in (MESSAGES, COUNTING):
        with pytest.raises(RequestInvalid):
            surface.read_request(wrong)


def test_what_nobody_knows_is_named_and_read() -> None:
    block = {"type": "hologram", "says": "the plan", "text": "aloud"}
    read = MESSAGES.read_request(body({"role": "oracle", "content": [block], "mood": "calm and bright"}, novel="x y"))
    assert set(read.unknown_fields) == {
        "novel", "messages[].role", "messages[].mood", "messages[].content[].type", "messages[].content[].says",
    }  # fmt: skip
    assert {"the plan", "aloud", "calm and bright", "x y"} <= {delta.text for delta in read.unit.deltas}


def test_g05_a_request_that_nothing_changes_goes_on_as_it_came() -> None:
    raw = b' { "messages":[{"role":"user","content":"h\\u0065"} ] , "model" : "claude" } '
    assert MESSAGES.write_request(MESSAGES.read_request(raw), {}, Shaping()) == raw
    assert MESSAGES.write_request(MESSAGES.read_request(raw), {}) == raw


def test_what_policies_remove_leaves_a_note_where_one_is_wanted() -> None:
    page = {"type": "document", "source": {"type": "text", "data": "a page"}}
    raw = body(user(result([{"type": "text", "text": "bad"}]), page), user(result("good")))
    removed = tuple((("messages", 0, "content", i), "[removed]") for i in range(2))
    sent = written(raw, removed=removed)["messages"]
    note = {"type": "text", "text": "[removed]"}
    assert sent[0]["content"] == [result("[removed]"), note]
    assert sent[1]["content"] == [result("good")]
    assert written(raw, removed=((("messages", 1), "[removed]"),))["messages"][1]["content"] == [result("[removed]")]


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("code_execution", {"type": "code_execution_result", "stdout": "bad", "return_code": 0}),
        ("bash_code_execution", {"type": "bash_code_execution_result", "stdout": "bad"}),
        ("web_search", [{"type": "web_search_result", "title": "bad", "url": "https://a", "encrypted_content": "e"}]),
        ("web_fetch", {"type": "web_fetch_result", "url": "https://a", "content": {"type": "document"}}),
        ("tool_search", {"type": "tool_search_tool_search_result", "tool_references": []}),
        ("next_years", "bad"),
    ],
)
def test_g08_a_call_of_the_providers_own_tools_keeps_a_result_when_what_it_said_is_removed(
    form: str, content: object
) -> None:
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": form, "input": {}}
    said = {"type": f"{form}_tool_result", "tool_use_id": "srvtoolu_1", "content": content, "note": "bad"}
    raw = body(user(), {"role": "assistant", "content": [call, said, {"type": "text", "text": "ok"}]}, user("go on"))
    sent = written(raw, removed=((("messages", 1, "content", 1), "[removed]"),))["messages"][1]["content"]
    error = {"type": f"{form}_tool_result_error", "error_code": "unavailable"}
    assert sent[1] == {"type": f"{form}_tool_result", "tool_use_id": "srvtoolu_1", "content": error}
    assert (sent[0], sent[2]) == (call, {"type": "text", "text": "ok"})


def test_tools_that_are_not_allowed_go_out_and_servers_of_tools_with_them() -> None:
    tools = [{"name": "look_up"}, {"name": "delete_all"}, {"type": "mcp_toolset", "mcp_server_name": "m"}]
    servers = [{"type": "url", "url": "https://h/mcp", "name": "m"}]
    raw = body(user(), tools=tools, mcp_servers=servers, tool_choice={"type": "tool", "name": "delete_all"})
    sent = written(raw, tools=("look_up",))
    assert [tool["name"] for tool in sent["tools"]] == ["look_up"]
    assert not {"mcp_servers", "tool_choice"} & sent.keys()
    assert "tools" not in written(raw, tools=())
    assert written(raw, tools=("*",))["mcp_servers"] == servers


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({}, {"temperature": 0.5}),
        ({"temperature": 0.2, "top_p": 0.9}, {"temperature": 0.2, "top_p": 0.9}),
        ({"temperature": 1, "thinking": {"type": "enabled"}}, {"temperature": 0.5}),
        ({"top_p": 0.9, "novel": 7}, {"temperature": 0.5}),
    ],
)
def test_the_temperature_is_bounded_and_nothing_undoes_it(given: dict[str, Any], sent: dict[str, Any]) -> None:
    made = written(body(user(), **given), max_temperature=0.5)
    assert {name: value for name, value in made.items() if name not in {"model", "max_tokens", "messages"}} == sent


@pytest.mark.parametrize(
    ("system", "sent"),
    [
        (None, "Be kind."),
        ("Be brief.", "Be brief.\n\nBe kind."),
        ([{"type": "text", "text": "a"}], [{"type": "text", "text": "a"}, {"type": "text", "text": "Be kind."}]),
    ],
)
def test_instructions_stand_behind_the_system_prompt(system: Any, sent: Any) -> None:
    given = {} if system is None else {"system": system}
    assert written(body(user(), **given), instructions=("Be kind.", "Be kind."))["system"] == sent


def test_an_answer_is_continued_from_the_last_message() -> None:
    asked = {"role": "user", "content": "Go."}
    sent = written(body(asked), continue_from="Once upon")["messages"]
    assert sent == [asked, {"role": "assistant", "content": "Once upon"}]
    begun = {"role": "assistant", "content": [{"type": "text", "text": "Well: "}]}
    assert written(body(asked, begun), continue_from="once")["messages"][1]["content"][0]["text"] == "Well: once"
    with pytest.raises(WireError):
        written(body(asked, {"role": "assistant", "content": [CALL]}), continue_from="once")
    with pytest.raises(WireError):
        written(body(asked, thinking={"type": "enabled"}), continue_from="once")
    with pytest.raises(WireError):
        written(body(asked), bad_words=("x",))


MAIL = "  - {name: m, id: PII-1, stage: [ingress], entities: [EMAIL], actions: [{type: redact}]}\n"
BLOCK = "  - {name: b, id: B-1, stage: [ingress], phrases: [zero risk], actions: [{type: reject, message: No.}]}\n"


def test_what_is_counted_is_what_would_be_sent() -> None:
    asked = request("mail joe@example.com", stream=False)
    answered = json.dumps({"input_tokens": 7, "context_management": {"original_input_tokens": 9}}).encode()
    out = play(COUNTING, plan(MAIL), asked, [answered], streaming=False)
    assert out.forwarded == asked.replace(b"joe@example.com", b"[EMAIL]")
    assert out.reply is not None
    told = json.loads(out.reply.body)
    assert told.pop("checkstream")["rule_id"] == "PII-1"
    assert told == json.loads(answered)
    out = play(COUNTING, plan(MAIL), request(stream=False), [b'{"tokens": 7}'], streaming=False)
    assert out.reply is not None
    assert (out.reply.status, json.loads(out.reply.body)["error"]["type"]) == (502, "api_error")


@pytest.mark.parametrize("surface", [MESSAGES, COUNTING], ids=lambda each: each.name)
def test_g20_a_refused_prompt_has_anthropics_form(surface: Any) -> None:
    out = play(surface, plan(BLOCK), request("no zero risk here"), [])
    assert out.reply is not None
    assert (out.reply.status, out.reply.retry, out.forwarded) == (400, False, None)
    told = json.loads(out.reply.body)
    assert (told["type"], told["rule_id"]) == ("error", "B-1")
    assert told["error"] == {
        "type": "invalid_request_error",
        "code": "request_blocked",
        "message": "No. (rule B-1, messages[0])",
        "param": "messages[0]",
        "rule_id": "B-1",
    }
