"""Laws of what nobody knows in a request: whatever its shape, what rules condemn in it is not forwarded (G31)."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.wire.openai.completions import OpenAICompletions
from tests.chance import examples
from tests.guarded import CHAT, plan
from tests.playbook import play

CARD, MAIL = 4111111111111111, "ann.lee@x-corp.io"
RULES = "  - {name: p, id: P-1, stage: [ingress], entities: [EMAIL, CREDIT_CARD], actions: [{type: redact}]}\n"
PLAN = plan(RULES)
DATA = base64.b64encode(f"Dear all, write to {MAIL} or pay with {CARD}.".encode()).decode()
planted = st.sampled_from([
    MAIL, CARD, float(CARD), str(CARD), f"to {MAIL}.", f"id-{MAIL}", {MAIL: 1}, {f"{CARD}": None}, {"a": [CARD]},
    f"data:text/plain;base64,{DATA}", f"data:,{MAIL}", f"data:application/json;charset=utf-8;base64,{DATA}",
])  # fmt: skip
names = st.sampled_from(
    ["provider", "x", "data_sources", "a b", "messages ", "file", "url", "type", "\u212a", "metadata"]
)
leaves = st.none() | st.booleans() | st.integers(-9, 99999) | st.floats(-9, 9) | st.text(max_size=6) | planted
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=8
)
parts = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "file", "input_file", "odd", "thinking"])},
    optional={
        "text": st.just("hello"),
        "file": anything | st.builds(lambda data: {"filename": "a.txt", "file_data": data}, planted),
        "cache_control": anything,
        "signature": anything,
        "file_data": anything,
        "source": anything,
    },
)
calls = st.fixed_dictionaries(
    {"id": st.just("call_1"), "type": st.just("function")},
    optional={
        "function": st.fixed_dictionaries({"name": st.just("f")}, optional={"arguments": anything, "parsed": anything}),
        "extra_content": anything,
    },
)
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system", "critic"])},
    optional={
        "content": st.text(max_size=9) | st.lists(parts, max_size=2),
        "parsed": anything,
        "name": anything,
        "audio": anything,
        "tool_calls": st.lists(calls, max_size=2),
        "thinking_blocks": anything,
        "weight": anything,
        "type": anything,
    },
)
told_only = st.lists(anything, max_size=2) | st.text(max_size=3)
bodies = st.fixed_dictionaries(
    {"messages": st.lists(messages, min_size=1, max_size=3)},
    optional=dict.fromkeys(
        ("provider", "data_sources", "guided_json", "guided_regex", "chat_template_kwargs", "metadata", "extra_content",
         "strange", "a b", "documents", "tools", "stop", "prefix", "plugins", "prompt"),
        anything,
    )
    # Where a number alone is a parameter:
    | dict.fromkeys(
        ("transforms", "mm_processor_kwargs", "bad_words", "vllm_xargs", "kv_transfer_params", "prompt_cache_key",
         "modalities", "samplers"),
        told_only,
    ),
)  # fmt: skip


def forwarded(surface: Any, body: dict[str, Any]) -> bytes | None:
    return play(surface, PLAN, json.dumps(body).encode(), [], streaming=False, status=500).forwarded


def told(value: object) -> str:
    """All that a server could read in a body, numbers as numbers and files as their text."""
    if isinstance(value, dict):
        return "\n".join(f"{name}\n{told(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return "\n".join(map(told, value))
    if isinstance(value, str) and ";base64," in value:
        return base64.b64decode(value.partition(",")[2]).decode("utf-8", "replace")
    return f"{value:.0f}" if isinstance(value, float) else str(value)


def is_clean(text: str) -> bool:
    return MAIL not in text and str(CARD) not in text


@settings(max_examples=examples(150), deadline=None)
@given(bodies)
def test_g31_nothing_condemned_is_forwarded_wherever_it_stands(body: dict[str, Any]) -> None:
    out = forwarded(CHAT, body)
    if out is None:
        return  # of the wrong form
    assert is_clean(told(json.loads(out)))
    assert is_clean(out.decode())
    again = forwarded(CHAT, json.loads(out))
    assert again is not None
    assert json.loads(again) == json.loads(out)


@settings(max_examples=examples(60), deadline=None)
@given(st.dictionaries(names | st.sampled_from(["messages", "tools", "suffix"]), anything, max_size=4))
def test_g31_nothing_condemned_is_forwarded_with_a_completion(body: dict[str, Any]) -> None:
    out = forwarded(OpenAICompletions(), {"prompt": "hi", **body})
    assert out is None or is_clean(told(json.loads(out)))


PIECES = st.lists(st.integers(1, 15), max_size=15).map(lambda places: sorted({0, *places}))


@settings(max_examples=examples(100), deadline=None)
@given(st.sampled_from([MAIL, str(CARD)]), PIECES, st.data())
def test_g31_a_secret_cut_over_the_entries_of_a_list_that_nobody_knows_is_not_forwarded(
    secret: str, places: list[int], data: st.DataObject
) -> None:
    ends = [*places[1:], len(secret)]
    pieces = [secret[low:high] for low, high in zip(places, ends, strict=True)]
    pieces = [*data.draw(st.lists(st.sampled_from(["", "so ", "x: "]), max_size=2)), *pieces]
    nested = data.draw(
        st.sampled_from(
            [lambda text: text, lambda text: {"t": text}, lambda text: [text], lambda text: {"a": {"b": text}}]
        )
    )
    value: Any = [nested(piece) for piece in pieces]
    if data.draw(st.booleans()):
        value = [ord(char) for char in secret]
    where = data.draw(st.sampled_from(["strange", "metadata", "provider", "message", "part"]))
    message: dict[str, Any] = {"role": "user", "content": "hi"}
    body: dict[str, Any] = {"messages": [message]}
    if where == "message":
        message["strange"] = {"x": value}
    elif where == "part":
        message["content"] = [{"type": "text", "text": "hi", "strange": value}]
    else:
        body[where] = {"x": value}
    out = forwarded(CHAT, body)
    assert out is not None
    joined = "".join(text for text in strings(json.loads(out)))
    assert secret not in joined


def strings(value: Any) -> Iterator[str]:
    """Yield every string of a JSON value, and what lists of numbers spell."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and value and all(isinstance(each, int) for each in value):
        yield bytes(value).decode()
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)
