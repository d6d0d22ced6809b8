from __future__ import annotations

import json

import pytest

from checkstream.demo.asked import read_asked
from checkstream.errors import RequestInvalid


def test_chat_takes_the_last_user_message_from_strings_and_parts() -> None:
    body = {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": "first"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "two words"}, {"type": "image_url", "image_url": {}}],
            },
            {"role": "assistant", "content": None},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "n": 2,
        "max_tokens": 5,
        "max_completion_tokens": 4,
        "unknown": {"x": 1},
    }
    asked = read_asked("chat", json.dumps(body).encode())
    assert (asked.last_user, asked.prompt_tokens, asked.choices, asked.max_tokens) == ("two words", 5, 2, 4)
    assert asked.streaming
    assert asked.usage_wanted


def test_completions_answer_each_prompt() -> None:
    asked = read_asked("completions", b'{"model": "m", "prompt": ["a b", "c"], "n": 2, "logprobs": 0}')
    assert (asked.choices, asked.last_user, asked.prompt_tokens) == (4, "c", 3)
    assert (asked.logprobs, asked.top_logprobs, asked.streaming) == (True, 0, False)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"[]",
        b'{"model": "m"}',
        b'{"model": "m", "messages": []}',
        b'{"model": 3, "messages": [{"role": "user"}]}',
        b'{"model": "m", "messages": [{"role": "user"}], "n": 0}',
        b'{"model": "m", "messages": [{"role": "user"}], "n": 1e9}',
        b'{"model": "m", "messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"model": "m", "messages": [{"role": "user"}], "x": ' + b"[" * 100_000,
    ],
)
def test_a_wrong_body_is_refused(body: bytes) -> None:
    with pytest.raises(RequestInvalid, match="not a request of this API"):
        read_asked("chat", body)
