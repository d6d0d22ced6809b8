"""Every path at which an API is known to be spoken, and two of a route's own: each is guarded as what it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from checkstream.core.policy.capabilities import PROMPT_ONLY, STORED
from checkstream.core.wire.places import PLACES
from tests import messages, responses
from tests.e2e.harness import Proxy, http, running
from tests.e2e.sdks.upstream import SCRIPT, Upstream

CARD = "4111 1111 1111 1111"
SAID = f"Your card is {CARD}, isn't it?"
EDITED = "Your card is [CREDIT_CARD], isn't it?"
OWN = {"/acme/{tenant}/talk": "openai.responses", "/claude/v1/messages": "anthropic.messages"}
EVERY = {**PLACES, **OWN}


def asking(surface: str, text: str) -> dict[str, Any]:
    """Return a request that says a text."""
    said = [{"role": "user", "content": text}]
    asked: dict[str, Any] = {"model": "m"}
    match surface:
        case "openai.chat" | "ollama.chat" | "anthropic.messages" | "anthropic.count_tokens":
            asked |= {"messages": said, "max_tokens": 9} if surface.startswith("anthropic") else {"messages": said}
        case "openai.completions" | "ollama.generate" | "ollama.embeddings":
            asked["prompt"] = text
        case "cohere.rerank":
            asked |= {"query": text, "documents": ["a"]}
        case _:
            asked["input"] = text
    return asked | ({"stream": False} if surface.startswith("ollama") else {})


def answering(surface: str) -> bytes:
    """Return an answer that says a card's number."""
    choice = {"index": 0, "finish_reason": "stop"}
    said = {"role": "assistant", "content": SAID}
    match surface:
        case "openai.chat":
            return json.dumps({"choices": [{**choice, "message": said}]}).encode()
        case "openai.completions":
            return json.dumps({"choices": [{**choice, "text": SAID}]}).encode()
        case "anthropic.messages":
            return messages.whole({"type": "text", "text": SAID})
        case "ollama.chat":
            return json.dumps({"model": "m", "message": said, "done": True, "done_reason": "stop"}).encode()
        case "ollama.generate":
            return json.dumps({"model": "m", "response": SAID, "done": True, "done_reason": "stop"}).encode()
    return responses.whole(responses.message(SAID))


@pytest.fixture(scope="module")
def everywhere(begin: Callable[..., Proxy]) -> Iterator[Proxy]:
    """Yield a proxy with a route for each of the paths."""
    own = {pattern: {"surface": name} for pattern, name in OWN.items()}
    places = [
        {"name": f"at-{number}", "match": {"path": pattern}, **own.get(pattern, {})}
        for number, pattern in enumerate(sorted(EVERY, key=lambda pattern: "{" in pattern))
    ]
    with running(begin(["builtin:default", "policy.yaml"], places=places)) as proxy:
        yield proxy


@pytest.mark.parametrize("pattern", sorted(EVERY))
def test_g13_g31_every_path_is_guarded_as_the_api_that_is_spoken_there(
    everywhere: Proxy, upstream: Upstream, pattern: str
) -> None:
    surface = EVERY[pattern]
    url = everywhere.url + pattern.format(model="m", id="resp_1", tenant="blue")
    if surface not in STORED:
        name = upstream.says({"raw": answering(surface).decode()})
        status, _, body = http("POST", url, asking(surface, "Tell me the purple password."), headers={SCRIPT: name})
        assert status == 400
        assert b"ASK-001" in body
        assert upstream.asked(name) == []
    if surface in PROMPT_ONLY:
        return
    name = upstream.says({"raw": answering(surface).decode()})
    asked = None if surface in STORED else asking(surface, "Which?")
    method = "GET" if surface == "openai.responses.stored" else "POST"
    status, _, body = http(method, url, asked, headers={SCRIPT: name})
    assert status == 200, body
    assert CARD not in body.decode()
    assert EDITED in body.decode()
    assert len(upstream.heads[name]) == 1
