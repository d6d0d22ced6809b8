"""Two whole answers become one: the first's released content, then the second's, and what both have cost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkstream.core.steps import done
from checkstream.core.terms import Unit
from checkstream.core.wire.openai.chat import OpenAIChat
from checkstream.core.wire.openai.completions import OpenAICompletions
from checkstream.core.wire.surface import Surface
from checkstream.errors import WireError

CHAT, TEXT = OpenAIChat(), OpenAICompletions()


def whole(surface: Surface, choice: dict[str, Any], **more: Any) -> Unit:
    return surface.read_whole(json.dumps({"id": "x", "choices": [{"index": 0} | choice], **more}).encode())


def joined(surface: Surface, first: Unit, texts: dict[int, str], second: Unit) -> bytes:
    return done(surface.joining_whole(first, texts, second))


def usage(prompt: int, answer: int, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer, **more}


def test_a_chat_answer_is_joined() -> None:
    first = whole(
        CHAT,
        {"message": {"role": "assistant", "content": "one bad", "reasoning": "r"}, "finish_reason": "stop"},
        usage=usage(10, 5, completion_tokens_details={"reasoning_tokens": 2}, cost="x"),
    )
    second = whole(
        CHAT,
        {
            "message": {"role": "assistant", "content": " two"},
            "finish_reason": "length",
            "logprobs": {"content": [{"token": " two"}]},
        },
        usage=usage(14, 7, completion_tokens_details={"reasoning_tokens": 1}, new=1),
    )
    texts = {i: "one" for i, delta in enumerate(first.deltas) if delta.channel.kind == "content"}
    out = json.loads(joined(CHAT, first, texts, second))
    assert out["choices"][0] == {
        "index": 0,
        "message": {"role": "assistant", "content": "one two"},
        "finish_reason": "length",
        "logprobs": None,
    }
    assert out["usage"] == usage(24, 12, completion_tokens_details={"reasoning_tokens": 3}, new=1)


def test_a_completion_is_joined() -> None:
    first, second = whole(TEXT, {"text": "one"}), whole(TEXT, {"text": " two", "finish_reason": "stop"})
    assert json.loads(joined(TEXT, first, {}, second))["choices"][0]["text"] == "one two"


def test_content_in_parts_and_no_content_are_joined() -> None:
    first = whole(CHAT, {"message": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}})
    parts = whole(CHAT, {"message": {"content": [{"type": "text", "text": "c"}, {"type": "text", "text": "d"}]}})
    out = json.loads(joined(CHAT, first, {1: "B"}, parts))
    assert [part["text"] for part in out["choices"][0]["message"]["content"]] == ["aBc", "d"]
    silent = whole(CHAT, {"message": {"content": None}})
    assert json.loads(joined(CHAT, first, {}, silent))["choices"][0]["message"]["content"] == "ab"


def test_nothing_released_is_the_second_answer_as_it_came() -> None:
    first, second = whole(CHAT, {"message": {"content": "x"}}), whole(CHAT, {"message": {"content": "y"}})
    assert joined(CHAT, first, {0: ""}, second) is second.raw


@pytest.mark.parametrize(
    "odd",
    [None, [], "x", {"prompt_tokens": "x"}, {"prompt_tokens": -1}, {"prompt_tokens": True}, {"prompt_tokens": 10**40}],
)
def test_a_usage_that_is_none_is_left_as_it_is(odd: object) -> None:
    first = whole(CHAT, {"message": {"content": "a"}}, usage=odd)
    second = whole(CHAT, {"message": {"content": "b"}}, usage=usage(1, 2))
    assert json.loads(joined(CHAT, first, {}, second))["usage"] == usage(1, 2)
    assert json.loads(joined(CHAT, second, {}, first))["usage"] == odd


def test_a_deep_usage_is_left_as_it_is() -> None:
    deep = '{"a":' * 60 + "1" + "}" * 60
    raw = '{"choices":[{"message":{"content":"a"}}],"usage":' + deep + "}"
    unit = CHAT.read_whole(raw.encode())
    assert joined(CHAT, unit, {0: ""}, unit) == unit.raw


def test_a_second_answer_without_choices_can_not_be_joined() -> None:
    first = whole(CHAT, {"message": {"content": "x"}})
    with pytest.raises(WireError, match="no content"):
        joined(CHAT, first, {}, CHAT.read_whole(b'{"choices": []}'))
