"""Errors in Anthropic's shape, by whose types its SDKs' own error classes are told."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from checkstream.core.wire import sse
from checkstream.core.wire.json_text.strings import clean
from checkstream.core.wire.refusing import named

_TYPES: Mapping[str, str] = MappingProxyType({
    "invalid_request_error": "invalid_request_error", "request_blocked": "invalid_request_error",
    "request_needs_confirmation": "invalid_request_error", "unknown_field": "invalid_request_error",
    "unsupported_part": "invalid_request_error", "method_not_allowed": "invalid_request_error",
    "not_found": "not_found_error", "authentication_error": "authentication_error",
    "host_not_allowed": "permission_error", "origin_not_allowed": "permission_error",
    "request_too_large": "request_too_large", "prompt_too_large": "request_too_large",
    "request_timeout": "timeout_error", "overloaded": "overloaded_error", "unavailable": "overloaded_error",
    "guard_unavailable": "overloaded_error", "server_shutting_down": "overloaded_error",
})  # fmt: skip
"""What happened -> Anthropic's type. Source: Anthropic API reference, "Errors"; all else is an `api_error`."""


def error_body(kind: str, message: str, rule_id: str | None = None, param: str | None = None) -> bytes:
    """Return Anthropic's error object.

    What happened stands as `code` beside the type, and `rule_id` inside `error` and beside it. Most SDKs show people
    the message alone, so it names the rule and the place as well.
    """
    error: dict[str, str | None] = {
        "type": _TYPES.get(kind, "api_error"),
        "message": clean(named(message, rule_id, param)),
        "code": kind,
    }
    if param is not None:
        error["param"] = param
    if rule_id is None:
        return msgspec.json.encode({"type": "error", "error": error})
    return msgspec.json.encode({"type": "error", "error": error | {"rule_id": rule_id}, "rule_id": rule_id})


def error_event(kind: str, message: str, rule_id: str | None = None) -> bytes:
    """Return the error object as an event, on which Anthropic's SDKs raise."""
    return sse.encode(error_body(kind, message, rule_id), "error")
