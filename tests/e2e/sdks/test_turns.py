"""Answers that are rewritten, or cut and continued by the model: each client reads one answer of one text (G8, G20)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.e2e.harness import Proxy, running
from tests.e2e.sdks import test_messages, test_ollama, test_responses
from tests.e2e.sdks.conftest import PLACES, Case
from tests.e2e.sdks.driver import Clients
from tests.e2e.sdks.test_requests import STREAMS
from tests.e2e.sdks.upstream import Turn, Upstream

POLICY = """
pack: {name: turns, version: 1.0.0}
policies:
  - name: promise
    id: FIN-1
    stage: [midstream]
    phrases: [guaranteed return]
    actions: [{type: rewrite_span, words: {guaranteed return: expected return}, scope: span}]
  - name: laundering
    id: SAFE-1
    stage: [midstream]
    phrases: [launder money]
    actions: [{type: safe_mode, temperature: 0.2, message: "[The rest was withheld.]"}]
"""
SDKS = [
    "openai", "openai_node", "langchain", "litellm", "llama_index", "openai_agents", "pydantic_ai", "vercel",
    "anthropic", "anthropic_node", "langchain_messages", "litellm_messages", "vercel_messages", "ollama", "ollama_node",
    "openai_responses", "openai_node_responses", "langchain_responses", "openai_agents_responses",
    "pydantic_ai_responses", "vercel_responses",
]  # fmt: skip
EACH = pytest.mark.parametrize("sdk", SDKS)


@pytest.fixture(scope="module")
def turning(begin: Callable[..., Proxy], clients: Clients, upstream: Upstream) -> Iterator[Case]:
    """A proxy before an upstream that goes on with answers, for the surfaces that can: others are refused."""
    places = [place for place in PLACES if place["name"] in {"chat", "responses", "messages", "ollama-chat"}]
    with running(begin(["policy.yaml"], policy=POLICY, places=places, upstream={"can": ["continue"]})) as proxy:
        yield Case(clients, upstream, proxy.url)


def says(sdk: str, text: str, *, stream: bool) -> Turn:
    """A turn of the API that a client speaks."""
    if sdk.startswith("anthropic") or sdk.endswith("_messages"):
        return test_messages.says(test_messages.text(text), stream=stream)
    if sdk.endswith("_responses"):
        return test_responses.says(test_responses.text(text), stream=stream)
    if sdk.startswith("ollama"):
        return test_ollama.turn(*(text[at : at + 7] for at in range(0, len(text), 7)), stream=stream)
    return {"choices": [{"content": text}]}


def said(case: Case, sdk: str, *turns: Turn, stream: bool) -> str:
    do = "helper" if sdk.startswith("anthropic") and stream else "chat"
    text: str = case.guarded(sdk, do, *turns, stream=stream).given()["text"]
    return text


@STREAMS
@EACH
def test_g08_words_are_put_in_place_of_others(turning: Case, sdk: str, stream: bool) -> None:
    turn = says(sdk, "There is a guaranteed return on it, every year.", stream=stream)
    assert said(turning, sdk, turn, stream=stream) == "There is a expected return on it, every year."


@STREAMS
@EACH
def test_g08_an_answer_that_is_cut_goes_on_as_one(turning: Case, sdk: str, stream: bool) -> None:
    first = says(sdk, "You could launder money with a shop.", stream=stream)
    blank = " " if "messages" in sdk or sdk.startswith("anthropic") else ""  # its models do not see the last blank
    second = says(sdk, f"{blank}live on a guaranteed return.", stream=stream)
    assert said(turning, sdk, first, second, stream=stream) == "You could live on a expected return."


@STREAMS
@pytest.mark.parametrize("sdk", ["openai", "openai_responses", "anthropic_node", "langchain_messages", "ollama"])
def test_g20_an_answer_that_can_not_go_on_ends_with_the_rule_s_words(turning: Case, sdk: str, stream: bool) -> None:
    first = says(sdk, "You could launder money with a shop.", stream=stream)
    refused: Turn = {"body": {"error": {"message": "the last message must be the user's"}}, "status": 400}
    assert said(turning, sdk, first, refused, stream=stream) == "You could [The rest was withheld.]"
