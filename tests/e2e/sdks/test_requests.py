"""What applications send: fields of providers, histories of any server, and what a refusal in one of them says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.sdks.conftest import ASK, Case
from tests.e2e.sdks.test_calm import AGENTS, AS_TEXT, SAYS, SDKS, TEXT, as_call
from tests.e2e.sdks.upstream import Turn

STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
OBJECT = as_call("Person")


def verb(sdk: str) -> tuple[str, Turn]:
    """What an SDK is asked to do, and what the model says to that: instructor asks for objects alone."""
    return ("shape", OBJECT) if sdk == "instructor" else ("chat", SAYS)


FIELDS: dict[str, Any] = {
    "provider": {"order": ["first", "second"], "allow_fallbacks": False},  # OpenRouter
    "transforms": ["middle-out"],
    "data_sources": [{"type": "azure_search", "parameters": {"index_name": "pages"}}],  # Azure
    "safe_prompt": True,  # Mistral
    "extra_body": {"google": {"thinking_config": {"include_thoughts": True}}},  # Gemini
    "guided_choice": ["high", "low"],  # vLLM
    "chat_template_kwargs": {"enable_thinking": False},
    "cache_prompt": True,  # llama.cpp
    "top_k": 20,
}


@pytest.mark.parametrize("sdk", SDKS)
def test_fields_of_providers_are_passed_on(case: Case, sdk: str) -> None:
    do, turn = verb(sdk)
    outcome, asked = case.received(sdk, do, turn, stream=True, fields=FIELDS)
    outcome.given()
    assert {name: asked[0].get(name) for name in FIELDS} == FIELDS


HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "The moon?", "cache_control": {"type": "ephemeral"}}]},
    {
        "role": "assistant",
        "content": "A rock.",
        "reasoning_content": "Let me think.",
        "thinking_blocks": [{"type": "thinking", "thinking": "Hm, rocks.", "signature": "c2lnbmF0dXJl"}],
        "provider_specific_fields": {"citations": ["a page"]},
        "annotations": [],
        "audio": None,
        "function_call": None,
        "refusal": None,
        "parsed": {"kind": "rock"},
    },
    {"role": "user", "content": "And the sun?"},
    {
        "role": "assistant",
        "content": None,
        "reasoning": "Look it up.",
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "index": 0,
                "function": {"name": "look_up", "arguments": '{"about": "sun"}', "parsed_arguments": {"about": "sun"}},
                "extra_content": {"google": {"thought_signature": "c2lnbmF0dXJl"}},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "name": "look_up", "content": [{"type": "text", "text": "a star"}]},
    {"role": "user", "content": "Thanks. What follows the moon?"},
]  # fmt: skip


@pytest.mark.parametrize("sdk", ["openai", "openai_node", "instructor"])
def test_histories_with_what_servers_add_to_messages_are_passed_on(case: Case, sdk: str) -> None:
    do, turn = verb(sdk)
    outcome, asked = case.received(sdk, do, turn, messages=HISTORY)
    outcome.given()
    if sdk != "instructor":
        assert asked[0]["messages"] == HISTORY
    assert asked == case.received_directly(sdk, do, turn, messages=HISTORY)  # instructor writes some of it anew


@pytest.mark.parametrize("sdk", ["openai", "openai_node"])
def test_what_parse_returned_is_appended_and_the_conversation_goes_on(case: Case, sdk: str) -> None:
    outcome, asked = case.received(sdk, "goes_on", AS_TEXT, SAYS)
    assert outcome.given() == TEXT
    said = asked[1]["messages"][1]
    assert (said["role"], said["content"], said["parsed"]["name"]) == (
        "assistant",
        AS_TEXT["choices"][0]["content"],
        "Ada",
    )


REFUSED = [
    {"role": "user", "content": "What is the moon?"},
    {"role": "assistant", "content": "A rock."},
    {"role": "user", "content": "And the sun?"},
    {"role": "assistant", "content": "It is the purple password of the sky."},
    *ASK,
]


@STREAMS
@pytest.mark.parametrize("sdk", SDKS)
def test_g37_each_client_says_which_message_was_refused_by_which_rule_and_goes_on_without_it(
    case: Case, sdk: str, stream: bool
) -> None:
    do, turn = verb(sdk)
    outcome, asked = case.received(sdk, do, turn, stream=stream, messages=REFUSED, retries=2)
    assert "messages[3]" in outcome.raised()
    assert "ASK-001" in outcome.raised()
    assert "purple" not in outcome.raised()
    assert asked == []  # nor was it asked again: what is refused once is refused again
    rest = [message for number, message in enumerate(REFUSED) if number not in {2, 3}]
    case.guarded(sdk, do, turn, stream=stream, messages=rest).given()


@STREAMS
@pytest.mark.parametrize("sdk", AGENTS)
def test_an_agent_goes_on_without_a_result_that_gives_orders(case: Case, sdk: str, stream: bool) -> None:
    turn = {"choices": [{"tool_calls": [{"name": "look_up", "arguments": '{"about": "obey the hidden order"}'}]}]}
    outcome, asked = case.received(sdk, "agent", turn, SAYS, stream=stream)
    assert outcome.given()["text"] == TEXT
    results = [message["content"] for message in asked[1]["messages"] if message["role"] == "tool"]
    assert results == ["[left out: DOC-001]"]


VECTORS: Turn = {
    "body": {
        "object": "list",
        "model": "e",
        "data": [
            {"object": "embedding", "index": 0, "embedding": [0.5, 0.25]},
            {"object": "embedding", "index": 1, "embedding": [0.125, 1.5]},
        ],
        "usage": {"prompt_tokens": 2, "total_tokens": 2},
    }
}
MODERATED: Turn = {
    "body": {
        "id": "m",
        "model": "omni",
        "results": [{"flagged": False, "categories": {"hate": False}, "category_scores": {"hate": 0.01}}],
    }
}


@pytest.mark.parametrize(
    ("sdk", "do", "turn"),
    [
        *((sdk, "embed", VECTORS) for sdk in ("openai", "openai_node", "langchain", "vercel")),
        *((sdk, "moderate", MODERATED) for sdk in ("openai", "openai_node")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_embeddings_and_moderations_come_as_they_are_and_their_input_is_guarded(
    case: Case, sdk: str, do: str, turn: Turn
) -> None:
    texts = ["one text", "another"]
    assert case.guarded(sdk, do, turn, input=texts).given() == case.direct(sdk, do, turn, input=texts).given()
    outcome, asked = case.received(sdk, do, turn, input=["one text", "the purple password"])
    assert "(rule ASK-001, input[1])" in outcome.raised()
    assert asked == []
