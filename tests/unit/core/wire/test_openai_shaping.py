"""What policies change of a request: exactly that, and nothing that the caller sends undoes it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkstream.core.wire.openai.chat import OpenAIChat
from checkstream.core.wire.openai.completions import OpenAICompletions
from checkstream.core.wire.surface import Shaping
from checkstream.errors import WireError

CHAT, TEXT = OpenAIChat(), OpenAICompletions()
USER = {"role": "user", "content": "hello"}
HELLO: dict[str, Any] = {"messages": [USER]}


def chat(body: dict[str, Any], texts: dict[int, str] | None = None, **shaping: Any) -> Any:
    request = CHAT.read_request(json.dumps(body).encode())
    return json.loads(CHAT.write_request(request, texts or {}, Shaping(**shaping)))


def completion(body: dict[str, Any], texts: dict[int, str] | None = None, **shaping: Any) -> Any:
    request = TEXT.read_request(json.dumps(body).encode())
    return json.loads(TEXT.write_request(request, texts or {}, Shaping(**shaping)))


def function(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


def test_nothing_asked_is_nothing_changed() -> None:
    raw = b' { "messages":[{"role":"user","content":"h\\u0065"} ] , "temperature" : 1.50 } '
    assert CHAT.write_request(CHAT.read_request(raw), {}, Shaping()) == raw


def test_every_byte_that_is_not_shaped_stays() -> None:
    raw = b'{ "messages":[ {"role":"user","content":"a"} ] , "temperature" : 1.50, "top_p":0.90, "checkstream":{} }'
    out = CHAT.write_request(CHAT.read_request(raw), {0: "b"}, Shaping(max_temperature=0.25, bad_words=("w",)))
    assert out == (
        b'{"bad_words":["w"], "messages":[ {"role":"user","content":"b"} ] , "temperature" : 0.25, "top_p":0.90 }'
    )


@pytest.mark.parametrize(
    ("given", "out"),
    [
        ({}, 0.5),
        ({"temperature": None}, 0.5),
        ({"temperature": 2}, 0.5),
        ({"temperature": 0.5}, 0.5),
        ({"temperature": 0.1}, 0.1),
        ({"temperature": 0}, 0),
        ({"temperature": 0.4, "dynatemp_range": 1.5}, 0.4),
    ],
)
def test_the_temperature_is_at_most_what_policies_allow(given: dict[str, Any], out: float) -> None:
    assert chat(HELLO | given, max_temperature=0.5) == HELLO | {"temperature": out}
    assert completion({"prompt": "p"} | given, max_temperature=0.5) == {"prompt": "p", "temperature": out}


def test_only_allowed_tools_are_offered() -> None:
    tools = [function("weather"), function("send_mail"), function("search_web"), {"type": "code_interpreter"}]
    body = HELLO | {"tools": tools, "tool_choice": "auto", "parallel_tool_calls": True}
    assert chat(body, tools=("weather", "search_*")) == body | {"tools": [tools[0], tools[2]]}
    assert chat(body, tools=()) == HELLO
    assert chat(body, tools=("*",)) == body
    assert chat(HELLO, tools=()) == HELLO
    assert chat(HELLO | {"tools": [], "tool_choice": "none"}, tools=("weather",)) == HELLO


def test_functions_of_the_old_form_are_tools_too() -> None:
    body = HELLO | {"functions": [{"name": "a"}, {"name": "b"}], "function_call": {"name": "a"}}
    assert chat(body, tools=("a",)) == body | {"functions": [{"name": "a"}]}
    assert chat(body, tools=("b",)) == HELLO | {"functions": [{"name": "b"}]}
    assert chat(body, tools=("c",)) == HELLO


@pytest.mark.parametrize(
    ("choice", "stays"),
    [
        ("auto", True),
        ("required", True),
        ("weather", True),
        ("send_mail", False),
        ({"type": "function", "function": {"name": "weather"}}, True),
        ({"type": "function", "function": {"name": "send_mail"}}, False),
        ({"type": "custom", "custom": {"name": "send_mail"}}, False),
        ({"name": "send_mail"}, False),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [function("weather")]}}, True),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [function("send_mail")]}}, False),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "send_mail"}]}, False),
        ({}, False),
        (7, False),
    ],
)
def test_a_choice_of_a_tool_that_is_not_allowed_goes(choice: object, stays: bool) -> None:
    body = HELLO | {"tools": [function("weather"), function("send_mail")], "tool_choice": choice}
    assert ("tool_choice" in chat(body, tools=("weather",))) is stays


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "function": {"name": "weather"}, "name": "send_mail"},
        {"type": "custom", "custom": {"name": "send_mail"}, "function": {"name": "weather"}},
        {"type": "web_search", "function": {"name": "weather"}},
        {"type": "function", "function": {}},
        {"type": "function", "function": {"name": ["weather"]}},
        {"function": {"name": "Weather"}},
        {"function": {"name": "weather\u200b"}},
        {"function": {"name": ""}},
        "weather",
        ["weather"],
        None,
    ],
)
def test_a_tool_that_could_be_taken_for_another_goes(tool: object) -> None:
    both: list[object] = [function("weather"), tool]
    shaped = chat(HELLO | {"tools": both}, tools=("weather",))
    assert shaped == HELLO | {"tools": [function("weather")]}
    assert chat(HELLO | {"tools": [tool]}, tools=("weather",)) == HELLO


def test_tools_are_taken_out_wherever_a_template_may_find_them() -> None:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "s", "tools": [function("a"), function("b")]}, USER]
    body = {"messages": messages, "chat_template_kwargs": {"tools": [function("b")], "x": 1}, "tools": {"a": 1}}
    assert chat(body, tools=("a",)) == {
        "messages": [messages[0] | {"tools": [function("a")]}, USER],
        "chat_template_kwargs": {"x": 1},
    }


def test_bad_words_come_behind_the_callers() -> None:
    assert chat(HELLO, bad_words=("a", 'é"')) == HELLO | {"bad_words": ["a", 'é"']}
    assert chat(HELLO | {"bad_words": None}, bad_words=("a",)) == HELLO | {"bad_words": ["a"]}
    assert chat(HELLO | {"bad_words": []}, bad_words=("a",)) == HELLO | {"bad_words": ["a"]}
    assert chat(HELLO | {"bad_words": ["x", "a"]}, bad_words=("a", "b")) == HELLO | {"bad_words": ["x", "a", "b"]}
    assert completion({"prompt": "p"}, bad_words=("a",)) == {"prompt": "p", "bad_words": ["a"]}
    for odd in ("a", {"a": 1}, 1, False):
        with pytest.raises(WireError, match="`bad_words`"):
            chat(HELLO | {"bad_words": odd}, bad_words=("a",))


@pytest.mark.parametrize(
    ("given", "out"),
    [
        (None, {"7": -100, "9": 5}),
        ({}, {"7": -100, "9": 5}),
        ({"8": 1.5}, {"7": -100, "9": 5, "8": 1.5}),
        ({"7": 100, "8": 1}, {"7": -100, "9": 5, "8": 1}),
        ({"7": 100}, {"7": -100, "9": 5}),
        ({"07": 100, " 7": 100, "+7": 100, "7 ": 100, "0_7": 100, "\u0667": 100}, {"7": -100, "9": 5}),
        ({"7x": 1, "": 2, "-7": 3, "9" * 5000: 4}, {"7": -100, "9": 5, "7x": 1, "": 2, "-7": 3, "9" * 5000: 4}),
    ],
)
def test_the_policys_bias_wins_however_the_token_is_written(given: object, out: dict[str, float]) -> None:
    shaped = chat(HELLO | {"logit_bias": given}, logit_bias=((7, -100), (9, 5)))
    assert shaped == HELLO | {"logit_bias": out}


def test_a_bias_that_is_no_object_can_not_be_shaped() -> None:
    for odd in ([[7, 1]], "x", 3, True):
        with pytest.raises(WireError, match="`logit_bias`"):
            chat(HELLO | {"logit_bias": odd}, logit_bias=((7, -100),))


RIVALS: dict[str, Any] = {
    "response_format": {"type": "json_object"}, "structured_outputs": {"regex": ".*"}, "guided_json": {},
    "guided_regex": ".*", "guided_choice": ["a"], "guided_grammar": "g", "guided_whitespace_pattern": " ",
    "structural_tag": {}, "json_schema": {}, "grammar": "g", "regex": ".*", "ebnf": "g",
}  # fmt: skip


def test_the_policys_form_of_the_answer_is_the_only_one() -> None:
    schema = '{"properties":{"a":{"type":"string"}},"type":"object"}'
    form = {"type": "json_schema", "json_schema": {"name": "policy", "schema": json.loads(schema), "strict": True}}
    grammar = 'root ::= "yes" | "no"\n'
    for write, body in ((chat, HELLO), (completion, {"prompt": "p"})):
        for given in (body, body | RIVALS):
            assert write(given, json_schema=schema) == body | {"response_format": form}
            assert write(given, grammar=grammar) == body | {"structured_outputs": {"grammar": grammar}}


def test_instructions_stand_behind_the_leading_system_messages() -> None:
    system, developer = {"role": "system", "content": "s"}, {"role": "developer", "content": "d"}
    late = {"role": "system", "content": "late"}
    said = [{"role": "system", "content": "Be\nkind."}, {"role": "system", "content": "Be brief."}]
    instructions = ("Be\nkind.", "Be brief.", "Be\nkind.")
    for before, after in (([], [USER]), ([system, developer], [USER, late]), ([system], [])):
        assert chat({"messages": before + after}, instructions=instructions) == {"messages": before + said + after}


def test_an_edit_of_a_text_and_an_instruction_beside_it_both_come_through() -> None:
    body = {"messages": [{"role": "system", "content": "s"}, USER]}
    out = chat(body, {0: "[S]", 1: "[U]"}, instructions=("i",), continue_from="so far")
    assert [message["content"] for message in out["messages"]] == ["[S]", "i", "[U]", "so far"]


CONTINUED = {"continue_final_message": True, "add_generation_prompt": False}


def test_an_answer_goes_on_from_what_was_released() -> None:
    said = {"role": "assistant", "content": "so far "}
    assert chat(HELLO, continue_from="so far ") == {"messages": [USER, said]} | CONTINUED
    odd = HELLO | {
        "n": 1,
        "echo": True,
        "add_generation_prompt": True,
        "chat_template_kwargs": {"add_generation_prompt": True, "continue_final_message": False, "x": 1},
    }
    assert chat(odd, continue_from="so far ") == {
        "messages": [USER, said],
        "n": 1,
        "chat_template_kwargs": {"x": 1},
        **CONTINUED,
    }
    assert chat(HELLO, continue_from="") == HELLO


@pytest.mark.parametrize("flag", [{"continue_final_message": True, "add_generation_prompt": False}, {}])
def test_a_beginning_that_the_caller_gave_is_gone_on_with(flag: dict[str, Any]) -> None:
    prefix: dict[str, Any] = {} if flag else {"prefix": True}
    cases: list[tuple[Any, Any]] = [
        ("My", "My word"),
        ("", " word"),
        (["a", "b"], ["a", "b word"]),
        ([{"type": "text", "text": "b"}], [{"type": "text", "text": "b word"}]),
    ]
    for content, joined in cases:
        begun = {"role": "assistant", "content": content, **prefix}
        assert chat({"messages": [USER, begun]} | flag, continue_from=" word") == {
            "messages": [USER, begun | {"content": joined}],
            **CONTINUED,
        }
    begun = {"role": "assistant", "content": "My", **prefix}
    assert chat({"messages": [USER, begun]} | flag, {1: "[M]"}, continue_from="x")["messages"][1]["content"] == "[M]x"


def test_an_answer_that_stands_in_the_request_is_not_taken_for_its_beginning() -> None:
    said = {"role": "assistant", "content": "done"}
    assert chat({"messages": [USER, said]}, continue_from="x")["messages"] == [
        USER,
        said,
        {"role": "assistant", "content": "x"},
    ]


@pytest.mark.parametrize(
    "body",
    [
        HELLO | {"n": 2},
        HELLO | {"best_of": 2},
        HELLO | {"response_format": {"type": "json_object"}},
        HELLO | {"structured_outputs": {"choice": ["a"]}},
        {"messages": [USER, {"role": "assistant", "content": None, "prefix": True}]},
        {"messages": [USER, {"role": "assistant", "content": [], "prefix": True}]},
        {"messages": [USER, {"role": "assistant", "prefix": True, "tool_calls": []}]},
        {
            "messages": [
                USER,
                {"role": "assistant", "prefix": True, "content": [{"type": "image_url", "image_url": {"url": "u"}}]},
            ]
        },
    ],
)
def test_what_can_not_be_continued_is_said(body: dict[str, Any]) -> None:
    with pytest.raises(WireError, match="continued"):
        chat(body, continue_from="x")


def test_the_policys_own_form_can_not_be_continued_either() -> None:
    with pytest.raises(WireError, match="fixed form"):
        chat(HELLO, continue_from="x", grammar="g")


def test_a_completion_goes_on_behind_its_prompt() -> None:
    assert completion({"prompt": "Once"}, continue_from=" upon") == {"prompt": "Once upon"}
    assert completion({"prompt": ["Once"]}, {0: "[O]"}, continue_from=" upon") == {"prompt": ["[O] upon"]}
    bodies: list[dict[str, Any]] = [
        {"prompt": ["a", "b"]}, {"prompt": [1, 2]}, {"prompt": [[1]]}, {"prompt": "a", "echo": True},
        {"prompt": "a", "best_of": 2}, {"prompt": "a", "n": 2}, {"prompt": []},
    ]  # fmt: skip
    for body in bodies:
        with pytest.raises(WireError, match="continued"):
            completion(body, continue_from="x")


def test_a_completion_has_neither_roles_nor_tools() -> None:
    for shaping in ({"instructions": ("i",)}, {"tools": ()}):
        with pytest.raises(WireError, match="chat routes"):
            completion({"prompt": "p"}, **shaping)
