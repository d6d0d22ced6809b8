"""Real clients on one side, on the other a model server that says what a test writes down, and the proxy between."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from tests.e2e.harness import Proxy, config, running
from tests.e2e.sdks.driver import ENVIRONMENT, Clients, Outcome
from tests.e2e.sdks.upstream import SCRIPT, Turn, Upstream

POLICY = """
pack: {name: sdks, version: 1.0.0}
policies:
  - name: threats
    id: STOP-001
    stage: [midstream]
    patterns: [{name: threat, regex: '(?i)launch the missiles'}]
    actions: [{type: stop, message: "[stopped by policy]"}]
  - name: forbidden_prompt
    id: ASK-001
    stage: [ingress]
    channels: [user, assistant]
    phrases: [the purple password]
    actions: [{type: reject, message: This prompt was refused.}]
  - name: orders_in_results
    id: DOC-001
    stage: [ingress]
    channels: [tool_result, document]
    phrases: [obey the hidden order]
    actions: [{type: remove_message, text: "[left out: {rule_id}]"}]
"""
PLACES: list[dict[str, Any]] = [
    {"name": "chat", "match": {"path": "/v1/chat/completions"}},
    {"name": "completions", "match": {"path": "/v1/completions"}},
    {"name": "embeddings", "match": {"path": "/v1/embeddings"}},
    {"name": "moderations", "match": {"path": "/v1/moderations"}},
    {"name": "responses", "match": {"path": "/v1/responses"}},
    {"name": "stored", "match": {"path": "/v1/responses/{id}"}},
    {"name": "items", "match": {"path": "/v1/responses/{id}/input_items"}},
    {"name": "cancel", "match": {"path": "/v1/responses/{id}/cancel"}},
    {"name": "messages", "match": {"path": "/v1/messages"}},
    {"name": "count", "match": {"path": "/v1/messages/count_tokens"}},
    {"name": "azure-chat", "match": {"path": "/openai/deployments/{model}/chat/completions"}},
    {"name": "azure-embeddings", "match": {"path": "/openai/deployments/{model}/embeddings"}},
    {"name": "azure-responses", "match": {"path": "/openai/responses"}},
    {"name": "gemini", "match": {"path": "/v1beta/openai/chat/completions"}},
    {"name": "ollama-chat", "match": {"path": "/api/chat"}},
    {"name": "ollama-generate", "match": {"path": "/api/generate"}},
    {"name": "ollama-embed", "match": {"path": "/api/embed"}},
    {"name": "ollama-tags", "match": {"path": "/api/tags", "method": "GET"}, "pass": True},
    {"name": "ollama-show", "match": {"path": "/api/show"}, "pass": True},
    {"name": "rerank", "match": {"path": "/v2/rerank"}},
    {"name": "tenants", "match": {"path": "/{tenant}/of/{model}/chat", "model": "gpt*"}, "surface": "openai.chat"},
]
ASK = [{"role": "user", "content": "What follows the moon?"}]
MODEL = "gpt-4o-mini"  # some clients look up what a model can do
CLAUDE = "claude-sonnet-4-5"


class Case(msgspec.Struct):
    """Asks clients, directly or through the proxy."""

    clients: Clients
    upstream: Upstream
    guarded_url: str

    def direct(self, sdk: str, do: str, *turns: Turn, **asked: Any) -> Outcome:
        """Ask the upstream itself."""
        return self._ask(sdk, do, self.upstream.url, turns, asked)[0]

    def guarded(self, sdk: str, do: str, *turns: Turn, **asked: Any) -> Outcome:
        """Ask through the proxy."""
        return self._ask(sdk, do, self.guarded_url, turns, asked)[0]

    def received(self, sdk: str, do: str, *turns: Turn, **asked: Any) -> tuple[Outcome, list[dict[str, Any]]]:
        """Ask through the proxy, and return what reached the upstream besides."""
        return self._ask(sdk, do, self.guarded_url, turns, asked)

    def received_directly(self, sdk: str, do: str, *turns: Turn, **asked: Any) -> list[dict[str, Any]]:
        """Ask the upstream itself, and return what reached it."""
        return self._ask(sdk, do, self.upstream.url, turns, asked)[1]

    def asked_directly(self, sdk: str, do: str, *turns: Turn, **asked: Any) -> tuple[Outcome, list[dict[str, Any]]]:
        """Ask the upstream itself, and return what reached it besides."""
        return self._ask(sdk, do, self.upstream.url, turns, asked)

    def _ask(
        self, sdk: str, do: str, url: str, turns: tuple[Turn, ...], asked: dict[str, Any]
    ) -> tuple[Outcome, list[dict[str, Any]]]:
        name = self.upstream.says(*turns)
        model = CLAUDE if sdk.endswith("_messages") else MODEL
        common = {"sdk": sdk, "do": do, "url": f"{url}/v1", "headers": {SCRIPT: name}, "model": model}
        outcome = self.clients.ask({"messages": ASK, "stream": False, **common, **asked})
        return outcome, self.upstream.asked(name)


@pytest.fixture(scope="session")
def clients() -> Iterator[Clients]:
    if not (ENVIRONMENT / "stamp").exists():
        pytest.skip("needs the client libraries: `make .venv-sdks/stamp`")
    with Clients() as found:
        yield found


@pytest.fixture(scope="session")
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    yield server
    server.close()


@pytest.fixture(scope="session")
def begin(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Proxy]:
    """Return what starts a proxy before the upstream: `begin(policies, policy=its own rules, fault=..., **route)`."""
    numbers = itertools.count()

    def made(
        policies: list[str],
        *,
        policy: str = POLICY,
        fault: str | None = None,
        limits: dict[str, Any] | None = None,
        places: list[dict[str, Any]] | None = None,
        **route: Any,
    ) -> Proxy:
        folder = tmp_path_factory.mktemp(f"sdks-{next(numbers)}")
        (folder / "policy.yaml").write_text(policy)
        settings = config(upstream.url, folder, policies, places=places or PLACES, **route)
        settings["server"]["limits"] = limits or {}
        return Proxy(settings, folder) if fault is None else Proxy.with_faulty_models(settings, folder, fault)

    return made


@pytest.fixture(scope="session")
def guarded(begin: Callable[..., Proxy]) -> Iterator[Proxy]:
    """The shipped policies and models, with a few rules of the tests' own besides."""
    with running(begin(["builtin:default", "policy.yaml"])) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def case(clients: Clients, upstream: Upstream, guarded: Proxy) -> Case:
    return Case(clients, upstream, guarded.url)
