"""Ollama's errors: an object whose `error` is the message, which is what its clients raise with."""

from __future__ import annotations

import msgspec

from checkstream.core.wire.json_text.strings import clean
from checkstream.core.wire.refusing import named


def error_body(kind: str, message: str, rule_id: str | None = None, param: str | None = None) -> bytes:
    """Return the error object; kind, place and rule stand beside the message, which names the last two as well."""
    more = {"param": param, "rule_id": rule_id}
    return msgspec.json.encode(
        {
            "error": clean(named(message, rule_id, param)),
            "code": kind,
            **{name: value for name, value in more.items() if value is not None},
        }
    )
