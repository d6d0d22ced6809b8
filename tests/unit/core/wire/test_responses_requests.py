"""Requests of the Responses API: every text in its channel, nothing smuggled, shaped as policies want."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkstream.core.wire.surface import Shaping
from checkstream.core.wire.surfaces import SURFACES
from checkstream.errors import RequestInvalid, WireError

RESPONSES = SURFACES["openai.responses"]
STORED = SURFACES["openai.responses.stored"]


def body(given: Any = "hi", **more: Any) -> bytes:
    return json.dumps({"model": "gpt", "input": given, **more}).encode()


def texts(data: bytes) -> list[tuple[str, int, str]]:
    deltas = RESPONSES.read_request(data).unit.deltas
    return [(delta.channel.kind, delta.channel.choice, delta.text) for delta in deltas]


def shaped(data: bytes, **shaping: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESPONSES.write_request(RESPONSES.read_request(data), {}, Shaping(**shaping)))
    return found


HISTORY = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "input_text", "text": "Who?"}, {"type": "input_image", "image_url": "https://h/i"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm, who?"}]},
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look_up", "arguments": '{"q": "who is it"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "It is her."}]},
    {"type": "custom_tool_call_output", "call_id": "call_2", "output": "Or him."},
    {"type": "mcp_call", "id": "m", "name": "f", "server_label": "s", "arguments": "{}", "output": "Or them."},
    {"type": "message", "role": "assistant", "id": "msg_1", "content": [{"type": "output_text", "text": "Her."}]},
    {"type": "file_search_call", "id": "f", "queries": ["who is he"], "results": [{"text": "A page."}]},
]  # fmt: skip


def test_g13_each_kind_of_item_is_read_in_its_channel() -> None:
    found = texts(body(HISTORY, instructions="You help.", metadata={"note": "a word or two"}))
    assert ("system", 0, "Be brief.") in found
    assert ("user", 1, "Who?") in found
    assert ("assistant", 2, "Hm, who?") in found
    assert ("assistant", 3, '{"q": "who is it"}') in found
    assert ("tool_result", 4, "It is her.") in found
    assert ("tool_result", 5, "Or him.") in found
    assert ("tool_result", 6, "Or them.") in found
    assert ("assistant", 7, "Her.") in found
    assert ("assistant", 8, "who is he") in found
    assert ("tool_result", 8, "A page.") in found
    assert any(kind == "system" and text == "You help." for kind, _, text in found)
    assert any(text == "a word or two" for _, _, text in found)
    assert texts(body("All in one."))[0] == ("user", 0, "All in one.")


def test_files_are_read_as_text_and_pictures_are_named() -> None:
    page = "data:text/plain;base64,QSBwYWdlIG9mIHRleHQu"
    parts = [
        {"type": "input_file", "filename": "a.txt", "file_data": page},
        {"type": "input_image", "file_id": "file-1"},
    ]
    request = RESPONSES.read_request(body([{"role": "user", "content": parts}]))
    assert [delta.text for delta in request.unit.deltas if delta.channel.kind == "document"] == ["A page of text."]
    assert "file_id" in request.unit.unscanned


def test_what_the_provider_keeps_is_named() -> None:
    request = RESPONSES.read_request(body(previous_response_id="resp_0", conversation={"id": "conv_1"}))
    assert (request.previous, request.conversation) == ("resp_0", "conv_1")
    assert {"previous_response_id", "conversation"} <= set(request.unit.unscanned)
    asked = RESPONSES.read_request(
        body(prompt={"id": "p", "variables": {"who": "the one over there"}}, safety_identifier="u")
    )
    assert any(delta.text == "the one over there" for delta in asked.unit.deltas)
    assert asked.user == "u"


@pytest.mark.parametrize(
    "given",
    [
        body(7),
        body([7]),
        body([{"role": 7, "content": "x"}]),
        body([{"type": 7}]),
        body([{"type": "message", "content": "x"}]),
        body([{"role": "user", "content": [7]}]),
        body([{"role": "user", "content": [{"type": "input_text", "text": 7}]}]),
        body([{"role": "user", "Content": "x"}]),
        body([{"type": "Function_Call", "name": "f"}]),
        body([{"role": "user", "content": [{"type": "Input_Text", "text": "x"}]}]),
        body(previous_response_id=7),
        body(conversation=[1]),
        body(Instructions="x"),
        b'{"input": "a", "input": "b"}',
    ],
)
def test_g31_what_could_be_read_in_two_ways_is_refused(given: bytes) -> None:
    with pytest.raises(RequestInvalid):
        RESPONSES.read_request(given)


def test_g31_what_nobody_knows_is_read_and_named() -> None:
    request = RESPONSES.read_request(body([{"type": "new_item", "words": "so many words"}], new_field="words as well"))
    said = [delta.text for delta in request.unit.deltas]
    assert "so many words" in said
    assert "words as well" in said
    assert {"input[].type", "input[].words", "new_field"} <= set(request.unknown_fields)


TOOLS: list[dict[str, Any]] = [
    {"type": "function", "name": name, "parameters": {}} for name in ("look_up", "delete_all")
] + [{"type": "mcp"}]


def test_a_request_is_shaped() -> None:
    data = body(instructions="Be.", tools=TOOLS, temperature=1.5, tool_choice="auto", new_field=1)
    found = shaped(data, instructions=("Be kind.",), tools=("look_up",), max_temperature=0.5)
    assert found["instructions"] == "Be.\n\nBe kind."
    assert [tool["name"] for tool in found["tools"]] == ["look_up"]
    assert found["temperature"] == 0.5
    assert "new_field" not in found
    assert shaped(body(), instructions=("Be kind.",))["instructions"] == "Be kind."
    chosen = body(tools=TOOLS, tool_choice={"type": "function", "name": "delete_all"})
    assert "tool_choice" not in shaped(chosen, tools=("look_up",))
    assert "tools" not in shaped(body(tools=TOOLS[1:]), tools=("look_up",))
    assert shaped(body(prompt={"id": "p"}), tools=())["tools"] == []
    templated = body(prompt={"id": "p"}, tools=[{"type": "function", "name": "pay"}], tool_choice="required")
    assert shaped(templated, tools=("look",))["tools"] == []  # without any, the template's own were offered
    assert "tool_choice" not in shaped(templated, tools=("look",))
    offering = [{"type": "additional_tools", "role": "developer", "tools": TOOLS}]
    assert [tool["name"] for tool in shaped(body(offering), tools=("look_up",))["input"][0]["tools"]] == ["look_up"]


def test_a_form_of_the_answer_is_put_in_the_callers_place() -> None:
    for given in ({}, {"text": {"verbosity": "low"}}, {"text": {"format": {"type": "text"}, "verbosity": "low"}}):
        found = shaped(body(**given), json_schema='{"type": "object"}')
        assert found["text"]["format"]["schema"] == {"type": "object"}
        assert found["text"].get("verbosity") == given.get("text", {}).get("verbosity")
    assert RESPONSES.read_request(body(text={"format": {"type": "json_object"}})).structured
    assert not RESPONSES.read_request(body(text={"format": {"type": "text"}})).structured


def test_what_a_tool_has_said_is_taken_out_where_it_has_a_place_for_a_note() -> None:
    found = shaped(body(HISTORY), removed=((("input", 4), "[out]"),))
    assert found["input"][4] == {"type": "function_call_output", "call_id": "call_1", "output": "[out]"}
    screen = [
        {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "image_url": "x"}}
    ]
    with pytest.raises(WireError):
        shaped(body(screen), removed=((("input", 0), "[out]"),))
    for impossible in ({"bad_words": ("x",)}, {"grammar": "g"}):
        with pytest.raises(WireError):
            shaped(body(), **impossible)


def test_the_rest_of_an_answer_is_asked_for_with_a_message_that_is_not_complete() -> None:
    question, begun = shaped(body(), continue_from="So")["input"]
    assert question == {"role": "user", "content": "hi"}
    assert begun["status"] == "incomplete"
    assert begun["role"] == "assistant"
    assert [part["text"] for part in begun["content"]] == ["So"]
    with pytest.raises(WireError, match="continued"):
        shaped(body(text={"format": {"type": "json_object"}}), continue_from="So")


@pytest.mark.parametrize("given", ["{}", '{"": ""}', '{"seed": 1, "n": 2}', '{"checkstream": {}}', '{"input": null}'])
def test_what_is_put_into_a_body_that_has_little_else_leaves_it_json(given: str) -> None:
    assert shaped(given.encode(), continue_from="So", max_temperature=0.5, instructions="Mind.")["temperature"] == 0.5


@pytest.mark.parametrize(
    ("item", "instead"),
    [
        ({"type": "mcp_call", "id": "m", "server_label": "s", "arguments": "{}", "output": "bad"}, "[out]"),
        (
            {"type": "mcp_call", "id": "m", "name": "f", "arguments": "{}", "output": None, "error": "bad"},
            "[out]",
        ),
        (
            {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "bad", "stderr": ""}]},
            [{"stdout": "[out]", "stderr": "", "outcome": {"type": "exit", "exit_code": 1}}],
        ),
        (
            {"type": "code_interpreter_call", "id": "i", "code": "1", "outputs": [{"type": "logs", "logs": "bad"}]},
            [{"type": "logs", "logs": "[out]"}],
        ),
        ({"type": "file_search_call", "id": "f", "queries": ["q"], "results": [{"text": "bad"}]}, None),
    ],
)
def test_g08_what_a_providers_tool_has_said_goes_and_its_call_stays(item: dict[str, object], instead: object) -> None:
    [found] = shaped(body([{**item, "more": "bad"}]), removed=((("input", 0), "[out]"),))["input"]
    says = next(name for name in ("outputs", "results", "output") if name in item)
    assert found == {**{name: value for name, value in item.items() if name != "error"}, says: instead}


def test_a_request_for_what_is_kept_says_nothing() -> None:
    assert STORED.read_request(b"").unit.deltas == ()
    assert STORED.write_request(STORED.read_request(b"{}"), {}, Shaping(instructions=("x",))) == b"{}"
    with pytest.raises(RequestInvalid):
        STORED.read_request(b'{"input": "x"}')
