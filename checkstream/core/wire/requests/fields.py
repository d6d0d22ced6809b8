"""The request fields that the OpenAI-compatible surfaces know (G31): what is scanned, and what is plain.

Plain fields are numbers, switches, ids and names that no server in common use puts into the prompt; what else stands in
them is scanned. A field in neither table is reported as unknown: it is scanned whole and forwarded, or refused, as the
route says (`unknown_fields`).

Source: OpenAI API reference (create chat completion, create completion); the request classes of vLLM,
SGLang, llama.cpp's server and Ollama's OpenAI endpoint; what OpenRouter, Azure, Mistral, Google, xAI and LiteLLM add.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

EXTENSION = "checkstream"
"""The field that is ours: removed before forwarding."""
VERIFICATION = "enable_verification"
"""Asks for RAG verification of the answer, as its design has it: removed before forwarding, too."""
OWN_FIELDS = frozenset({EXTENSION, VERIFICATION})

TEXT_FIELDS: Mapping[str, str] = MappingProxyType({
    "documents": "document",             # vLLM, Cohere: retrieved texts for the template
    "prediction": "assistant",           # OpenAI: expected output
    "chat_template": "system",           # vLLM, SGLang: replaces the prompt's frame
    "chat_template_kwargs": "system",
    "tools": "system",
    "functions": "system",
    "response_format": "system",
    "guided_json": "system",             # vLLM: what steers the answer's form
    "guided_regex": "system",
    "guided_choice": "system",
    "guided_grammar": "system",
    "guided_whitespace_pattern": "system",
    "structured_outputs": "system",
    "structural_tag": "system",
    "json_schema": "system",             # llama.cpp, SGLang
    "grammar": "system",
    "regex": "system",
    "ebnf": "system",
    "prefix": "assistant",
    "suffix": "user",
    "stop": "user",
    "web_search_options": "user",
})  # fmt: skip
"""Field -> ingress channel: every string within it is scanned."""

FORM_FIELDS = frozenset({
    "guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs", "structural_tag",
    "json_schema", "grammar", "regex", "ebnf",
})  # fmt: skip
"""Fields beside `response_format` that fix the form of the answer; of two of them servers take one, or refuse both."""

MODE_FIELDS = frozenset({
    "reasoning_effort", "verbosity", "reasoning", "thinking", "think", "reasoning_format", "tool_choice",
    "function_call",
})  # fmt: skip
"""Fields that hold mode words and names, which some templates print: what is no such word is scanned."""

MODE_WORDS = frozenset({
    "auto", "none", "required", "any", "function", "custom", "tool", "text", "default", "flex", "scale", "priority",
    "standard", "standard_only", "minimal", "low", "medium", "high", "max", "xhigh", "enabled", "disabled", "adaptive",
    "ephemeral", "in_memory", "in-memory", "24h", "5m", "1h", "auto_tool_choice", "allowed_tools", "mode", "type",
    "name", "effort", "summary", "concise", "detailed", "raw", "parsed", "hidden", "include_usage", "exclude",
    "include_obfuscation", "budget_tokens", "max_tokens", "cache_control", "ttl", "tools", "audio", "voice", "format",
    "alloy", "ash", "ballad", "coral", "echo", "fable", "nova", "onyx", "sage", "shimmer", "verse", "marin", "cedar",
    "wav", "mp3", "flac", "opus", "pcm16", "aac", "png", "jpeg", "webp", "float", "base64", "message", "assistant",
    "user", "system", "enable_thinking", "generate_summary", "id", "data", "", "arguments", "parameters",
})  # fmt: skip
"""Words of the APIs, as names and values of settings: they say nothing."""

_SAMPLING = frozenset({
    # OpenAI
    "model", "stream", "stream_options", "n", "temperature", "top_p", "max_tokens", "max_completion_tokens",
    "presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "seed", "user", "service_tier",
    "metadata", "store", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
    # vLLM
    "best_of", "use_beam_search", "top_k", "min_p", "typical_p", "repetition_penalty", "length_penalty",
    "stop_token_ids", "include_stop_str_in_output", "ignore_eos", "min_tokens", "skip_special_tokens",
    "spaces_between_special_tokens", "truncate_prompt_tokens", "prompt_logprobs", "allowed_token_ids", "bad_words",
    "add_special_tokens", "guided_decoding_backend", "priority", "request_id", "return_tokens_as_token_ids",
    "return_token_ids", "cache_salt", "kv_transfer_params", "vllm_xargs", "detokenize",
    # SGLang
    "stop_regex", "no_stop_trim", "lora_path", "session_params", "return_hidden_states", "rid", "stream_interval",
    # llama.cpp
    "n_predict", "n_probs", "n_keep", "min_keep", "cache_prompt", "id_slot", "samplers", "mirostat", "mirostat_tau",
    "mirostat_eta", "dynatemp_range", "dynatemp_exponent", "xtc_probability", "xtc_threshold", "top_n_sigma",
    "tfs_z", "repeat_penalty", "repeat_last_n", "dry_multiplier", "dry_base", "dry_allowed_length",
    "dry_penalty_last_n", "dry_sequence_breakers", "timings_per_token", "post_sampling_probs", "return_progress",
    "return_tokens", "t_max_predict_ms", "lora", "response_fields", "n_discard",
    "prompt_cache_options",
    # Ollama
    "keep_alive",
    # OpenRouter
    "provider", "transforms", "models", "route", "plugins", "usage", "top_a", "preset",
    # Azure, Mistral, Google, xAI
    "data_sources", "safe_prompt", "random_seed", "prompt_mode", "extra_content", "search_parameters", "deferred",
})  # fmt: skip
"""Read for what is no id, mode word or number."""

TOLD_BY_CALLER = frozenset({"metadata", "extra_content", "data_sources", "plugins", "provider"})
"""Plain fields whose members callers name themselves: single words in them are read, too."""
TOKEN_IDS = frozenset({"logit_bias", "stop_token_ids", "allowed_token_ids"})
"""Plain fields that hold many numbers, of a vocabulary."""

CHAT_FIELDS = _SAMPLING | MODE_FIELDS | {
    "messages", "parallel_tool_calls", "top_logprobs", "modalities", "audio", "include_reasoning",
    "separate_reasoning", "stream_reasoning", "enable_thinking", "reasoning_budget", "thinking_forced_open",
    "parse_tool_calls", "add_generation_prompt", "continue_final_message", "echo", "mm_processor_kwargs",
    "media_io_kwargs",
}  # fmt: skip
"""Plain fields of a chat request, and the one that is read apart (`messages`)."""

COMPLETION_FIELDS = _SAMPLING | {"prompt", "echo"}
"""Plain fields of a completion request, and the one that is read apart (`prompt`)."""

EMBEDDING_FIELDS = frozenset({
    "model", "input", "encoding_format", "dimensions", "user", "truncate_prompt_tokens", "add_special_tokens",
    "priority", "request_id", "normalize", "embed_dtype", "endianness",
})  # fmt: skip
MODERATION_FIELDS = frozenset({"model", "input", "user"})
RERANK_FIELDS = frozenset({
    "model", "query", "top_n", "return_documents", "max_chunks_per_doc", "max_tokens_per_doc", "rank_fields",
    "truncate_prompt_tokens", "truncation", "top_k", "priority", "request_id", "user",
})  # fmt: skip
"""Plain fields of requests for figures, and the one that is read apart (`input`, `query`)."""

ROLES: Mapping[str, str] = MappingProxyType({
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant",
    "tool": "tool_result", "function": "tool_result",
})  # fmt: skip
"""Role -> ingress channel."""

MESSAGE_FIELDS = frozenset({
    "role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "reasoning_content",
    "reasoning", "thinking", "reasoning_details", "audio", "annotations", "cache_control", "prefix", "partial",
    "id", "type", "images", "tools", "tool_name", "weight", "parsed", "thinking_blocks", "extra_content", "index",
})  # fmt: skip
SPOKEN_FIELDS = frozenset({"refusal", "reasoning_content", "reasoning", "thinking", "annotations", "tools"})
"""Members of a message, besides its content, that are there to be read."""

MEDIA = frozenset({
    "image_url", "image", "image_pil", "image_embeds", "images", "input_audio", "audio", "audio_url", "audio_embeds",
    "video", "video_url", "file", "input_image", "input_file", "input_video",
})  # fmt: skip
"""What may carry something other than text. Of a file its text is read; what is no text is passed on or not as the
route's `parts` setting says."""
PAYLOADS = frozenset({"url", "data", "file_data", "b64_json", "image_url", "audio_url", "video_url", "file_url"})
"""Members that hold a file, or the address of one."""
MEDIA_FIELDS = PAYLOADS | {"detail", "format", "filename", "file_id", "id", "uuid"}

PART_FIELDS = MEDIA | {
    "type", "text", "refusal", "thinking", "signature", "cache_control", "uuid", "detail", "file_data", "file_id",
    "file_url", "filename",
}  # fmt: skip
SPOKEN_PART_FIELDS = frozenset({"text", "refusal", "thinking"})
PART_TYPES = MEDIA | {"text", "input_text", "output_text", "refusal", "thinking"}

CALL_FIELDS = frozenset({"id", "type", "index", "function", "custom", "extra_content"})
FUNCTION_FIELDS = frozenset({"index", "name", "arguments", "input", "parsed_arguments"})

SCHEMA_TYPES = frozenset({
    "object", "string", "number", "integer", "boolean", "array", "null", "function", "custom", "json_schema",
    "json_object", "text",
})  # fmt: skip
"""Values of a schema's `type` that say nothing and are not worth a scan."""
