"""Errors of a stream of the Responses API, on which all of its clients raise."""

from __future__ import annotations

from checkstream.core.wire import sse
from checkstream.core.wire.openai.envelope import error_body
from checkstream.core.wire.responses.objects import members, written


def error_event(kind: str, message: str, rule_id: str | None = None, *, number: int = 0) -> bytes:
    """Return the error event for a stream that can't go on.

    The API's own event has code and message at its top, where typed clients look for them; OpenAI's SDKs raise on an
    event that has `error`. This one has both.
    """
    found = members(error_body(kind, message, rule_id))
    said = members(found["error"])
    top = {"type": b'"error"', "sequence_number": str(number).encode()}
    top |= {name: said[name] for name in ("code", "message", "param")}
    return sse.encode(written(top | found), "error")
