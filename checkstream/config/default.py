"""The configuration that one needs not write: policies in front of one model server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from checkstream.config.files import BUILTIN
from checkstream.config.servers import Upstream
from checkstream.config.settings import Config, Match, RouteSettings
from checkstream.core.wire.places import PLACES

DEFAULT_POLICIES = (BUILTIN + "default",)
PASSED_PATHS: Mapping[str, tuple[str, Literal["GET", "POST"]]] = {
    "models": ("/v1/models", "GET"),
    "model": ("/v1/models/*", "GET"),
    "azure-models": ("/openai/v1/models", "GET"),
    "azure-model": ("/openai/v1/models/*", "GET"),
    "gemini-models": ("/v1beta/openai/models", "GET"),
    "gemini-model": ("/v1beta/openai/models/*", "GET"),
    "ollama-tags": ("/api/tags", "GET"),
    "ollama-ps": ("/api/ps", "GET"),
    "ollama-version": ("/api/version", "GET"),
    "ollama-show": ("/api/show", "POST"),
}
"""Of the default configuration, by the name of the route: what goes through unguarded, since no prompt is in it."""


def unplaced(upstream: str, policies: Sequence[str] = ()) -> Config:
    """Return the configuration for one model server, with paths that are still relative.

    Raises:
        ValueError: the url is none.
    """
    guarding = tuple(policies) or DEFAULT_POLICIES
    guarded = [
        RouteSettings(
            name=_name_at(path),
            match=Match(path=path),
            upstream="default",
            policies=guarding,
        )
        for path in PLACES
    ]
    passed = [
        RouteSettings(name=name, match=Match(path=path, method=method), upstream="default", pass_=True)
        for name, (path, method) in PASSED_PATHS.items()
    ]
    return Config(upstreams={"default": Upstream(url=upstream)}, routes=(*guarded, *passed))


def _name_at(path: str) -> str:
    """Return the name of a route at one of the paths that servers have in common."""
    parts = (part for part in path.removeprefix("/v1").split("/") if part != "{model}")
    return "-".join(filter(None, (part.strip("{}") for part in parts)))
