"""Streams as many servers send them: each client reads through the proxy what it reads without it (G5, G35)."""

from __future__ import annotations

import pytest

from tests.e2e.sdks import servers
from tests.e2e.sdks.conftest import Case
from tests.e2e.sdks.test_calm import AGENTS, SAYS, TALKERS, TEXT, plain


@pytest.mark.parametrize("sdk", TALKERS)
def test_g05_streams_of_many_servers_are_read_alike(case: Case, sdk: str) -> None:
    verbs = ["chat"] if sdk in {"openai_agents", "pydantic_ai", "vercel"} else ["chat", "helper"]
    for name, events in servers.TEXTS.items():
        if (sdk, name) == ("openai_agents", "litellm"):
            continue  # that SDK takes no thoughts without a signature
        for do in verbs:
            told = case.guarded(sdk, do, {"events": events}, stream=True).given()
            assert do == "helper" or told["text"] == "The tides rise.", name
            assert plain(told) == plain(case.direct(sdk, do, {"events": events}, stream=True).given()), name


@pytest.mark.parametrize("sdk", AGENTS)
def test_g35_calls_of_many_servers_are_run_alike(case: Case, sdk: str) -> None:
    for name, events in servers.CALLS.items():
        if (sdk, name) == ("openai_node", "mistral"):
            continue  # it leaves out `type`, without which that SDK takes no call
        outcome = case.guarded(sdk, "agent", {"events": events}, SAYS, stream=True)
        assert outcome.given()["text"] == TEXT, name
        assert outcome.ran == [("look_up", {"about": "tides"})], name
