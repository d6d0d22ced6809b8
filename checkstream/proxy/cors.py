"""Which pages may read a route's answers in a browser: CORS, as the Fetch standard has it, 3.2.

The preflight is answered here and never sent on; what the upstream says of it never leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aiohttp import hdrs
from aiohttp.web import BaseRequest, Response

from checkstream.proxy.accept import Route, on_path
from checkstream.proxy.background import EARLIER_RISK
from checkstream.proxy.confirm import CONFIRM
from checkstream.proxy.ids import REQUEST_ID, STREAM
from checkstream.proxy.replies import ACTION, POLICY

_EXPOSED = (
    f"{STREAM}, {POLICY}, {ACTION}, {CONFIRM}, {EARLIER_RISK}, {REQUEST_ID}, request-id, x-should-retry, retry-after, "
    "mcp-session-id"
)
_PREFLIGHT_S = "600"
_TOKEN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_, ")


def origins_of(routes: Sequence[Route], path: str) -> frozenset[str]:
    """Return the origins that may read what some route of a path answers."""
    return frozenset().union(*(route.origins for route in on_path(routes, path)))


def shown_to(origins: frozenset[str], request: BaseRequest) -> Mapping[str, str]:
    """Return the headers that let the page that asks read the answer; none if it may not."""
    if not origins:
        return {}
    origin = request.headers.get(hdrs.ORIGIN, "")
    if "*" not in origins and origin.lower() not in origins:
        return {"vary": "origin"}
    allowed = "*" if "*" in origins else origin
    return {
        "access-control-allow-origin": allowed,
        "access-control-expose-headers": _EXPOSED,
        "vary": "origin",
    }


def preflight(routes: Sequence[Route], request: BaseRequest) -> Response | None:
    """Answer a browser that asks whether a page may ask; None for any other request, and where no page may."""
    wanted = request.headers.get("access-control-request-method")
    if request.method != hdrs.METH_OPTIONS or wanted is None or hdrs.ORIGIN not in request.headers:
        return None
    found = on_path(routes, request.rel_url.raw_path)
    shown = dict(shown_to(frozenset().union(*(route.origins for route in found)), request))
    if not shown:
        return None
    if "access-control-allow-origin" not in shown:
        return Response(status=403, headers={**shown, "server": "checkstream"})
    asked = request.headers.get("access-control-request-headers", "").lower()
    shown["access-control-allow-methods"] = ", ".join(
        sorted({method for route in found if route.origins for method in route.methods})
    )
    if asked and set(asked) <= _TOKEN:
        shown["access-control-allow-headers"] = asked
    if request.headers.get("access-control-request-private-network") == "true":
        shown["access-control-allow-private-network"] = "true"
    shown["access-control-max-age"] = _PREFLIGHT_S
    shown["vary"] = "origin, access-control-request-method, access-control-request-headers"
    return Response(status=204, headers={**shown, "server": "checkstream"})
