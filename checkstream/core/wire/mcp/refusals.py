"""What stands in the place of a message that policy does not let pass, in the form that clients raise or show.

An answer to a call of a tool is a result with `isError`, which a model reads as the tool's own failure; any other
answer is an error of JSON-RPC, which SDKs raise. A server's request becomes one that no client knows: its client
refuses it by itself, and the server hears that. A notification is left out.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from checkstream.core.wire.json_text.strings import clean
from checkstream.core.wire.mcp import fields
from checkstream.core.wire.mcp.heads import Head

BLOCKED, FAILED, INVALID = -32010, -32011, -32600
"""Codes of errors: policy; something that failed; no message. The first two are of those that servers may define."""
WITHHELD = "checkstream/withheld"
"""The method of a server's request that was not let through."""
_CODES: Mapping[str, int] = {
    "invalid_request_error": INVALID,
    "unknown_field": INVALID,
    "unsupported_part": INVALID,
    "request_blocked": BLOCKED,
    "response_blocked": BLOCKED,
    "request_needs_confirmation": BLOCKED,
}


class Why(msgspec.Struct, frozen=True):
    """Why a message is not let through."""

    kind: str
    message: str
    rule_id: str | None = None
    param: str | None = None
    """The place in the message that it is about."""

    @property
    def said(self) -> str:
        """The message with rule and place, which most clients show alone."""
        named = [f"rule {self.rule_id}"] if self.rule_id is not None and self.rule_id not in self.message else []
        named += [self.param] if named and self.param is not None and self.param not in self.message else []
        return clean(f"{self.message} ({', '.join(named)})" if named else self.message)

    @property
    def data(self) -> dict[str, str]:
        """The same for programs."""
        found = {"type": self.kind, "rule_id": self.rule_id, "param": self.param}
        return {name: value for name, value in found.items() if value is not None}


def error(number: int | str | None, why: Why) -> bytes:
    """Return the error that answers a request; None: one that could not be read."""
    code = _CODES.get(why.kind, FAILED)
    body = {"code": code, "message": why.said, "data": why.data}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "error": body})


def instead(head: Head, asked: str, why: Why, result: object = None) -> bytes | None:
    """Return what leaves in the place of a server's message; None: nothing.

    Args:
        head: Of the message.
        asked: The method of the request that it answers; empty: nobody knows.
        why: Why it does not leave.
        result: What the message holds as its result.
    """
    match head.kind:
        case "notification":
            return None
        case "request":
            params = {"_meta": {"checkstream": {**why.data, "message": why.said}}}
            return _message(head, {"method": WITHHELD, "params": params})
        case "result" if asked == fields.CALL or (not asked and isinstance(result, dict) and "content" in result):
            failed: dict[str, object] = {
                "content": [{"type": "text", "text": why.said}],
                "isError": True,
                "_meta": {"checkstream": why.data},
            }
            if isinstance(result, dict) and "resultType" in result:
                failed["resultType"] = "complete"
            return _message(head, {"result": failed})
        case _:
            return error(head.id, why)


def _message(head: Head, members: Mapping[str, object]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": head.id, **members})
