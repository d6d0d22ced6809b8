"""Every API that can be guarded, by its name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from checkstream.core.wire.anthropic.surface import AnthropicCounting, AnthropicMessages
from checkstream.core.wire.mcp.surface import MCP, Mcp
from checkstream.core.wire.ollama.inputs import EMBED
from checkstream.core.wire.ollama.inputs import EMBEDDINGS as OLLAMA_EMBEDDINGS
from checkstream.core.wire.ollama.surface import CHAT, GENERATE
from checkstream.core.wire.openai.chat import OpenAIChat
from checkstream.core.wire.openai.completions import OpenAICompletions
from checkstream.core.wire.openai.inputs import EMBEDDINGS, MODERATIONS, RERANK
from checkstream.core.wire.responses.counting import COUNTING
from checkstream.core.wire.responses.stored import CANCEL, STORED
from checkstream.core.wire.responses.surface import RESPONSES
from checkstream.core.wire.surface import Surface

_ALL: tuple[Surface, ...] = (
    OpenAIChat(), OpenAICompletions(), RESPONSES, AnthropicMessages(), EMBEDDINGS, MODERATIONS, RERANK,
    STORED, CANCEL, COUNTING, AnthropicCounting(), CHAT, GENERATE, EMBED, OLLAMA_EMBEDDINGS,
)  # fmt: skip
SURFACES: Mapping[str, Surface] = MappingProxyType({surface.name: surface for surface in _ALL})
"""Name -> surface whose answers are text. Surfaces hold no state: one of each serves every stream (G11)."""


def spoken(name: str) -> Surface | Mcp:
    """Return the surface of this name, whatever is said there."""
    return MCP if name == MCP.name else SURFACES[name]
