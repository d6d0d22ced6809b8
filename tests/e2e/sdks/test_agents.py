"""The Agents SDK, whose runs are several requests: agents hand over to each other, and tools are those of a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.harness import Proxy, running
from tests.e2e.sdks.conftest import POLICY, Case
from tests.e2e.sdks.driver import Clients
from tests.e2e.sdks.speech import SPEECHES, Speech
from tests.e2e.sdks.test_calm import PERSON, TEXT
from tests.e2e.sdks.test_mcp import SECRET, Server
from tests.e2e.sdks.test_requests import STREAMS

CARD = "4111 1111 1111 1111"
OVER: tuple[str, dict[str, Any]] = ("transfer_to_cashier", {})
STOPPED = "[stopped by policy]"


@pytest.fixture(params=["openai_agents", "openai_agents_responses"], ids=["chat", "responses"])
def sdk(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def speech(sdk: str) -> Speech:
    return SPEECHES["openai.responses" if sdk.endswith("_responses") else "openai.chat"]


@STREAMS
def test_g05_an_agent_hands_over_to_the_next(case: Case, sdk: str, speech: Speech, stream: bool) -> None:
    said = [speech.calls(OVER, stream=stream), speech.calls(("pay", {"amount": 5}), stream=stream)]
    turns = [*said, speech.texts(TEXT, stream=stream)]
    told, direct = (ask(sdk, "hands_over", *turns, stream=stream) for ask in (case.guarded, case.direct))
    assert told.given() == direct.given() == {"text": TEXT, "agent": "cashier"}
    assert told.ran == direct.ran == [("pay", {"amount": 5, "card": None})]


@STREAMS
def test_g31_what_the_second_agent_calls_with_is_edited(case: Case, sdk: str, speech: Speech, stream: bool) -> None:
    pays = speech.calls(("pay", {"amount": 5, "card": CARD}), stream=stream)
    turns = [speech.calls(OVER, stream=stream), pays, speech.texts(f"It was {CARD}.", stream=stream)]
    outcome, asked = case.received(sdk, "hands_over", *turns, stream=stream)
    assert outcome.ran == [("pay", {"amount": 5, "card": "[CREDIT_CARD]"})]
    assert outcome.given()["text"] == "It was [CREDIT_CARD]."
    assert len(asked) == 3
    assert CARD not in json.dumps(asked)


@STREAMS
def test_g35_nobody_is_handed_over_to_where_a_rule_stops_the_call(
    case: Case, sdk: str, speech: Speech, stream: bool
) -> None:
    over = ("transfer_to_cashier", {"note": "launch the missiles"})
    outcome, asked = case.received(
        sdk, "hands_over", speech.calls(over, stream=stream), speech.texts(TEXT, stream=stream), stream=stream
    )
    assert len(asked) == 1
    assert "launch" not in str(outcome)
    if outcome.error is None:
        assert outcome.value["agent"] == "first"
        assert STOPPED in outcome.value["text"]
    else:
        assert "content_filter" in outcome.raised()  # the SDK ends a run so where a stream says that it was filtered


@STREAMS
def test_g20_a_prompt_that_is_refused_behind_a_tool_ends_the_run(
    case: Case, sdk: str, speech: Speech, stream: bool
) -> None:
    looks = speech.calls(("look_up", {"about": "the purple password"}), stream=stream)
    outcome, asked = case.received(sdk, "agent", looks, speech.texts(TEXT, stream=stream), stream=stream)
    assert outcome.ran == [("look_up", {"about": "the purple password"})]
    assert "(rule ASK-001" in outcome.raised()  # what a model calls with is read when it is sent again
    assert len(asked) == 1


@STREAMS
def test_structured_output_behind_tools_stays_what_it_is(case: Case, sdk: str, speech: Speech, stream: bool) -> None:
    turn = speech.texts(json.dumps({**PERSON, "city": CARD}), stream=stream)
    assert case.guarded(sdk, "shape", turn, stream=stream).given() == {**PERSON, "city": "[CREDIT_CARD]"}


@pytest.fixture(scope="module")
def tools(clients: Clients, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of tools behind a proxy."""
    del clients  # without them there is no server
    server = Server()
    folder = tmp_path_factory.mktemp("tools")
    (folder / "policy.yaml").write_text(POLICY.replace("remove_message, text", "reject, message"))
    route = {"name": "tools", "match": {"path": "/mcp"}, "surface": "mcp", "upstream": "tools"}
    settings = {
        "server": {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0"},
        "upstreams": {"tools": {"url": server.url}},
        "routes": [{**route, "policies": ["builtin:default", "policy.yaml"]}],
        "audit": {"dir": str(folder / "audit")},
    }
    with running(Proxy(settings, folder)) as proxy:
        yield f"{proxy.url}/mcp"
    server.close()


def results(asked: list[dict[str, Any]]) -> str:
    """What the model was told of the tools, in the second request."""
    return json.dumps(asked[1])


@STREAMS
def test_g31_the_tools_of_a_server_behind_the_proxy_are_guarded_both_ways(
    case: Case, tools: str, sdk: str, speech: Speech, stream: bool
) -> None:
    def ran(name: str, **given: Any) -> tuple[Any, list[dict[str, Any]]]:
        called = speech.calls((name, given), stream=stream)
        return case.received(sdk, "with_server", called, speech.texts(TEXT, stream=stream), stream=stream, tools=tools)

    outcome, asked = ran("echo", text="The tides rise.")
    assert outcome.given()["text"] == TEXT
    assert "The tides rise." in results(asked)
    assert "echo" in json.dumps(asked[0]["tools"])
    _, asked = ran("leak")
    assert SECRET[8:] not in results(asked)
    assert "AWS_ACCESS_KEY" in results(asked)
    _, asked = ran("inject", where="note")
    assert "DOC-001" in results(asked)
    assert "of this page" not in results(asked)
