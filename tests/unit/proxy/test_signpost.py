"""Who asks for a path that no route takes is told what would be right, in words that can be pasted."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from checkstream.config import Match, default_config, read_config
from checkstream.proxy.signpost import Taken, wrong_model, wrong_path

ROUTES = [Taken(route.match, route.upstream) for route in default_config("http://h").routes]


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/chat/completions", "/v1/chat/completions"),
        ("/v1/v1/chat/completions", "/v1/chat/completions"),
        ("/v1/chat/completions/", "/v1/chat/completions"),
        ("/v1/chat/completion", "/v1/chat/completions"),
        ("/v1/chat/Completions", "/v1/chat/completions"),
        ("/embeddings", "/v1/embeddings"),
        ("/models", "/v1/models"),
    ],
)
def test_the_path_that_was_meant_is_named(path: str, meant: str) -> None:
    assert wrong_path(ROUTES, path, "POST").endswith(f"did you mean `{meant}`?")


def test_another_path_is_told_which_there_are() -> None:
    said = wrong_path(ROUTES, "/somewhere", "GET")
    assert said.startswith("no route takes `GET /somewhere`; routes take `POST /v1/chat/completions`,")
    assert "`POST /v1/embeddings`" in said
    assert "/v1/responses/input_tokens" not in said  # with `/v1/responses`, nobody needs to be told
    assert len(said) < 300
    assert wrong_path([], "/x", "GET") == "no route takes `GET /x`"
    assert "`server.admin`" in wrong_path(ROUTES, "/metrics", "GET")


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "WebSocket"])
@pytest.mark.parametrize(
    ("path", "instead"),
    [
        *(
            (path, "call `/v1/messages`, once for each")
            for path in (
                "/v1/messages/batches", "/v1/messages/batches/", "/v1/messages/batches/msgbatch_1",
                "/v1/messages/batches/msgbatch_1/results", "/v1/messages/batches/msgbatch_1/cancel",
                "/v1/Messages/BATCHES", "//v1/messages//batches", "/v1/v1/messages/batches", "/messages/batches",
                "/anthropic/v1/messages/batches", "/v1/messages/%62atches", "/v1/messages%252Fbatches",
            )
        ),
        *(
            (path, "send the items")
            for path in (
                "/v1/responses/compact", "/v1/responses/compact/", "/responses/compact", "/v1/Responses/Compact",
                "/openai/v1/responses/compact", "/openai/responses/compact",
            )
        ),
    ],
)  # fmt: skip
def test_g31_what_no_surface_reads_is_named_however_it_is_written(method: str, path: str, instead: str) -> None:
    said = wrong_path(ROUTES, path, method)
    assert f"it can't be guarded in this version; {instead}" in said
    assert "guards it:" not in said


@pytest.mark.parametrize(
    "path", ["/v1/messages/batch", "/v1/responses/compacted", "/v1/batches", "/messages/x/batches"]
)
def test_what_is_called_alike_is_something_else(path: str) -> None:
    assert "in this version" not in wrong_path(ROUTES, path, "POST")


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
def test_who_looks_at_the_front_door_is_told_what_stands_here_and_where_to_go(path: str) -> None:
    said = wrong_path(ROUTES, path, "GET")
    assert "this is checkstream" in said
    assert "base URL" in said
    assert re.search(r"`POST /v1/moderations` and \d+ more\Z", said)
    assert len(said) < 400
    assert "this is checkstream" not in wrong_path(ROUTES, "/favicon.ico", "GET")


def test_of_many_routes_and_models_few_are_told() -> None:
    many = [Taken(Match(path=f"/p{n}", model=f"a-{n}"), "u") for n in range(500)]
    for said in (wrong_path(many, "/somewhere", "GET"), wrong_model(many, "x")):
        assert said.endswith(" and 494 more")
        assert len(said) < 200


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("POST", "/v1/files", "/v1/files"),
        ("GET", "/v1/files", "/v1/files"),
        ("DELETE", "/v1/files/file-1", "/v1/files/*"),
        ("POST", "/v1/batches/b/cancel", "/v1/batches/*"),
        ("POST", "/v1/images/generations", "/v1/images/*"),
        ("POST", "/v1/audio/transcriptions", "/v1/audio/*"),
        ("POST", "/v1/conversations", "/v1/conversations"),
        ("POST", "/openai/v1/conversations", "/openai/v1/conversations"),
        ("GET", "/openai/v1/files/file-1/content", "/openai/v1/files/*"),
        ("POST", "/api/pull", "/api/pull"),
        ("HEAD", "/api/blobs/sha256:0", "/api/blobs/*"),
        ("POST", "/v1/chat/completions", "/v1/chat/completions"),
        ("POST", "/v1/moderations", "/v1/moderations"),
        ("POST", "/openai/deployments/gpt-5/embeddings", "/openai/deployments/gpt-5/embeddings"),
        ("POST", "/inference/v1/chat/completions", "/inference/v1/chat/completions"),
        ("POST", "/api/v1/rerank", "/api/v1/rerank"),
    ],
)
def test_the_line_of_configuration_that_is_shown_takes_the_request(method: str, path: str, name: str) -> None:
    said = wrong_path([Taken(Match(path="/v1/other"), "local")], path, method)
    line = said[said.index("`- {") + 1 : said.rindex("`")]
    (written,) = yaml.safe_load(line)
    config = read_config("c.yaml", f"upstreams: {{local: {{url: http://h}}}}\nroutes:\n  {line}\n", Path())
    (route,) = config.routes
    assert (route.match.path, route.match.method, route.upstream) == (name, method, "local")
    assert route.pass_ is ("policies" not in written)
    assert ("unread" in said) is route.pass_


@given(st.text(string.printable), st.text(string.printable))
def test_no_path_and_no_method_makes_it_fail_or_grow(path: str, method: str) -> None:
    assert len(wrong_path(ROUTES, "/" + path, method)) < 1000
    assert len(wrong_path(ROUTES, "/v1/files/" + path * 100, "POST")) < 1000
    assert len(wrong_model(ROUTES, path * 100)) < 1000


def test_a_model_that_no_route_takes_is_told_which_are_taken() -> None:
    taken = [Taken(Match(path="/v1/chat/completions", model=model), "u") for model in ("gpt-5", "llama*")]
    assert wrong_model(taken, "gpt5") == "no route takes the model `gpt5`; did you mean `gpt-5`?"
    assert wrong_model(taken, "x") == "no route takes the model `x`; routes take `gpt-5`, `llama*`"
