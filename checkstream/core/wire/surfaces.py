"""Which API surface a request speaks, by its method and path."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from checkstream.core.wire.openai_chat import OpenAIChat
from checkstream.core.wire.openai_completions import OpenAICompletions
from checkstream.core.wire.openai_inputs import EMBEDDINGS, MODERATIONS
from checkstream.core.wire.surface import Surface

SURFACES: Mapping[str, Surface] = MappingProxyType(
    {
        "/v1/chat/completions": OpenAIChat(),
        "/v1/completions": OpenAICompletions(),
        "/v1/embeddings": EMBEDDINGS,
        "/v1/moderations": MODERATIONS,
    }
)
"""Path -> surface. Surfaces hold no state: one of each serves every stream (G11)."""


def surface_for(path: str, method: str = "POST") -> Surface | None:
    """Return the surface of a path, None when it is not guarded."""
    return SURFACES.get(path) if method == "POST" else None
