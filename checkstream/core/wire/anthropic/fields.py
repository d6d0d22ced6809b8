"""The request fields and content blocks that the Messages API knows (G31): what is scanned, and what is plain.

Source: Anthropic API reference ("Create a Message", "Count tokens"), its betas, and the types of its Python SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

TEXT_FIELDS: Mapping[str, str] = MappingProxyType({
    "tools": "system",
    "output_format": "system",        # the form of the answer
    "output_config": "system",
    "compaction": "system",           # what the model is told when it sums up a long conversation
    "context_management": "system",
    "stop_sequences": "user",
})  # fmt: skip
"""Field -> ingress channel: every string within it is scanned."""
MODE_FIELDS = frozenset({"tool_choice", "thinking", "mcp_servers"})
"""Fields that hold mode words, names and addresses: what is none of these is scanned, as `system`."""
PLAIN_FIELDS = MODE_FIELDS | {
    "model", "messages", "system", "max_tokens", "metadata", "stream", "temperature", "top_k", "top_p", "service_tier",
    "container", "inference_geo", "betas", "anthropic_beta", "anthropic_version", "speed", "user_profile_id",
    "workspace_id", "diagnostics", "cache_control", "billing_policy", "fallback_credit_token", "fallbacks", "thread",
}  # fmt: skip
"""Read for what is no id, mode word or number; `system` and `messages` are read apart."""
ELSEWHERE = ("thread",)
"""Fields that stand for a history which the provider keeps: nobody here has read it."""

ROLES: Mapping[str, str] = MappingProxyType({"user": "user", "assistant": "assistant", "system": "system"})
"""Role -> ingress channel of its texts."""
MESSAGE_FIELDS = frozenset({"role", "content", "output_config"})

RESULT = "tool_result"
"""How the types of blocks end that hold what a tool has said."""
BLOCK_KINDS: Mapping[str, str] = MappingProxyType({"document": "document", "search_result": "document"})
"""Type of a block -> ingress channel, where that is not its message's; what tools have said is `tool_result`."""
BLOCK_TYPES = frozenset({
    "text", "image", "document", "search_result", "thinking", "redacted_thinking", "tool_use", "tool_result",
    "server_tool_use", "mcp_tool_use", "mcp_tool_result", "web_search_tool_result", "web_fetch_tool_result",
    "code_execution_tool_result", "bash_code_execution_tool_result", "text_editor_code_execution_tool_result",
    "tool_search_tool_result", "advisor_tool_result", "container_upload", "compaction", "fallback", "tool_reference",
    "browser_state", "mcp_tool_listing",
})  # fmt: skip
THOUGHTS = ("thinking", "redacted_thinking")
"""Types of blocks that the model signs, or seals: the API takes them back as they were, or not at all."""
MEDIA = frozenset({"image", "document", "container_upload"})
"""Types of blocks that may carry something other than text."""
SPOKEN = frozenset({"text", "thinking", "input", "title", "context"})
"""Members of a block that are there to be read, besides `content` and `source`."""
BLOCK_FIELDS = SPOKEN | {
    "type", "signature", "data", "encrypted_content", "encrypted_index", "encrypted_stdout", "content", "source", "id",
    "name", "tool_use_id", "is_error", "cache_control", "citations", "caller", "toolset_name", "server_name", "file_id",
    "tool_name", "from", "to", "trigger", "tool_changes", "tabs", "state_changes", "parsed_output", "transformations",
}  # fmt: skip
SOURCE_FIELDS = frozenset({"type", "media_type", "data", "url", "file_id", "content"})
