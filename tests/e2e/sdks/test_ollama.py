"""Ollama's own clients: through the proxy they notice nothing but what rules have done."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.sdks.conftest import Case
from tests.e2e.sdks.test_calm import TEXT
from tests.e2e.sdks.test_requests import STREAMS
from tests.e2e.sdks.upstream import Turn

BOTH = pytest.mark.parametrize("sdk", ["ollama", "ollama_node"])
HEAD = {"model": "m", "created_at": "2025-01-01T10:00:00.123456789Z"}
END = {"done": True, "done_reason": "stop", "total_duration": 4_935_886_791, "prompt_eval_count": 26, "eval_count": 12}


def turn(*texts: str, stream: bool, do: str = "chat", **message: Any) -> Turn:
    """What a server says that is asked so."""

    def body(text: str, more: dict[str, Any], **end: Any) -> dict[str, Any]:
        said = {"message": {"role": "assistant", "content": text, **more}} if do != "generate" else {"response": text}
        return {**HEAD, **said, "done": False, **end}

    if not stream:
        return {"body": body("".join(texts), message, **END)}
    return {"lines": [*(body(text, {}) for text in texts), body("", message), body("", {}, **END)]}


@BOTH
@STREAMS
def test_g05_ollama_s_clients_hear_what_the_model_says(case: Case, sdk: str, stream: bool) -> None:
    said = turn(TEXT[:9], TEXT[9:20], TEXT[20:], stream=stream)
    told = case.guarded(sdk, "chat", said, stream=stream).given()
    assert told["text"] == TEXT
    assert told == case.direct(sdk, "chat", said, stream=stream).given()


@pytest.mark.parametrize(("sdk", "do"), [("ollama", "generate"), ("ollama_node", "generate")])
@STREAMS
def test_g02_what_was_split_is_edited_for_ollama_s_clients(case: Case, sdk: str, do: str, stream: bool) -> None:
    said = turn("Your card is 4111 11", "11 1111 1111, ", "isn't it?", stream=stream, do=do)
    assert case.guarded(sdk, do, said, stream=stream).given()["text"] == "Your card is [CREDIT_CARD], isn't it?"


@BOTH
@STREAMS
def test_g20_a_stop_ends_as_ollama_s_clients_expect(case: Case, sdk: str, stream: bool) -> None:
    said = turn("All is well. Now launch ", "the missiles at once. ", "More follows.", stream=stream)
    told = case.guarded(sdk, "chat", said, stream=stream).given()
    assert told["text"] == "All is well. Now [stopped by policy]"
    last = told["raw"][-1] if stream else told["raw"]
    assert (last["done"], last["done_reason"]) == (True, "content_filter")


@BOTH
def test_g20_an_answer_that_breaks_off_raises(case: Case, sdk: str) -> None:
    said = {"lines": [{**HEAD, "message": {"role": "assistant", "content": "The "}, "done": False}, {"error": "gone"}]}
    assert "gone" in case.guarded(sdk, "chat", said, stream=True).raised()


@STREAMS
def test_g35_no_call_that_a_rule_stops_is_run(case: Case, stream: bool) -> None:
    calls = [{"function": {"name": "look_up", "arguments": {"about": "how to launch the missiles"}}}]
    outcome = case.guarded("ollama", "agent", turn("", stream=stream, tool_calls=calls), stream=stream)
    assert outcome.ran == []
    assert outcome.given()["text"] == "[stopped by policy]"


@BOTH
def test_g13_the_texts_of_embeddings_are_guarded(case: Case, sdk: str) -> None:
    vectors: Turn = {"body": {"model": "m", "embeddings": [[0.5, 0.25], [1, 2]], "total_duration": 14_143_917}}
    assert case.guarded(sdk, "embed", vectors, input=["one", "two"]).given() == [[0.5, 0.25], [1, 2]]
    outcome, asked = case.received(sdk, "embed", vectors, input=["one", "the purple password"])
    assert "(rule ASK-001, input[1])" in outcome.raised()
    assert asked == []


LISTED = {
    "name": "gemma3:latest", "model": "gemma3:latest", "modified_at": "2025-10-03T23:34:03.409490317-07:00",
    "size": 3_338_801_804, "digest": "a2af6cc3eb7fa8be8504abaf9b04e88f17a119ec3f04a3addf55f92841195f5a",
    "details": {"parent_model": "", "format": "gguf", "family": "gemma", "families": ["gemma"],
                "parameter_size": "4.3B", "quantization_level": "Q4_K_M"},
}  # fmt: skip
SHOWN = {
    "modelfile": "FROM gemma3\n", "parameters": "temperature 0.7", "template": "{{ .Prompt }}",
    "license": "Write to legal@vendor.example or 4111 1111 1111 1111.", "details": LISTED["details"],
    "model_info": {"general.architecture": "gemma3", "gemma3.context_length": 131_072}, "capabilities": ["completion"],
}  # fmt: skip


@BOTH
def test_g05_what_models_there_are_is_passed_as_it_is(case: Case, sdk: str) -> None:
    tags: Turn = {"body": {"models": [LISTED]}}
    assert [model["model"] for model in case.guarded(sdk, "models", tags).given()] == ["gemma3:latest"]
    assert case.guarded(sdk, "models", tags).given() == case.direct(sdk, "models", tags).given()
    told = case.guarded(sdk, "show", {"body": SHOWN}).given()
    assert told["license"] == SHOWN["license"]
    assert told == case.direct(sdk, "show", {"body": SHOWN}).given()
    assert "no such model" in case.guarded(sdk, "show", {"status": 404, "body": {"error": "no such model"}}).raised()
