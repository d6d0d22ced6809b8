"""What a span says of an exchange, in the words of OpenTelemetry's GenAI conventions where they have some."""

from __future__ import annotations

from checkstream.core.commands import StreamRecord
from checkstream.telemetry.models import NONE, OTHER
from checkstream.telemetry.traces import Trace, Value

VERDICT = "checkstream.verdict"
"""Event of a rule that has fired ..."""
OF_VERDICT = tuple(f"checkstream.{name}" for name in ("action", "rule_id", "stage", "mode", "policy"))
"""... and what it says of it."""
_FAILED = frozenset({"detector_failed", "overloaded", "work_exceeded", "upstream_failed", "failed"})
_OPERATIONS = {
    "completions": "text_completion",
    "generate": "text_completion",
    "embeddings": "embeddings",
    "embed": "embeddings",
    "mcp": "execute_tool",
}
"""Last part of a surface's name -> what is done there; all others are a `chat`."""


def told_of(trace: Trace, record: StreamRecord, *, stream: str, route: str, model: str, status: int) -> None:
    """End the span of an exchange.

    Args:
        trace: Its span.
        record: What is kept of it.
        stream: Its id.
        route: Which route has taken it.
        model: As metrics name it; one that they don't tell apart is not named.
        status: What its caller got.
    """
    provider, _, rest = record.surface.partition(".")
    operation = _OPERATIONS.get(rest.rpartition(".")[2] or provider, "chat")
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": operation,
        "http.response.status_code": status,
        "checkstream.stream": stream,
        "checkstream.route": route,
        "checkstream.surface": record.surface,
        "checkstream.action": record.action,
        "checkstream.outcome": record.outcome,
        "checkstream.policies": record.policies,
        "checkstream.streaming": record.streaming,
        "checkstream.held_ms": record.held_ms,
        "checkstream.prompt_chars": record.prompt_chars,
        "checkstream.released_chars": record.released_chars,
    }
    if rest:
        attributes["gen_ai.provider.name"] = provider
    if model not in {NONE, OTHER}:
        attributes["gen_ai.request.model"] = model
    failed = record.outcome in _FAILED
    if failed:
        attributes["error.type"] = record.outcome
    trace.ended(
        f"{operation} {model}" if "gen_ai.request.model" in attributes else operation, attributes, failed=failed
    )
