"""OpenAI chat: events and whole bodies of the servers in common use, and edits that keep every other byte."""

from __future__ import annotations

import json

import pytest

from checkstream.core.terms import Channel, Unit
from checkstream.core.wire.answers.answer import LEGACY_CALL
from checkstream.core.wire.json_text.spans import NAME
from checkstream.core.wire.surface import Edit
from checkstream.errors import WireError
from tests.chat_events import CHAT, FULL_DELTA, chunk, data, delta, read, texts
from tests.mutated import mutations

OPENAI = (
    b'data: {"id":"chatcmpl-9x","object":"chat.completion.chunk","created":1726000000,"model":"gpt-4o-mini",'
    b'"service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" hello"},'
    b'"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"aZ9"}\n\n'
)
VLLM = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
    b'"delta":{"reasoning_content":"hm"},"logprobs":null,"finish_reason":null,"token_ids":null}]}\n\n'
)
VLLM_LAST = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
    b'"delta":{"content":""},"logprobs":null,"finish_reason":"stop","stop_reason":null}]}\n\n'
)
LLAMA_CPP = (
    b'data: {"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"created":1,"id":"chatcmpl-2","model":"q",'
    b'"system_fingerprint":"b1","object":"chat.completion.chunk","timings":{"prompt_n":1}}\n\n'
)
OLLAMA = (
    b'data: {"id":"chatcmpl-3","object":"chat.completion.chunk","created":1,"model":"l","system_fingerprint":'
    b'"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]}\n\n'
)
AZURE_FIRST = (
    b'data: {"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,'
    b'"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}\n\n'
)
AZURE = (
    b'data: {"choices":[{"content_filter_results":{"hate":{"filtered":false}},"delta":{"content":"A"},'
    b'"finish_reason":null,"index":0,"logprobs":null}],"created":1,"id":"x","model":"g","object":'
    b'"chat.completion.chunk","system_fingerprint":null}\n\n'
)
USAGE = chunk([], usage={"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7})


@pytest.mark.parametrize(
    ("raw", "found", "choices", "finished", "usage"),
    [
        (OPENAI, [("content", 0, 0, " hello")], (0,), (), False),
        (VLLM, [("reasoning", 0, 0, "hm")], (0,), (), False),
        (VLLM_LAST, [], (0,), (0,), False),
        (LLAMA_CPP, [], (0,), (0,), False),
        (OLLAMA, [("content", 0, 0, "Hi")], (0,), (), False),
        (AZURE_FIRST, [], (), (), False),
        (AZURE, [("content", 0, 0, "A")], (0,), (), False),
        (USAGE, [], (), (), True),
    ],
)
def test_events_of_common_servers(
    raw: bytes,
    found: list[tuple[str, int, int, str]],
    choices: tuple[int, ...],
    finished: tuple[int, ...],
    usage: bool,
) -> None:
    unit = read(raw)
    assert texts(unit) == found
    padded = raw.replace(b'"obfuscation":"aZ9"', b'"obfuscation":"xxx"')
    assert (unit.choices, unit.finished, unit.usage, unit.raw) == (choices, finished, usage, padded)
    assert (unit.unscanned, unit.opaque, unit.failure, unit.terminator) == ((), False, None, False)


def test_g13_every_channel_of_every_choice_is_read() -> None:
    unit = read(
        chunk(
            [
                delta(0, content="a", refusal="b", reasoning_content="c", reasoning="d"),
                delta(2, tool_calls=[{"index": 1, "id": "t", "function": {"name": "f", "arguments": '{"x'}}]),
                delta(1, "stop", function_call={"name": "g", "arguments": "{}"}),
            ]
        )
    )
    assert texts(unit) == [
        ("content", 0, 0, "a"),
        ("refusal", 0, 0, "b"),
        ("reasoning", 0, 0, "c"),
        ("reasoning", 0, 1, "d"),
        ("tool_name", 2, 1, "f"),
        ("tool_arguments", 2, 1, '{"x'),
        ("tool_name", 1, LEGACY_CALL, "g"),
        ("tool_arguments", 1, LEGACY_CALL, "{}"),
    ]
    assert unit.choices == (0, 2, 1)
    assert unit.finished == (1,)


def test_g13_less_common_places_of_text() -> None:
    unit = read(
        chunk(
            [
                delta(
                    content=[
                        {"type": "thinking", "thinking": [{"type": "text", "text": "t"}]},
                        {"type": "text", "text": "x"},
                        "y",
                    ],
                    reasoning_details=[{"type": "reasoning.text", "text": "r", "index": 1}, {"summary": "s"}],
                    tool_calls=[{"type": "custom", "custom": {"name": "n", "input": "i"}}],
                )
            ]
        )
    )
    found = {(kind, text) for kind, _, _, text in texts(unit)}
    assert found >= {("content", "x"), ("content", "y"), ("reasoning", "t"), ("reasoning", "r"), ("reasoning", "s")}
    assert found >= {("tool_name", "n"), ("tool_arguments", "i")}


def test_g34_arguments_sent_as_an_object_are_read_as_the_json_that_they_are() -> None:
    given = {"to": "a@b.c", "n": 4111111111111111, "l": ["q"]}
    unit = read(chunk([delta(tool_calls=[{"function": {"arguments": given}}])]))
    assert texts(unit) == [("tool_arguments", 0, 0, json.dumps(given))]
    edited = data(CHAT.write_event(unit, Edit({0: '{"to":"x"}'})))["choices"][0]["delta"]
    assert edited["tool_calls"][0]["function"]["arguments"] == {"to": "x"}
    cut = data(CHAT.write_event(unit, Edit({0: '{"to":"x'})))["choices"][0]["delta"]
    assert cut["tool_calls"][0]["function"]["arguments"] == '{"to":"x'


def test_g34_what_stands_in_unknown_fields_is_read_with_its_place() -> None:
    unit = read(
        chunk(
            [delta(audio={"transcript": "hi"}, annotations=[{"url": "u"}], flag=True, note="") | {"more": "words"}],
            sources=["http://x"],
            count=3,
        )
    )
    assert [
        (extra.choice, extra.text, extra.path, extra.joins)
        for extra in unit.extras
        if extra.joins and extra.again == "read"
    ] == [
        (0, "hi", ("choices", 0, "delta", "audio", "transcript"), True),
        (0, "u", ("choices", 0, "delta", "annotations", 0, "url"), True),
        (0, "words", ("choices", 0, "more"), True),
        (-1, "http://x", ("sources", 0), True),
    ]
    assert {(extra.text, extra.again) for extra in unit.extras if extra.path in {("id",), ("model",)}} == {
        ("c1", "first"),
        ("m", "first"),
    }
    names = {extra.text for extra in unit.extras if extra.path[-1] == NAME}
    assert names == {"audio", "flag", "note", "more", "sources", "count"}
    assert {extra.text for extra in unit.extras if not extra.joins} - names == {"3"}
    assert unit.unscanned == ()


def test_g17_bytes_spelled_as_text_are_named() -> None:
    long, short = "QUJD" * 100, "QUJD"
    image, other = ({"url": f"data:image/png;base64,{start}{long}"} for start in ("iVBORw0KGgo=", ""))
    unit = read(chunk([delta(audio={"data": long}, x={"data": short, "signature": long})], images=[image, other]))
    assert unit.unscanned == ("delta.audio.data", "images.url")
    assert [extra.text for extra in unit.extras if extra.joins] == [short, long, "c1", "m", other["url"]]


def test_g17_an_event_that_is_nothing_known_is_opaque() -> None:
    assert read(b'data: {"type":"response.created"}\n\n').opaque
    assert read(b"error: boom\n\n").opaque
    assert not read(b": ping\n\n").opaque
    assert not read(b"data:\n\n").opaque


def test_terminator() -> None:
    assert read(b"data: [DONE]\n\n").terminator
    assert read(b"data:[DONE] \r\n\r\n").terminator
    assert read(CHAT.terminator()).terminator


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'data: {"error":{"message":"boom","type":"server_error"}}\n\n', "boom"),
        (b'data: {"error":"boom"}\n\n', "boom"),
        (b'event: error\ndata: {"message":"boom"}\n\n', "boom"),
        (b'data: {"object":"error","message":"boom","code":400}\n\n', "boom"),
        (b'data: {"error":{}}\n\n', "the upstream reported an error"),
        (b"event: error\ndata: {}\n\n", "the upstream reported an error"),
    ],
)
def test_error_objects_are_failures(raw: bytes, message: str) -> None:
    unit = read(raw)
    assert unit.failure == message
    assert not unit.opaque


def test_g19_a_wrong_type_anywhere_is_a_wire_error_at_most() -> None:
    refused = 0
    for body in mutations({"id": "x", "choices": [{"index": 0, "delta": FULL_DELTA, "finish_reason": "stop"}]}):
        raw = b"data: " + json.dumps(body).encode() + b"\n\n"
        try:
            unit = read(raw)
            changed = dict.fromkeys(range(len(unit.deltas)), "[X]")
            CHAT.write_event(unit, Edit(changed))
            CHAT.write_event(unit, Edit({}, frozenset(unit.choices)))
            CHAT.text_event(unit, 0, "x")
        except WireError:
            refused += 1
    assert refused > 20


@pytest.mark.parametrize(
    "payload",
    [
        b"{",
        b"[]",
        b'"x"',
        b"null",
        b"NaN",
        b'{"choices":[{"index":NaN}]}',
        b'{"choices":[{"index":1e999}]}',
        b'{"choices":[{"index":' + b"9" * 5000 + b"}]}",
        b'{"x":"\\ud83d","y":NaN}',
        b'{"x":"\\ud83d',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"\\u0061":' * 100_000,
        b'{"id":"\xff","choices":[]}',
        b'{"choices":[{"index":0,"delta":{"content":"\xed\xa0\xbd"}}]}',
        b'{"choices":[{"index":4096,"delta":{}}]}',
        b'{"choices":[{"index":0,"delta":{"content":"x"}}]} trailing',
    ],
)
def test_g19_hostile_json_is_a_wire_error(payload: bytes) -> None:
    with pytest.raises(WireError):
        read(b"data: " + payload + b"\n\n")
    with pytest.raises(WireError):
        CHAT.read_whole(payload)


def test_g12_an_emoji_cut_into_lone_surrogates_is_kept_and_scanned_around() -> None:
    raw = rb'data: {"choices":[{"index":0,"delta":{"content":"a\ud83d"}}]}' + b"\n\n"
    unit = read(raw)
    assert texts(unit) == [("content", 0, 0, "a\ufffd")]
    assert CHAT.write_event(unit, Edit({0: "a\ufffd"})) == raw
    assert data(CHAT.write_event(unit, Edit({0: "b\ufffd"})))["choices"][0]["delta"]["content"] == "b\ud83d"
    whole = CHAT.read_whole(rb'{"choices":[{"index":0,"message":{"content":"\udc00x"}}]}')
    assert texts(whole) == [("content", 0, 0, "\ufffdx")]


def test_g05_an_edit_keeps_every_other_byte() -> None:
    raw = (
        b'data: { "id" : "\\u0063","choices":[ {"delta":{"content" :"a\\tb", "x":1.50e1},"index" : 0 } ] ,"n":1E5}\n\n'
    )
    unit = read(raw)
    assert CHAT.write_event(unit, Edit({0: 'q"\n😀'})) == raw.replace(rb'"a\tb"', '"q\\"\\n😀"'.encode())
    assert CHAT.write_event(unit, Edit({0: "a\tb"})) is unit.raw
    assert CHAT.write_event(unit, Edit({})) is unit.raw


@pytest.mark.parametrize(
    "raw",
    [
        b'{"id":"\\"content\\":\\"a\\"","choices":[{"index":0,"delta":{"content":"a"}}]}',
        b'{"x\\"content":"a","choices":[{"index":0,"delta":{"cont\\u0065nt":"a"}}]}',
        b'{"content":"a","choices":[{"index":0,"delta":{"content":"a"}}]}',
        b'{"choices":[{"index":0,"delta":{"content" :"a"},"logprobs" : {"content":[{"token":"a"}]}}]}',
        b'{"choices":[{"index":0,"logprobs":{"refusal":[]},"delta":{"content":"a"}}]}',
        b'{"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"name":"a"}}],"x":{"name":"b"}}}]}',
        b'{"choices":[{"index":0,"delta":{"refusal":"a","content":null}}],"y":"content"}',
        b'{"choices":[{"index":0,"x":{"content":"a"},"delta":{"content" : "a"}}]}',
        b'{"choices":[{"index":0,"x":{"reasoning_content":"a"},"delta":{"reasoning_content" : "a"}}]}',
        b'{"choices":[{"index":0,"x":{"0":"a"},"delta":{"content":["a"]}}]}',
        b'{"x":{"logprobs":null},"choices":[{"index":0,"logprobs":{"content":[]},"delta":{"refusal":"a"}}]}',
    ],
)
def test_g34_an_edit_finds_its_place_among_look_alikes(raw: bytes) -> None:
    unit = read(b"data: " + raw + b"\n\n")
    assert [d.text for d in unit.deltas] == ["a"]
    expected = json.loads(raw)
    inner = expected["choices"][0]
    for key in unit.deltas[0].path[2:-1]:
        inner = inner[key]
    inner[unit.deltas[0].path[-1]] = "b"
    if "logprobs" in expected["choices"][0]:
        expected["choices"][0]["logprobs"] = None
    assert data(CHAT.write_event(unit, Edit({0: "b"}))) == expected


def test_edit_of_an_event_of_several_data_lines_makes_one() -> None:
    unit = read(b'event: error\ndata: {"choices":[{"index":0,\ndata: "delta":{"content":"a"}}]}\nid: 3\n\n')
    assert CHAT.write_event(unit, Edit({0: "b"})) == (
        b'event: error\ndata: {"choices":[{"index":0, "delta":{"content":"b"}}]}\n\n'
    )


def test_g15_logprobs_and_token_ids_of_the_altered_choice_only_are_removed() -> None:
    logprobs = {"content": [{"token": "a", "logprob": -1, "bytes": [97], "top_logprobs": []}], "refusal": None}
    both = [delta(i, content="a") | {"logprobs": logprobs, "token_ids": [5]} for i in (0, 1)]
    out = data(CHAT.write_event(read(chunk(both)), Edit({1: "b"})))["choices"]
    assert out[0] == both[0]
    assert out[1] == both[1] | {"delta": {"content": "b"}, "logprobs": None, "token_ids": None}


@pytest.mark.parametrize(
    ("dropped", "left"), [({0}, [1, 2]), ({1}, [0, 2]), ({2}, [0, 1]), ({0, 1}, [2]), ({1, 2}, [0]), ({0, 2}, [1])]
)
def test_g14_dropped_choices_leave_the_others(dropped: set[int], left: list[int]) -> None:
    unit = read(chunk([delta(i, content=str(i)) for i in (0, 1, 2)]))
    edit = Edit({0: "A", 1: "B", 2: "C"}, frozenset(dropped))
    out = data(CHAT.write_event(unit, edit))["choices"]
    assert [(c["index"], c["delta"]["content"]) for c in out] == [(i, "ABC"[i]) for i in left]


def test_an_event_of_which_nothing_remains_is_empty() -> None:
    unit = read(chunk([delta(0, content="x")]))
    assert CHAT.write_event(unit, Edit({}, frozenset({0}))) == b""
    assert CHAT.write_event(unit, Edit({}, frozenset({5}))) is unit.raw


def test_g16_usage_beside_a_dropped_choice_stays() -> None:
    unit = read(chunk([delta(0, content="x")], usage={"total_tokens": 4}))
    out = data(CHAT.write_event(unit, Edit({}, frozenset({0}))))
    assert out["choices"] == []
    assert out["usage"] == {"total_tokens": 4}


@pytest.mark.parametrize(
    "choices",
    [
        b'[{"index":0,"delta":{"content":"a","content":"b"}}]',
        b'[{"index":0,"delta":{"content":"a", "content" :"b"}}]',
        b'[{"index":0,"delta":{"content":"a","c\\u006fntent":"b"}}]',
        b'[{"index":0,"delta":{"refusal":"a"},"delta":{"content":"b"}}]',
        b'[{"index":0,"text":"a"}],"choices":[{"index":0,"delta":{"content":"b"}}]',
        b'[{"index":0,"delta":{"reasoning":"a","reasoning":"b"}}]',
    ],
)
def test_g13_two_members_of_one_name_are_refused_since_only_one_would_be_scanned(choices: bytes) -> None:
    with pytest.raises(WireError, match="two members of one name"):
        read(b'data: {"choices":' + choices + b"}\n\n")


def test_own_events_take_the_envelope_of_the_stream() -> None:
    like = read(OPENAI)
    base = {
        "id": "chatcmpl-9x",
        "object": "chat.completion.chunk",
        "created": 1726000000,
        "model": "gpt-4o-mini",
        "system_fingerprint": "fp_1",
    }
    text = {"index": 1, "delta": {"content": "x"}, "logprobs": None, "finish_reason": None}
    assert data(CHAT.text_event(like, 1, "x")) == base | {"choices": [text]}
    finish = {"index": 2, "delta": {}, "logprobs": None, "finish_reason": "content_filter"}
    assert data(CHAT.finish_event(like, 2)) == base | {"choices": [finish]}
    usage = {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5, "checkstream_estimated": True}
    assert data(CHAT.usage_event(like, 2, 3)) == base | {"choices": [], "usage": usage}
    assert texts(read(CHAT.text_event(like, 1, "x"))) == [("content", 1, 0, "x")]
    assert read(CHAT.finish_event(like, 2)).finished == (2,)
    assert read(CHAT.usage_event(like, 1, 1)).usage


@pytest.mark.parametrize("raw", [b"", b"data: [DONE]\n\n", b": c\n\n", b'data: {"id":5}\n\n', b"data: {\n\n"])
def test_own_events_have_defaults_before_the_first_event(raw: bytes) -> None:
    body = data(CHAT.text_event(Unit(raw=raw), 0, "x"))
    assert body["id"]
    assert body["choices"][0]["delta"] == {"role": "assistant", "content": "x"}


def test_g20_error_shapes() -> None:
    plain = {"type": "upstream_error", "code": "upstream_error", "message": "m", "param": None}
    assert json.loads(CHAT.error_body("upstream_error", "m")) == {"error": plain}
    ruled = {"type": "request_blocked", "code": "request_blocked", "message": "m (rule R-1)", "param": None}
    ruled |= {"rule_id": "R-1"}
    assert json.loads(CHAT.error_body("request_blocked", "m", "R-1")) == {"error": ruled, "rule_id": "R-1"}
    assert data(CHAT.error_event("upstream_error", "m")) == {"error": plain}
    placed = json.loads(CHAT.error_body("request_blocked", "no", "R-1", "messages[3]"))["error"]
    assert (placed["message"], placed["param"]) == ("no (rule R-1, messages[3])", "messages[3]")


def test_channels_are_values() -> None:
    assert read(OPENAI).deltas[0].channel == Channel("content", 0, 0)
