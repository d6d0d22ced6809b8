"""Ollama's APIs that answer a text with figures: embed (`POST /api/embed`), and the older `POST /api/embeddings`."""

from __future__ import annotations

from checkstream.core.wire import sse
from checkstream.core.wire.ollama import errors, fields
from checkstream.core.wire.openai.inputs import OpenAIInputs


class OllamaInputs(OpenAIInputs):
    """The surfaces `ollama.embed` and `ollama.embeddings`: figures as OpenAI's, errors as Ollama's."""

    def error_event(self, kind: str, message: str, rule_id: str | None = None) -> bytes:
        """Return the error object as an event."""
        return sse.encode(errors.error_body(kind, message, rule_id))

    def error_body(self, kind: str, message: str, rule_id: str | None = None, param: str | None = None) -> bytes:
        """Return Ollama's error object."""
        return errors.error_body(kind, message, rule_id, param)


EMBED = OllamaInputs("ollama.embed", fields.EMBED, "input", "embeddings")
EMBEDDINGS = OllamaInputs("ollama.embeddings", fields.EMBEDDINGS, "prompt", "embedding")
