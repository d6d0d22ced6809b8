"""The methods of the Model Context Protocol and their members (G31): what is known, and as whose words it is read.

Source: the specification's versions 2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28 ("Schema Reference"); JSON-RPC
2.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_INPUTS = ("inputResponses", "requestState")


def _members(*names: str) -> frozenset[str]:
    return frozenset({"_meta", *names})


HEAD = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
ERROR = frozenset({"code", "message", "data"})

OF_CALLERS: Mapping[str, frozenset[str]] = MappingProxyType({
    "initialize": _members("protocolVersion", "capabilities", "clientInfo"),
    "server/discover": _members(),
    "ping": _members(),
    "tools/list": _members("cursor"),
    "tools/call": _members("name", "arguments", "task", *_INPUTS),
    "resources/list": _members("cursor"),
    "resources/templates/list": _members("cursor"),
    "resources/read": _members("uri", *_INPUTS),
    "resources/subscribe": _members("uri"),
    "resources/unsubscribe": _members("uri"),
    "subscriptions/listen": _members("notifications"),
    "prompts/list": _members("cursor"),
    "prompts/get": _members("name", "arguments", *_INPUTS),
    "completion/complete": _members("ref", "argument", "context"),
    "logging/setLevel": _members("level"),
    "tasks/get": _members("taskId"),
    "tasks/result": _members("taskId"),
    "tasks/cancel": _members("taskId"),
    "tasks/list": _members("cursor"),
    "notifications/initialized": _members(),
    "notifications/cancelled": _members("requestId", "reason"),
    "notifications/progress": _members("progressToken", "progress", "total", "message"),
    "notifications/roots/list_changed": _members(),
    "notifications/tasks/status": _members(
        "taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"
    ),
})  # fmt: skip
"""Method that callers ask for, or tell -> members of its parameters."""

CALL, LIST = "tools/call", "tools/list"
BY_MODEL = frozenset({CALL})
"""Methods whose parameters a model writes."""

ENTRIES = frozenset({"tools", "prompts", "resources", "resourceTemplates"})
"""Members of results that list what a server has: each entry is judged, and taken out, by itself."""
TEXTS = frozenset({"contents", "messages"})
"""Members of results that hold the text of resources and prompts: `document`, each entry by itself."""
APART = frozenset({"content", "structuredContent", "arguments"})
"""Members that are judged each by itself: what a tool says as text it often says as a value once more."""
ADDRESSES = frozenset({"uri", "url", "src", "websiteUrl"})
"""What signs an address is no secret that has slipped in (see `wire.addresses`)."""
SETTINGS = frozenset({
    "method", "type", "role", "mimeType", "level", "logger", "name", "id", "toolUseId", "progressToken", "requestId",
    "taskId",
    "status", "version", "protocolVersion", "uriTemplate", "theme", "sizes", "mode", "elicitationId", "action",
    "resultType", "stopReason", "model", "includeContext", "createdAt", "lastUpdatedAt", "lastModified", "audience",
    "cacheScope", "nextCursor", "cursor", "requestState", "supportedVersions",
})  # fmt: skip
"""Members that hold ids, names and mode words: patterns read them, and classifiers where they are sentences."""
FREE = frozenset({
    "arguments", "structuredContent", "_meta", "data", "input", "inputSchema", "outputSchema", "requestedSchema",
    "experimental", "extensions", "metadata", "inputResponses", "inputRequests",
})  # fmt: skip
"""Members in which the authors of tools call things as they like."""
KNOWN = SETTINGS | FREE | ADDRESSES | ENTRIES | TEXTS | frozenset({
    "text", "title", "description", "content", "isError", "blob", "resource", "annotations", "icons", "required",
    "priority", "size", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint", "taskSupport",
    "execution",
    "capabilities", "listChanged", "subscribe", "tools", "logging", "completions", "completion", "values", "total",
    "hasMore", "serverInfo", "clientInfo", "instructions", "message", "progress", "reason", "systemPrompt", "maxTokens",
    "temperature", "modelPreferences", "hints", "costPriority", "speedPriority", "intelligencePriority",
    "stopSequences", "toolChoice", "sampling", "elicitation", "roots", "ttl", "ttlMs", "pollInterval", "task", "tasks",
    "statusMessage", "error", "code", "ref", "argument", "context", "value", "notifications", "elicitations",
})  # fmt: skip
"""Members whose names are the protocol's; any other's name is read as well."""
MEDIA = frozenset({"image", "audio"})
"""Types of content whose `data` is no text."""
