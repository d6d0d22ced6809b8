"""Which APIs can be guarded, and where they are spoken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.wire.places import NAMES, PLACES, asked_like, covers, fault_of, model_in, surface_at, takes
from checkstream.core.wire.surfaces import SURFACES, spoken

AZURE = "/openai/deployments/{model}/chat/completions"
PARTS = st.text("abv1{}%2Ef.*", max_size=4) | st.sampled_from(["v1", "chat", "{model}", "{a}", "..", "%2e%2e", ""])
PATHS = st.lists(PARTS, min_size=1, max_size=5).map(lambda parts: "/" + "/".join(parts))


def test_every_name_has_its_surface_and_every_place_a_name() -> None:
    assert (*SURFACES, "mcp") == NAMES
    assert all(spoken(name).name == name for name in NAMES)
    assert set(PLACES.values()) == set(SURFACES)  # tools are served anywhere
    assert all(fault_of(pattern) is None and surface_at(pattern) == name for pattern, name in PLACES.items())


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/chat/completions", "openai.chat"),
        ("/openai/deployments/gpt-5/chat/completions", "openai.chat"),
        ("/openai/deployments/my%20own/embeddings", "openai.embeddings"),
        ("/openai/v1/completions", "openai.completions"),
        ("/openai/v1/responses/input_tokens", "openai.responses.input_tokens"),
        ("/openai/responses/resp_1", "openai.responses.stored"),
        ("/openai/responses/resp_1/cancel", "openai.responses.cancel"),
        ("/v1beta/openai/chat/completions", "openai.chat"),
        ("/v2/rerank", "cohere.rerank"),
        ("/v1/images/generations", None),
        ("/v1/chat/completions/", None),
        ("/openai/deployments//chat/completions", None),
        ("/openai/deployments/../chat/completions", None),
        ("/openai/deployments/%2e%2e/chat/completions", None),
        ("/openai/deployments/a%2Fb/chat/completions", None),
        ("/openai/deployments/a/b/chat/completions", None),
    ],
)
def test_the_api_is_told_by_the_path(path: str, name: str | None) -> None:
    assert surface_at(path) == name


def test_the_model_is_what_the_path_calls_so() -> None:
    assert model_in(AZURE, "/openai/deployments/gpt-5/chat/completions") == "gpt-5"
    assert model_in(AZURE, "/openai/deployments/my%20own/chat/completions") == "my own"
    assert model_in("/{tenant}/v1/chat/completions", "/a/v1/chat/completions") is None
    assert model_in("/v1/chat/completions", "/v1/chat/completions") is None


@pytest.mark.parametrize(
    "pattern", ["v1", "", "/a*b", "/a{b}", "/{a}b/c", "/{}", "/{a b}", "/{1}", "/{a}/{a}", "/}", "/{", "/{{a}}"]
)
def test_a_pattern_that_is_none_is_told(pattern: str) -> None:
    assert fault_of(pattern) is not None


@given(PATHS, PATHS)
def test_g17_a_beginning_that_takes_a_path_covers_every_pattern_that_takes_it_too(pattern: str, path: str) -> None:
    if fault_of(pattern) is not None or not takes(pattern, path):
        return
    for end in range(1, len(path) + 1):
        prefix = path[:end] + "*"
        if "*" not in path[:end] and takes(prefix, path):
            assert covers(prefix, pattern), (prefix, pattern, path)


def test_a_beginning_covers_what_can_begin_so_and_nothing_else() -> None:
    for prefix in ("/*", "/openai/*", "/openai/deployments/*", "/openai/deployments/gpt*", "/openai/deployments/x/ch*"):
        assert covers(prefix, AZURE)
    for prefix in ("/openai/v1/*", "/openai/deployments/x/images/*", "/openai/deployments/x/chat/completions/*"):
        assert not covers(prefix, AZURE)


@given(PATHS, PATHS)
def test_no_pattern_and_no_path_makes_it_fail(pattern: str, path: str) -> None:
    if fault_of(pattern) is None:
        assert takes(pattern, path) in {True, False}
        assert model_in(pattern, path) is None or takes(pattern, path) in {True, False}
    assert surface_at(path) is None or surface_at(path) in NAMES


@pytest.mark.parametrize(
    ("path", "surface"),
    [
        ("/v1/chat/completions", "openai.chat"),
        ("/v1/messages/batches", "anthropic.messages"),
        ("/v1/v1/messages", "anthropic.messages"),
        ("/messages", "anthropic.messages"),
        ("/api/pull", "ollama.chat"),
        ("/api/v1/models", None),
        ("/v1/threads/t/messages", None),
        ("/v1/files", None),
    ],
)
def test_errors_have_the_form_of_the_api_that_is_asked_for(path: str, surface: str | None) -> None:
    assert asked_like(path) == surface
