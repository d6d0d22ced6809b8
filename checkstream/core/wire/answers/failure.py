"""What an upstream says in place of an answer."""

from __future__ import annotations

from checkstream.core.wire.json_text.strings import clean


def failure_of(body: dict[str, object]) -> str | None:
    """Return the message of the error object that stands in place of an answer, None if there is none.

    Read are OpenAI's `{"error": {"message": ...}}`, `{"error": "..."}` (Ollama) and
    `{"object": "error", "message": ...}` (older vLLM).
    """
    error = body.get("error")
    if error is None or error is False:
        if body.get("object") != "error":
            return None
        error = body
    message = error.get("message") if isinstance(error, dict) else error
    return clean(message) if isinstance(message, str) and message else "the upstream reported an error"
