"""Where APIs are spoken: patterns of paths, and what is known of the paths that servers have in common.

A pattern is a path in which a part may be `{name}`, which stands for one part of any name, or the beginning of paths
followed by `*`. Source: the API references of OpenAI, Anthropic, Azure OpenAI ("Azure OpenAI in Microsoft Foundry
Models REST API"), Google ("OpenAI compatibility"), Cohere and Jina ("Rerank"); vLLM's server.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal, get_args
from urllib.parse import unquote

SurfaceName = Literal[
    "openai.chat", "openai.completions", "openai.responses", "anthropic.messages", "openai.embeddings",
    "openai.moderations", "cohere.rerank", "openai.responses.stored", "openai.responses.cancel",
    "openai.responses.input_tokens", "anthropic.count_tokens", "ollama.chat", "ollama.generate", "ollama.embed",
    "ollama.embeddings", "mcp",
]  # fmt: skip
"""An API that can be guarded."""
NAMES: tuple[SurfaceName, ...] = get_args(SurfaceName)

PLACES: Mapping[str, SurfaceName] = MappingProxyType({
    "/v1/chat/completions": "openai.chat",
    "/v1/completions": "openai.completions",
    "/v1/responses": "openai.responses",
    "/v1/responses/input_tokens": "openai.responses.input_tokens",
    "/v1/responses/{id}": "openai.responses.stored",
    "/v1/responses/{id}/input_items": "openai.responses.stored",
    "/v1/responses/{id}/cancel": "openai.responses.cancel",
    "/v1/messages": "anthropic.messages",
    "/v1/messages/count_tokens": "anthropic.count_tokens",
    "/v1/embeddings": "openai.embeddings",
    "/v1/moderations": "openai.moderations",
    "/v1/rerank": "cohere.rerank",
    "/v2/rerank": "cohere.rerank",
    "/api/chat": "ollama.chat",
    "/api/generate": "ollama.generate",
    "/api/embed": "ollama.embed",
    "/api/embeddings": "ollama.embeddings",
    "/openai/deployments/{model}/chat/completions": "openai.chat",
    "/openai/deployments/{model}/completions": "openai.completions",
    "/openai/deployments/{model}/embeddings": "openai.embeddings",
    "/openai/v1/chat/completions": "openai.chat",
    "/openai/v1/completions": "openai.completions",
    "/openai/v1/responses": "openai.responses",
    "/openai/v1/responses/{id}": "openai.responses.stored",
    "/openai/v1/responses/{id}/input_items": "openai.responses.stored",
    "/openai/v1/responses/{id}/cancel": "openai.responses.cancel",
    "/openai/v1/responses/input_tokens": "openai.responses.input_tokens",
    "/openai/responses": "openai.responses",
    "/openai/responses/{id}": "openai.responses.stored",
    "/openai/responses/{id}/input_items": "openai.responses.stored",
    "/openai/responses/{id}/cancel": "openai.responses.cancel",
    "/openai/v1/embeddings": "openai.embeddings",
    "/v1beta/openai/chat/completions": "openai.chat",
    "/v1beta/openai/embeddings": "openai.embeddings",
})  # fmt: skip
"""Pattern -> the API that is spoken there by everybody who has such a path. On others the route says it."""

_MODEL = "{model}"
_MOST_ENCODINGS = 4
"""A path that is percent-encoded as often as this hides something."""


def takes(pattern: str, path: str) -> bool:
    """Tell whether a path is one of a pattern's, to every reader of paths."""
    if pattern[-1] == "*":
        return path.startswith(pattern[:-1]) and _is_plain(path)
    if "{" not in pattern:
        return path == pattern
    wanted, given = pattern.split("/"), path.split("/")
    return (
        len(wanted) == len(given)
        and all(part == name or (_is_open(part) and name) for part, name in zip(wanted, given, strict=True))
        and _is_plain(path)
        and all("/" not in unquote(name) for name in given)
    )


def surface_at(path: str) -> SurfaceName | None:
    """Return the API that is spoken at a path, or at a pattern of them; None: nobody knows."""
    if path in PLACES:
        return PLACES[path]
    return next((name for pattern, name in PLACES.items() if takes(pattern, path)), None)


def asked_like(path: str) -> SurfaceName | None:
    """Return the API whose clients ask at such a path, also where nothing is served: they read errors of its form."""
    known = surface_at(path)
    if known is not None:
        return known
    plain = path.removeprefix("/v1").removeprefix("/v1")
    if plain.startswith("/messages"):
        return "anthropic.messages"
    return "ollama.chat" if path.startswith("/api/") and not path.startswith("/api/v") else None


def model_in(pattern: str, path: str) -> str | None:
    """Return the model that a path names where its pattern has `{model}`; None: it names none."""
    if _MODEL not in pattern:
        return None
    found = dict(zip(pattern.split("/"), path.split("/"), strict=False))
    return unquote(found[_MODEL]) if _MODEL in found else None


def open_parts(pattern: str, path: str) -> Iterator[tuple[str, str]]:
    """Yield what stands in a path where its pattern leaves it open, with the name there; percent-encoding undone."""
    for name, part in zip(pattern.split("/"), path.split("/"), strict=False):
        if _is_open(name):
            yield name[1:-1], unquote(part)


def takes_model(pattern: str, model: str) -> bool:
    """Tell whether a model's name is a pattern's, to any server: `gpt-4` takes `GPT-4` and ` gpt%2D4 `, too.

    Some servers look past letter case, spaces and encodings, and a stricter route must not be escaped by any of them.
    """
    wanted, given = _known_as(pattern.removesuffix("*")), _known_as(model)
    return given.startswith(wanted) if pattern.endswith("*") else given == wanted


def _known_as(model: str) -> str:
    """Return a model's name without what some server looks past."""
    for _ in range(_MOST_ENCODINGS):
        model = unquote(model)
    folded = unicodedata.normalize("NFKC", model).casefold()
    return "".join(char for char in folded if char.isprintable() and not char.isspace())


def covers(prefix: str, pattern: str) -> bool:
    """Tell whether a pattern that ends with `*` takes paths of another pattern, too."""
    beginning, others = prefix[:-1].split("/"), pattern.removesuffix("*").split("/")
    *whole, last = beginning
    if len(beginning) > len(others):
        return pattern[-1] == "*" and prefix.startswith(pattern[:-1])
    same = all(part == name or _is_open(name) for part, name in zip(whole, others, strict=False))
    rest = others[len(whole)]
    return same and (rest.startswith(last) or _is_open(rest) or (pattern[-1] == "*" and last.startswith(rest)))


def fault_of(pattern: str) -> str | None:
    """Return what is wrong with a pattern; None: nothing."""
    if not pattern.startswith("/"):
        return f"`{pattern}` is not a path; begin it with `/`"
    if "*" in pattern[:-1]:
        return f"`{pattern}`: `*` may stand at the end only"
    names = [part for part in pattern.removesuffix("*").split("/") if "{" in part or "}" in part]
    if not all(_is_open(name) for name in names):
        return f"`{pattern}`: `{{name}}` stands for a whole part of a path, between two `/`"
    if len(set(names)) < len(names):
        return f"`{pattern}`: two parts have one name"
    return None


def _is_open(part: str) -> bool:
    return part[:1] == "{" and part[-1:] == "}" and part[1:-1].isidentifier()


def _is_plain(path: str) -> bool:
    """Tell whether no reader of a path could take it for one outside the folder that it seems to be in."""
    for _ in range(_MOST_ENCODINGS):
        decoded = unquote(path)
        if decoded == path:
            names = (name.partition(";")[0] for name in path.replace("\\", "/").split("/")[1:])
            return path.isprintable() and all(name not in {"", ".", ".."} for name in names)
        path = decoded
    return False
