"""Streams in the forms of many servers: what each adds to the API, leaves out of it or does in another way.

After their published references and what their servers send; the words are made up, and nothing in them is personal.
"""

from __future__ import annotations

from typing import Any

Event = dict[str, Any]


def event(
    delta: dict[str, Any] | None, finish: str | None = None, *, choice: Event | None = None, **more: Any
) -> Event:
    """One event of a stream; `delta` None: it has no choice."""
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m"}
    chosen = {"index": 0, "delta": delta, "finish_reason": finish, **(choice or {})}
    return base | {"choices": [] if delta is None else [chosen]} | more


USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
_SAFE = {name: {"filtered": False, "severity": "safe"} for name in ("hate", "self_harm", "sexual", "violence")}
_CALL = {"name": "look_up", "arguments": '{"about": "tides"}'}

TEXTS: dict[str, list[Event]] = {
    "openai": [
        event({"role": "assistant", "content": "", "refusal": None}, service_tier="default", obfuscation="aB3"),
        event({"content": "The tides"}, service_tier="default", obfuscation="xk9Qw"),
        event({"content": " rise."}, service_tier="default", obfuscation="z"),
        event({}, "stop", service_tier="default", obfuscation="n8"),
        event(None, usage=USAGE | {"prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0}}),
    ],
    "azure": [
        event(None, prompt_filter_results=[{"prompt_index": 0, "content_filter_results": _SAFE}], id="", model=""),
        event({"role": "assistant", "content": ""}, choice={"content_filter_results": {}, "logprobs": None}),
        event({"content": "The tides"}, choice={"content_filter_results": _SAFE}),
        event({"content": " rise."}, choice={"content_filter_results": _SAFE}),
        event({}, "stop", choice={"content_filter_results": {}}),
    ],
    "vllm": [
        event({"role": "assistant", "content": ""}, choice={"logprobs": None}, prompt_token_ids=None),
        event({"reasoning_content": "Hm."}, choice={"stop_reason": None, "token_ids": None}),
        event({"content": "The tides"}, choice={"stop_reason": None, "token_ids": None}),
        event({"content": " rise."}, "stop", choice={"stop_reason": None, "token_ids": None}, usage=USAGE),
    ],
    "llama.cpp": [
        event({"role": "assistant", "content": None}, system_fingerprint="b4-1"),
        event({"content": "The tides"}),
        event({"content": " rise."}),
        event({}, "stop", timings={"prompt_n": 7, "prompt_ms": 12.5, "predicted_n": 5, "predicted_per_second": 80.25}),
    ],
    "ollama": [
        event({"role": "assistant", "content": "The tides"}, system_fingerprint="fp_ollama"),
        event({"role": "assistant", "content": " rise."}, system_fingerprint="fp_ollama"),
        event({"role": "assistant", "content": ""}, "stop", system_fingerprint="fp_ollama"),
    ],
    "deepseek": [
        event({"role": "assistant", "content": None, "reasoning_content": ""}),
        event({"content": None, "reasoning_content": "Hm."}),
        event({"content": "The tides", "reasoning_content": None}),
        event({"content": " rise.", "reasoning_content": None}),
        event({"content": "", "reasoning_content": None}, "stop", usage=USAGE | {"prompt_cache_hit_tokens": 0}),
    ],
    "openrouter": [
        event(
            {
                "role": "assistant",
                "content": "",
                "reasoning": "Hm.",
                "reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "format": "unknown", "index": 0}],
            },
            choice={"native_finish_reason": None},
            provider="Some",
        ),
        event({"role": "assistant", "content": "The tides"}, choice={"native_finish_reason": None}, provider="Some"),
        event({"role": "assistant", "content": " rise."}, choice={"native_finish_reason": None}, provider="Some"),
        event({"role": "assistant", "content": ""}, "stop", choice={"native_finish_reason": "STOP"}, provider="Some"),
        event({"role": "assistant", "content": ""}, usage=USAGE | {"cost": 0.000123}, provider="Some"),
    ],
    "groq": [
        event({"role": "assistant", "content": ""}, x_groq={"id": "req_01jbf0q2"}),
        event({"content": "The tides"}),
        event({"content": " rise."}),
        event({}, "stop", x_groq={"id": "req_01jbf0q2", "usage": USAGE | {"queue_time": 0.0179, "total_time": 0.0331}}),
    ],
    "perplexity": [
        event(
            {"role": "assistant", "content": "The tides"},
            choice={"message": {"role": "assistant", "content": "The tides"}},
            citations=["https://tides.example/a"],
            search_results=[{"title": "Tides", "url": "https://tides.example/a", "date": "2024-05-01"}],
            usage=USAGE,
        ),
        event(
            {"role": "assistant", "content": " rise."},
            "stop",
            choice={"message": {"role": "assistant", "content": "The tides rise."}},
            citations=["https://tides.example/a"],
            usage=USAGE,
        ),
    ],
    "xai": [
        event({"role": "assistant", "content": "", "reasoning_content": "Hm."}, usage=USAGE),
        event({"content": "The tides"}, usage=USAGE, system_fingerprint="fp_x"),
        event({"content": " rise."}, usage=USAGE),
        event({}, "stop", citations=[], usage=USAGE | {"num_sources_used": 0}),
    ],
    "litellm": [
        event({"role": "assistant", "content": "The tides", "provider_specific_fields": None}),
        event({"content": " rise.", "thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": None}]}),
        event({"content": None, "role": None, "function_call": None, "tool_calls": None, "audio": None}, "stop"),
    ],
}  # fmt: skip
"""A text, "The tides rise.", as servers stream it."""

CALLS: dict[str, list[Event]] = {
    "openai": [
        event({"role": "assistant", "content": None, "tool_calls": [
            {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": ""}}]}),
        event({"tool_calls": [{"index": 0, "function": {"arguments": '{"about"'}}]}),
        event({"tool_calls": [{"index": 0, "function": {"arguments": ': "tides"}'}}]}),
        event({}, "tool_calls"),
    ],
    "gemini": [
        event({"role": "assistant", "tool_calls": [
            {"index": 0, "id": "function-call-1", "type": "function", "function": _CALL,
             "extra_content": {"google": {"thought_signature": "CiQB"}}}]}, "stop"),
    ],
    "ollama": [
        event({"role": "assistant", "content": "", "tool_calls": [
            {"id": "call_9", "index": 0, "type": "function", "function": _CALL}]}),
        event({"role": "assistant", "content": ""}, "tool_calls"),
    ],
    "mistral": [
        event({"role": "assistant", "content": ""}),
        event({"content": "", "tool_calls": [{"id": "D681PevKs", "function": _CALL, "index": 0}]}, "tool_calls",
              usage=USAGE),
    ],
    "vllm": [
        event({"role": "assistant", "content": ""}),
        event({"tool_calls": [
            {"id": "chatcmpl-tool-1", "type": "function", "index": 0, "function": {"name": "look_up"}}]}),
        event({"tool_calls": [{"index": 0, "function": {"arguments": '{"about": '}}]}),
        event({"tool_calls": [{"index": 0, "function": {"arguments": '"tides"}'}}]}),
        event({"content": ""}, "tool_calls", choice={"stop_reason": 128008}),
    ],
    "deepseek": [
        event({"role": "assistant", "content": "I will look it up."}),
        event({"content": "", "tool_calls": [
            {"index": 0, "id": "call_0_1", "type": "function", "function": {"name": "look_up", "arguments": ""}}]}),
        event({"tool_calls": [{"index": 0, "id": "", "function": {"name": "", "arguments": _CALL["arguments"]}}]}),
        event({"content": ""}, "tool_calls", usage=USAGE),
    ],
}  # fmt: skip
"""A call of `look_up(about="tides")`, as servers stream it."""
