from __future__ import annotations

import pytest

from checkstream.config import Match, Upstream
from checkstream.errors import MethodWrong, RouteUnknown
from checkstream.proxy.accept import Route, candidates, choose
from checkstream.proxy.upstream import UpstreamClient

CLIENT = UpstreamClient("u", Upstream(url="http://127.0.0.1:1"), {})


CHAT = "/v1/chat/completions"


def route(name: str, path: str = "/v1/chat/completions", method: str = "POST", model: str = "*") -> Route:
    return Route(name=name, match=Match(path=path, method=method, model=model), upstream=CLIENT)  # type: ignore[arg-type]


ROUTES = [
    route("models", "/v1/models", "GET"),
    route("gpt", model="gpt-*"),
    route("one", model="exact"),
    route("rest", model="*"),
]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'{"model": "gpt-5"}', "gpt"),
        (b'{"model": "exact"}', "one"),
        (b'{"model": "exactly"}', "rest"),
        (b'{"model": "EXACT"}', "one"),
        (b'{"model": " Exact\\t"}', "one"),
        (b'{"model": "ex%61ct"}', "one"),
        (b'{"model": "ex%2561ct"}', "one"),
        ('{"model": "ｅｘａｃｔ"}'.encode(), "one"),  # noqa: RUF001 - full width
        (b'{"model": "ex\\u200bact"}', "one"),
        (b'{"model": "Gpt-5"}', "gpt"),
        (b'{"model": "GPT\\u002d5"}', "gpt"),
        (b'{"model": 3}', "rest"),
        (b"not json", "rest"),
        (b"\xff\xfe", "rest"),
        (b"[" * 100_000, "rest"),
    ],
)
def test_the_first_route_that_takes_the_model(body: bytes, name: str) -> None:
    assert choose(candidates(ROUTES, CHAT, "POST"), CHAT, body).name == name


@pytest.mark.parametrize("body", [b'{"model": "gpt-5"}', b"{}", b"x"])
def test_the_model_of_the_path_counts_before_that_of_the_body(body: bytes) -> None:
    azure = "/openai/deployments/{model}/chat/completions"
    routes = [route("gpt", azure, model="gpt-*"), route("own", azure, model="own")]
    for model, name in (("gpt-4", "gpt"), ("own", "own")):
        path = azure.replace("{model}", model)
        assert choose(candidates(routes, path, "POST"), path, body).name == name
    with pytest.raises(RouteUnknown):
        choose(routes, azure.replace("{model}", "other"), body)


def test_no_route_is_never_an_unguarded_pass() -> None:
    for path in ("/v1/nope", "/v1/chat/completions/", "//v1/chat/completions", "/v1/chat%2Fcompletions", "*", ""):
        with pytest.raises(RouteUnknown):
            candidates(ROUTES, path, "POST")
    with pytest.raises(RouteUnknown, match="`other`"):
        choose([ROUTES[1]], CHAT, b'{"model": "other"}')


def test_a_beginning_of_paths_takes_what_is_below_it_and_nothing_that_leads_out_of_it() -> None:
    routes = [route("models", "/v1/models", "GET"), route("model", "/v1/models/*", "GET")]
    for path in ("/v1/models/gpt-5", "/v1/models/org/name", "/v1/models/org%2Fname", "/v1/models/a:b", "/v1/models/.x"):
        assert candidates(routes, path, "GET") == routes[1:]
    for path in (
        "/v1/models/", "/v1/models//x", "/v1/modelsx", "/v1/models/../chat/completions", "/v1/models/..%2Fchat",
        "/v1/models/%2e%2E/chat", "/v1/models/%252e%252e/chat", "/v1/models/..%5Cchat", "/v1/models/..;a/chat",
        "/v1/models/.", "/v1/models/%00", "/v1/models/%" + "25" * 6 + "2e",
    ):  # fmt: skip
        with pytest.raises(RouteUnknown):
            candidates(routes, path, "GET")
    with pytest.raises(MethodWrong):
        candidates(routes, "/v1/models/x", "DELETE")


def test_a_wrong_method_names_the_right_ones() -> None:
    with pytest.raises(MethodWrong) as caught:
        candidates(ROUTES, "/v1/models", "POST")
    assert caught.value.args[1] == ["GET"]
