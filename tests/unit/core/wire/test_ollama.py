"""Ollama's requests and answers: what is read, what is edited, and that nothing else changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkstream.core.steps import done
from checkstream.core.terms import Channel
from checkstream.core.wire.frame import Frame
from checkstream.core.wire.ollama.inputs import EMBED, EMBEDDINGS
from checkstream.core.wire.ollama.surface import CHAT, GENERATE
from checkstream.core.wire.surface import Edit, Shaping
from checkstream.errors import RequestInvalid, WireError
from tests.guarded import MAIL, plan
from tests.playbook import play

BOTH = pytest.mark.parametrize("surface", [CHAT, GENERATE], ids=lambda each: each.name)
END = {"done": True, "done_reason": "stop", "total_duration": 4_935_886_791, "prompt_eval_count": 26, "eval_count": 9}
HEAD = {"model": "m", "created_at": "2025-01-01T10:00:00.123456789Z"}
CALL = {"function": {"index": 1, "name": "send", "arguments": {"to": "Ann", "n": 3}}}


def frame(**body: Any) -> Frame:
    data = json.dumps(body).encode()
    return Frame(b"data: " + data + b"\n\n", data)


def says(surface: Any, text: str, **more: Any) -> Frame:
    said = {"message": {"role": "assistant", "content": text}} if surface is CHAT else {"response": text}
    return frame(**HEAD, **said, **({"done": False} | more))


def read(surface: Any, body: dict[str, Any]) -> list[tuple[str, int, str]]:
    unit = surface.read_request(json.dumps(body).encode()).unit
    return [(delta.channel.kind, delta.channel.choice, delta.text) for delta in unit.deltas]


def test_g13_every_text_of_a_chat_is_read_in_its_channel() -> None:
    body = {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "What is this?", "images": ["iVBORw0KGgo" + "A" * 300]},
            {"role": "assistant", "content": "", "thinking": "Let me see.", "tool_calls": [CALL]},
            {"role": "tool", "content": "a cat", "tool_name": "look"},
        ],
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks at things."}}],
        "format": {"type": "object", "description": "The form."},
        "options": {"temperature": 0.3, "stop": ["Stop here."]},
    }
    request = CHAT.read_request(json.dumps(body).encode())
    found = read(CHAT, body)
    for expected in [
        ("system", 0, "Be kind."),
        ("user", 1, "What is this?"),
        ("assistant", 2, "Let me see."),
        ("assistant", 2, "Ann"),
        ("tool_result", 3, "a cat"),
    ]:
        assert expected in found
    assert {"Looks at things.", "The form.", "Stop here."} <= {text for _, _, text in found}
    assert request.unit.unscanned == ("images",)
    assert (request.temperature, request.structured, request.tools) == (0.3, True, ("look",))
    assert not request.unknown_fields


def test_g13_every_text_of_generate_is_read_in_its_channel() -> None:
    body = {
        "model": "m", "prompt": "Why?", "system": "Be kind.", "template": "{{ .Prompt }} now", "suffix": "so.",
        "context": [1, 2, 3], "images": ["iVBORw0KGgo" + "A" * 300], "raw": True,
    }  # fmt: skip
    found = read(GENERATE, body)
    assert {("user", 0, "Why?")} <= set(found)
    kinds = {text: kind for kind, _, text in found}
    assert kinds["Be kind."] == kinds["{{ .Prompt }} now"] == "system"
    assert kinds["so."] == "user"
    assert GENERATE.read_request(json.dumps(body).encode()).unit.unscanned == ("images", "context tokens")


@BOTH
def test_a_stream_is_what_is_asked_for_unless_another_is_said(surface: Any) -> None:
    for said, streaming in (({}, True), ({"stream": True}, True), ({"stream": None}, True), ({"stream": False}, False)):
        assert surface.read_request(json.dumps({"model": "m", **said}).encode()).streaming is streaming


@BOTH
@pytest.mark.parametrize(
    "wrong",
    [
        {"stream": "yes"}, {"options": []}, {"options": {"Temperature": 2}}, {"options": {"MIROSTAT": 2}},
        {"options": {"temperature": "hot"}}, {"messages": {}}, {"messages": [3]},
        {"prompt": 3}, {"images": "x"}, {"images": [3]}, {"context": "x"}, {"context": [0.5]}, {"Prompt": "x"},
        {"Messages": []}, {"model": 3},
    ],
)  # fmt: skip
def test_g31_another_form_is_refused(surface: Any, wrong: dict[str, Any]) -> None:
    chat = surface is CHAT
    if wrong.keys() & ({"prompt", "images", "context", "Prompt"} if chat else {"messages", "Messages"}):
        return  # unknown here, and read as such
    with pytest.raises(RequestInvalid):
        surface.read_request(json.dumps({"model": "m", **wrong}).encode())


def test_g31_a_field_that_nobody_knows_is_read_and_named() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "mood": "mail joe@example.com"}
    request = CHAT.read_request(json.dumps(body).encode())
    assert request.unknown_fields == ("mood",)
    assert "mail joe@example.com" in {delta.text for delta in request.unit.deltas}


@pytest.mark.parametrize(
    ("options", "shaped"),
    [
        (None, {"temperature": 0.2}),
        ({}, {"temperature": 0.2}),
        ({"top_k": 3}, {"temperature": 0.2, "top_k": 3}),
        ({"temperature": 1, "mirostat": 2}, {"temperature": 0.2}),
        ({"mirostat": 2}, {"temperature": 0.2}),
        ({"temperature": 0.1}, {"temperature": 0.1}),
        ({"dynatemp_range": 2}, {"temperature": 0.2}),
        ({"dynatemp_range": 2, "top_k": 3, "more": {"temperature": 2}}, {"temperature": 0.2, "top_k": 3}),
    ],
)
@BOTH
def test_a_prompt_is_cooled_where_ollama_reads_it(surface: Any, options: Any, shaped: Any) -> None:
    body = {"model": "m", **({} if options is None else {"options": options})}
    request = surface.read_request(json.dumps(body).encode())
    written = json.loads(surface.write_request(request, {}, Shaping(max_temperature=0.2)))
    assert written == {"model": "m", "options": shaped}


@pytest.mark.parametrize(
    ("wish", "options", "left"),
    [
        ({"instructions": ("Be brief.",)}, {"num_ctx": 8, "num_keep": 0, "seed": 1}, {"seed": 1}),
        ({"continue_from": "So far"}, {"num_ctx": True, "num_keep": 4}, {}),
        ({"instructions": ("Be brief.",)}, {"num_ctx": 32768, "stop": ["x"]}, {"num_ctx": 32768, "stop": ["x"]}),
        ({"json_schema": "{}"}, {"num_ctx": 8, "stop": ['"'], "mood": "x"}, {"num_ctx": 8}),
    ],
)
def test_g31_no_option_undoes_what_policies_want(wish: Any, options: Any, left: Any) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "options": options, "template": "x"}
    request = CHAT.read_request(json.dumps(body).encode())
    written = json.loads(CHAT.write_request(request, {}, Shaping(**wish)))
    assert written["options"] == left
    assert "template" not in written
    named = {("options", name) for name in options.keys() - left.keys()}
    assert set(CHAT.undone(request, Shaping(**wish))) == named | {("template",)}


def test_a_chat_is_shaped_as_policies_want() -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in ("look", "pay")]
    messages = [{"role": "system", "content": "S"}, {"role": "user", "content": "hi"}]
    body = {"model": "m", "messages": messages, "tools": tools, "mood": "x"}
    request = CHAT.read_request(json.dumps(body).encode())
    shaping = Shaping(instructions=("Be brief.",), tools=("look",), json_schema='{"type":"object"}')
    written = json.loads(CHAT.write_request(request, {}, shaping))
    assert written == {
        "model": "m",
        "messages": [messages[0], {"role": "system", "content": "Be brief."}, messages[1]],
        "tools": tools[:1],
        "format": {"type": "object"},
    }
    assert CHAT.undone(request, shaping) == (("mood",),)
    going_on = json.loads(CHAT.write_request(request, {}, Shaping(continue_from="So far")))
    assert going_on["messages"][-1] == {"role": "assistant", "content": "So far"}
    for impossible in (Shaping(bad_words=("x",)), Shaping(logit_bias=((1, 2),)), Shaping(grammar="root ::= x")):
        with pytest.raises(WireError):
            CHAT.write_request(request, {}, impossible)
    with pytest.raises(WireError, match="no messages"):
        GENERATE.write_request(GENERATE.read_request(b'{"model":"m"}'), {}, Shaping(instructions=("x",)))


@BOTH
def test_g05_a_calm_line_says_nothing_besides_its_text(surface: Any) -> None:
    unit = surface.read_event(says(surface, "Hello"))
    assert [(delta.channel, delta.text) for delta in unit.deltas] == [(Channel("content"), "Hello")]
    assert [extra for extra in unit.extras if not extra.word and extra.text != "m"] == []
    assert (unit.choices, unit.finished, unit.terminator, unit.usage) == ((0,), (), False, False)
    last = surface.read_event(says(surface, "", **END))
    assert (last.finished, dict(last.broken), last.terminator, last.usage) == ((0,), {}, True, True)


@BOTH
@pytest.mark.parametrize(("reason", "broken"), [("stop", None), ("load", None), ("length", "length"), ("odd", "other")])
def test_g35_the_reason_of_the_end_tells_whether_all_is_there(surface: Any, reason: str, broken: str | None) -> None:
    unit = surface.read_event(says(surface, "", done=True, done_reason=reason))
    assert unit.broken.get(0) == broken


@pytest.mark.parametrize(
    "created_at",
    ["4111 1111 1111 1111", "2025-01-01T10:00:00.4111111111111111Z", "2025-01-01", 4111111111111111, ["x"], {"a": "b"}],
)
@BOTH
def test_g34_a_moment_that_is_none_is_read(surface: Any, created_at: Any) -> None:
    unit = surface.read_event(_with(surface, created_at))
    flat = json.dumps(created_at)
    assert any(extra.text in flat for extra in unit.extras if extra.path[:1] == ("created_at",))


def _with(surface: Any, created_at: Any) -> Frame:
    body = json.loads(says(surface, "x").data or b"")
    return frame(**{**body, "created_at": created_at})


@BOTH
@pytest.mark.parametrize("moment", ["2025-01-01T10:00:00Z", "2024-08-04T08:52:19.385406455-07:00"])
def test_a_moment_is_no_text(surface: Any, moment: str) -> None:
    assert [extra for extra in surface.read_event(_with(surface, moment)).extras if extra.path == ("created_at",)] == []


@BOTH
def test_g34_a_figure_with_as_many_digits_as_a_card_is_read(surface: Any) -> None:
    unit = surface.read_event(says(surface, "", done=True, total_duration=4111111111111111))
    assert "4111111111111111" in {extra.text for extra in unit.extras}


@pytest.mark.parametrize("stream", [True, False])
@BOTH
def test_g05_g15_log_probabilities_stay_beside_text_that_they_spell_and_go_where_it_is_edited(
    surface: Any, stream: bool
) -> None:
    def answer(*said: str, other: str = "so") -> bytes:
        lines = []
        for number, text in enumerate(said):
            last = {"done": number == len(said) - 1} | ({"done_reason": "stop"} if number == len(said) - 1 else {})
            told = {"message": {"role": "assistant", "content": text}} if surface is CHAT else {"response": text}
            top = [{"token": each, "logprob": -0.1, "bytes": list(each.encode())} for each in (text, other)]
            lines.append({**HEAD, **told, "logprobs": [{**top[0], "top_logprobs": top}] if text else [], **last})
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    def guarded(data: bytes) -> bytes:
        asked = {"messages": [{"role": "user", "content": "hi"}]} if surface is CHAT else {"prompt": "hi"}
        body = json.dumps({"model": "m", "stream": stream, **asked}).encode()
        out = play(surface, plan(MAIL), body, [data], streaming=stream)
        return out.joined if out.reply is None else out.reply.body

    calm = answer("The ", "tides", "") if stream else answer("The tides")
    assert guarded(calm).splitlines() == calm.splitlines()
    said = answer("john.doe@", "example.com", "") if stream else answer("john.doe@example.com")
    for bad in (said, answer("Hm", other="john.doe@example.com")):
        data = guarded(bad)
        assert b"john" not in data
        assert b"exam" not in data
        assert data.count(b"null") >= 1


def test_g15_token_ids_go_when_anything_is_edited() -> None:
    line = frame(**HEAD, response="Hello Joe", done=True, done_reason="stop", context=[1, 2, 3])
    unit = GENERATE.read_event(line)
    assert ("context",) in unit.shadows
    written = GENERATE.write_event(unit, Edit({0: "Hello [NAME]"}))
    assert json.loads(written[6:]) == json.loads(line.data or b"") | {"response": "Hello [NAME]", "context": None}


def test_calls_are_told_by_their_number_and_taken_out_whole() -> None:
    body = {**HEAD, "message": {"role": "assistant", "content": "", "tool_calls": [CALL]}, "done": False}
    unit = CHAT.read_event(frame(**body))
    assert [(delta.channel, delta.text, delta.verbatim) for delta in unit.deltas] == [
        (Channel("tool_name", 0, 1), "send", False),
        (Channel("tool_arguments", 0, 1), '{"to": "Ann", "n": 3}', True),
    ]
    written = CHAT.write_event(unit, Edit({}, drop_calls=frozenset({0, 1})))
    assert json.loads(written[6:])["message"] == {"role": "assistant", "content": ""}
    wrongs: list[Any] = [{}, [3], [{"name": "x"}], [{"function": "x"}]]
    for wrong in wrongs:
        with pytest.raises(WireError):
            CHAT.read_event(frame(**HEAD, message={"tool_calls": wrong}))


@BOTH
def test_a_stopped_answer_ends_with_its_last_word(surface: Any) -> None:
    piece, last = surface.read_event(says(surface, "bad")), surface.read_event(says(surface, "bad", **END))
    gone = Edit({}, drop_choices=frozenset({0}))
    assert surface.write_event(piece, gone) == b""
    body = json.loads(surface.write_event(last, gone)[6:])
    assert (body["done"], body["done_reason"], body["eval_count"]) == (True, "content_filter", 9)
    assert (body["message"]["content"] if surface is CHAT else body["response"]) == ""


@BOTH
def test_a_whole_answer_is_edited_where_it_was_read(surface: Any) -> None:
    raw = json.dumps(json.loads(says(surface, "Hello Joe", **END).data or b"")).encode()
    unit = surface.read_whole(raw)
    assert surface.write_whole(unit, Edit({}), {}) == raw
    edited = json.loads(surface.write_whole(unit, Edit({0: "Hello you"}), {0: "content_filter"}))
    assert (edited["message"]["content"] if surface is CHAT else edited["response"]) == "Hello you"
    assert edited["done_reason"] == "content_filter"
    silent = surface.read_whole(b'{"model":"m","message":{},"done":true}' if surface is CHAT else b'{"done":true}')
    assert b'"Halt."' in surface.write_whole(silent, Edit({0: "Halt."}, frozenset({0})), {0: "content_filter"})


def test_what_goes_on_in_a_second_answer_is_one_answer() -> None:
    said = ({"role": "assistant", "content": text} for text in ("Once ", "upon"))
    first, second = (CHAT.read_whole(json.dumps({**HEAD, "message": message, **END}).encode()) for message in said)
    joined = json.loads(done(CHAT.joining_whole(first, {}, second)))
    assert joined["message"]["content"] == "Once upon"
    assert (joined["eval_count"], joined["prompt_eval_count"]) == (18, 52)


@pytest.mark.parametrize("surface", [CHAT, GENERATE, EMBED], ids=lambda each: each.name)
def test_errors_have_ollama_s_form(surface: Any) -> None:
    body = json.loads(surface.error_body("request_blocked", "Refused.", "INJ-1", "messages[0]"))
    assert body == {
        "error": "Refused. (rule INJ-1, messages[0])",
        "code": "request_blocked",
        "param": "messages[0]",
        "rule_id": "INJ-1",
    }
    assert surface.error_event("overloaded", "Wait.").startswith(b'data: {"error":"Wait."')
    assert surface.read_whole(b'{"error": "model not found"}').failure == "model not found"


def test_embeddings_are_figures_and_their_texts_are_read() -> None:
    raw = b'{"model":"m","embeddings":[[0.5,-1e-3],[1,2]],"total_duration":14143917,"prompt_eval_count":8}'
    unit = EMBED.read_whole(raw)
    assert EMBED.write_whole(unit, Edit({}), {}) == raw
    assert [extra.text for extra in unit.extras] == ["m"]
    assert [delta.text for delta in EMBED.read_request(b'{"model":"m","input":["a","b"]}').unit.deltas] == ["a", "b"]
    assert [delta.text for delta in EMBEDDINGS.read_request(b'{"model":"m","prompt":"a"}').unit.deltas] == ["a"]
    assert EMBEDDINGS.read_whole(b'{"embedding":[0.5]}').raw == b'{"embedding":[0.5]}'
