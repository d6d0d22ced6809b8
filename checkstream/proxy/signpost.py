"""What would be right: said to who asks for what no route takes. Decides nothing, reads only the routes."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from urllib.parse import unquote

import msgspec

from checkstream.config import Match
from checkstream.core.wire.places import PLACES, fault_of, surface_at

_SHOWN = 200
_MOST_TOLD = 6
"""Of the paths or models that routes take: who reads it looks for one, and an operator has the configuration."""
_FRONT_DOORS = frozenset({"", "/", "/v1", "/v1/"})
"""Where people look first, with a browser or with `curl`."""
_WHO = (
    "this is checkstream, which guards a model server: give this address, for OpenAI's API with `/v1` behind it, to a "
    "client as its base URL"
)
_UNREAD = frozenset({
    "/v1/assistants", "/v1/audio", "/v1/batches", "/v1/containers", "/v1/conversations", "/v1/evals", "/v1/files",
    "/v1/fine_tuning", "/v1/images", "/v1/realtime", "/v1/score", "/v1/threads", "/v1/tokenize", "/v1/detokenize",
    "/v1/uploads", "/v1/vector_stores", "/v1/videos", "/api/blobs", "/api/copy", "/api/create", "/api/delete",
    "/api/pull", "/api/push",
})  # fmt: skip
"""Beginnings of paths that model servers know and no surface reads."""
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"})
_NOT_YET = {
    "/responses/compact/": "send the items of the conversation to `/v1/responses`",
    "/messages/batches/": "call `/v1/messages`, once for each request of the batch",
}
"""Parts of paths, wherever they stand in one -> what does the same."""
_MOST_ENCODINGS = 4
_OPERATORS = frozenset({"/livez", "/readyz", "/metrics", "/health", "/healthz", "/admin/status", "/admin/reload"})


class Taken(msgspec.Struct, frozen=True):
    """One route, as far as a signpost needs it."""

    match: Match
    upstream: str


def wrong_path(routes: Sequence[Taken], path: str, method: str) -> str:
    """Return what to say of a path that no route takes: what was meant, or the line of configuration that takes it."""
    asked = f"no route takes `{method[:20]} {path[:_SHOWN]}`"
    if path in _OPERATORS:
        return f"{asked}; health, metrics and status are on the operator's listener (`server.admin`)"
    instead = not_yet(path)
    if instead is not None:
        return f"{asked}: it can't be guarded in this version; {instead}"
    upstream = routes[0].upstream if routes else "NAME"
    guarded = f'upstream: {upstream}, policies: ["builtin:default"]'
    if surface_at(path) is not None:
        line = _line(path, method, guarded)
        return f"{asked}; this line under `routes` of the configuration guards it: {line}"
    parts = path.split("/")
    depth = 4 if parts[1:3] == ["openai", "v1"] else 3  # Azure's paths
    if "/".join(["", *parts[depth - 2 : depth]]) in _UNREAD and method in _METHODS:
        begins = path if len(parts) == depth else f"{'/'.join(parts[:depth])}/*"
        line = _line(begins, method, f"upstream: {upstream}, pass: true")
        return f"{asked}: it can't be guarded; this line under `routes` passes it on, unread, and records that: {line}"
    paths = sorted({route.match.path for route in routes})
    near = _meant(path, paths)
    if near is not None:
        return f"{asked}; did you mean `{near}`?"
    like = next((name for known, name in PLACES.items() if path.endswith(known.removeprefix("/v1"))), None)
    if like is not None and fault_of(path) is None:
        line = _line(path, "POST", f"surface: {like}, {guarded}")
        return f"{asked}; if `{like}` is spoken there, this line under `routes` of the configuration guards it: {line}"
    who = f"{_WHO}; " if path in _FRONT_DOORS else ""
    plain = [route.match for route in routes if "{" not in route.match.path]
    taken = _some([f"{match.method} {match.path}" for match in plain])
    return f"{asked}; {who}routes take {taken}" if taken else asked


def not_yet(path: str) -> str | None:
    """Return what to do in place of what can't be guarded in this version; None: a path leads to nothing like that.

    Letter case, encodings, slashes, what stands before it (Azure's paths, a gateway's) and what a batch is asked for
    don't matter.
    """
    plain = path[:_SHOWN]
    for _ in range(_MOST_ENCODINGS):
        plain = unquote(plain)
    parts = "/".join(part for part in plain.casefold().split("/") if part)
    return next((instead for known, instead in _NOT_YET.items() if known in f"/{parts}/"), None)


def wrong_model(routes: Sequence[Taken], model: str) -> str:
    """Return what to say of a model that no route takes."""
    known = sorted({route.match.model for route in routes})
    near = difflib.get_close_matches(model, known, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"routes take {_some(known)}"
    return f"no route takes the model `{model[:_SHOWN]}`; {hint}"


def _some(names: Sequence[str]) -> str:
    """Return the first few of what routes take, and how many more there are; of what begins alike the shortest."""
    shown: list[str] = []
    every = list(dict.fromkeys(names))
    for name in every:
        if len(shown) < _MOST_TOLD and not any(name.startswith(f"{known}/") for known in shown):
            shown.append(name)
    told = ", ".join(f"`{name}`" for name in shown)
    return f"{told} and {len(every) - len(shown)} more" if len(every) > len(shown) else told


def _line(path: str, method: str, rest: str) -> str:
    """Return a route as it stands in the configuration."""
    name = path.removesuffix("/*").rpartition("/")[2]
    match = path if method == "POST" or surface_at(path) is not None else f"{path}, method: {method}"
    return f"`- {{name: {name}, match: {{path: {match}}}, {rest}}}`"


def _meant(path: str, paths: Sequence[str]) -> str | None:
    """Return the path that was probably meant: with one `/v1` more or less, or another spelling."""
    plain = "/" + path.strip("/").removeprefix("v1/").removeprefix("v1/")
    for known in paths:
        if known.removeprefix("/v1") in (plain, plain.removesuffix("/")):
            return known
    near = difflib.get_close_matches(path[:_SHOWN], paths, n=1, cutoff=0.75)
    return near[0] if near else None
