"""Which route takes a request. The first match wins; no match is never an unguarded pass."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import msgspec

from checkstream.config import GroundingSettings, Match, Quota, RescoreSettings
from checkstream.core.exchange.guard import Plan
from checkstream.core.wire.json_text.strict import StrictJson
from checkstream.core.wire.mcp.surface import Mcp
from checkstream.core.wire.places import model_in, takes, takes_model
from checkstream.core.wire.surface import Surface
from checkstream.errors import MethodWrong, RequestInvalid, RouteUnknown
from checkstream.proxy.questions import Classifiers
from checkstream.proxy.signpost import Taken, not_yet, wrong_model, wrong_path
from checkstream.proxy.upstream import UpstreamClient


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One route as it is in force: settings, compiled. A stream keeps the route that it started with (G25)."""

    name: str
    match: Match
    upstream: UpstreamClient
    surface: Surface | Mcp | None = None
    """The API that is spoken here; None: passed on unguarded."""
    plan: Plan | None = None
    """What the guard is to do; None: passed on unguarded."""
    scorer: Classifiers | None = None
    """Whom the guard asks: the models that the plan's policies were compiled for. None with no plan."""
    policies: str = ""
    """`name@version, ...` for the response header."""
    grounding: GroundingSettings | None = None
    rescore: RescoreSettings | None = None
    """How its answers are held against evidence; None: not at all."""
    origins: frozenset[str] = frozenset()
    """Whose pages may read its answers, in lower case; `*`: everybody's."""
    quota: Quota | None = None
    """What one caller may have on it; None: no less than of the process."""
    body_bytes: int | None = None
    """How long a body it takes; None: what the process takes."""
    candidate: bool = False
    """Its policies are of a bundle that only a share of the callers is answered by."""

    @property
    def methods(self) -> frozenset[str]:
        """Of HTTP, that it takes."""
        return frozenset({self.match.method}) if self.surface is None else self.surface.methods


_LONG_BYTES = 524_288
"""Of a body that is looked through at once for its model, in some 2 ms at most."""


class _ModelOnly(msgspec.Struct):
    model: str | None = None


def candidates(routes: Sequence[Route], path: str, method: str) -> list[Route]:
    """Return the routes that take this path and method, whatever the model.

    Raises:
        RouteUnknown: no route has this path.
        MethodWrong: routes with this path have other methods; its second argument lists them.
    """
    there = on_path(routes, path)
    if not there:
        raise RouteUnknown(wrong_path(_taken(routes), path, method))
    found = [route for route in there if method in route.methods]
    if not found and not_yet(path) is not None:
        raise RouteUnknown(wrong_path(_taken(routes), path, method))
    if not found:
        allowed = sorted({each for route in there for each in route.methods})
        raise MethodWrong(f"`{path}` takes {' or '.join(allowed)}, not `{method[:20]}`", allowed)
    return found


def on_path(routes: Sequence[Route], path: str) -> list[Route]:
    """Return the routes that take this path, whatever the method."""
    return [route for route in routes if takes(route.match.path, path)]


def choose(found: Sequence[Route], path: str, body: bytes) -> Route:
    """Return the first of `found` that takes the request's model: what the path calls so, else the body.

    The body is read loosely: one that is not what the surface accepts is refused by the guard, not here. With a
    doubled `model` key it doesn't matter which is taken, since the guard refuses such a body (G31).

    Raises:
        RouteUnknown: no route takes this model.
    """
    return found[0] if found[0].match.model == "*" else chosen(found, path, _model(body))


def choosing(found: Sequence[Route], path: str, body: bytes) -> Generator[None, None, Route]:
    """Return what `choose` returns, in steps where the body is long: one call that looked for its model would hold all.

    Raises:
        RouteUnknown: no route takes this model.
    """
    if found[0].match.model == "*" or len(body) <= _LONG_BYTES:
        return choose(found, path, body)
    try:
        model = (yield from StrictJson("the body").reading(body)).get("model")
    except RequestInvalid:
        model = None
    return chosen(found, path, model if isinstance(model, str) else None)


def chosen(found: Sequence[Route], path: str, model: str | None) -> Route:
    """Return the first of `found` that takes a model; None: the body names none.

    Raises:
        RouteUnknown: no route takes it.
    """
    for route in found:
        pattern, named = route.match.model, model_in(route.match.path, path) or model
        if pattern == "*" or (named is not None and takes_model(pattern, named)):
            return route
    raise RouteUnknown(wrong_model(_taken(found), model or ""))


def _taken(routes: Sequence[Route]) -> list[Taken]:
    return [Taken(route.match, route.upstream.name) for route in routes]


def _model(body: bytes) -> str | None:
    try:
        return msgspec.json.decode(body, type=_ModelOnly).model
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
