"""The request fields and input items that the Responses API knows (G31): what is scanned, and what is plain.

Source: OpenAI API reference ("Create a model response", "Input items", "Compact", "Input token counts"), the types of
its Python SDK; the request class of vLLM, and what llama.cpp's server and LM Studio take.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from checkstream.core.wire.requests import fields as openai
from checkstream.core.wire.responses.events import ITEMS

TEXT_FIELDS: Mapping[str, str] = MappingProxyType({
    "instructions": "system",
    "tools": "system",
    "text": "system",                  # the form of the answer
    "prompt": "user",                  # a template that the provider keeps, and what is put into it
    "chat_template": "system",         # vLLM
    "chat_template_kwargs": "system",
    "structured_outputs": "system",
    "grammar": "system",               # llama.cpp
    "json_schema": "system",
    "stop": "user",
})  # fmt: skip
"""Field -> ingress channel: every string within it is scanned."""
FORMS = frozenset({"structured_outputs", "grammar", "json_schema"})
"""Fields of servers' own that fix the form of the answer, besides `text`."""
PLAIN_FIELDS = openai.MODE_FIELDS | {
    "model", "input", "stream", "stream_options", "background", "background_options", "include", "max_output_tokens",
    "max_tool_calls", "metadata", "parallel_tool_calls", "previous_response_id", "conversation", "prompt_cache_key",
    "prompt_cache_retention", "prompt_cache_options", "safety_identifier", "service_tier", "store", "temperature",
    "top_logprobs", "top_p", "truncation", "user", "context_management", "moderation", "access_programs", "image",
    # vLLM
    "request_id", "priority", "cache_salt", "mm_processor_kwargs", "media_io_kwargs", "enable_response_messages",
    "previous_input_messages", "include_stop_str_in_output", "seed", "min_p", "top_k", "repetition_penalty",
    "presence_penalty", "frequency_penalty", "ignore_eos", "skip_special_tokens", "logit_bias", "vllm_xargs",
    "kv_transfer_params", "include_reasoning",
    # llama.cpp, Ollama, LM Studio, LiteLLM
    "keep_alive", "ttl", "draft_model",
}  # fmt: skip
"""Read for what is no id, mode word or number; `input` is read apart."""
ELSEWHERE = ("previous_response_id", "conversation", "prompt")
"""Fields that stand for a history or a text which the provider keeps: this request does not say it."""

ROLES = openai.ROLES
RESULT = ("_output", "_response")
"""How the types of items end that hold what a tool, or a person who was asked, has said."""
ASSISTANT = ITEMS
MESSAGE = "message"
SPOKEN = frozenset({
    "arguments", "input", "code", "action", "actions", "operation", "summary", "text", "refusal", "queries", "query",
    "title", "reason", "tools", "result", "output", "outputs", "results", "error", "revised_prompt", "annotations",
    "reasoning", "content", "variables",
})  # fmt: skip
"""Members of items and parts that are there to be read."""
RESULTS = frozenset({"output", "outputs", "results", "error"})
"""Members of a call that the provider has run which tell what came of it."""
ITEM_FIELDS = SPOKEN | {
    "type", "id", "role", "status", "phase", "call_id", "name", "namespace", "caller", "created_by", "async",
    "encrypted_content", "server_label", "approval_request_id", "approve", "container_id", "execution", "size",
    "pending_safety_checks", "acknowledged_safety_checks", "environment", "max_output_length", "background",
    "output_format", "quality", "fingerprint", "svg_usage", "parsed_arguments", "parsed", "logprobs", "agent",
}  # fmt: skip
PART_FIELDS = openai.MEDIA | {
    "type", "text", "refusal", "annotations", "logprobs", "detail", "file_data", "file_id", "file_url", "filename",
    "parsed", "prompt_cache_breakpoint", "format", "data",
}  # fmt: skip
PART_TYPES = frozenset({
    "input_text", "output_text", "text", "refusal", "input_image", "input_file", "input_audio", "summary_text",
    "reasoning_text", "computer_screenshot",
})  # fmt: skip
MEDIA = frozenset({"input_image", "input_file", "input_audio", "computer_screenshot"})
"""Types of parts that may carry something other than text."""
PAYLOADS = frozenset({"image_url", "file_data", "file_url", "file_id", "input_audio"})
"""Members of a part that hold a file, or say where it is."""
SPOKEN_OF_PART = frozenset({"text", "refusal", "annotations"})
