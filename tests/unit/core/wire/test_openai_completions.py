"""Legacy completions: the same laws with `text` in the place of `delta` and `message`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkstream.core.terms import Unit
from checkstream.core.wire.openai.completions import OpenAICompletions
from checkstream.core.wire.sse import Decoder
from checkstream.core.wire.surface import Edit, Request
from checkstream.errors import RequestInvalid, WireError

TEXT = OpenAICompletions()


def event(raw: bytes) -> Unit:
    (frame,) = Decoder().decode(raw)
    return TEXT.read_event(frame)


def data(raw: bytes) -> Any:
    (frame,) = Decoder().decode(raw)
    return json.loads(frame.data or b"")


def request(**body: object) -> Request:
    return TEXT.read_request(json.dumps(body).encode())


def found(unit: Unit) -> list[tuple[str, int, int, str]]:
    return [(d.channel.kind, d.channel.choice, d.channel.index, d.text) for d in unit.deltas]


LOGPROBS = {"tokens": ["a"], "token_logprobs": [-1.0], "top_logprobs": [{"a": -1.0}], "text_offset": [0]}
EVENT = (
    b'data: {"id":"cmpl-1","object":"text_completion","created":5,"model":"m","choices":[{"index":1,"text":"a",'
    b'"logprobs":' + json.dumps(LOGPROBS).encode() + b',"finish_reason":null}],"usage":null}\n\n'
)


def test_event_is_read_and_edited() -> None:
    unit = event(EVENT)
    assert found(unit) == [("content", 1, 0, "a")]
    assert (unit.choices, unit.finished, unit.unscanned) == ((1,), (), ())
    assert TEXT.write_event(unit, Edit({0: "a"})) is unit.raw
    out = data(TEXT.write_event(unit, Edit({0: "b"})))
    assert out["choices"][0] == {"index": 1, "text": "b", "logprobs": None, "finish_reason": None}
    assert TEXT.write_event(unit, Edit({}, frozenset({1}))) == b""


def test_last_words() -> None:
    done = event(b'data: {"id":"c","choices":[{"index":0,"text":"","finish_reason":"length"}]}\n\n')
    assert (done.finished, done.deltas) == ((0,), ())
    assert event(b'data: {"choices":[],"usage":{"total_tokens":1}}\n\n').usage
    assert event(TEXT.terminator()).terminator
    assert event(b'data: {"error":{"message":"no"}}\n\n').failure == "no"
    assert event(b'event: error\ndata: {"message":"no"}\n\n').failure == "no"
    assert event(b'data: {"something":1}\n\n').opaque
    assert not event(b": c\n\n").opaque


def test_whole_body() -> None:
    body = {
        "choices": [
            {"index": 0, "text": "hello", "logprobs": LOGPROBS, "finish_reason": "stop"},
            {"index": 1, "text": "", "logprobs": None, "finish_reason": "stop"},
        ]
    }
    raw = json.dumps(body).encode()
    unit = TEXT.read_whole(raw)
    assert found(unit) == [("content", 0, 0, "hello"), ("content", 1, 0, "")]
    assert unit.finished == (0, 1)
    assert TEXT.write_whole(unit, Edit({}), {}) == raw
    out = json.loads(TEXT.write_whole(unit, Edit({1: "added"}, frozenset({0})), {0: "content_filter"}))["choices"]
    assert out[0] == {"index": 0, "text": "", "logprobs": None, "finish_reason": "content_filter"}
    assert out[1] == {"index": 1, "text": "added", "logprobs": None, "finish_reason": "stop"}


def test_own_events() -> None:
    like = event(EVENT)
    base = {"id": "cmpl-1", "object": "text_completion", "created": 5, "model": "m"}
    text = {"index": 2, "text": "x", "logprobs": None, "finish_reason": None}
    assert data(TEXT.text_event(like, 2, "x")) == base | {"choices": [text]}
    finish = text | {"text": "", "finish_reason": "content_filter"}
    assert data(TEXT.finish_event(like, 2)) == base | {"choices": [finish]}
    assert data(TEXT.usage_event(like, 1, 2))["usage"]["checkstream_estimated"] is True
    assert data(TEXT.error_event("k", "m", "R"))["rule_id"] == "R"
    assert json.loads(TEXT.error_body("k", "m"))["error"]["code"] == "k"


def test_g13_prompts() -> None:
    assert found(request(prompt="a").unit) == [("user", 0, 0, "a")]
    assert found(request(prompt=["a", "b"], suffix="c").unit) == [
        ("user", 0, 0, "a"),
        ("user", 1, 0, "b"),
        ("user", 2, 0, "c"),
    ]


@pytest.mark.parametrize("prompt", [[1, 2, 3], [[1], [2, 3]], ["a", [1]]])
def test_g17_token_ids_are_named_as_not_scanned(prompt: object) -> None:
    assert request(prompt=prompt).unit.unscanned == ("prompt tokens",)


@pytest.mark.parametrize("prompt", [None, 1, {}, [{}], [True], [["a"]], [1.5], [None]])
def test_other_prompts_are_refused(prompt: object) -> None:
    with pytest.raises(RequestInvalid, match="prompt"):
        request(prompt=prompt)


def test_g14_every_prompt_gets_its_choices() -> None:
    assert request(prompt="a", n=2).choices == 2
    assert request(prompt=["a", "b", "c"], n=2).choices == 6
    assert request(prompt=[1, 2, 3], n=2).choices == 2
    assert request(prompt=[[1], [2]]).choices == 2
    assert request(prompt="a", n=None).choices == 1


def test_request_fields() -> None:
    read = request(prompt="a", echo=True, best_of=3, logprobs=5, stream=True, messages=[], checkstream={})
    assert read.streaming
    assert read.unknown_fields == ("messages",)
    assert json.loads(TEXT.write_request(read, {0: "b"}))["prompt"] == "b"
    with pytest.raises(RequestInvalid, match="best_of"):
        request(prompt="a", best_of=1000)


@pytest.mark.parametrize("raw", [b'{"choices":[{"text":1}]}', b'{"choices":[1]}', b'{"choices":1}', b"{"])
def test_g19_hostile_answers(raw: bytes) -> None:
    with pytest.raises(WireError):
        event(b"data: " + raw + b"\n\n")
    with pytest.raises(WireError):
        TEXT.read_whole(raw)
