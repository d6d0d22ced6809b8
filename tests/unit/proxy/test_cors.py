"""Pages that may ask, and what a browser is told."""

from __future__ import annotations

from typing import cast

import pytest
from aiohttp.test_utils import make_mocked_request

from checkstream.config import Match
from checkstream.core.wire.mcp.surface import MCP
from checkstream.proxy.accept import Route
from checkstream.proxy.cors import origins_of, preflight, shown_to
from checkstream.proxy.upstream import UpstreamClient

PAGE = "https://chat.example"


def route(path: str, *origins: str, method: str = "POST") -> Route:
    match = Match(path=path, method=cast("None", method))  # type: ignore[arg-type]
    return Route(name=path, match=match, upstream=cast("UpstreamClient", None), origins=frozenset(origins))


TOOLS = Route(
    name="tools",
    match=Match(path="/mcp"),
    upstream=cast("UpstreamClient", None),
    surface=MCP,
    origins=frozenset({PAGE}),
)
ROUTES = [TOOLS, route("/a", PAGE), route("/a", method="GET"), route("/b"), route("/c", "*", method="GET")]


def asked(path: str, origin: str = PAGE, method: str = "OPTIONS", **more: str) -> dict[str, str] | None:
    headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    headers |= {name.replace("_", "-"): value for name, value in more.items()}
    response = preflight(ROUTES, make_mocked_request(method, path, headers=headers))
    return None if response is None else {"status": str(response.status), **response.headers}


def test_a_preflight_is_answered_here() -> None:
    told = asked("/a", Access_Control_Request_Headers="authorization,content-type,x-stainless-os")
    assert told is not None
    assert (told["status"], told["access-control-allow-origin"]) == ("204", PAGE)
    assert told["access-control-allow-methods"] == "POST"
    assert told["access-control-allow-headers"] == "authorization,content-type,x-stainless-os"
    assert "origin" in told["vary"]
    assert "access-control-allow-private-network" not in told
    told = asked("/a", Access_Control_Request_Private_Network="true")
    assert told is not None
    assert told["access-control-allow-private-network"] == "true"


def test_a_page_may_use_all_that_a_server_of_tools_takes() -> None:
    told = asked("/mcp")
    assert told is not None
    assert told["access-control-allow-methods"] == "DELETE, GET, POST"
    assert "mcp-session-id" in told["access-control-expose-headers"]


def test_other_pages_and_other_paths_get_nothing() -> None:
    told = asked("/a", "https://attacker.example")
    assert told is not None
    assert told["status"] == "403"
    assert not [name for name in told if name.startswith("access-control-")]
    assert asked("/b") is None
    assert asked("/a", method="POST") is None
    odd = asked("/a", Access_Control_Request_Headers="x\r\nset-cookie: a")
    assert odd is not None
    assert "access-control-allow-headers" not in odd


@pytest.mark.parametrize(
    ("origins", "origin", "allowed"),
    [
        ({PAGE}, PAGE, PAGE),
        ({PAGE}, "https://attacker.example", None),
        ({PAGE}, "null", None),
        ({"*"}, "https://anyone.example", "*"),
        (set(), PAGE, None),
    ],
)
def test_an_answer_is_shown_to_listed_pages(origins: set[str], origin: str, allowed: str | None) -> None:
    shown = shown_to(frozenset(origins), make_mocked_request("POST", "/a", headers={"Origin": origin}))
    assert shown.get("access-control-allow-origin") == allowed
    assert ("vary" in shown) == bool(origins)
    assert "access-control-allow-credentials" not in shown
    if allowed is not None:
        assert "x-checkstream-stream" in shown["access-control-expose-headers"]


def test_errors_of_a_path_are_shown_to_the_pages_of_its_routes() -> None:
    assert origins_of(ROUTES, "/a") == {PAGE}
    assert origins_of(ROUTES, "/nowhere") == frozenset()
